"""From padded products to packed potentials, on the host, where Numba is installed."""

from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spacy_treecrf.structure.compiled import has_numba
from spacy_treecrf.structure.spans import SpanIndex


def span_kernels() -> ModuleType | None:
    """The compiled loops, or None where Numba is missing: torch does the same."""
    if not has_numba():
        return None
    from . import span_kernels

    return span_kernels


class Layout(NamedTuple):
    """Where the spans of some segments stand in the packed layout.

    places (np.ndarray): Place in start order of each token. Shape: (T,), int64.
    offsets (np.ndarray): First packed row of each width, from 1 on. Shape: (W,), int64.
    n_spans (int): S.
    """

    places: np.ndarray
    offsets: np.ndarray
    n_spans: int

    @classmethod
    def of(cls, index: SpanIndex) -> "Layout":
        """The layout of an index on the host."""
        singles = index.rows(1)
        tokens = index.tokens(index.segment[singles], index.start[singles])
        places = np.empty(index.n_tokens, dtype=np.int64)
        places[tokens.numpy()] = np.arange(index.n_tokens)
        return cls(places, np.array(index.offsets[1:-1]), index.n_spans)


class Cells(NamedTuple):
    """Which cells of a product are spans.

    number (np.ndarray): First token of each piece, in the segments. Shape: (pieces,).
    room (np.ndarray): Tokens of its segment from there on. Shape: (pieces,).
    """

    number: np.ndarray
    room: np.ndarray


def place_scores(
    product: Tensor, cells: Cells, layout: Layout, inner: Tensor, scores: Tensor
) -> None:
    """Write the spans of a product to the packed layout, without gradients.

    product (Tensor): Shape: (pieces, n_starts, L, n_ends).
    cells (Cells), layout (Layout): Where they are, and where they go.
    inner (Tensor): Scores of tokens, of which a span gets the highest of its own added.
        Shape: (L, T), or (L, 0) for none.
    scores (Tensor): Written to. Shape: (L, S).
    """
    kernels = span_kernels()
    assert kernels is not None
    kernels.place_spans(
        product.numpy(),
        *cells,
        layout.places,
        layout.offsets,
        inner.numpy(),
        scores.numpy(),
    )


class PlaceScores(torch.autograd.Function):
    """`place_scores` of all products of some segments, with gradients."""

    @staticmethod
    def forward(
        ctx: Any, inner: Tensor, layout: Layout, cells: list[Cells], *products: Tensor
    ) -> Tensor:
        """inner (Tensor): Shape: (L, T) or (L, 0). products (Tensor): One for each cells.
        RETURNS (Tensor): Shape: (L, S).
        """
        inner = inner.contiguous()
        ctx.save_for_backward(inner)
        ctx.layout, ctx.cells = layout, cells
        ctx.shapes = [product.shape for product in products]
        scores = inner.new_empty(len(inner), layout.n_spans)
        for product, where in zip(products, cells, strict=True):
            place_scores(product, where, layout, inner, scores)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        kernels = span_kernels()
        assert kernels is not None
        (inner,) = ctx.saved_tensors
        d_inner = torch.zeros_like(inner)
        products = [gradient.new_zeros(shape) for shape in ctx.shapes]
        for product, where in zip(products, ctx.cells, strict=True):
            kernels.gather_gradient(
                gradient.contiguous().numpy(),
                *where,
                ctx.layout.places,
                ctx.layout.offsets,
                inner.numpy(),
                product.numpy(),
                d_inner.numpy(),
            )
        return d_inner, None, None, *products
