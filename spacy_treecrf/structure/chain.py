"""Segments longer than the width limit: a chain of trees over consecutive stretches.

    alpha[j] = sum over w of alpha[j - w] * beta[j - w, j]      what ends at border j
    gamma[i] = sum over w of beta[i, i + w] * gamma[i + w]      what begins there

in some semiring: log-sums, or sums of which the largest counts. A step a token would be
slow. Blocks of borders are joined to what comes before them in one step each: the
ways into a block's borders from each of the W borders before it depend on the stretches
alone, so that they are summed up for all blocks of a batch at once, and a step is one
small product.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .chart import LOG_ZERO
from .spans import SpanIndex

# What a step costs beside its terms, in terms: some 10 calls of torch.
STEP_TERMS = 12_000
# Bounds of a block's size: the ways into it are block * W / 2 terms a border, beside the
# W^2 / 2 of the inside pass.
MIN_BLOCK, MAX_BLOCK = 4, 32

Combine = Callable[[Tensor, int], Tensor]


def log_add(values: Tensor, dim: int) -> Tensor:
    """Log of the summed powers, in bits, along a dimension."""
    best = values.amax(dim, keepdim=True)
    weights = (values - best).exp2_().sum(dim, keepdim=True)
    return weights.log2_().add_(best).squeeze(dim)


def highest(values: Tensor, dim: int) -> Tensor:
    """The largest value along a dimension."""
    return values.amax(dim)


class Blocks:
    """The borders of the chained segments in blocks, side by side by number of the block.

    Those of one number are a prefix of the segments, longest first. W: widest stretch; m:
    borders of a block; C: chained segments; N: blocks.

    active (list[int]): Segments that have a block of each number.
    token (Tensor): Token before each border, as numbered in the batch. Shape: (N, m).
    position (Tensor): Border within its segment, from 1. Shape: (N, m).
    inside (Tensor): Whether the segment has such a border. Shape: (N, m), bool.
    last (Tensor): Whether it is the segment's end. Shape: (N, m), bool.
    """

    def __init__(self, index: SpanIndex) -> None:
        device = index.start.device
        lengths = torch.tensor(index.lengths, device="cpu")
        segments = torch.tensor(index.chained, device="cpu")
        sizes = lengths[segments]
        # As many terms as steps: blocks are small where many segments share a step.
        share = float(sizes.max()) / float(sizes.sum())
        size = round(math.sqrt(2.0 * STEP_TERMS * share / index.widest))
        self.size = min(max(MIN_BLOCK, size), MAX_BLOCK, index.widest)
        counts = (sizes + self.size - 1) // self.size
        steps = torch.arange(int(counts.max()), device="cpu")
        number, rank = (steps[:, None] < counts).nonzero(as_tuple=True)
        self.active: list[int] = (steps[:, None] < counts).sum(1).tolist()
        within = torch.arange(1, self.size + 1, device="cpu")
        position = number[:, None] * self.size + within
        ends = sizes[rank, None]
        first = (lengths.cumsum(0) - lengths)[segments][rank, None]
        token = first + position.clamp(max=ends) - 1
        self.token, self.position = token.to(device), position.to(device)
        self.inside = (position <= ends).to(device)
        self.last = (position == ends).to(device)

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Number of active segments and rows of the blocks of each step."""
        first = 0
        for count in self.active:
            yield count, slice(first, first + count)
            first += count


