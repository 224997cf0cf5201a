"""PyTorch layers that several threads share, and how many threads torch takes."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from thinc.api import PyTorchShim, PyTorchWrapper_v2, chain
from torch import nn

from spacy_treecrf.ml.threads import one_thread, share_between_threads

X = np.ones((8, 64), dtype=np.float32)


class Meddler(nn.Module):
    """Halfway through a pass, another thread predicts with the same layers."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.linear = nn.Linear(64, 64)
        self.interrupt = None

    def forward(self, x):
        x = self.dropout(self.linear(x))
        interrupt, self.interrupt = self.interrupt, None
        if interrupt is not None:
            interrupt()
        return self.dropout(x)


def shared(module=None):
    model = PyTorchWrapper_v2(Meddler() if module is None else module)
    share_between_threads(model)
    return model


def module_of(model):
    return model.shims[0]._model


def meddle(model):
    """Predict with an interruption. RETURNS (array): What came out."""

    def interrupt():
        other = threading.Thread(target=model.predict, args=(X,))
        other.start()
        other.join()

    module_of(model).interrupt = interrupt
    return model.predict(X)


def test_threads_prediction_is_not_changed_by_another_thread():
    model = shared()
    alone = model.predict(X)
    np.testing.assert_array_equal(meddle(model), alone)


def test_threads_stock_shim_is_changed_by_another_thread():
    # What is mended here; once Thinc does it, `share_between_threads` can go.
    model = PyTorchWrapper_v2(Meddler())
    alone = model.predict(X)
    assert not np.array_equal(meddle(model), alone)


def test_threads_updates_still_drop_out_and_predictions_do_not():
    model = shared()
    first, _ = model.begin_update(X)
    second, _ = model.begin_update(X)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(model.predict(X), model.predict(X))
    third, backprop = model.begin_update(X)
    assert not np.array_equal(second, third)
    assert np.isfinite(backprop(np.ones_like(third))).all()


def test_threads_modules_are_switched_from_the_leaves():
    # Another thread that sees the module in evaluation mode must find its children so.
    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5))

        def __setattr__(self, name, value):
            if name == "training" and value is False:
                assert not any(m.training for m in self.inner.modules())
            super().__setattr__(name, value)

        def forward(self, x):
            return self.inner(x)

    model = shared(Watched())
    model.predict(X)
    assert not module_of(model).training


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: m.copy()])
def test_threads_copies_have_a_shim_of_their_own(again):
    model = shared()
    copied = again(model)
    with torch.no_grad():
        module_of(copied).linear.weight.zero_()
        module_of(copied).linear.bias.zero_()
    assert not copied.predict(X).any()
    assert model.predict(X).any()
    np.testing.assert_array_equal(meddle(copied), copied.predict(X))


def test_threads_pickled_models_stay_safe():
    model = shared()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(meddle(again), model.predict(X))


def test_threads_bytes_load_into_a_shared_model():
    model, again = shared(), shared()
    again.from_bytes(model.to_bytes())
    np.testing.assert_array_equal(meddle(again), model.predict(X))


def test_threads_all_layers_are_found():
    model = chain(PyTorchWrapper_v2(Meddler()), PyTorchWrapper_v2(Meddler()))
    share_between_threads(model)
    share_between_threads(model)
    alone = model.predict(X)
    with ThreadPoolExecutor(8) as pool:
        for many in pool.map(lambda _: model.predict(X), range(200)):
            np.testing.assert_array_equal(many, alone)


def test_threads_shims_that_predict_in_their_own_way_are_left_alone():
    class Own(PyTorchShim):
        def predict(self, inputs):
            return super().predict(inputs) + 1

    model = PyTorchWrapper_v2(nn.Identity())
    model.shims[0] = Own(nn.Linear(64, 64))
    before = model.predict(X)
    share_between_threads(model)
    np.testing.assert_array_equal(model.predict(X), before)


FORK = """
import os
from spacy_treecrf.ml import threads

with threads._switching:
    child = os.fork()
    if child == 0:
        # A lock that was held at the fork would never be let go in the child.
        os._exit(0 if threads._switching.acquire(timeout=30) else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_threads_a_fork_while_a_module_is_switched_does_not_hang():
    # In a process of its own: this one has run torch in many threads.
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=600)


def test_threads_limit_is_the_calling_thread_s():
    before = torch.get_num_threads()

    def elsewhere():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(torch.get_num_threads).result()

    others = elsewhere()
    with one_thread():
        assert torch.get_num_threads() == 1
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
        assert elsewhere() == others
    assert torch.get_num_threads() == before


def test_threads_limit_ends_with_an_error():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == before
