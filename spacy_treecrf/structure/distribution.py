"""The distribution of the analyses of a batch, each quantity of it computed once."""

from functools import cached_property

import torch
from torch import Tensor

from .bracketing import best_bracketing, trace, tree_roots
from .chart import LOG_ZERO, NATS, LabelSums
from .spans import SpanIndex
from .stacked import StackedSums


class TreeDistribution:
    """The distribution of the labelled trees, or chains of trees, of each segment.

    Charts are of float64, whatever the precision of the potentials. No gradients; the
    losses are in `losses.py`.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (L, S).
    index (SpanIndex): The layout.
    """

    def __init__(self, potentials: Tensor, index: SpanIndex) -> None:
        self.potentials, self.index = potentials.detach(), index

    @cached_property
    def _label_sums(self) -> LabelSums:
        return LabelSums.of(self.potentials)

    @cached_property
    def sums(self) -> StackedSums:
        """Log-sums of the spans and of their chains, K = 1."""
        bits = self._label_sums.bits()[:, None]
        return StackedSums(bits, self.index, self.potentials.dtype)

    @property
    def log_partition(self) -> Tensor:
        """log Z of each segment, in nats. Shape: (B,), float64."""
        return self.sums.log_sums[:, 0]

    @cached_property
    def _span_marginals(self) -> Tensor:
        return self.sums.span_marginals

    @cached_property
    def marginals(self) -> Tensor:
        """p(span, label in tree), in [0, 1]. Shape: (L, S)."""
        chances = self._label_sums.spread(self.potentials, self._span_marginals[:, 0])
        # The last digits of a sum of shares may carry it past 1.
        return chances.clamp_(max=1.0)

    def marginals_at(self, rows: Tensor) -> Tensor:
        """p(span, label in tree) of some packed rows only. (N,) -> (L, N)."""
        if "marginals" in self.__dict__:
            return self.marginals[:, rows]
        best, total = (part[rows] for part in self._label_sums)
        mass = self._span_marginals[rows, 0]
        chances = LabelSums(best, total).spread(self.potentials[:, rows], mass)
        return chances.clamp_(max=1.0)

    @cached_property
    def entropy(self) -> Tensor:
        """Entropy of each segment, in nats, at least 0. Shape: (B,), float64."""
        ones = torch.ones_like(self.potentials[0])
        shares = self._label_sums.spread(self.potentials, ones)
        choices = torch.special.entr(shares).sum(0).clamp_(min=0.0)
        return self.sums.entropies(choices[:, None])[:, 0]

    def best_tree(self) -> tuple[Tensor, Tensor]:
        """Packed rows and labels of all nodes of the most probable trees. (N,) each."""
        gains, labels = self.potentials.max(0)
        rows = best_bracketing(gains.clamp(min=LOG_ZERO), self.index)
        return rows, labels[rows]

    def sample(self, k: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
        """Draw k independent analyses of each segment.

        RETURNS (tuple[Tensor, Tensor, Tensor]): Number of the analysis, packed row and
            label of each node. Shape: (N,) each.
        """
        generator = torch.Generator(self.potentials.device).manual_seed(seed)

        def draw(log_weights: Tensor) -> Tensor:
            chances = log_weights.softmax(0).T
            return torch.multinomial(chances, 1, generator=generator)[:, 0]

        def draw_bits(bits: Tensor) -> Tensor:
            return draw(bits * NATS)

        chart = self.sums.chart
        by_start, by_end = chart.by_start[..., 0], chart.by_end[..., 0]
        roots = tree_roots(by_end, self.index, self.sums.chain, draw_bits, k)
        copies, rows = trace(by_start, by_end, self.index, draw_bits, roots, k)
        return copies, rows, draw(self.potentials[:, rows].clamp(min=LOG_ZERO))