class Chain:
    """Sums over the sequences of stretches of the chained segments, for K charts.

    by_end (Tensor): Log-sums, or largest sums, of the stretches, as in `Chart`.
        Shape: (W, T, K).
    index (SpanIndex): The layout.
    borders (Tensor): What a border after each token adds. Shape: (T, K) or (T, 1).
        Default: nothing.
    combine (Combine): `log_add` or `highest`.

    after (Tensor): alpha at the border after each token. Shape: (T, K), float64.
    """

    def __init__(
        self,
        by_end: Tensor,
        index: SpanIndex,
        borders: Tensor | None = None,
        combine: Combine = log_add,
    ) -> None:
        self._index, self._combine = index, combine
        self._blocks = Blocks(index)
        self.borders = borders
        self._into, self._direct = self._ways(by_end)
        self.after = self._forwards()

    def edges(self, by_end: Tensor) -> Tensor:
        """Value of the stretches that end at each border, widest first.

        RETURNS (Tensor): Log zero where there is none. Shape: (N, K, m, W), float64.
        """
        blocks, widest = self._blocks, self._index.widest
        places = self._index.end_places(blocks.token)
        edges = by_end[:, places].permute(1, 3, 2, 0).to(torch.float64)
        if self.borders is not None:
            edges = edges + self.borders[blocks.token].transpose(1, 2)[..., None]
        start = blocks.position[..., None] - widest
        start = start + torch.arange(widest, device=start.device)
        there = (start >= 0) & blocks.inside[..., None]
        return torch.where(there[:, None], edges, LOG_ZERO)

    def _ways(self, by_end: Tensor) -> tuple[Tensor, Tensor]:
        """Ways into the borders of each block.

        RETURNS (tuple[Tensor, Tensor]): All ways from each of the W borders up to the
            block's begin, (N, K, m, W); single stretches from borders of the block, in
            column j - 1 that from border j, (N, K, m, m - 1).
        """
        edges = self.edges(by_end)
        n_blocks, k, size, widest = edges.shape
        # Shift row j by j, so that columns are borders and no longer widths.
        padded = torch.nn.functional.pad(edges, (0, size), value=LOG_ZERO).flatten(2)
        shifted = padded[..., :-size].view(n_blocks, k, size, widest + size - 1)
        ways, direct = shifted[..., :widest].contiguous(), shifted[..., widest:]
        for row in range(1, size):
            last = direct[:, :, row, :row, None] + ways[:, :, :row]
            last = torch.cat([last, ways[:, :, row : row + 1]], 2)
            ways[:, :, row] = self._combine(last, 2)
        return ways, direct

    def _forwards(self) -> Tensor:
        """alpha at the border after each token. Shape: (T, K)."""
        ways, size = self._into, self._blocks.size
        shape = (len(self._index.chained), ways.shape[1], ways.shape[3])
        window = ways.new_full(shape, LOG_ZERO)
        window[..., -1] = 0.0
        found = []
        for count, rows in self._blocks:
            window = window[:count]
            found.append(self._combine(ways[rows] + window[:, :, None], 3))
            window = torch.cat([window[..., size:], found[-1]], 2)
        return self._by_token(torch.cat(found))

    def onwards(self) -> Tensor:
        """What a border after each token adds, and all that follows it: gamma.

        RETURNS (Tensor): Log-sums. Shape: (T, K), float64.
        """
        ways, size = self._into, self._blocks.size
        n_blocks, k, _, widest = ways.shape
        window = ways.new_full((len(self._index.chained), k, widest), LOG_ZERO)
        # What the blocks after each one add to its borders.
        found = ways.new_full((n_blocks, k, size), LOG_ZERO)
        found.masked_fill_(self._blocks.last[:, None], 0.0)
        for count, rows in reversed(list(self._blocks)):
            here = window[:count]
            later = torch.maximum(found[rows], here[..., widest - size :])
            found[rows] = later
            added = log_add(ways[rows] + later[..., None], 2)
            # The borders before the block: some have ways into blocks after it, too.
            added[..., size:] = torch.logaddexp2(
                added[..., size:], here[..., : widest - size]
            )
            window[:count] = added
        for row in range(size - 2, -1, -1):
            inside = self._direct[:, :, row + 1 :, row] + found[..., row + 1 :]
            found[..., row] = torch.logaddexp2(log_add(inside, 2), found[..., row])
        onwards = self._by_token(found)
        return onwards if self.borders is None else onwards + self.borders

    def before(self) -> Tensor:
        """alpha at the border before each token; log zero where there is no chain.

        RETURNS (Tensor): Shape: (T, K), float64.
        """
        index, before = self._index, self.after.roll(1, 0)
        segments = torch.arange(index.n_segments, device=before.device)
        first = index.tokens(segments, torch.zeros_like(segments))
        before[first] = LOG_ZERO
        before[first[index.chained]] = 0.0
        return before

    def last_stretches(self, by_end: Tensor) -> tuple[Tensor, Tensor]:
        """Value of all that ends at a border, by its last stretch; of one chart.

        by_end (Tensor): The stretches. Shape: (W, T).
        RETURNS (tuple[Tensor, Tensor]): The tokens before the borders, (A,), and the
            values, widest stretch first, (W, A).
        """
        blocks, widest = self._blocks, self._index.widest
        token, order = blocks.token[blocks.inside].sort()
        edges = self.edges(by_end[..., None])[:, 0][blocks.inside][order].T
        # Border `position - W + r` of the segment is where the stretch of row r begins.
        steps = torch.arange(widest - 1, -1, -1, device=token.device)[:, None]
        begin = (token - steps).clamp_(min=0)
        return token, edges + self.before()[begin, 0]

    def totals(self) -> Tensor:
        """alpha at the end of each chained segment. Shape: (C, K), float64."""
        device = self.after.device
        segment = torch.tensor(self._index.chained, device=device)
        lengths = torch.tensor(self._index.lengths, device=device)
        return self.after[self._index.tokens(segment, lengths[segment] - 1)]

    def _by_token(self, values: Tensor) -> Tensor:
        """Values of borders, put at the token before. (N, K, m) -> (T, K)."""
        there = self._blocks.inside
        k = values.shape[1]
        result = values.new_full((self._index.n_tokens, k), LOG_ZERO)
        result[self._blocks.token[there]] = values.transpose(1, 2)[there]
        return result
