"""How uncertain the trees are: entropy, and samples."""

import torch
from torch import Tensor

from .decode import Node, trace, trees_as_lists
from .inside import LOG_ZERO, at_least_float32, inside_chart, root_values, sum_labels
from .marginals import packed_marginals
from .spans import Lengths, SpanIndex


def packed_entropy(potentials: Tensor, index: SpanIndex) -> Tensor:
    """`entropy` of packed potentials. (L, S) -> (B,)."""
    sums = sum_labels(potentials)
    log_z = root_values(inside_chart(sums[:, None], index), index)[:, 0]
    # What cannot be in a tree adds nothing, though its potential is log zero.
    possible = potentials > LOG_ZERO / 2
    chances = packed_marginals(potentials, index)
    expected = torch.where(possible, chances * potentials, 0.0).sum(0)
    score = expected.new_zeros(index.n_segments).index_add(0, index.segment, expected)
    # Rounding may carry the entropy of an all but certain tree below 0.
    return (log_z - score).clamp(min=0.0)


def entropy(potentials: Tensor, lengths: Lengths) -> Tensor:
    """Entropy of the distribution of labelled trees.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    RETURNS (Tensor): In nats, at least 0: log Z minus the expected score. Shape: (B,).
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: that of `marginals`.
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
    chart = inside_chart(sum_labels(packed)[:, None], index)
    generator = torch.Generator(packed.device).manual_seed(seed)

    def draw(log_weights: Tensor) -> Tensor:
        chances = log_weights.softmax(0).T
        return torch.multinomial(chances, 1, generator=generator)[:, 0]

    copies, rows = trace(
        chart.by_start[..., 0], chart.by_end[..., 0], index, draw, copies=k
    )
    labels = draw(packed[:, rows])
    trees = [
        trees_as_lists(rows[copies == copy], labels[copies == copy], index)
        for copy in range(k)
    ]
    return [list(of_segment) for of_segment in zip(*trees, strict=True)]
