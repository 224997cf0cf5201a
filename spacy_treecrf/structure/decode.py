"""The best tree: most probable (CKY), or with most expected correct nodes (MBR).

Ties are broken towards the smallest left part of a split and the lowest label number.
"""

from torch import Tensor

from .bracketing import best_bracketing
from .distribution import TreeDistribution
from .inside import at_least_float32
from .spans import Lengths, SpanIndex

# (start, end, label number) of a node, half-open.
Node = tuple[int, int, int]


def packed_best_tree(potentials: Tensor, index: SpanIndex) -> tuple[Tensor, Tensor]:
    """Most probable tree of each segment, of packed potentials.

    potentials (Tensor): Shape: (L, S).
    RETURNS (tuple[Tensor, Tensor]): Packed rows and labels of all nodes. Shape: (N,) each.
    """
    return TreeDistribution(potentials, index).best_tree()


def packed_mbr_tree(
    node_marginals: Tensor,
    index: SpanIndex,
    threshold: float | None = None,
    n_entity_labels: int | None = None,
) -> tuple[Tensor, Tensor]:
    """`mbr_tree` of packed marginals. (L, S) -> rows and labels of all nodes, (N,) each."""
    n_labels = node_marginals.shape[0]
    if threshold is None:
        gains, labels = node_marginals.max(0)
    else:
        n_entity_labels = n_labels - 1 if n_entity_labels is None else n_entity_labels
        gains, labels = node_marginals[:n_entity_labels].max(0)
        latent = gains <= threshold
        # The excess, since trees in a chain may have fewer nodes in all.
        gains = (gains - threshold).clamp(min=0.0)
        labels = labels.masked_fill(latent, n_entity_labels)
    rows = best_bracketing(gains, index)
    return rows, labels[rows]


def trees_as_lists(rows: Tensor, labels: Tensor, index: SpanIndex) -> list[list[Node]]:
    """Turn the nodes of a batch into a list per segment, sorted as text, outer first."""
    trees: list[list[Node]] = [[] for _ in index.lengths]
    columns = (index.segment[rows], index.start[rows], index.end[rows], labels)
    for segment, *node in zip(*(column.tolist() for column in columns), strict=True):
        trees[segment].append((node[0], node[1], node[2]))
    for tree in trees:
        tree.sort(key=lambda node: (node[0], -node[1]))
    return trees


def best_tree(
    potentials: Tensor, lengths: Lengths, max_width: int | None = None
) -> list[list[Node]]:
    """The most probable labelled tree of each segment.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    max_width (int): Width limit, W; None for none.
    RETURNS (list[list[Node]]): Per segment all nodes (start, end, label), latent ones
        too, in text order, outer before inner: 2n - 1, less one for each border between
        stretches.
    RAISES (ValueError): If a length or the limit is below 1 or the shapes do not fit.

    Cost: O(n W^2 + n W L) time, O(n W) memory a segment, W = n without a limit.
    Source: CKY; Fu et al. (2021), section 3.4.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials.detach()))
    return trees_as_lists(*packed_best_tree(packed, index), index)


def mbr_tree(
    potentials: Tensor,
    lengths: Lengths,
    threshold: float | None = None,
    n_entity_labels: int | None = None,
    max_width: int | None = None,
) -> list[list[Node]]:
    """The tree with the largest expected number of correct nodes.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    threshold (float): Where given, the tree maximises the sum of (marginal - threshold)
        over nodes with an entity label, and nodes that do not exceed it get the first
        latent label.
    n_entity_labels (int): Number of entity labels, where there is a threshold; by default
        all but the last.
    max_width (int): Width limit, W; None for none.
    RETURNS (list[list[Node]]): As `best_tree`.
    RAISES (ValueError): If a length or the limit is below 1 or the shapes do not fit.

    Cost: O(n W^2 + n W L) time, O(n W) memory a segment, W = n without a limit.
    Source: Fu et al. (2021), section 3.4; Goodman (1996), labelled recall.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials.detach()))
    chances = TreeDistribution(packed, index).marginals
    return trees_as_lists(
        *packed_mbr_tree(chances, index, threshold, n_entity_labels), index
    )
