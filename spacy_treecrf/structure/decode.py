"""The best tree: most probable (CKY), or with most expected correct nodes (MBR).

Ties are broken towards the smallest left part of a split and the lowest label number.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .inside import LOG_ZERO, at_least_float32
from .marginals import packed_marginals
from .spans import Lengths, SpanIndex

# (start, end, label number) of a node, half-open.
Node = tuple[int, int, int]


def viterbi_chart(gains: Tensor, index: SpanIndex) -> tuple[Tensor, Tensor]:
    """Largest sum of gains of any bracketing of each span.

    gains (Tensor): What each span adds if it is in the tree. Shape: (S,).
    index (SpanIndex): The layout.
    RETURNS (tuple[Tensor, Tensor]): By start and by end, as in `Chart`. Shape: (n, T) each.

    Cost: O(n^3) time a segment, O(n^2) memory; one Python step a width.
    """
    n, n_tokens = index.longest, index.n_tokens
    by_start = gains.new_empty(n, n_tokens)
    by_end = gains.new_empty(n, n_tokens)
    for width in range(1, n + 1):
        count, ends = index.counts[width], index.ends(width)
        best = gains[index.rows(width)]
        if width > 1:
            right = by_end[n - width + 1 :]
            right = right[:, n_tokens - count :] if ends is None else right[:, ends]
            best = best + (by_start[: width - 1, :count] + right).amax(0)
        by_start[width - 1, :count] = best
        if ends is None:
            by_end[n - width, n_tokens - count :] = best
        else:
            by_end[n - width, ends] = best
    return by_start, by_end


def trace(
    by_start: Tensor,
    by_end: Tensor,
    index: SpanIndex,
    choose: Callable[[Tensor], Tensor],
    copies: int = 1,
) -> tuple[Tensor, Tensor]:
    """Walk from the whole segments down to the tokens, choosing a split of each span.

    by_start, by_end (Tensor): Values of the spans, as in `Chart`. Shape: (n, T) each.
    index (SpanIndex): The layout.
    choose (Callable): Gets the values of all splits of some spans, (splits, A), and
        returns the row of the split chosen for each, (A,).
    copies (int): Trees of each segment.
    RETURNS (tuple[Tensor, Tensor]): Number of the copy and packed row of each node,
        2n - 1 for each copy of a segment, by increasing width. Shape: (N,) each, int64.

    Cost: back pointers are not stored; only the spans of the trees look at their splits.
    """
    n, n_tokens = index.longest, index.n_tokens
    device = by_start.device
    chosen = torch.zeros(n, copies, n_tokens, dtype=torch.bool, device=device)
    widths = torch.tensor(index.lengths, device=device)
    offsets = torch.tensor(index.offsets, device=device)
    chosen[widths - 1, :, index.roots() - offsets[widths]] = True
    for width in range(n, 1, -1):
        count, ends = index.counts[width], index.ends(width)
        copy, places = chosen[width - 1, :, :count].nonzero(as_tuple=True)
        if not len(places):
            continue
        columns = places + (n_tokens - count) if ends is None else ends[places]
        splits = by_start[: width - 1, places] + by_end[n - width + 1 :, columns]
        left = choose(splits) + 1
        chosen[left - 1, copy, places] = True
        chosen[width - left - 1, copy, index.right_places(places, left)] = True
    row, copy, place = chosen.nonzero(as_tuple=True)
    return copy, offsets[row + 1] + place


def first_largest(splits: Tensor) -> Tensor:
    """Row of the largest value of each column, the first one of several."""
    return splits.argmax(0)


def best_bracketing(gains: Tensor, index: SpanIndex) -> Tensor:
    """Bracketing with the largest sum of gains, for every segment of a batch (CKY).

    gains (Tensor): What each span adds if it is in the tree. Shape: (S,).
    index (SpanIndex): The layout.
    RETURNS (Tensor): Packed rows of the nodes, 2n - 1 a segment, by increasing width.
        Shape: (N,), int64.
    """
    return trace(*viterbi_chart(gains, index), index, first_largest)[1]


def packed_best_tree(potentials: Tensor, index: SpanIndex) -> tuple[Tensor, Tensor]:
    """Most probable tree of each segment, of packed potentials.

    potentials (Tensor): Shape: (L, S).
    RETURNS (tuple[Tensor, Tensor]): Packed rows and labels of all nodes. Shape: (N,) each.
    """
    gains, labels = potentials.max(0)
    rows = best_bracketing(gains.clamp(min=LOG_ZERO), index)
    return rows, labels[rows]


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
        gains = gains.clamp(min=threshold)
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


def best_tree(potentials: Tensor, lengths: Lengths) -> list[list[Node]]:
    """The most probable labelled tree of each segment.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    RETURNS (list[list[Node]]): Per segment all 2n - 1 nodes (start, end, label), latent
        ones too, in text order, outer before inner.
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: O(P^3 + P^2 L) time, O(P^2) memory a segment.
    Source: CKY; Fu et al. (2021), section 3.4.
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials.detach()))
    return trees_as_lists(*packed_best_tree(packed, index), index)


def mbr_tree(
    potentials: Tensor,
    lengths: Lengths,
    threshold: float | None = None,
    n_entity_labels: int | None = None,
) -> list[list[Node]]:
    """The tree with the largest expected number of correct nodes.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    threshold (float): Where given, the tree maximises the sum of (marginal - threshold)
        over nodes with an entity label, and nodes that do not exceed it get the first
        latent label.
    n_entity_labels (int): Number of entity labels, where there is a threshold; by default
        all but the last.
    RETURNS (list[list[Node]]): As `best_tree`.
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: O(P^3 + P^2 L) time, O(P^2) memory a segment.
    Source: Fu et al. (2021), section 3.4; Goodman (1996), labelled recall.
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials.detach()))
    chances = packed_marginals(packed, index)
    return trees_as_lists(
        *packed_mbr_tree(chances, index, threshold, n_entity_labels), index
    )
