"""Which tokens meet in the padded products of a span scorer.

Segments of similar length share a product, all starts by all ends. Of a segment beyond
the width limit only a band of that square is spans: it is cut into pieces, each a run of
starts by the ends that they reach.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from spacy_treecrf.structure.spans import SpanIndex

from .types import Segments

# Segments of one padded product may differ in length by this factor: more costs padding,
# less costs calls. Flat between 1.1 and 1.5 in benchmarks/bench_pipeline.py.
BUCKET_RATIO = 1.25


@dataclass(frozen=True)
class Pieces:
    """The pieces of one padded product, of segments that are wholly in it.

    segments (np.ndarray): Numbers of the segments. Shape: (G,), int64.
    counts (np.ndarray): Pieces of each of them, side by side. Shape: (G,), int64.
    n_starts, n_ends (int): Starts and ends of a piece, from the same token on. Piece p of
        a segment begins at its token p * n_starts.
    """

    segments: np.ndarray
    counts: np.ndarray
    n_starts: int
    n_ends: int

    @property
    def of_piece(self) -> np.ndarray:
        """Segment of each piece. Shape: (pieces,), int64."""
        return np.repeat(self.segments, self.counts)

    @property
    def begin(self) -> np.ndarray:
        """First token of each piece, in its segment. Shape: (pieces,), int64."""
        earlier = np.repeat(self.counts.cumsum() - self.counts, self.counts)
        return (np.arange(len(earlier)) - earlier) * self.n_starts

    def begins(self, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
        """First token of each piece, and tokens of its segment from there on.

        RETURNS (tuple[np.ndarray, np.ndarray]): Shape: (pieces,) each, int64.
        """
        of_piece, begin = self.of_piece, self.begin
        return segments.first[of_piece] + begin, segments.lengths[of_piece] - begin

    def tokens(self, segments: Segments) -> tuple[Tensor, Tensor]:
        """Tokens that are starts and ends; places beyond a segment repeat its last.

        RETURNS (tuple[Tensor, Tensor]): Shape: (pieces, n_starts), (pieces, n_ends), int64.
        """
        of_piece, begin = self.of_piece, self.begin
        places = begin[:, None] + np.arange(self.n_ends)
        places = np.minimum(places, segments.lengths[of_piece, None] - 1)
        tokens = torch.from_numpy(segments.first[of_piece, None] + places)
        return tokens[:, : self.n_starts], tokens

    def cells(self, index: SpanIndex, n_labels: int) -> tuple[Tensor, Tensor]:
        """Where the spans stand in the product and in the packed layout.

        RETURNS (tuple[Tensor, Tensor]): Offset of label 0 into the flat product (piece,
            start, label, end), and packed rows. Shape: (N,) each.
        """
        device = index.start.device
        first = torch.full((index.n_segments,), -1, dtype=torch.int64, device="cpu")
        numbers = torch.from_numpy(self.segments)
        first[numbers] = torch.from_numpy(self.counts.cumsum() - self.counts)
        if len(numbers) == index.n_segments:
            rows = torch.arange(index.n_spans, device=device)
        else:
            rows = (first.to(device)[index.segment] >= 0).nonzero()[:, 0]
        start, end = index.start[rows], index.end[rows]
        place = first.to(device)[index.segment[rows]] * self.n_starts + start
        cells = place * (n_labels * self.n_ends) + end - 1
        if int(self.counts.max()) > 1:
            cells -= start - start % self.n_starts
        return cells, rows


def pieces_of(lengths: np.ndarray, widest: int) -> list[Pieces]:
    """Lay out the products of some segments.

    lengths (np.ndarray): Tokens per segment. Shape: (B,).
    widest (int): Width of the widest span.
    RETURNS (list[Pieces]): Those of segments within the width, by length; then those of
        longer ones, of the same size all.
    """
    within = np.flatnonzero(lengths <= widest)
    pieces = []
    for numbers, longest in length_buckets(lengths[within]):
        one = np.ones(len(numbers), dtype=np.int64)
        pieces.append(Pieces(within[numbers], one, longest, longest))
    beyond = np.flatnonzero(lengths > widest)
    if len(beyond):
        # Of each start's n_ends ends it reaches `widest`: three quarters or more.
        size = max(1, widest // 3)
        counts = -(-lengths[beyond] // size)
        pieces.append(Pieces(beyond, counts, size, size + widest - 1))
    return pieces


def length_buckets(lengths: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Group segments of similar length, so that a padded product wastes little.

    lengths (np.ndarray): Tokens per segment. Shape: (B,).
    RETURNS (list[tuple[np.ndarray, int]]): Numbers of the segments of a group, and the
        longest length in it.
    """
    order = np.argsort(-lengths, kind="stable")
    buckets, first = [], 0
    ordered = lengths[order]
    while first < len(order):
        longest = int(ordered[first])
        # `ordered` falls: count what is still long enough for this bucket.
        size = int((ordered[first:] * BUCKET_RATIO >= longest).sum())
        buckets.append((order[first : first + size], longest))
        first += size
    return buckets


class TakeCells(torch.autograd.Function):
    """Some cells of a product, label-first; no cell is taken twice.

    Label by label, so that neither way needs an index as large as what is taken.
    """

    @staticmethod
    def forward(ctx: Any, product: Tensor, cells: Tensor, step: int, n: int) -> Tensor:
        """product (Tensor): Flat. cells (Tensor): Those of label 0. Shape: (N,).
        step (int): From a label's cell to that of the next one. n (int): L.
        RETURNS (Tensor): Shape: (L, N).
        """
        ctx.save_for_backward(cells)
        ctx.size, ctx.step = len(product), step
        taken = product.new_empty(n, len(cells))
        for label, row in enumerate(taken):
            torch.index_select(product[label * step :], 0, cells, out=row)
        return taken

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (cells,) = ctx.saved_tensors
        product = gradient.new_zeros(ctx.size)
        for label, row in enumerate(gradient):
            product[label * ctx.step :].index_copy_(0, cells, row)
        return product, None, None, None
