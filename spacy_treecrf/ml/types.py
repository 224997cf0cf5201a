"""What passes between the pipe, the span scorer and the losses."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    """

    first: np.ndarray
    lengths: np.ndarray
    may_border: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, numbers: np.ndarray) -> "Segments":
        """The segments of the given numbers, in that order."""
        return Segments(self.first[numbers], self.lengths[numbers], self.may_border)

    def chunks(self, max_cells: int) -> Iterator[np.ndarray]:
        """Split into runs of similar length with a bounded number of chart cells.

        max_cells (int): Bound on the spans of a chunk; a longer segment is a chunk of
            its own.
        YIELDS (np.ndarray): Numbers of the segments of a chunk, longest first.
        """
        order = np.argsort(-self.lengths, kind="stable")
        cells = self.lengths[order] * (self.lengths[order] + 1) // 2
        first, total = 0, 0
        for place, size in enumerate(cells.tolist()):
            if total and total + size > max_cells:
                yield order[first:place]
                first, total = place, 0
            total += size
        if first < len(order):
            yield order[first:]


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
