"""The bracketing with the largest sum of gains, and the walk from charts to trees.

Ties are broken towards the smallest left part of a split, and of a chain: the longest last
stretch.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from .chain import Chain, highest
from .compiled import best_rows, is_compiled
from .spans import SpanIndex


def viterbi_chart(gains: Tensor, index: SpanIndex) -> tuple[Tensor, Tensor]:
    """Largest sum of gains of any bracketing of each span.

    gains (Tensor): What each span adds if it is in the tree. Shape: (S,).
    index (SpanIndex): The layout.
    RETURNS (tuple[Tensor, Tensor]): By start and by end, as in `Chart`. Shape: (W, T) each.

    Cost: O(n W^2) time a segment, O(n W) memory; one Python step a width.
    """
    n, n_tokens = index.widest, index.n_tokens
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
    roots: tuple[Tensor, Tensor],
    copies: int = 1,
) -> tuple[Tensor, Tensor]:
    """Walk from the roots of trees down to the tokens, choosing a split of each span.

    by_start, by_end (Tensor): Values of the spans, as in `Chart`. Shape: (W, T) each.
    index (SpanIndex): The layout.
    choose (Callable): Gets the values of all splits of some spans, (splits, A), and
        returns the row of the split chosen for each, (A,).
    roots (tuple[Tensor, Tensor]): Number of the copy and packed row of each root, of
        `tree_roots`. Shape: (R,) each, int64.
    copies (int): Analyses of each segment.
    RETURNS (tuple[Tensor, Tensor]): Number of the copy and packed row of each node, by
        increasing width. Shape: (N,) each, int64.

    Cost: back pointers are not stored; only the spans of the trees look at their splits.
    """
    n, n_tokens = index.widest, index.n_tokens
    device = by_start.device
    chosen = torch.zeros(n, copies, n_tokens, dtype=torch.bool, device=device)
    offsets = torch.tensor(index.offsets, device=device)
    row, place = index.grid(roots[1])
    chosen[row, roots[0], place] = True
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
    RETURNS (Tensor): Packed rows of the nodes, 2n - 1 a tree, by increasing width.
        Shape: (N,), int64.
    """
    if is_compiled(gains.device):
        return best_rows(gains, index)
    by_start, by_end = viterbi_chart(gains, index)
    chain = None
    if index.chained:
        chain = Chain(by_end[..., None], index, combine=highest)
    roots = tree_roots(by_end, index, chain, first_largest)
    return trace(by_start, by_end, index, first_largest, roots)[1]


def tree_roots(
    by_end: Tensor,
    index: SpanIndex,
    chain: Chain | None,
    choose: Callable[[Tensor], Tensor],
    copies: int = 1,
) -> tuple[Tensor, Tensor]:
    """Whole segments, and where they are chained the stretches, from the last backwards.

    by_end (Tensor): Values of the spans, as in `Chart`. Shape: (W, T).
    index (SpanIndex): The layout.
    chain (Chain | None): Where segments are chained; of one chart.
    choose (Callable): Gets the values of all last stretches of some prefixes, widest
        first, (W, A), and returns the row of the stretch chosen for each, (A,).
    copies (int): Analyses of each segment.
    RETURNS (tuple[Tensor, Tensor]): Number of the copy and packed row of each root.
        Shape: (R,) each, int64.
    """
    rows = index.roots()
    copy = torch.arange(copies, device=rows.device).repeat_interleave(len(rows))
    rows = rows.repeat(copies)
    if chain is None:
        return copy, rows
    # A choice for every border and copy at once; those that a chain passes are used.
    token, values = chain.last_stretches(by_end)
    widths = by_end.shape[0] - torch.stack([choose(values) for _ in range(copies)])
    chosen = widths.new_zeros(copies, index.n_tokens)
    chosen[:, token] = widths
    first = 0
    starts = []
    for length in index.lengths:
        starts.append(first)
        first += length
    found: list[tuple[int, int, int, int]] = []
    for number, of_copy in enumerate(chosen.tolist()):
        for segment in index.chained:
            end = index.lengths[segment]
            while end:
                start = end - of_copy[starts[segment] + end - 1]
                found.append((number, segment, start, end))
                end = start
    number, segment, start, end = torch.tensor(found, device=rows.device).T
    stretches = index.row_of(segment, start, end)
    return torch.cat([copy, number]), torch.cat([rows, stretches])
