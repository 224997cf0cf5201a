"""The sums over all analyses of a batch, K of them stacked: trees, or chains of trees."""

from functools import cached_property

import torch
from torch import Tensor

from .chain import Chain
from .chart import NATS, Chart, inside_chart
from .outside import Stretches, span_marginals, split_entropies
from .spans import SpanIndex


class StackedSums:
    """Log-sums over the analyses of each segment, and the probabilities of spans in them.

    span_bits (Tensor): Log-potential of each span, labels summed out, in bits. Shape:
        (S, K).
    index (SpanIndex): The layout. A segment within the width limit is one tree, a longer
        one a chain of trees over stretches.
    dtype (torch.dtype): Precision of probabilities.
    borders (Tensor): What a border after each token adds where segments are chained, in
        bits. Shape: (T, K). Default: nothing.
    """

    def __init__(
        self,
        span_bits: Tensor,
        index: SpanIndex,
        dtype: torch.dtype,
        borders: Tensor | None = None,
    ) -> None:
        self.index, self.dtype = index, dtype
        self.chart: Chart = inside_chart(span_bits, index, dtype)
        self.chain = Chain(self.chart.by_end, index, borders) if index.chained else None

    @cached_property
    def log_sums(self) -> Tensor:
        """In nats. Shape: (B, K), float64."""
        index, by_start = self.index, self.chart.by_start
        result = by_start.new_empty(
            index.n_segments, by_start.shape[2], dtype=torch.float64
        )
        rows = index.roots()
        result[index.segment[rows]] = by_start[index.grid(rows)].double()
        if self.chain is not None:
            result[index.chained] = self.chain.totals()
        return result.mul_(NATS)

    @cached_property
    def _stretches(self) -> Stretches | None:
        if self.chain is None:
            return None
        return Stretches(self.chart, self.index, self.chain)

    def span_marginals(self) -> Tensor:
        """Probability that each span is a node. Shape: (S, K)."""
        return span_marginals(self.chart, self.index, self.dtype, self._stretches)

    def entropies(self, span_marginals: Tensor, choices: Tensor) -> Tensor:
        """Entropy of the analyses, by the chain rule: of each choice, given the last.

        span_marginals (Tensor): Those of `span_marginals`. Shape: (S, K).
        choices (Tensor): Entropy of all that is chosen at a node but its split: of its
            label. Shape: (S, K).
        RETURNS (Tensor): In nats. Shape: (B, K), float64.
        """
        choices = choices + split_entropies(self.chart, self.index, self.dtype)
        # Added up in float64: a long segment has many nodes.
        local = choices.double().mul_(span_marginals)
        if self._stretches is not None:
            for width in range(1, self.index.widest + 1):
                rows = self.index.rows(width)
                local[rows] += self._stretches.surprises(width).mul_(NATS)
        total = local.new_zeros(self.index.n_segments, local.shape[1])
        return total.index_add_(0, self.index.segment, local).clamp_(min=0.0)
