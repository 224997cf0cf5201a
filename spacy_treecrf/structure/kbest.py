"""The k best trees, exactly, by lazy search over derivations (Huang & Chiang 2005).

The best score of every span comes from one batched Viterbi pass. From there on only the
spans that the k best trees reach are looked at, each with a heap of its next derivations.
"""

from heapq import heapify, heappop, heappush

from torch import Tensor

from .bracketing import viterbi_chart
from .decode import Node
from .inside import LOG_ZERO, at_least_float32
from .spans import Lengths, SpanIndex

# (score, split, rank in the left part, rank in the right part, rank of the label)
Derivation = tuple[float, int, int, int, int]
# Where a vertex starts that is no span but the chain of stretches up to its end: the last
# stretch is its right part, and the chain up to there its left one.
CHAIN = -1


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

    by_start (list[list[float]]): Best score of a span, by start and width - 1.
    by_end (list[list[float]]): The same by end - 1, widest first: W - width.
    cells (list[Tensor]): Potentials of the spans of each width, (spans, L), by start.
    k (int): Trees wanted.
    """

    def __init__(self, by_start: Tensor, by_end: Tensor, cells: list[Tensor], k: int):
        self.by_start = by_start.tolist()
        self.by_end = by_end.tolist()
        self.cells = cells
        self.k = k
        self.length, self.widest = by_start.shape
        self.root = (0, self.length)
        self.vertices: dict[tuple[int, int], _Vertex] = {}
        if self.length > self.widest:
            self.root = (CHAIN, self.length)
            self.upto = [0.0]
            for end in range(1, self.length + 1):
                self.upto.append(max(score for score, _ in self._last_stretches(end)))

    def _last_stretches(self, end: int) -> list[tuple[float, int]]:
        """Best score of the chain up to an end, by the start of the last stretch."""
        first = max(0, end - self.widest)
        stretches = self.by_end[end - 1][self.widest - end + first :]
        return [
            (self.upto[start] + stretch, start)
            for start, stretch in enumerate(stretches, first)
        ]

    def vertex(self, start: int, end: int) -> _Vertex:
        """The derivations of a span, with its first candidates if it is new."""
        found = self.vertices.get((start, end))
        if found is not None:
            return found
        if start == CHAIN:
            vertex = self.vertices[start, end] = _Vertex([(0.0, -1)])
            if end == 0:
                vertex.found = [(0.0, -1, 0, 0, 0)]
                return vertex
            vertex.heap = [
                (-score, split, 0, 0, 0) for score, split in self._last_stretches(end)
            ]
            heapify(vertex.heap)
            return vertex
        width = end - start
        cell = self.cells[width - 1][start].double()
        scores, numbers = cell.sort(descending=True, stable=True)
        labels = list(zip(scores.tolist(), numbers.tolist(), strict=True))[: self.k]
        vertex = self.vertices[start, end] = _Vertex(labels)
        if width == 1:
            vertex.found = [(s, -1, 0, 0, rank) for rank, (s, _) in enumerate(labels)]
            return vertex
        top = labels[0][0]
        parts = zip(
            self.by_start[start][: width - 1],
            self.by_end[end - 1][self.widest - width + 1 :],
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
        if rank:
            return self.vertices[start, end].found[rank][0]
        if start == CHAIN:
            return self.upto[end]
        return float(self.by_start[start][end - start - 1])

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
        score = self.vertices[self.root].found[rank][0]
        nodes: list[Node] = []
        stack = [(*self.root, rank)]
        while stack:
            start, end, rank = stack.pop()
            self.find(start, end, rank)
            vertex = self.vertices[start, end]
            _, split, left, right, label = vertex.found[rank]
            if start != CHAIN:
                nodes.append((start, end, vertex.labels[label][1]))
            if split >= 0:
                stack += [(split, end, right), (start, split, left)]
        return score, nodes


def k_best_trees(
    potentials: Tensor, lengths: Lengths, k: int, max_width: int | None = None
) -> list[list[tuple[float, list[Node]]]]:
    """The k labelled trees of each segment with the highest scores.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    k (int): Trees wanted of each segment, at least 1.
    max_width (int): Width limit, W; None for none.
    RETURNS (list[list[tuple[float, list[Node]]]]): Per segment (log score, tree), best
        first; fewer than k where a segment has fewer trees. Trees as in `best_tree`.
    RAISES (ValueError): If k, a length or the limit is below 1, or the shapes do not fit.

    Cost: one Viterbi pass, then about O(n + k log n) heaps a segment.
    Source: Huang & Chiang (2005), Algorithm 3, with a stack in place of recursion.
    """
    if k < 1:
        raise ValueError(f"expected k of at least 1, received {k}")
    index = SpanIndex.build(lengths, potentials.device, max_width)
    # In double precision, so that sums of the same parts in other orders compare equal.
    packed = index.pack(at_least_float32(potentials.detach())).clamp(min=LOG_ZERO)
    by_start, by_end = viterbi_chart(packed.amax(0).double(), index)
    by_start, by_end, packed = by_start.cpu(), by_end.cpu(), packed.cpu()
    trees = []
    for segment in range(index.n_segments):
        starts, ends, rows = index.of_segment(segment)
        forest = _Forest(
            by_start[: len(rows), starts].T,
            by_end[-len(rows) :, ends].T,
            [packed[:, own].T for own in rows],
            k,
        )
        forest.find(*forest.root, k - 1)
        count = min(k, len(forest.vertices[forest.root].found))
        trees.append([forest.tree(rank) for rank in range(count)])
    return trees
