"""Exact marginal probabilities of labelled spans."""

from torch import Tensor

from .distribution import TreeDistribution
from .inside import at_least_float32
from .spans import Lengths, SpanIndex


def packed_marginals(potentials: Tensor, index: SpanIndex) -> Tensor:
    """`marginals` of packed potentials. (L, S) -> (L, S)."""
    return TreeDistribution(potentials, index).marginals


def marginals(
    potentials: Tensor, lengths: Lengths, max_width: int | None = None
) -> Tensor:
    """Probability that each labelled span is a node of the tree.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    max_width (int): Width limit, W; None for none.
    RETURNS (Tensor): p(span, label in tree), in [0, 1], right to float32's rounding for
        scores of any size; 0 where there is no span; 2n - 1 in sum for a tree of n
        tokens. The gradient of `log_partition`. Shape: (B, P, P, L).
    RAISES (ValueError): If a length or the limit is below 1 or the shapes do not fit.

    Cost: O(n W^2 + n W L) time, O(n W) memory a segment, W = n without a limit.
    Source: Fu et al. (2021), the gradient of Eq. 7; inside-outside.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials.detach()))
    return index.unpack(packed_marginals(packed, index), potentials.shape[1])
