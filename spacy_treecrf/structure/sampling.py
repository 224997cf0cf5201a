"""How uncertain the trees are: entropy, and samples."""

import torch
from torch import Tensor

from .chart import LOG_ZERO, NATS, LabelSums, inside_chart
from .decode import Node, trace, trees_as_lists
from .inside import at_least_float32
from .outside import span_marginals, split_entropies
from .spans import Lengths, SpanIndex


def packed_entropy(potentials: Tensor, index: SpanIndex) -> Tensor:
    """`entropy` of packed potentials. (L, S) -> (B,)."""
    dtype = potentials.dtype
    sums = LabelSums.of(potentials)
    chart = inside_chart(sums.bits()[:, None], index, dtype)
    mass = span_marginals(chart, index, dtype)[:, 0]
    shares = sums.spread(potentials, torch.ones_like(mass))
    choices = split_entropies(chart, index, dtype)[:, 0]
    choices += torch.special.entr(shares).sum(0).clamp_(min=0.0)
    # Added up in float64: a long segment has many nodes.
    local = (mass * choices).double()
    total = local.new_zeros(index.n_segments).index_add(0, index.segment, local)
    return total.to(dtype)


def entropy(potentials: Tensor, lengths: Lengths) -> Tensor:
    """Entropy of the distribution of labelled trees.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    RETURNS (Tensor): In nats, at least 0. Shape: (B,).
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: half as much again as `marginals`.
    Source: chain rule: the entropy of the split and of the label of each span, given that
    it is in the tree, times the probability that it is. (log Z minus the expected score
    is the same on paper; it loses all digits where scores are large.)
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials.detach()))
    return packed_entropy(packed.clamp(min=LOG_ZERO), index)


def sample(
    potentials: Tensor, lengths: Lengths, k: int, seed: int
) -> list[list[list[Node]]]:
    """Draw independent trees from the distribution.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    k (int): Trees of each segment, at least 1.
    seed (int): Seed of the random numbers; the same seed draws the same trees.
    RETURNS (list[list[list[Node]]]): Per segment k trees, as in `best_tree`.
    RAISES (ValueError): If k or a length is below 1, or the shapes do not fit.

    Cost: one inside pass, then O(n^2) for each tree of a segment.
    Source: ancestral sampling, from the whole segment down.
    """
    if k < 1:
        raise ValueError(f"expected k of at least 1, received {k}")
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials.detach())).clamp(min=LOG_ZERO)
    bits = LabelSums.of(packed).bits()
    chart = inside_chart(bits[:, None], index, packed.dtype)
    generator = torch.Generator(packed.device).manual_seed(seed)

    def draw(log_weights: Tensor) -> Tensor:
        chances = log_weights.softmax(0).T
        return torch.multinomial(chances, 1, generator=generator)[:, 0]

    copies, rows = trace(
        chart.by_start[..., 0],
        chart.by_end[..., 0],
        index,
        lambda bits: draw(bits * NATS),
        copies=k,
    )
    labels = draw(packed[:, rows])
    trees = [
        trees_as_lists(rows[copies == copy], labels[copies == copy], index)
        for copy in range(k)
    ]
    return [list(of_segment) for of_segment in zip(*trees, strict=True)]
