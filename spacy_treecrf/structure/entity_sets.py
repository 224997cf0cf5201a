"""Candidate sets of entities with exact log-probabilities.

With latent labels many trees share one set of entities, so that k-best trees repeat
themselves. Here the candidates are sets: that of the best tree, and its neighbours by one
or two moves (add, drop, relabel, move a boundary). Each is scored exactly, by masked
inside minus log Z; the k best are kept, and are distinct by construction.
"""

from collections.abc import Container
from itertools import islice

import torch
from torch import Tensor

from .chart import BITS, LOG_ZERO, LabelSums
from .decode import Node, trees_as_lists
from .distribution import TreeDistribution
from .inside import at_least_float32
from .masks import crossing_spans, inner_borders
from .spans import Lengths, SpanIndex
from .stacked import StackedSums

# Rounding carries probabilities to 0 and 1; log-odds stay finite.
MIN_CHANCE = 1e-15
# Sets scored in each round, one move from the best set not yet moved from: 64 from the
# best tree's, then 256 that are mostly two moves away from it.
ROUNDS = (64, *[32] * 8)
# Likely entities of a segment that moves are made of.
MAX_ENTITIES = 64
# Chart cells (widest span times tokens times sets) scored at a time: 128 MB of float64.
MAX_CELLS = 1 << 24

EntitySet = frozenset[Node]


def crosses(a: Node, b: Node) -> bool:
    """Whether two spans cross, or are the same span."""
    same = a[:2] == b[:2]
    return same or a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def moved(
    centre: EntitySet, odds: dict[Node, float], seen: Container[EntitySet], limit: int
) -> list[EntitySet]:
    """Sets that one move leads to from another, by what the marginals promise.

    centre (EntitySet): The set to start from.
    odds (dict[Node, float]): Log-odds of likely entities, those of the set among them.
    seen (Container[EntitySet]): Sets that are candidates already.
    limit (int): Sets wanted.
    RETURNS (list[EntitySet]): New sets without crossing, most promising first. The moves
        are to drop an entity, to add one, and to put one in another's place: another
        label, another boundary, or a span that crosses it.
    """
    moves = [(-odds[entity], centre - {entity}) for entity in centre]
    for entity, chance in odds.items():
        if entity in centre:
            continue
        in_the_way = [other for other in centre if crosses(entity, other)]
        if not in_the_way:
            moves.append((chance, centre | {entity}))
        for other in centre:
            shares_edge = entity[2] == other[2] and (
                entity[0] == other[0] or entity[1] == other[1]
            )
            if in_the_way == [other] or (shares_edge and not in_the_way):
                moves.append((chance - odds[other], (centre - {other}) | {entity}))
    moves.sort(key=lambda move: -move[0])
    new = dict.fromkeys(entities for _, entities in moves if entities not in seen)
    return list(islice(new, limit))


