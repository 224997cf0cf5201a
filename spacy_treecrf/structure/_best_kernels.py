"""The best bracketing on the host, segment by segment, compiled by Numba.

It gives what `bracketing.py` gives in torch, with ties broken alike. The layout of a
segment's cells is that of `_sum_kernels.py`.
"""

from typing import Any

from numba import types

from ._jit import compiled, inlined

# Rows of scratch that `best_nodes` needs, each of n * W numbers.
BEST_ROWS = 2
unsigned = types.uint64


@inlined
def largest(lefts: Any, left: int, rights: Any, right: int, n: int) -> Any:
    """The largest sum of two runs of numbers."""
    at, to = unsigned(left), unsigned(right)
    best = lefts[at] + rights[to]
    for step in range(unsigned(1), unsigned(n)):
        value = lefts[at + step] + rights[to + step]
        best = value if value > best else best
    return best


@compiled
def first_largest(lefts: Any, left: int, rights: Any, right: int, n: int) -> Any:
    """Where the largest sum of two runs of numbers is, the first one of several."""
    best, found = lefts[left] + rights[right], 0
    for step in range(1, n):
        value = lefts[left + step] + rights[right + step]
        if value > best:
            best, found = value, step
    return found


@compiled
def best_nodes(
    gains: Any,
    offsets: Any,
    places: Any,
    lengths: Any,
    widest: int,
    cells: Any,
    upto: Any,
    stack: Any,
    chosen: Any,
) -> None:
    """The bracketing, or chain of bracketings, of each segment with the largest gains.

    gains (ndarray): What each span adds if it is in the tree. Shape: (S,).
    offsets, places, lengths, widest: As in `tree_sums`.
    cells (ndarray): Scratch. Shape: (BEST_ROWS, n * W).
    upto (ndarray): Scratch. Shape: (n + 1,).
    stack (ndarray): Scratch. Shape: (2, n + 1), int64.
    chosen (ndarray): Zeros; set to 1 at the nodes. Shape: (S,), uint8.
    """
    by_start, by_end = cells[0], cells[1]
    first = 0
    for segment in range(len(lengths)):
        n = lengths[segment]
        limit = min(n, widest)
        own = places[first : first + n]
        first += n
        for width in range(1, limit + 1):
            for start in range(n - width + 1):
                end = start + width
                there = end * limit - width
                best = gains[offsets[width] + own[start]]
                if width > 1:
                    at = start * limit
                    best += largest(by_start, at, by_end, there + 1, width - 1)
                by_start[start * limit + width - 1] = best
                by_end[there] = best
        upto[0] = 0.0
        for end in range(1, n + 1 if n > limit else 1):
            count = min(limit, end)
            row = end * limit - count
            upto[end] = largest(upto, end - count, by_end, row, count)
        border = n
        while border > 0:
            count = min(limit, border)
            start = border - count
            if n > limit:
                row = border * limit - count
                start += first_largest(upto, start, by_end, row, count)
            stack[0, 0], stack[1, 0] = start, border
            border, waiting = start, 1
            while waiting:
                waiting -= 1
                left, right = stack[0, waiting], stack[1, waiting]
                width = right - left
                chosen[offsets[width] + own[left]] = 1
                if width == 1:
                    continue
                at, to = left * limit, right * limit - width + 1
                split = left + 1 + first_largest(by_start, at, by_end, to, width - 1)
                stack[0, waiting], stack[1, waiting] = left, split
                stack[0, waiting + 1], stack[1, waiting + 1] = split, right
                waiting += 2
