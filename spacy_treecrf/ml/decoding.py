"""From potentials to entities with exact probabilities."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from thinc.api import Model, xp2torch

from spacy_treecrf.structure.bracketing import best_bracketing
from spacy_treecrf.structure.decode import Node
from spacy_treecrf.structure.distribution import TreeDistribution
from spacy_treecrf.structure.entity_sets import packed_entity_sets
from spacy_treecrf.structure.spans import SpanIndex

from .loss import LossSettings, distribution_potentials, log_temperature_of
from .threads import one_thread
from .types import SpanPotentials

# Cells (spans times labels) whose probabilities are computed at a time: 4 MB of float32.
BLOCK_CELLS = 1 << 20


class Entities(NamedTuple):
    """Entities of a batch of segments, unordered; arrays on the host.

    segment, start, end, label (np.ndarray): Label numbers may be composite. Shape: (N,).
    scores (np.ndarray): Probability of each plain label at the span. Shape: (N, plain).
    parts (np.ndarray): Which plain labels the span gets, at least one: those that are
        part of its label and pass the threshold. Shape: (N, plain), bool.
    """

    segment: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    scores: np.ndarray
    parts: np.ndarray


class Candidates(NamedTuple):
    """What else the segments of a chunk might hold; arrays on the host.

    numbers (np.ndarray): The segments, as numbered in the batch. Shape: (B,).
    sets (list | None): Per segment (log-probability, entities as (start, end, label
        number)), best first.
    entropy (np.ndarray | None): Entropy of the trees, in nats. Shape: (B,), float64.
    """

    numbers: np.ndarray
    sets: list[list[tuple[float, list[Node]]]] | None
    entropy: np.ndarray | None


def decode(
    model: Model[Any, Any],
    potentials: Iterable[SpanPotentials],
    settings: LossSettings,
    membership: np.ndarray,
    decoder: str,
    threshold: float | None,
) -> list[Entities]:
    """Find the entities of each segment.

    model (Model): The model, for its temperature.
    potentials (Iterable[SpanPotentials]): Chunks; each is let go before the next.
    settings (LossSettings): The settings of training.
    membership (np.ndarray): 1 where a plain label is part of an entity label, which may
        be a composite. Shape: (plain labels, entity labels), float32.
    decoder (str): "cky" or "mbr"; not used for the local objective.
    threshold (float | None): See Fu et al. (2021), section 3.4, and docs/api/treecrf.md.
    RETURNS (list[Entities]): One item a chunk, with segments numbered as in the batch.
    """
    with torch.inference_mode(), one_thread():
        return [
            _decode_chunk(trees, chunk, settings, membership, decoder, threshold)
            for chunk, trees in _distributions(model, potentials, settings)
        ]


def decode_with_candidates(
    model: Model[Any, Any],
    potentials: Iterable[SpanPotentials],
    settings: LossSettings,
    membership: np.ndarray,
    decoder: str,
    threshold: float | None,
    n_best: int,
    entropy: bool,
) -> list[tuple[Entities, Candidates]]:
    """Find the entities of each segment, and what else they might be.

    The first arguments are those of `decode`.
    n_best (int): Candidate entity sets of each segment; 1 for none.
    entropy (bool): Whether to compute the entropy of each segment's trees.
    RETURNS (list[tuple[Entities, Candidates]]): One item a chunk.
    """
    found = []
    with torch.inference_mode(), one_thread():
        for chunk, trees in _distributions(model, potentials, settings):
            entities = _decode_chunk(
                trees, chunk, settings, membership, decoder, threshold
            )
            sets, uncertainty = None, None
            if n_best > 1:
                sets = packed_entity_sets(trees, n_best, settings.n_entity_labels)
            if entropy:
                uncertainty = trees.entropy.cpu().numpy()
            found.append((entities, Candidates(chunk.numbers, sets, uncertainty)))
    return found


def _distributions(
    model: Model[Any, Any], potentials: Iterable[SpanPotentials], settings: LossSettings
) -> Iterator[tuple[SpanPotentials, TreeDistribution]]:
    """Each chunk with its distribution; the local objective uses its potentials alone."""
    for chunk in potentials:
        data = xp2torch(chunk.data)
        temperature = log_temperature_of(model, settings)
        scores = distribution_potentials(data, chunk, settings, temperature)
        yield chunk, TreeDistribution(scores, chunk.index)


def _decode_chunk(
    trees: TreeDistribution,
    chunk: SpanPotentials,
    settings: LossSettings,
    membership: np.ndarray,
    decoder: str,
    threshold: float | None,
) -> Entities:
    index, n_entity = chunk.index, settings.n_entity_labels
    labels_of = _Membership(membership, trees.potentials)
    local = settings.objective == "local"
    if decoder == "mbr" and not local:
        threshold = 0.5 if threshold is None else threshold
    if threshold is not None and (local or decoder == "mbr"):
        rows, labels = _best_above(trees, chunk, settings, labels_of, threshold)
    else:
        decode_all = _decode_local if local else _decode_tree
        rows, labels = decode_all(trees, chunk, settings)
    plain = labels_of.plain_scores(_chances(trees, settings, rows)[:n_entity])
    parts = labels_of.members.bool()[:, labels]
    if threshold is not None:
        parts &= plain > threshold
        kept = parts.any(0)
        rows, labels, plain, parts = (
            rows[kept],
            labels[kept],
            plain[:, kept],
            parts[:, kept],
        )
    segment, start, end = (
        column[rows].cpu().numpy() for column in (index.segment, index.start, index.end)
    )
    return Entities(
        chunk.numbers[segment],
        start,
        end,
        labels.cpu().numpy(),
        plain.T.cpu().numpy(),
        parts.T.cpu().numpy(),
    )


def _chances(
    trees: TreeDistribution, settings: LossSettings, rows: torch.Tensor | slice
) -> torch.Tensor:
    """Probability of each label at some spans. Shape: (L, N)."""
    if settings.objective == "local":
        return trees.potentials[:, rows].softmax(0)
    if settings.inference == "torch_struct":
        from .torch_struct_inference import packed_marginals

        return packed_marginals(trees.potentials, trees.index)[:, rows]
    if isinstance(rows, slice):
        if rows.stop - rows.start == trees.index.n_spans:
            return trees.marginals
        rows = torch.arange(rows.start, rows.stop, device=trees.potentials.device)
    return trees.marginals_at(rows)


class _Membership:
    """Which plain labels are part of which entity labels.

    members (Tensor): 1 where one is. Shape: (plain, entity labels).
    """

    def __init__(self, membership: np.ndarray, like: torch.Tensor) -> None:
        self.members = torch.from_numpy(membership).to(like)
        # Without composite labels, sums over them are the terms.
        self._is_identity = np.array_equal(membership, np.eye(*membership.shape))

    def plain_scores(self, chances: torch.Tensor) -> torch.Tensor:
        """Probability of each plain label: the sum over the entity labels that hold it.

        chances (Tensor): Probability of each entity label. Shape: (entity labels, A).
        RETURNS (Tensor): In float32, as it is written, so that a threshold compares what
            a user sees. Shape: (plain, A).
        """
        sums = chances if self._is_identity else self.members @ chances
        # Rounding may carry a sum of probabilities past 1.
        return sums.clamp(0.0, 1.0).float()

    def entity_sums(self, values: torch.Tensor) -> torch.Tensor:
        """For each entity label the sum of its plain labels' values.

        values (Tensor): Shape: (plain, A). RETURNS (Tensor): Shape: (entity labels, A).
        """
        return values if self._is_identity else self.members.T.float() @ values


def _blocks(index: SpanIndex, n_labels: int) -> Iterator[slice]:
    """Packed rows, so many at a time that their labels take a bounded memory."""
    step = max(1, BLOCK_CELLS // n_labels)
    for first in range(0, index.n_spans, step):
        yield slice(first, min(first + step, index.n_spans))


def _decode_tree(
    trees: TreeDistribution, chunk: SpanPotentials, settings: LossSettings
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows and labels of the entities of the most probable tree."""
    if settings.inference == "torch_struct":
        from .torch_struct_inference import packed_best_tree

        rows, labels = packed_best_tree(trees.potentials, chunk.index)
    else:
        rows, labels = trees.best_tree()
    kept = (labels < settings.n_entity_labels) & chunk.usable[rows]
    return rows[kept], labels[kept]


