"""From potentials to entities with exact probabilities."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from thinc.api import Model, xp2torch

from spacy_treecrf.structure.decode import (
    best_bracketing,
    packed_best_tree,
    packed_mbr_tree,
)
from spacy_treecrf.structure.marginals import packed_marginals

from .loss import LossSettings, distribution_potentials, log_temperature_of
from .types import SpanPotentials


class Entities(NamedTuple):
    """Entities of a batch of segments, unordered; arrays on the host.

    segment, start, end, label (np.ndarray): Label numbers may be composite. Shape: (N,).
    scores (np.ndarray): Probability of each plain label at the span. Shape: (N, plain).
    """

    segment: np.ndarray
    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    scores: np.ndarray


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
    found = []
    with torch.inference_mode():
        for chunk in potentials:
            scores = distribution_potentials(
                xp2torch(chunk.data),
                chunk,
                settings,
                log_temperature_of(model, settings),
            )
            if settings.objective == "local":
                rows, labels, chances = _decode_local(
                    scores, chunk, settings, threshold
                )
            else:
                marginals = packed_marginals
                if settings.inference == "torch_struct":
                    from .torch_struct_inference import packed_marginals as marginals
                chances = marginals(scores, chunk.index)
                rows, labels = _decode_tree(
                    scores, chances, chunk, settings, decoder, threshold
                )
            shares = torch.from_numpy(membership).to(chances)
            plain = (shares @ chances[: settings.n_entity_labels, rows]).T
            index = chunk.index
            segment, start, end = (
                column[rows].cpu().numpy()
                for column in (index.segment, index.start, index.end)
            )
            found.append(
                Entities(
                    chunk.numbers[segment],
                    start,
                    end,
                    labels.cpu().numpy(),
                    # Rounding may carry a sum of probabilities past 1.
                    plain.clamp(0.0, 1.0).float().cpu().numpy(),
                )
            )
    return found


def _decode_tree(
    scores: torch.Tensor,
    chances: torch.Tensor,
    chunk: SpanPotentials,
    settings: LossSettings,
    decoder: str,
    threshold: float | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    n_entity = settings.n_entity_labels
    if decoder == "mbr":
        cut = 0.5 if threshold is None else threshold
        rows, labels = packed_mbr_tree(chances, chunk.index, cut, n_entity)
    else:
        best_tree = packed_best_tree
        if settings.inference == "torch_struct":
            from .torch_struct_inference import packed_best_tree as best_tree
        rows, labels = best_tree(scores, chunk.index)
    kept = (labels < n_entity) & chunk.usable[rows]
    rows, labels = rows[kept], labels[kept]
    if decoder == "cky" and threshold is not None:
        sure = chances[labels, rows] > threshold
        rows, labels = rows[sure], labels[sure]
    return rows, labels


def _decode_local(
    scores: torch.Tensor,
    chunk: SpanPotentials,
    settings: LossSettings,
    threshold: float | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Label of each span by itself, then the best set without crossing (section 5a)."""
    n_entity = settings.n_entity_labels
    chances = scores.softmax(0)
    if threshold is None:
        log_chances = scores.log_softmax(0)
        # What the best label gains over none; 0 where none is better.
        best, labels = log_chances[:n_entity].max(0)
        gains = (best - log_chances[n_entity]).clamp(min=0.0)
    else:
        best, labels = chances[:n_entity].max(0)
        gains = (best - threshold).clamp(min=0.0)
    rows = best_bracketing(gains, chunk.index)
    rows = rows[(gains[rows] > 0) & chunk.usable[rows]]
    return rows, labels[rows], chances
