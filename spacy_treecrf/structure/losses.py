"""Losses over packed potentials, and what regularises them (Fu et al. 2021, Eq. 6-10)."""

import torch
from torch import Tensor

from .inside import masked_potentials, packed_log_partitions
from .spans import SpanIndex


def smoothed_potentials(
    potentials: Tensor,
    allowed: Tensor,
    epsilon: float = 0.0,
    scope: Tensor | None = None,
) -> Tensor:
    """Potentials under a mask whose zeros may be smoothed.

    potentials (Tensor): Shape: (L, S).
    allowed (Tensor): True = may be in the tree. Shape: (L, S), bool.
    epsilon (float): What a zero of the mask becomes; 0 is off.
    scope (Tensor): Where given, only zeros of these spans (the rejected ones) are
        smoothed, and the others stay zero: Eq. 10's own words. Else all zeros are: the
        sentence after Eq. 10, and the authors' code. Shape: (S,), bool.
    RETURNS (Tensor): Shape: (L, S).

    Source: Fu et al. (2021), Eq. 10, both readings.
    """
    masked = masked_potentials(potentials, allowed, epsilon)
    if epsilon and scope is not None:
        masked = masked_potentials(masked, allowed | scope)
    return masked


def cost_augmented(
    potentials: Tensor, allowed: Tensor, n_entity_labels: int, cost: float
) -> Tensor:
    """Potentials under which a tree with errors scores as if it were that much better.

    potentials (Tensor): Shape: (L, S).
    allowed (Tensor): True = may be in the tree. Shape: (L, S), bool.
    n_entity_labels (int): Labels from this number on are latent.
    cost (float): Of each spurious entity, and of each missed one, in nats. An entity
        where the gold leaves the label open costs nothing.
    RETURNS (Tensor): Up by the cost where the gold excludes an entity, down by it where
        the gold demands one. A loss of these potentials is the softmax-margin loss: only
        a score that leads by the cost counts as settled. Shape: (L, S).

    Source: Gimpel & Smith (2010), "Softmax-Margin CRFs", with the Hamming cost. Their
        log sum of exp(score + cost) less the gold's score, both lowered by the cost of
        missing all entities.
    """
    free, latent = allowed[:n_entity_labels], allowed[n_entity_labels:].any(0)
    demanded = free & ~latent
    change = torch.zeros_like(potentials)
    change[:n_entity_labels] = cost * ((~free).to(change) - demanded.to(change))
    return potentials + change


def tree_crf_losses(
    potentials: Tensor,
    masked: Tensor,
    index: SpanIndex,
    borders: Tensor | None = None,
) -> Tensor:
    """Negative log-probability of the allowed trees of each segment.

    potentials (Tensor): Shape: (L, S).
    masked (Tensor): The same under a mask, of `smoothed_potentials`. Shape: (L, S).
    index (SpanIndex): The layout.
    borders (Tensor): Of `border_potentials`. Shape: (T,).
    RETURNS (Tensor): log Z - masked log Z, in nats, at least 0.
        Shape: (B,).

    Source: Fu et al. (2021), Eq. 6-9. Gradient: marginals - masked marginals.
    """
    numerator, denominator = packed_log_partitions(masked, potentials, index, borders)
    # Rounding may carry the loss of all but certain trees below 0.
    return (denominator - numerator).clamp(min=0.0).to(potentials.dtype)


def local_losses(potentials: Tensor, allowed: Tensor, index: SpanIndex) -> Tensor:
    """Cross-entropy of each span by itself, summed over the spans of a segment.

    potentials (Tensor): Entity labels, then one null label. Shape: (L, S).
    allowed (Tensor): Labels that a span may have; where none is allowed, as for spans
        that cross an entity, it is the null label. Shape: (L, S), bool.
    index (SpanIndex): The layout.
    RETURNS (Tensor): In nats. Shape: (B,).

    Source: Fu et al. (2021), the ablation "w/o Tree CRF" of Table 2.
    """
    may_be = allowed.clone()
    may_be[-1] |= ~allowed.any(0)
    everything = potentials.logsumexp(0)
    losses = everything - masked_potentials(potentials, may_be).logsumexp(0)
    return losses.new_zeros(index.n_segments).index_add(0, index.segment, losses)


def normalize_potentials(
    potentials: Tensor,
    index: SpanIndex,
    usable: Tensor | None = None,
    log_temperature: Tensor | float = 0.0,
) -> Tensor:
    """Give each segment's potentials mean 0 and deviation exp(log_temperature).

    potentials (Tensor): Shape: (L, S).
    index (SpanIndex): The layout.
    usable (Tensor): Spans that count for the moments; all others are scaled alike.
        Shape: (S,), bool. Default: all.
    log_temperature (Tensor | float): Log of the deviation afterwards. Shape: ().
    RETURNS (Tensor): Shape: (L, S). A segment with one cell, or cells all alike, keeps
        its scale.

    Source: Fu et al. (2021), "potential normalization", section 3.3.
    Deviates: the moments are those of the segment's own spans, not of the padded square,
    so that a result does not depend on the rest of the batch.
    """
    weight = torch.ones_like(potentials[0]) if usable is None else usable.to(potentials)
    n_labels = potentials.shape[0]

    def segment_sum(values: Tensor) -> Tensor:
        return values.new_zeros(index.n_segments).index_add(0, index.segment, values)

    cells = (segment_sum(weight) * n_labels).clamp(min=1.0)
    mean = segment_sum(potentials.sum(0) * weight) / cells
    centred = potentials - mean[index.segment]
    variance = segment_sum(centred.square().sum(0) * weight) / cells
    # Below this the deviation is rounding, and dividing by it would blow noise up.
    flat = variance <= 1e-10 * (1.0 + mean.square())
    deviation = torch.where(flat, torch.ones_like(variance), variance).sqrt()
    temperature = torch.as_tensor(log_temperature).to(potentials).exp()
    return centred * (temperature / deviation)[index.segment]
