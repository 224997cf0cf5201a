"""What passes between the pipe, the span scorer and the losses."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from thinc.types import Floats2d

if TYPE_CHECKING:
    from torch import Tensor

    from spacy_treecrf.structure.spans import SpanIndex


@dataclass(frozen=True)
class Segments:
    """Sentences or windows of a batch of Docs, over the Docs' concatenated tokens.

    first (np.ndarray): First token of each segment, in the batch. Shape: (B,), int64.
    lengths (np.ndarray): Tokens of each segment, at least 1. Shape: (B,), int64.
    may_border (np.ndarray): Whether an entity may start or end at a token (False for
        white space). Shape: (T,), bool.
    max_width (int | None): Width limit of the spans, W; None for none.
    """

    first: np.ndarray
    lengths: np.ndarray
    may_border: np.ndarray
    max_width: int | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, numbers: np.ndarray) -> "Segments":
        """The segments of the given numbers, in that order."""
        return replace(self, first=self.first[numbers], lengths=self.lengths[numbers])

    def chunks(self, max_cells: int) -> Iterator[np.ndarray]:
        """Split into runs of similar length with a bounded number of chart cells.

        max_cells (int): Bound on the spans of a chunk; a longer segment is a chunk of
            its own.
        YIELDS (np.ndarray): Numbers of the segments of a chunk, longest first.
        """
        order = np.argsort(-self.lengths, kind="stable")
        cells = span_counts(self.lengths[order], self.max_width)
        first, total = 0, 0
        for place, size in enumerate(cells.tolist()):
            if total and total + size > max_cells:
                yield order[first:place]
                first, total = place, 0
            total += size
        if first < len(order):
            yield order[first:]


def span_counts(lengths: np.ndarray, max_width: int | None = None) -> np.ndarray:
    """Spans of segments, within the width limit where there is one.

    lengths (np.ndarray): Tokens of each segment. Shape: (B,), int64.
    max_width (int | None): The limit, W.
    RETURNS (np.ndarray): Shape: (B,), int64.
    """
    widest = lengths if max_width is None else np.minimum(lengths, max_width)
    return widest * (2 * lengths - widest + 1) // 2


@dataclass
class SpanPotentials:
    """Scores of all spans of some segments, in the packed layout.

    numbers (np.ndarray): Which segments of the batch these are. Shape: (B,), int64.
    index (SpanIndex): The layout.
    data (Floats2d): Log-potentials, in nats, on the device of the model. Shape: (L, S).
    usable (Tensor): Spans that may hold an entity: neither end is white space.
        Shape: (S,), bool.
    """

    numbers: np.ndarray
    index: "SpanIndex"
    data: Floats2d
    usable: "Tensor"
