"""Products placed in one compiled pass, against the same by calls of torch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from spacy_treecrf.ml import decoding, span_scorer
from spacy_treecrf.ml.span_scorer import SpanScorer
from spacy_treecrf.ml.types import Segments
from spacy_treecrf.structure.spans import SpanIndex

from .chunks import chunk_of, settings_of, temperature_model

SETTINGS = {"hidden_width": 8, "depth": 2, "dropout": 0.0, "activation": "tanh"}


def scores_and_gradients(scorer, X, segments, index):
    X = X.clone().requires_grad_()
    scores = scorer(X, segments, index)
    weights = torch.linspace(-1.0, 1.0, scores.numel()).view(scores.shape)
    found = torch.autograd.grad(
        (scores * weights).sum(), [X, *scorer.parameters()], allow_unused=True
    )
    return [scores.detach(), *found]


@pytest.mark.parametrize(("pooling", "linear"), [("max", True), (None, False)])
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.none() | st.integers(2, 5),
    seeds,
)
def test_placing_gives_what_torch_gives(pooling, linear, lengths, max_width, seed):
    torch.manual_seed(seed)
    kind = {"views": 2, "linear": linear, "pooling": pooling, **SETTINGS}
    scorer = SpanScorer(6, 3, **kind).double()
    lengths = np.array(lengths)
    segments = Segments(
        lengths.cumsum() - lengths, lengths, np.ones(lengths.sum(), bool), max_width
    )
    index = SpanIndex.build(lengths.tolist(), max_width=max_width)
    X = torch.randn(int(lengths.sum()), 6, dtype=torch.float64)
    compiled = scores_and_gradients(scorer, X, segments, index)
    with torch.no_grad():
        predicted = scorer(X, segments, index)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(span_scorer, "span_kernels", lambda: None)
        by_torch = scores_and_gradients(scorer, X, segments, index)
    torch.testing.assert_close(predicted, by_torch[0])
    for one, other in zip(compiled, by_torch, strict=True):
        if one is None:
            assert other is None
            continue
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("decoder", ["cky", "mbr"])
@pytest.mark.parametrize("objective", ["treecrf", "local"])
@pytest.mark.parametrize("threshold", [None, 0.3])
def test_placing_blocks_of_decoding_change_nothing(
    monkeypatch, decoder, objective, threshold
):
    chunk = chunk_of([7, 2, 5])
    # The second entity label is a combination of both plain ones.
    membership = np.array([[1, 1], [0, 1]], dtype="float32")
    arguments = temperature_model(), [chunk], settings_of(objective=objective)
    arguments = *arguments, membership, decoder, threshold
    (whole,) = decoding.decode(*arguments)
    monkeypatch.setattr(decoding, "BLOCK_CELLS", 10)
    (blocks,) = decoding.decode(*arguments)
    for one, other in zip(whole, blocks, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
