"""How torch's layers behave when Python threads or processes share them, or a machine."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import torch
from thinc.api import ArgsKwargs, Model, PyTorchShim
from threadpoolctl import ThreadpoolController
from torch import nn


def use_one_thread() -> None:
    """Let torch compute in the calling thread alone."""
    torch.set_num_threads(1)


@lru_cache(maxsize=1)
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the body's torch operations in the calling thread alone.

    The tensors of the head are small: a second thread gains nothing on an idle machine
    and spins on a busy one, where it costs several times the work
    (`benchmarks/bench_threads.py`). Unlike `torch.set_num_threads`, which is for all
    threads of the process, OpenMP's own limit is the calling thread's: encoders and
    other people's models keep what they have.
    """
    with _openmp().limit(limits=1):
        yield


# One lock for all modules: it is held only while a module is switched, which happens once
# after training or loading. A lock of a shim's own could not be pickled.
_switching = threading.Lock()


def _renew_lock() -> None:
    # A child may have been forked while another thread of the parent held it.
    global _switching
    _switching = threading.Lock()


# `nlp.pipe(n_process=2)` forks on Linux. A child inherits the state of OpenMP's thread
# pool but not its threads, so that the first parallel operation of torch waits for ever
# if one ran in the parent before. One thread a process needs no pool, and is what
# several processes on one machine want anyway.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=use_one_thread)
    os.register_at_fork(after_in_child=_renew_lock)


def share_between_threads(model: Model[Any, Any]) -> None:
    """Let the PyTorch layers of a model predict in several threads at once.

    The `predict` of Thinc's shim, and of those that inherit it (spacy-transformers),
    switches the shared module to `eval()` and back to `train()`: one thread's switch
    turns dropout on in the forward pass of another. In its place the module stays in
    evaluation mode until the next update, which switches to training itself.

    model (Model): The model; of its shims, those of PyTorch are changed in place. They
        can be pickled, copied and reloaded as before.
    """
    for node in model.walk():
        for shim in node.shims:
            # A shim that predicts in a way of its own is left alone.
            if (
                isinstance(shim, PyTorchShim)
                and type(shim).predict is PyTorchShim.predict
            ):
                shim.predict = partial(_predict, shim)  # type: ignore[method-assign]


def _predict(shim: PyTorchShim, inputs: ArgsKwargs) -> Any:
    """`PyTorchShim.predict`, but without a switch back to training mode."""
    module = shim._model
    if module.training:
        with _switching:
            _evaluate(module)
    with torch.no_grad(), torch.autocast("cuda", enabled=shim._mixed_precision):
        return module(*inputs.args, **inputs.kwargs)


def _evaluate(module: nn.Module) -> None:
    """Switch to evaluation mode, the module itself last.

    `nn.Module.eval` begins with the module, so that another thread could see it switched
    while its children still drop out.
    """
    for child in module.children():
        child.eval()
    module.training = False