def score_sets(
    potentials: Tensor,
    index: SpanIndex,
    sets: list[list[EntitySet]],
    n_entity_labels: int,
) -> list[list[float]]:
    """Masked log-sum of each set: all trees whose entities are exactly those.

    potentials (Tensor): Shape: (L, S).
    index (SpanIndex): The layout.
    sets (list[list[EntitySet]]): Sets of each segment.
    n_entity_labels (int): Number of entity labels.
    RETURNS (list[list[float]]): In nats, one for each set.

    Source: Fu et al. (2021), Eq. 8, one chart a set: those of a segment are stacked.
    """
    latent = LabelSums.of(potentials[n_entity_labels:]).bits()
    scores: list[list[float]] = [[] for _ in sets]
    step = max(1, MAX_CELLS // (index.widest * index.n_tokens))
    for first in range(0, max(map(len, sets)), step):
        part = [of_segment[first : first + step] for of_segment in sets]
        copies = max(map(len, part))
        rows = [
            (segment, *entity, copy)
            for segment, of_segment in enumerate(part)
            for copy, entities in enumerate(of_segment)
            for entity in entities
        ]
        table = torch.tensor(rows, dtype=torch.int64, device=potentials.device)
        segment, start, end, label, copy = table.reshape(-1, 5).T
        bits = latent[:, None].repeat(1, copies)
        own = index.row_of(segment, start, end)
        bits[own, copy] = potentials[label, own].double() * BITS
        spans = table.reshape(-1, 5)
        bits.masked_fill_(crossing_spans(index, spans, copy, copies), LOG_ZERO)
        borders = None
        if index.chained:
            inner = inner_borders(index, spans, copy, copies)
            borders = torch.zeros_like(inner, dtype=torch.float64)
            borders.masked_fill_(inner, LOG_ZERO)
        sums = StackedSums(bits, index, potentials.dtype, borders).log_sums
        for of_segment, values, found in zip(part, sums.tolist(), scores, strict=True):
            found += values[: len(of_segment)]
    return scores


def packed_entity_sets(
    distribution: TreeDistribution, k: int, n_entity_labels: int
) -> list[list[tuple[float, list[Node]]]]:
    """`k_best_entity_sets` of a distribution."""
    potentials, index = distribution.potentials, distribution.index
    odds = likely_entities(distribution, n_entity_labels)
    log_z = distribution.log_partition.tolist()
    nodes = trees_as_lists(*distribution.best_tree(), index)
    found: list[dict[EntitySet, float]] = [{} for _ in nodes]

    def score(wanted: list[list[EntitySet]]) -> None:
        scores = score_sets(potentials, index, wanted, n_entity_labels)
        for scored, sets, values, log_sum in zip(
            found, wanted, scores, log_z, strict=True
        ):
            for entities, value in zip(sets, values, strict=True):
                # Rounding may carry the log-probability of a certain set above 0.
                scored[entities] = min(value - log_sum, 0.0)

    score(
        [
            [frozenset(node for node in tree if node[2] < n_entity_labels)]
            for tree in nodes
        ]
    )
    expanded: list[set[EntitySet]] = [set() for _ in nodes]
    for limit in ROUNDS:
        wanted = []
        for scored, done, likely in zip(found, expanded, odds, strict=True):
            fresh = [entities for entities in scored if entities not in done]
            centre = max(fresh, key=scored.__getitem__, default=None)
            wanted.append(
                [] if centre is None else moved(centre, likely, scored, limit)
            )
            done.update(fresh if centre is None else [centre])
        score(wanted)
    ranked = []
    for scored in found:
        # The sort is stable: of equal ones the more promising move comes first.
        order = sorted(scored.items(), key=lambda item: -item[1])[:k]
        ranked.append([(value, in_text_order(entities)) for entities, value in order])
    return ranked


def likely_entities(
    distribution: TreeDistribution, n_entity_labels: int
) -> list[dict[Node, float]]:
    """Log-odds of the most probable entities of each segment, and of the best tree's."""
    potentials, index = distribution.potentials, distribution.index
    chances = distribution.marginals[:n_entity_labels].double()
    odds = torch.logit(chances, eps=MIN_CHANCE)
    rows, labels = distribution.best_tree()
    kept = torch.zeros_like(odds, dtype=torch.bool)
    inside = labels < n_entity_labels
    kept[labels[inside], rows[inside]] = True
    for segment in range(index.n_segments):
        own = (index.segment == segment).nonzero()[:, 0]
        values = odds[:, own].reshape(-1)
        top = values.topk(min(MAX_ENTITIES, len(values))).indices
        kept[top // len(own), own[top % len(own)]] = True
    # A span that borders on white space holds no entity, however few the others are.
    kept &= potentials[:n_entity_labels] > LOG_ZERO / 2
    labels, rows = kept.nonzero(as_tuple=True)
    columns = (index.segment[rows], index.start[rows], index.end[rows], labels)
    likely: list[dict[Node, float]] = [{} for _ in index.lengths]
    for (segment, start, end, label), value in zip(
        zip(*(column.tolist() for column in columns), strict=True),
        odds[labels, rows].tolist(),
        strict=True,
    ):
        likely[segment][start, end, label] = value
    return likely


def in_text_order(entities: EntitySet) -> list[Node]:
    """Entities by start, outer before inner."""
    return sorted(entities, key=lambda node: (node[0], -node[1], node[2]))


def k_best_entity_sets(
    potentials: Tensor,
    lengths: Lengths,
    k: int,
    n_entity_labels: int,
    max_width: int | None = None,
) -> list[list[tuple[float, list[Node]]]]:
    """Probable sets of entities of each segment, with exact log-probabilities.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    k (int): Sets wanted of each segment, at least 1.
    n_entity_labels (int): Number of entity labels; the numbers from there on are latent.
    max_width (int): Width limit, W; None for none.
    RETURNS (list[list[tuple[float, list[Node]]]]): Per segment (log-probability, set),
        best first; distinct; fewer than k where fewer neighbours are likely. The sets
        are neighbours of the best tree's, so that a set further away may be missed;
        those returned have exact probabilities.
    RAISES (ValueError): If k, a length or the limit is below 1, or the shapes do not fit.

    Cost: one inside chart for each of at most 1 + 64 + 256 sets a segment.
    Source: Fu et al. (2021), Eq. 8 for the probability of a set.
    """
    if k < 1:
        raise ValueError(f"expected k of at least 1, received {k}")
    index = SpanIndex.build(lengths, potentials.device, max_width)
    # In double precision: a log-probability is a small difference of large sums.
    packed = index.pack(at_least_float32(potentials.detach())).double()
    packed = packed.clamp(min=LOG_ZERO)
    return packed_entity_sets(TreeDistribution(packed, index), k, n_entity_labels)
