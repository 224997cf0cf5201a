"""The k best trees, exactly, by lazy search over derivations (Huang & Chiang 2005).

The best score of every span comes from one batched Viterbi pass. From there on only the
spans that the k best trees reach are looked at, each with a heap of its next derivations.
"""

from heapq import heapify, heappop, heappush

import torch
from torch import Tensor

from .decode import Node, viterbi_chart
from .inside import LOG_ZERO, at_least_float32
from .spans import Lengths, SpanIndex

# (score, split, rank in the left part, rank in the right part, rank of the label)
Derivation = tuple[float, int, int, int, int]


class _Vertex:
    """Derivations of one span: those found, best first, and those that may come next."""

    __slots__ = ("found", "heap", "labels", "pending")

    def __init__(self, labels: list[tuple[float, int]]) -> None:
        self.labels = labels
        self.found: list[Derivation] = []
        # Entries (-score, split, left, right, label): ties go to the smallest left part.
        self.heap: list[Derivation] = []
        # Successors of the derivation found last, not yet scored.
        self.pending: list[tuple[int, int, int, int]] = []


class _Forest:
    """The derivations of one segment.

    best (list[list[float]]): Best score of a span, by start and end; `columns` by end
        and start.
    cells (list[list[list[float]]]): Potentials by start, end, label.
    """

    def __init__(self, best: Tensor, cells: Tensor, length: int, k: int) -> None:
        self.best = best.tolist()
        self.columns = best.T.tolist()
        self.cells = cells
        self.length = length
        self.k = k
        self.vertices: dict[tuple[int, int], _Vertex] = {}

    def vertex(self, start: int, end: int) -> _Vertex:
        """The derivations of a span, with its first candidates if it is new."""
        found = self.vertices.get((start, end))
        if found is not None:
            return found
        scores, numbers = self.cells[start, end].sort(descending=True, stable=True)
        labels = list(zip(scores.tolist(), numbers.tolist(), strict=True))[: self.k]
        vertex = self.vertices[start, end] = _Vertex(labels)
        if end - start == 1:
            vertex.found = [(s, -1, 0, 0, rank) for rank, (s, _) in enumerate(labels)]
            return vertex
        top = labels[0][0]
        parts = zip(
            self.best[start][start + 1 : end],
            self.columns[end][start + 1 : end],
            strict=True,
        )
        vertex.heap = [
            (-(left + right + top), split, 0, 0, 0)
            for split, (left, right) in enumerate(parts, start + 1)
        ]
        heapify(vertex.heap)
        return vertex

    def score(self, start: int, end: int, rank: int) -> float:
        """Score of a derivation that is known: the best one, or one found."""
        if rank == 0:
            return float(self.best[start][end])
        return self.vertices[start, end].found[rank][0]

    def find(self, start: int, end: int, rank: int) -> bool:
        """Find the derivations of a span up to a rank. RETURNS (bool): If there is one."""
        stack = [(start, end, rank)]
        while stack:
            start, end, rank = stack[-1]
            vertex = self.vertex(start, end)
            if len(vertex.found) > rank or not self._advance(vertex, start, end, stack):
                stack.pop()
        return len(vertex.found) > rank

    def _advance(
        self, vertex: _Vertex, start: int, end: int, stack: list[tuple[int, int, int]]
    ) -> bool:
        """Do one step towards a vertex's next derivation. RETURNS (bool): If there was."""
        if vertex.pending:
            split, left, right, label = vertex.pending[-1]
            for i, j, rank in ((start, split, left), (split, end, right)):
                part = self.vertex(i, j) if rank else None
                if part is None or len(part.found) > rank:
                    continue
                if part.heap or part.pending:
                    stack.append((i, j, rank))
                else:
                    # The part has no such derivation.
                    vertex.pending.pop()
                return True
            vertex.pending.pop()
            score = (
                self.score(start, split, left)
                + self.score(split, end, right)
                + vertex.labels[label][0]
            )
            heappush(vertex.heap, (-score, split, left, right, label))
            return True
        if not vertex.heap:
            return False
        negative, split, left, right, label = heappop(vertex.heap)
        vertex.found.append((-negative, split, left, right, label))
        # Each combination of ranks is reached along one path only.
        if not right and not label:
            vertex.pending.append((split, left + 1, right, label))
        if not label:
            vertex.pending.append((split, left, right + 1, label))
        if label + 1 < len(vertex.labels):
            vertex.pending.append((split, left, right, label + 1))
        return True

    def tree(self, rank: int) -> tuple[float, list[Node]]:
        """Score and nodes of the tree of a rank, in text order, outer before inner."""
        score = self.vertices[0, self.length].found[rank][0]
        nodes: list[Node] = []
        stack = [(0, self.length, rank)]
        while stack:
            start, end, rank = stack.pop()
            self.find(start, end, rank)
            vertex = self.vertices[start, end]
            _, split, left, right, label = vertex.found[rank]
            nodes.append((start, end, vertex.labels[label][1]))
            if split >= 0:
                stack += [(split, end, right), (start, split, left)]
        return score, nodes


def k_best_trees(
    potentials: Tensor, lengths: Lengths, k: int
) -> list[list[tuple[float, list[Node]]]]:
    """The k labelled trees of each segment with the highest scores.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    k (int): Trees wanted of each segment, at least 1.
    RETURNS (list[list[tuple[float, list[Node]]]]): Per segment (log score, tree), best
        first; fewer than k where a segment has fewer trees. Trees as in `best_tree`.
    RAISES (ValueError): If k or a length is below 1, or the shapes do not fit.

    Cost: one Viterbi pass, then about O(n + k log n) heaps a segment.
    Source: Huang & Chiang (2005), Algorithm 3, with a stack in place of recursion.
    """
    if k < 1:
        raise ValueError(f"expected k of at least 1, received {k}")
    index = SpanIndex.build(lengths, potentials.device)
    # In double precision, so that sums of the same parts in other orders compare equal.
    packed = index.pack(at_least_float32(potentials.detach())).double()
    packed = packed.clamp(min=LOG_ZERO)
    by_start, _ = viterbi_chart(packed.amax(0), index)
    best = torch.cat(
        [
            by_start[width - 1, : index.counts[width]]
            for width in range(1, index.longest + 1)
        ]
    )
    charts = index.unpack(best[None])[..., 0].cpu()
    cells = index.unpack(packed).cpu()
    trees = []
    for segment, length in enumerate(index.lengths):
        forest = _Forest(charts[segment], cells[segment], length, k)
        forest.find(0, length, k - 1)
        count = min(k, len(forest.vertices[0, length].found))
        trees.append([forest.tree(rank) for rank in range(count)])
    return trees