def _decode_local(
    trees: TreeDistribution, chunk: SpanPotentials, settings: LossSettings
) -> tuple[torch.Tensor, torch.Tensor]:
    """Label of each span by itself, then the best set without crossing (section 5a)."""
    n_entity, potentials = settings.n_entity_labels, trees.potentials
    gains = potentials.new_empty(chunk.index.n_spans)
    labels = torch.empty_like(gains, dtype=torch.int32)
    for rows in _blocks(chunk.index, len(potentials)):
        log_chances = potentials[:, rows].log_softmax(0)
        # What the best label gains over none; 0 where none is better.
        best, labels[rows] = log_chances[:n_entity].max(0)
        torch.clamp(best - log_chances[n_entity], min=0.0, out=gains[rows])
    chosen = best_bracketing(gains, chunk.index)
    chosen = chosen[(gains[chosen] > 0) & chunk.usable[chosen]]
    return chosen, labels[chosen].long()


def _best_above(
    trees: TreeDistribution,
    chunk: SpanPotentials,
    settings: LossSettings,
    labels_of: _Membership,
    threshold: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Entities that do not cross, with the largest sum of (score - threshold).

    RETURNS (tuple[Tensor, Tensor]): Rows and labels. A label counts for those of its
        parts that exceed the threshold. Shape: (N,) each.
    """
    n_entity, n_spans = settings.n_entity_labels, chunk.index.n_spans
    gains = trees.potentials.new_empty(n_spans, dtype=torch.float32)
    labels = torch.empty_like(gains, dtype=torch.int32)
    # torch-struct has no probabilities of some spans only.
    whole = settings.inference == "torch_struct" and settings.objective != "local"
    blocks = _blocks(chunk.index, len(trees.potentials))
    for rows in [slice(0, n_spans)] if whole else blocks:
        plain = labels_of.plain_scores(_chances(trees, settings, rows)[:n_entity])
        excess = labels_of.entity_sums((plain - threshold).clamp_(min=0.0))
        gains[rows], labels[rows] = excess.max(0)
    gains.masked_fill_(~chunk.usable, 0.0)
    chosen = best_bracketing(gains, chunk.index)
    chosen = chosen[gains[chosen] > 0]
    return chosen, labels[chosen].long()
