"""From potentials to a loss and its gradient, outside the encoder's precision."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from thinc.api import Model, torch2xp, xp2torch
from thinc.types import Floats1d, Floats2d
from torch import Tensor

from spacy_treecrf.structure.inside import LOG_ZERO, at_least_float32
from spacy_treecrf.structure.losses import (
    cost_augmented,
    local_losses,
    normalize_potentials,
    smoothed_potentials,
    tree_crf_losses,
)
from spacy_treecrf.structure.masks import border_potentials, packed_masks

from .threads import one_thread
from .types import SpanPotentials


@dataclass(frozen=True)
class LossSettings:
    """How potentials become a distribution and a loss.

    n_entity_labels (int): Entity labels; the numbers from there on are latent (or null).
    objective (str): "treecrf" or "local".
    potential_normalization (bool): Whether potentials are normalised, `treecrf` only.
    temperature (float | None): Deviation after normalisation; None = learned.
    structure_smoothing (float): Epsilon of Eq. 10, `treecrf` only; 0 is off.
    smoothing_scope (str): "all" or "rejected".
    softmax_margin (float): Cost of an error in the loss, in nats; 0 is off.
    inference (str): "fused" or "torch_struct".
    """

    n_entity_labels: int
    objective: str
    potential_normalization: bool
    temperature: float | None
    structure_smoothing: float
    smoothing_scope: str
    softmax_margin: float
    inference: str = "fused"


@dataclass(frozen=True)
class Annotation:
    """Gold of a batch: rows of (segment, start, end, label number), in segments.

    observed, missing, incorrect (np.ndarray): Shape: (E, 4), (M, 4), (I, 4), int64.
        Label -1 stands for every label, in the last two.
    """

    observed: np.ndarray
    missing: np.ndarray
    incorrect: np.ndarray

    def select(self, numbers: np.ndarray, n_segments: int) -> "Annotation":
        """The annotation of some segments, numbered anew in that order."""
        place = np.full(n_segments, -1)
        place[numbers] = np.arange(len(numbers))

        def pick(rows: np.ndarray) -> np.ndarray:
            new = place[rows[:, 0]]
            kept = new >= 0
            return np.concatenate([new[kept, None], rows[kept, 1:]], axis=1)

        return Annotation(pick(self.observed), pick(self.missing), pick(self.incorrect))


def distribution_potentials(
    data: Tensor,
    potentials: SpanPotentials,
    settings: LossSettings,
    log_temperature: Tensor | float,
) -> Tensor:
    """Potentials of the distribution: normalised if asked, no entity bordering on space.

    data (Tensor): Scores of the span scorer. Shape: (L, S).
    RETURNS (Tensor): In float32 or better. Shape: (L, S).
    """
    scores = at_least_float32(data)
    if settings.potential_normalization and settings.objective == "treecrf":
        scores = normalize_potentials(
            scores, potentials.index, potentials.usable, log_temperature
        )
    if bool(potentials.usable.all()):
        return scores
    scores = scores.clone()
    scores[: settings.n_entity_labels].masked_fill_(~potentials.usable, LOG_ZERO)
    return scores


def log_temperature_of(
    model: Model[Any, Any], settings: LossSettings
) -> Tensor | float:
    """Log of the deviation of normalised potentials: a constant or the parameter."""
    if settings.temperature is not None:
        return float(np.log(settings.temperature))
    return xp2torch(model.get_param("log_temperature"))[0]


def loss_and_gradients(
    model: Model[Any, Any],
    potentials: list[SpanPotentials],
    annotation: Annotation,
    settings: LossSettings,
) -> tuple[np.ndarray, list[Floats2d]]:
    """Loss of each segment and the gradient of their mean.

    model (Model): The model; a learned temperature gets its gradient here.
    potentials (list[SpanPotentials]): All chunks of a batch.
    annotation (Annotation): Gold of the batch.
    settings (LossSettings): The settings.
    RETURNS (tuple[np.ndarray, list[Floats2d]]): Losses in nats, (B,), float64; the
        gradient of their mean to each chunk's potentials, (L, S).

    Source: Fu et al. (2021), Eq. 6-10; "w/o Tree CRF" for the local objective; Gimpel &
        Smith (2010) for the margin.
    """
    n_segments = sum(len(chunk.numbers) for chunk in potentials)
    losses = np.zeros(n_segments, dtype=np.float64)
    gradients: list[Floats2d] = []
    for chunk in potentials:
        gold = annotation.select(chunk.numbers, n_segments)
        data = xp2torch(chunk.data, requires_grad=True)
        temperature = log_temperature_of(model, settings)
        if isinstance(temperature, Tensor):
            temperature.requires_grad_(True)
        with torch.enable_grad(), one_thread():
            scores = distribution_potentials(data, chunk, settings, temperature)
            chunk_losses = _losses(scores, chunk, gold, settings)
            (chunk_losses.sum() / n_segments).backward()
        losses[chunk.numbers] = chunk_losses.detach().double().cpu().numpy()
        gradients.append(cast(Floats2d, torch2xp(cast(Tensor, data.grad))))
        if isinstance(temperature, Tensor) and temperature.grad is not None:
            gradient = cast(Floats1d, torch2xp(temperature.grad.reshape(1)))
            model.inc_grad("log_temperature", gradient)
    return losses, gradients


def _losses(
    scores: Tensor, chunk: SpanPotentials, gold: Annotation, settings: LossSettings
) -> Tensor:
    device = scores.device
    allowed, rejected = packed_masks(
        chunk.index,
        settings.n_entity_labels,
        scores.shape[0],
        *(
            torch.from_numpy(rows).to(device)
            for rows in (gold.observed, gold.missing, gold.incorrect)
        ),
    )
    if settings.softmax_margin:
        scores = cost_augmented(
            scores, allowed, settings.n_entity_labels, settings.softmax_margin
        )
    if settings.objective == "local":
        return local_losses(scores, allowed, chunk.index)
    scope = rejected if settings.smoothing_scope == "rejected" else None
    masked = smoothed_potentials(scores, allowed, settings.structure_smoothing, scope)
    if settings.inference == "torch_struct":
        from .torch_struct_inference import log_partitions

        return log_partitions(scores, chunk.index) - log_partitions(masked, chunk.index)
    borders = border_potentials(chunk.index, allowed, settings.structure_smoothing)
    return tree_crf_losses(scores, masked, chunk.index, borders)
