"""How uncertain the trees are: entropy, and samples."""

from torch import Tensor

from .decode import Node, trees_as_lists
from .distribution import TreeDistribution
from .inside import at_least_float32
from .spans import Lengths, SpanIndex


def entropy(
    potentials: Tensor, lengths: Lengths, max_width: int | None = None
) -> Tensor:
    """Entropy of the distribution of labelled trees.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    max_width (int): Width limit, W; None for none.
    RETURNS (Tensor): In nats, at least 0. Shape: (B,).
    RAISES (ValueError): If a length or the limit is below 1 or the shapes do not fit.

    Cost: half as much again as `marginals`.
    Source: chain rule: the entropy of the split and of the label of each span, given that
    it is in the tree, times the probability that it is. (log Z minus the expected score
    is the same on paper; it loses all digits where scores are large.)
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials.detach()))
    return TreeDistribution(packed, index).entropy.to(packed.dtype)


def sample(
    potentials: Tensor,
    lengths: Lengths,
    k: int,
    seed: int,
    max_width: int | None = None,
) -> list[list[list[Node]]]:
    """Draw independent trees from the distribution.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    k (int): Trees of each segment, at least 1.
    seed (int): Seed of the random numbers; the same seed draws the same trees.
    max_width (int): Width limit, W; None for none.
    RETURNS (list[list[list[Node]]]): Per segment k trees, as in `best_tree`.
    RAISES (ValueError): If k, a length or the limit is below 1, or the shapes do not fit.

    Cost: one inside pass, then O(n^2) for each tree of a segment.
    Source: ancestral sampling, from the whole segment down.
    """
    if k < 1:
        raise ValueError(f"expected k of at least 1, received {k}")
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials.detach()))
    copies, rows, labels = TreeDistribution(packed, index).sample(k, seed)
    trees = [
        trees_as_lists(rows[copies == copy], labels[copies == copy], index)
        for copy in range(k)
    ]
    return [list(of_segment) for of_segment in zip(*trees, strict=True)]
