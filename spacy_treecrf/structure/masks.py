"""Which spans are observed, latent or rejected (Fu et al. 2021, Algorithm 1).

An entity is *observed*: only its label is allowed at its span. A span that crosses an
entity is *rejected*: no label is allowed. Every other span is *latent*: it may be in the
tree, but not as an entity. An observed span is in every allowed tree because all that
crosses it is rejected, not because its other labels are masked.

Partial annotation adds two kinds. Inside a *missing* region any label may be. A label
that is *incorrect* for a span is masked there. Where kinds meet: rejected > incorrect >
observed > missing > latent.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .bracketing import best_bracketing
from .chart import LOG_ZERO
from .spans import SpanIndex

# Label number that stands for every label, in missing and incorrect spans.
ANY_LABEL = -1


def crossing_spans(
    index: SpanIndex, spans: Tensor, copy: Tensor | None = None, copies: int = 1
) -> Tensor:
    """Which spans of a batch cross one of the given spans.

    index (SpanIndex): The layout.
    spans (Tensor): Columns segment, start, end, ... Shape: (E, 3 or more), int64.
    copy (Tensor): Which of several sets each span is of. Shape: (E,). Default: all one.
    copies (int): Number of sets, K.
    RETURNS (Tensor): True where a span crosses one of its set's. Shape: (S, K), bool.

    Cost: O(E + S K), one Python step a width. A span is crossed from the right if the
    furthest end of those that start inside it lies beyond it, and so from the left.
    """
    device = index.start.device
    copy = torch.zeros_like(spans[:, 0]) if copy is None else copy
    segment, start, end = spans[:, 0], spans[:, 1], spans[:, 2]
    shape = (index.n_tokens * copies,)
    # By token and set: furthest end of a span that starts here; earliest start of one
    # whose last token is here.
    reach = torch.zeros(shape, dtype=torch.int64, device=device)
    origin = torch.full(shape, index.longest, dtype=torch.int64, device=device)
    first = index.tokens(segment, start) * copies + copy
    last = index.tokens(segment, end - 1) * copies + copy
    reach = reach.scatter_reduce(0, first, end, "amax").view(-1, copies)
    origin = origin.scatter_reduce(0, last, start, "amin").view(-1, copies)
    crossed = torch.zeros(index.n_spans, copies, dtype=torch.bool, device=device)
    furthest, earliest = torch.zeros_like(reach), torch.full_like(origin, index.longest)
    for width in range(2, index.widest + 1):
        rows, count = index.rows(width), index.counts[width]
        furthest = torch.maximum(furthest[:count], reach[index.later(width, width - 1)])
        earliest = torch.minimum(
            earliest[:count], origin[index.later(width, width - 2)]
        )
        starts = index.start[rows, None]
        crossed[rows] = (furthest > starts + width) | (earliest < starts)
    return crossed


def inner_borders(
    index: SpanIndex, spans: Tensor, copy: Tensor | None = None, copies: int = 1
) -> Tensor:
    """Which borders between tokens lie strictly inside one of the given spans.

    The arguments are those of `crossing_spans`.
    RETURNS (Tensor): True where the border after a token does. Shape: (T, K), bool.
    """
    copy = torch.zeros_like(spans[:, 0]) if copy is None else copy
    depth = torch.zeros(
        index.n_tokens * copies, dtype=torch.int64, device=index.start.device
    )
    one = torch.ones_like(copy)
    first = index.tokens(spans[:, 0], spans[:, 1]) * copies + copy
    last = index.tokens(spans[:, 0], spans[:, 2] - 1) * copies + copy
    depth.index_add_(0, first, one).index_add_(0, last, -one)
    return depth.view(-1, copies).cumsum(0) > 0


def border_potentials(
    index: SpanIndex, allowed: Tensor, epsilon: float = 0.0
) -> Tensor | None:
    """What a border between stretches adds to an analysis under a mask.

    A border strictly inside an observed span is rejected, as a node that crosses it is:
    else an analysis could lack the entity, cut in two. The spans that may be an entity but
    not latent are the observed ones.

    index (SpanIndex): The layout.
    allowed (Tensor): True = may be in the tree; latent labels last. Shape: (L, S), bool.
    epsilon (float): Structure smoothing: what a zero of the mask becomes.
    RETURNS (Tensor | None): In nats, by the token before the border; None where no
        segment exceeds the width limit. Shape: (T,), float64.
    """
    if not index.chained:
        return None
    rows = (allowed.any(0) & ~allowed[-1]).nonzero()[:, 0]
    spans = torch.stack([index.segment[rows], index.start[rows], index.end[rows]], 1)
    rejected = inner_borders(index, spans)[:, 0]
    penalty = math.log(epsilon) if epsilon else LOG_ZERO
    return torch.zeros_like(rejected, dtype=torch.float64).masked_fill_(
        rejected, penalty
    )


def spans_inside(index: SpanIndex, regions: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs of a span of the batch and a region that it lies wholly inside.

    regions (Tensor): Columns segment, start, end, ... Shape: (M, 3 or more), int64.
    RETURNS (tuple[Tensor, Tensor]): Packed row of the span, number of the region.
        Shape: (N,) each.
    """
    inside = (
        (index.segment[:, None] == regions[:, 0])
        & (index.start[:, None] >= regions[:, 1])
        & (index.end[:, None] <= regions[:, 2])
    )
    rows, numbers = inside.nonzero(as_tuple=True)
    return rows, numbers


