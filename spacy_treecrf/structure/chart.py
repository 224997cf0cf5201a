"""Charts of log-sums: how they are stored, and the inside pass that fills them.

Log-sums are in bits (base 2), since `exp2` of float32 costs half of `exp`. They may be
kept in float64 although the potentials are float32: a sum of some hundred scores has no
digits left in float32 for what tells one split from another. The differences from the
best split are small, and go back to the potentials' precision before `exp2`.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .spans import SpanIndex

# Log of zero, in nats. Finite, since -inf has no gradient; a chart of 10,000 tokens adds
# up to 2e34 of it.
LOG_ZERO = -1e30
# 2 ** -62 = 2e-19 vanishes beside a maximum's 1 in float64, and keeps `exp2` off the
# denormal numbers, where it is many times slower.
MIN_BITS = -62.0
BITS = 1.0 / math.log(2.0)
NATS = math.log(2.0)
# Log-sums up to here, in bits, leave float32 three digits of a probability, which is
# enough for a gradient; what is reported is always computed from charts of float64.
MAX_FLOAT32_BITS = 2.0**14


class Chart(NamedTuple):
    """Log-sums of a batch, in two alignments, so that the splits of all spans of one
    width are two rectangles. Row and place are those of `SpanIndex`; K charts are
    stacked in the last dimension. In bits.

    by_start (Tensor): Row w - 1, place in start order. Shape: (W, T, K), with W the
        widest span.
    by_end (Tensor): Row W - w, place in end order. Shape: (W, T, K).
    splits (Tensor): As `by_start`, without the span's own potential.
    """

    by_start: Tensor
    by_end: Tensor
    splits: Tensor


class LabelSums(NamedTuple):
    """Potentials with their labels summed out: the log-sum is best + log(total).

    best (Tensor): Highest potential of each span, at least log zero. Shape: (S,).
    total (Tensor): Sum of exp(potential - best), at least 1. Shape: (S,).
    """

    best: Tensor
    total: Tensor

    @classmethod
    def of(cls, potentials: Tensor) -> "LabelSums":
        """Sum labels out of packed potentials. (L, S) -> (S,)."""
        best = potentials.amax(0).clamp_(min=LOG_ZERO)
        return cls(best, relative_weights(potentials, best).sum(0))

    def bits(self) -> Tensor:
        """The log-sums in bits. Shape: (S,), float64."""
        return self.best.double() * BITS + self.total.double().log2()

    def spread(self, potentials: Tensor, mass: Tensor) -> Tensor:
        """Distribute the spans' probabilities over their labels. (S,) -> (L, S)."""
        return relative_weights(potentials, self.best).mul_(mass / self.total)


def relative_weights(potentials: Tensor, best: Tensor) -> Tensor:
    """exp(potentials - best), with a floor above the denormal numbers. Shape: (L, S)."""
    return (potentials - best).mul_(BITS).clamp_(min=MIN_BITS).exp2_()


def split_rectangles(
    by_start: Tensor, by_end: Tensor, index: SpanIndex, width: int
) -> tuple[Tensor, Tensor]:
    """Left and right part of every split of every span of a width.

    RETURNS (tuple[Tensor, Tensor]): Row k - 1 is the split whose left part has width k.
        Shape: (width - 1, counts[width], K) each.
    """
    count = index.counts[width]
    left = by_start[: width - 1, :count]
    right = by_end[index.widest - width + 1 :]
    ends = index.ends(width)
    if ends is None:
        return left, right[:, index.n_tokens - count :]
    return left, right.index_select(1, ends)


def store(chart: Chart, index: SpanIndex, width: int, values: Tensor) -> None:
    """Write the log-sums of all spans of a width in both alignments."""
    row, count = index.widest - width, index.counts[width]
    chart.by_start[width - 1, :count] = values
    ends = index.ends(width)
    if ends is None:
        chart.by_end[row, index.n_tokens - count :] = values
    else:
        chart.by_end[row].index_copy_(0, ends, values)


class SplitBuffers:
    """Room for the splits of any width, so that no width needs memory of its own.

    index (SpanIndex): The layout.
    like (Tensor): Log-sums of K charts, in the precision of the chart. Shape: (..., K).
    dtype (torch.dtype): Precision of the weights.
    """

    def __init__(self, index: SpanIndex, like: Tensor, dtype: torch.dtype) -> None:
        sizes = ((width - 1) * count for width, count in enumerate(index.counts))
        largest = max(0, *sizes) * like.shape[-1]
        self._sums = like.new_empty(largest)
        # In one precision the differences replace the sums.
        self._weights = self._sums
        if dtype != like.dtype:
            self._weights = like.new_empty(largest, dtype=dtype)

    def add(self, left: Tensor, right: Tensor) -> Tensor:
        """Log-sum of each split. Shape: that of `left`."""
        return torch.add(left, right, out=self._sums[: left.numel()].view(left.shape))

    def relative(self, sums: Tensor, best: Tensor) -> Tensor:
        """Log-sums relative to others, in bits, in the precision of the weights.

        RETURNS (Tensor): At least `MIN_BITS`. Shape: that of `sums`.
        """
        sums.sub_(best)
        if self._weights is not self._sums:
            sums = self._weights[: sums.numel()].view(sums.shape).copy_(sums)
        return sums.clamp_(min=MIN_BITS)


def inside_chart(span_bits: Tensor, index: SpanIndex, dtype: torch.dtype) -> Chart:
    """Sum over the bracketings of every span, by increasing width.

    span_bits (Tensor): Log-potential of each span, labels summed out, in bits, K charts.
        Their precision is the chart's. Shape: (S, K).
    index (SpanIndex): The layout.
    dtype (torch.dtype): Precision of the weights: that of the potentials.
    RETURNS (Chart): The log-sums.

    Cost: O(n W^2) time a segment, O(n W) memory; one Python step a width.
    Source: Fu et al. (2021), Algorithms 2 and 3, without the loop over cells.
    """
    shape = (index.widest, index.n_tokens, span_bits.shape[1])
    chart = Chart(*(span_bits.new_empty(shape) for _ in range(3)))
    store(chart, index, 1, span_bits[index.rows(1)])
    buffers = SplitBuffers(index, span_bits, dtype)
    for width in range(2, index.widest + 1):
        left, right = split_rectangles(chart.by_start, chart.by_end, index, width)
        sums = buffers.add(left, right)
        best = sums.amax(0)
        weights = buffers.relative(sums, best).exp2_()
        total = weights.sum(0).to(best.dtype).log2_().add_(best)
        chart.splits[width - 1, : index.counts[width]] = total
        store(chart, index, width, total.add_(span_bits[index.rows(width)]))
    return chart


def gradient_precision(span_bits: Tensor, index: SpanIndex) -> torch.dtype:
    """Precision of charts for a loss over float32 potentials: float32 where that does.

    span_bits (Tensor): Log-potentials, in bits. Shape: (S, K), float64.
    """
    largest = span_bits.masked_fill(span_bits < LOG_ZERO / 2, 0.0).abs().amax()
    small = 2.0 * index.widest * float(largest) <= MAX_FLOAT32_BITS
    return torch.float32 if small else torch.float64
