"""The sums over all analyses of a batch, K of them stacked: trees, or chains of trees."""

from functools import cached_property

import torch
from torch import Tensor

from .chain import Chain
from .chart import NATS, Chart, inside_chart
from .compiled import Sums, is_compiled, tree_sums
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
        self._span_bits, self._borders = span_bits, borders
        self._compiled = is_compiled(span_bits.device)

    @cached_property
    def chart(self) -> Chart:
        """Log-sums of the spans."""
        return inside_chart(self._span_bits, self.index, self.dtype)

    @cached_property
    def chain(self) -> Chain | None:
        """Log-sums of the chains, where segments are chained."""
        if not self.index.chained:
            return None
        return Chain(self.chart.by_end, self.index, self._borders)

    @cached_property
    def log_sums(self) -> Tensor:
        """In nats. Shape: (B, K), float64."""
        index = self.index
        if self._compiled:
            if "_compiled_sums" in self.__dict__:
                return self._compiled_sums.log_sums
            sums = tree_sums(self._span_bits, index, self._borders, marginals=False)
            return sums.log_sums
        by_start = self.chart.by_start
        result = by_start.new_empty(
            index.n_segments, by_start.shape[2], dtype=torch.float64
        )
        rows = index.roots()
        result[index.segment[rows]] = by_start[index.grid(rows)].double()
        if self.chain is not None:
            result[index.chained] = self.chain.totals()
        return result.mul_(NATS)

    @cached_property
    def _compiled_sums(self) -> Sums:
        return tree_sums(self._span_bits, self.index, self._borders)

    @cached_property
    def _stretches(self) -> Stretches | None:
        if self.chain is None:
            return None
        return Stretches(self.chart, self.index, self.chain)

    @cached_property
    def span_marginals(self) -> Tensor:
        """Probability that each span is a node. Shape: (S, K)."""
        if self._compiled:
            return self._compiled_sums.mass.to(self.dtype)
        return span_marginals(self.chart, self.index, self.dtype, self._stretches)

    def entropies(self, choices: Tensor) -> Tensor:
        """Entropy of the analyses, by the chain rule: of each choice, given the last.

        choices (Tensor): Entropy of all that is chosen at a node but its split: of its
            label. Shape: (S, K).
        RETURNS (Tensor): In nats. Shape: (B, K), float64.
        """
        if self._compiled:
            sums = tree_sums(self._span_bits, self.index, self._borders, choices)
            return sums.entropies
        choices = choices + split_entropies(self.chart, self.index, self.dtype)
        # Added up in float64: a long segment has many nodes.
        local = choices.double().mul_(self.span_marginals)
        if self._stretches is not None:
            for width in range(1, self.index.widest + 1):
                rows = self.index.rows(width)
                local[rows] += self._stretches.surprises(width).mul_(NATS)
        total = local.new_zeros(self.index.n_segments, local.shape[1])
        return total.index_add_(0, self.index.segment, local).clamp_(min=0.0)