def packed_masks(
    index: SpanIndex,
    n_entity_labels: int,
    n_labels: int,
    observed: Tensor,
    missing: Tensor | None = None,
    incorrect: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Build the masks of a batch from its annotation.

    index (SpanIndex): The layout.
    n_entity_labels (int): Number of entity labels; the numbers from there on are latent.
    n_labels (int): Number of all labels, L.
    observed (Tensor): Columns segment, start, end, label. Those wider than the width
        limit are not observed, but what crosses them is rejected. Shape: (E, 4), int64.
    missing (Tensor): The same; `ANY_LABEL` frees all labels. Shape: (M, 4), int64.
    incorrect (Tensor): The same; `ANY_LABEL` masks all entity labels. Shape: (I, 4).
    RETURNS (tuple[Tensor, Tensor]): `allowed`, True = may be in the tree, (L, S); and
        `rejected`, spans that cross an observed one, (S,).

    Source: Fu et al. (2021), Algorithm 1.
    """
    device = index.start.device
    allowed = torch.zeros(n_labels, index.n_spans, dtype=torch.bool, device=device)
    allowed[n_entity_labels:] = True
    if missing is not None and len(missing):
        rows, numbers = spans_inside(index, missing)
        labels = missing[numbers, 3]
        allowed[:, rows[labels == ANY_LABEL]] = True
        single = labels != ANY_LABEL
        allowed[labels[single], rows[single]] = True
    rejected = crossing_spans(index, observed)[:, 0]
    # What is wider than the limit can be no node; it still rejects what crosses it.
    observed = observed[observed[:, 2] - observed[:, 1] <= index.widest]
    if len(observed):
        rows = index.row_of(observed[:, 0], observed[:, 1], observed[:, 2])
        allowed[:, rows] = False
        allowed[observed[:, 3], rows] = True
    if incorrect is not None:
        incorrect = incorrect[incorrect[:, 2] - incorrect[:, 1] <= index.widest]
    if incorrect is not None and len(incorrect):
        rows = index.row_of(incorrect[:, 0], incorrect[:, 1], incorrect[:, 2])
        every = incorrect[:, 3] == ANY_LABEL
        allowed[:n_entity_labels, rows[every]] = False
        allowed[incorrect[~every, 3], rows[~every]] = False
    allowed &= ~rejected
    return allowed, rejected


def observed_mask(
    entities: Sequence[tuple[int, int, int]],
    length: int,
    n_entity_labels: int,
    n_labels: int,
    max_width: int | None = None,
) -> Tensor:
    """Mask of one segment whose entities are fully annotated.

    entities (Sequence[tuple[int, int, int]]): (start, end, label number), half-open.
    length (int): Tokens of the segment, n.
    n_entity_labels (int): Number of entity labels; the numbers from there on are latent.
    n_labels (int): Number of all labels, L.
    max_width (int): Width limit, W; None for none. An entity that is wider is not
        observed; what crosses it is rejected all the same.
    RETURNS (Tensor): `allowed`, True = may be in the tree; False where there is no span.
        Shape: (P, P, L) with P = length + 1, bool.
    RAISES (ValueError): If an entity is outside the segment or its label is no entity
        label.

    Source: Fu et al. (2021), Algorithm 1. Entities that cross reject one another, in
    whatever order they come; no tree is allowed then, and `masked_log_partition` says so.
    """
    for start, end, label in entities:
        if not (0 <= start < end <= length and 0 <= label < n_entity_labels):
            raise ValueError(
                f"expected entities with 0 <= start < end <= {length} and 0 <= label < "
                f"{n_entity_labels}, received {(start, end, label)}"
            )
    index = SpanIndex.build([length], max_width=max_width)
    observed = torch.tensor(
        [(0, *entity) for entity in entities], dtype=torch.int64, device="cpu"
    ).reshape(-1, 4)
    allowed, rejected = packed_masks(index, n_entity_labels, n_labels, observed)
    within = observed[observed[:, 2] - observed[:, 1] <= index.widest]
    if index.chained and rejected[index.row_of(*within.T[:3])].any():
        # A chain could pass by entities that reject one another; a tree cannot.
        allowed[:, index.rows(1)] = False
    return index.unpack(allowed)[0]


def largest_compatible(
    spans: Sequence[tuple[int, int, int]], length: int
) -> list[bool]:
    """Choose spans of one segment, no two of which cross, with the largest weight.

    spans (Sequence[tuple[int, int, int]]): (start, end, weight), half-open.
    length (int): Tokens of the segment.
    RETURNS (list[bool]): Whether each span is kept; ties are broken as in `best_tree`.

    Cost: O(length^3): it is the best bracketing with the weights as gains.
    """
    index = SpanIndex.build([length])
    table = torch.tensor(spans, dtype=torch.int64, device="cpu").reshape(-1, 3)
    rows = index.row_of(torch.zeros_like(table[:, 0]), table[:, 0], table[:, 1])
    weights = table[:, 2].float()
    gains = weights.new_zeros(index.n_spans).index_add(0, rows, weights)
    kept = torch.zeros_like(gains, dtype=torch.bool)
    kept[best_bracketing(gains, index)] = True
    return kept[rows].tolist()
