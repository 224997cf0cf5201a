"""Exact marginal probabilities of labelled spans."""

from torch import Tensor

from .chart import LabelSums, inside_chart
from .inside import at_least_float32
from .outside import span_marginals
from .spans import Lengths, SpanIndex


def packed_marginals(potentials: Tensor, index: SpanIndex) -> Tensor:
    """`marginals` of packed potentials. (L, S) -> (L, S)."""
    sums = LabelSums.of(potentials)
    chart = inside_chart(sums.bits()[:, None], index, potentials.dtype)
    mass = span_marginals(chart, index, potentials.dtype)[:, 0]
    # The last digits of a sum of shares may carry it past 1.
    return sums.spread(potentials, mass).clamp_(max=1.0)


def marginals(potentials: Tensor, lengths: Lengths) -> Tensor:
    """Probability that each labelled span is a node of the tree.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    RETURNS (Tensor): p(span, label in tree), in [0, 1], right to float32's rounding for
        scores of any size; 0 where there is no span; 2n - 1 in sum for a segment of n
        tokens. The gradient of `log_partition`. Shape: (B, P, P, L).
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: O(P^3 + P^2 L) time, O(P^2) memory a segment.
    Source: Fu et al. (2021), the gradient of Eq. 7; inside-outside.
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials.detach()))
    return index.unpack(packed_marginals(packed, index), potentials.shape[1])
