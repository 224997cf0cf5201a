"""The model of the `treecrf` pipe: encoder, span scorer, one learned temperature."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import numpy as np
import torch
from spacy.attrs import IS_SPACE
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch import Tensor

from spacy_treecrf.structure.spans import SpanIndex

from .biaffine import ScorerInput, torch_device
from .threads import one_thread, share_between_threads
from .types import Segments, SpanPotentials

# Chart cells (spans times labels) scored at a time: 64 MB of float32, far below what
# the encoder holds, and large enough that calls cost nothing.
MAX_CELLS = 1 << 24

TreeCRFInput = tuple[list[Doc], Segments]


def build_treecrf(
    tok2vec: Model[list[Doc], list[Floats2d]],
    span_scorer: Model[ScorerInput, Floats2d],
) -> Model[TreeCRFInput, Iterable[SpanPotentials]]:
    """Build the model of the `treecrf` pipe.

    tok2vec (Model): Encoder of whole Docs: vectors (tokens, width) for each Doc.
    span_scorer (Model): Scores all spans of segments, which are cut after the encoder.
    RETURNS (Model): From Docs and their segments to potentials. In prediction the
        potentials are computed chunk by chunk, as they are asked for.

    Source: Fu et al. (2021), section 3.1.
    """
    model: Model[TreeCRFInput, Iterable[SpanPotentials]] = Model(
        "treecrf",
        forward,
        init=init,
        layers=[tok2vec, span_scorer],
        refs={
            "tok2vec": tok2vec,
            "span_scorer": span_scorer,
            "output_layer": span_scorer,
        },
        params={"log_temperature": None},
    )
    # The scorer, and an encoder of PyTorch inside the model.
    share_between_threads(model)
    return model


def init(
    model: Model[TreeCRFInput, Any], X: TreeCRFInput | None = None, Y: Any = None
) -> None:
    """Infer the widths from sample Docs and their segments; the temperature is 1."""
    tok2vec, scorer = model.get_ref("tok2vec"), model.get_ref("span_scorer")
    docs, segments = (None, None) if X is None else X
    tok2vec.initialize(X=docs)
    if tok2vec.has_dim("nO"):
        scorer.set_dim("nI", tok2vec.get_dim("nO"))
    if docs is None or segments is None or scorer.has_dim("nI"):
        scorer.initialize()
    else:
        scorer.initialize(X=(concatenate(tok2vec.predict(docs), model), segments))
    model.set_param("log_temperature", model.ops.alloc1f(1))
    # A scorer of somebody's own may make its layers only now.
    share_between_threads(model)


def concatenate(vectors: list[Floats2d], model: Model[Any, Any]) -> Floats2d:
    """Vectors of the tokens of all Docs, in one array. Shape: (T, nI)."""
    # A transformer's listener gives an empty Doc an array of width 0.
    filled = [array for array in vectors if len(array)]
    return cast(Floats2d, model.ops.xp.concatenate(filled or vectors))


def forward(
    model: Model[TreeCRFInput, Iterable[SpanPotentials]],
    X: TreeCRFInput | list[Doc],
    is_train: bool,
) -> tuple[Iterable[SpanPotentials], Callable[[list[Floats2d]], list[Doc]]]:
    """Encode the Docs, then score the spans of their segments in chunks.

    Docs alone, which `spacy debug model` passes, are a segment each, scored at once.

    The callback takes the gradient of each chunk's potentials, in order. It always
    reaches the encoder, be there chunks or not: a listener that is not called back
    would leave the shared encoder without the gradients of the other pipes.
    """
    docs, segments = X if isinstance(X, tuple) else (X, whole_docs(X))
    scorer = model.get_ref("span_scorer")
    vectors, backprop_tok2vec = model.get_ref("tok2vec")(docs, is_train)
    tokens = concatenate(vectors, model)
    n_labels = scorer.get_dim("nO")
    device = torch_device(scorer)
    borders = torch.from_numpy(segments.may_border).to(device)
    backprops: list[Callable[[Floats2d], Floats2d]] = []

    def score() -> Iterator[SpanPotentials]:
        for numbers in segments.chunks(MAX_CELLS // n_labels):
            chunk = segments.select(numbers)
            index = SpanIndex.build(chunk.lengths.tolist(), device, chunk.max_width)
            with one_thread():
                data, backprop = scorer((tokens, chunk, index), is_train)
            backprops.append(backprop)
            yield SpanPotentials(
                numbers, index, data, usable_spans(borders, chunk, index)
            )

    def backprop(gradients: list[Floats2d]) -> list[Doc]:
        total = model.ops.alloc2f(*tokens.shape)
        for backprop_chunk, gradient in zip(backprops, gradients, strict=True):
            with one_thread():
                total += backprop_chunk(gradient)
        offset, pieces = 0, []
        for piece in vectors:
            pieces.append(total[offset : offset + len(piece)])
            offset += len(piece)
        backprop_tok2vec(pieces)
        return docs

    is_lazy = isinstance(X, tuple) and not is_train
    return (score() if is_lazy else list(score())), backprop


def usable_spans(may_border: Tensor, segments: Segments, index: SpanIndex) -> Tensor:
    """Spans that may hold an entity: both of their edges may.

    may_border (Tensor): Of all tokens of the batch. Shape: (T,), bool.
    segments (Segments): Those of the index. index (SpanIndex): The spans.
    RETURNS (Tensor): Shape: (S,), bool.
    """
    if bool(may_border.all()):
        return torch.ones(index.n_spans, dtype=torch.bool, device=may_border.device)
    singles = index.rows(1)
    first = torch.from_numpy(segments.first).to(may_border.device)
    token = first[index.segment[singles]] + index.start[singles]
    starts = may_border[token]
    # Width by width, so that no index is as large as the spans.
    return torch.cat(
        [
            starts[:count] & may_border[token[:count] + width - 1]
            for width, count in enumerate(index.counts)
            if width
        ]
    )


def whole_docs(docs: list[Doc]) -> Segments:
    """Each Doc that has tokens as one segment."""
    lengths = np.array([len(doc) for doc in docs], dtype=np.int64)
    first = np.cumsum(lengths) - lengths
    borders = [doc.to_array(IS_SPACE) == 0 for doc in docs]
    return Segments(
        first[lengths > 0],
        lengths[lengths > 0],
        np.concatenate([np.zeros(0, dtype=bool), *borders]),
    )
