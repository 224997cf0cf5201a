"""The outside pass: from log-sums to the probability that a span is in the tree."""

import torch
from torch import Tensor

from .chain import Chain
from .chart import MIN_BITS, NATS, Chart, SplitBuffers, split_rectangles
from .spans import SpanIndex


class Stretches:
    """Probabilities of the stretches of chained segments.

    chart (Chart): Log-sums of `inside_chart`.
    index (SpanIndex): The layout.
    chain (Chain): The chain of `chart.by_end`.
    """

    def __init__(self, chart: Chart, index: SpanIndex, chain: Chain) -> None:
        self._by_start, self._index = chart.by_start, index
        totals = chain.after.new_zeros(index.n_segments, chain.after.shape[1])
        totals[torch.tensor(index.chained, device=totals.device)] = chain.totals()
        rest = chain.onwards() - totals[index.segment_of_tokens()]
        # In the orders of starts and of ends, so that those of a width stand together.
        self._before = chain.before()[index.later(1, 0)]
        self._rest = self._by_end(rest)
        ended = chain.after if chain.borders is None else chain.after - chain.borders
        self._ended = self._by_end(ended)

    def _by_end(self, values: Tensor) -> Tensor:
        """Values of tokens in end order. Shape: (T, K)."""
        tokens = torch.arange(self._index.n_tokens, device=values.device)
        result = torch.empty_like(values)
        result[self._index.end_places(tokens)] = values
        return result

    def _at_ends(self, values: Tensor, width: int) -> Tensor:
        """Of values in end order, those at the ends of a width's spans."""
        ends = self._index.ends(width)
        if ends is None:
            return values[len(values) - self._index.counts[width] :]
        return values[ends]

    def _upto(self, width: int) -> Tensor:
        """Log-sum of all that ends with a stretch of a width. Shape: (counts[width], K)."""
        count = self._index.counts[width]
        return self._before[:count] + self._by_start[width - 1, :count]

    def probabilities(self, width: int, dtype: torch.dtype) -> Tensor:
        """Probability of the stretches of a width. Shape: (counts[width], K)."""
        bits = self._upto(width).add_(self._at_ends(self._rest, width))
        return bits.clamp_(min=MIN_BITS).to(dtype).exp2_()

    def surprises(self, width: int) -> Tensor:
        """Probability times bits of surprise of the stretches of a width.

        The surprise is that of the stretch, given that one ends at its end: what the last
        stretch is, then the one before, and so on.
        RETURNS (Tensor): Shape: (counts[width], K).
        """
        surprise = self._at_ends(self._ended, width) - self._upto(width)
        # What is all but impossible surprises by more than a number holds.
        surprise.clamp_(0.0, -MIN_BITS)
        return self.probabilities(width, surprise.dtype).mul_(surprise)


def span_marginals(
    chart: Chart,
    index: SpanIndex,
    dtype: torch.dtype,
    stretches: Stretches | None = None,
) -> Tensor:
    """Probability that each span is a node of the tree, labels summed out.

    chart (Chart): Log-sums of `inside_chart`.
    index (SpanIndex): The layout.
    dtype (torch.dtype): Precision of the result.
    stretches (Stretches): Where segments are chained: what begins the trees there.
    RETURNS (Tensor): Probabilities, 2n - 1 in sum for a tree of n tokens, at most 1
        but for the rounding of the last digits. Shape: (S, K).

    Cost: O(n W^2) time a segment, O(n W) memory; one Python step a width. Split
    probabilities are computed again from the chart, not kept from the inside pass.
    """
    n, n_tokens, k = chart.by_start.shape
    # Mass that reaches a span as the left part of a split, and as the right part.
    as_left = torch.zeros_like(chart.by_start, dtype=dtype)
    as_right = torch.zeros_like(as_left)
    mass = as_left.new_zeros(index.n_spans, k)
    mass[index.roots()] = 1.0
    buffers = SplitBuffers(index, chart.splits, dtype)
    for width in range(n, 0, -1):
        count, ends = index.counts[width], index.ends(width)
        right_row = as_right[n - width]
        here = mass[index.rows(width)]
        here.add_(as_left[width - 1, :count])
        here.add_(right_row[n_tokens - count :] if ends is None else right_row[ends])
        if stretches is not None:
            here.add_(stretches.probabilities(width, dtype))
        if width == 1:
            break
        share = _log_shares(chart, index, width, buffers).exp2_().mul_(here)
        as_left[: width - 1, :count].add_(share)
        if ends is None:
            as_right[n - width + 1 :, n_tokens - count :].add_(share)
        else:
            as_right[n - width + 1 :].index_add_(1, ends, share)
    return mass


def split_entropies(chart: Chart, index: SpanIndex, dtype: torch.dtype) -> Tensor:
    """Entropy of the split of each span, given that the span is in the tree.

    chart (Chart): Log-sums of `inside_chart`.
    index (SpanIndex): The layout.
    dtype (torch.dtype): Precision of the result.
    RETURNS (Tensor): In nats. Shape: (S, K).

    Cost: that of the inside pass.
    """
    k = chart.by_start.shape[2]
    result = chart.splits.new_zeros(index.n_spans, k, dtype=dtype)
    buffers = SplitBuffers(index, chart.splits, dtype)
    for width in range(2, index.widest + 1):
        bits = _log_shares(chart, index, width, buffers)
        result[index.rows(width)] = (bits.exp2() * bits).sum(0)
    return result.mul_(-NATS)


def _log_shares(
    chart: Chart, index: SpanIndex, width: int, buffers: SplitBuffers
) -> Tensor:
    """Log-probability of each split of the spans of a width, in bits.

    RETURNS (Tensor): Shape: (width - 1, counts[width], K).
    """
    left, right = split_rectangles(chart.by_start, chart.by_end, index, width)
    splits = chart.splits[width - 1, : index.counts[width]]
    return buffers.relative(buffers.add(left, right), splits)
