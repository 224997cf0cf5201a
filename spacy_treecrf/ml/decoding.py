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

from .loss import LossSettings, distribution_potentials, log_temperature_of
from .threads import one_thread
from .types import SpanPotentials


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
    members = torch.from_numpy(membership).to(trees.potentials)
    local = settings.objective == "local"
    if decoder == "mbr" and not local:
        threshold = 0.5 if threshold is None else threshold
    if threshold is not None and (local or decoder == "mbr"):
        plain = _plain_scores(_chances(trees, settings)[:n_entity], members)
        rows, labels = _best_above(plain, members, chunk, threshold)
        plain = plain[:, rows]
    else:
        decode_all = _decode_local if local else _decode_tree
        rows, labels = decode_all(trees, chunk, settings)
        plain = _plain_scores(_chances(trees, settings, rows)[:n_entity], members)
    parts = members.bool()[:, labels]
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
    trees: TreeDistribution, settings: LossSettings, rows: torch.Tensor | None = None
) -> torch.Tensor:
    """Probability of each label at all spans, or at some. Shape: (L, S) or (L, N)."""
    if settings.objective == "local":
        scores = trees.potentials
        return (scores if rows is None else scores[:, rows]).softmax(0)
    if settings.inference == "torch_struct":
        from .torch_struct_inference import packed_marginals

        chances = packed_marginals(trees.potentials, trees.index)
        return chances if rows is None else chances[:, rows]
    return trees.marginals if rows is None else trees.marginals_at(rows)


def _plain_scores(chances: torch.Tensor, members: torch.Tensor) -> torch.Tensor:
    """Probability of each plain label: the sum over the entity labels that hold it.

    chances (Tensor): Probability of each entity label. Shape: (entity labels, A).
    members (Tensor): 1 where a plain label is part of one. Shape: (plain, entity labels).
    RETURNS (Tensor): In float32, as it is written, so that a threshold compares what a
        user sees. Shape: (plain, A).
    """
    # Rounding may carry a sum of probabilities past 1.
    return (members @ chances).clamp_(0.0, 1.0).float()


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
    n_entity = settings.n_entity_labels
    log_chances = trees.potentials.log_softmax(0)
    # What the best label gains over none; 0 where none is better.
    best, labels = log_chances[:n_entity].max(0)
    gains = (best - log_chances[n_entity]).clamp(min=0.0)
    rows = best_bracketing(gains, chunk.index)
    rows = rows[(gains[rows] > 0) & chunk.usable[rows]]
    return rows, labels[rows]


def _best_above(
    plain: torch.Tensor,
    members: torch.Tensor,
    chunk: SpanPotentials,
    threshold: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Entities that do not cross, with the largest sum of (score - threshold).

    plain (Tensor): Score of each plain label at each span. Shape: (plain, S).
    members (Tensor): Shape: (plain, entity labels).
    RETURNS (tuple[Tensor, Tensor]): Rows and labels. A label counts for those of its
        parts that exceed the threshold. Shape: (N,) each.
    """
    excess = (plain - threshold).clamp_(min=0.0)
    gains, labels = (members.T.float() @ excess).max(0)
    gains.masked_fill_(~chunk.usable, 0.0)
    rows = best_bracketing(gains, chunk.index)
    rows = rows[gains[rows] > 0]
    return rows, labels[rows]
