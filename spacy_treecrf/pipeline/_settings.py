"""Checks of a pipe's settings, before anything is trained."""

import math
import warnings
from typing import TYPE_CHECKING, Any

from spacy.language import Language

from spacy_treecrf.errors import Errors, Warnings

if TYPE_CHECKING:
    from spacy_treecrf.ml.loss import LossSettings


def check_settings(name: str, cfg: dict[str, Any]) -> None:
    """Check the settings of a `treecrf` pipe.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings.
    RAISES (ValueError): If one is out of its range.
    """
    for setting, values in {
        "initial_bias": ("prior", "zero"),
        "objective": ("treecrf", "local"),
        "smoothing_scope": ("all", "rejected"),
        "decoder": ("cky", "mbr"),
        "crossing": ("reduce", "error"),
        "inference": ("fused", "torch_struct"),
    }.items():
        _require(name, cfg, setting, cfg[setting] in values, f"one of {values}")
    for setting in ("latent_labels", "max_length", "n_best"):
        _require(name, cfg, setting, cfg[setting] >= 1, "a number of at least 1")
    local = cfg["objective"] == "local"
    fits = not local or cfg["n_best"] == 1
    _require(name, cfg, "n_best", fits, "1, since single spans have no candidate sets")
    fits = not local or not cfg["entropy"]
    _require(name, cfg, "entropy", fits, "false, since single spans have no tree")
    smoothing, threshold = cfg["structure_smoothing"], cfg["threshold"]
    _require(name, cfg, "structure_smoothing", 0 <= smoothing < 1, "a number in [0, 1)")
    fits = 0 <= cfg["softmax_margin"] < math.inf
    _require(name, cfg, "softmax_margin", fits, "a number of at least 0")
    fits = threshold is None or 0 <= threshold <= 1
    _require(name, cfg, "threshold", fits, "null or a number in [0, 1]")
    temperature = cfg["temperature"]
    fits = temperature == "learned" or (
        not isinstance(temperature, str) and 0 < temperature < math.inf
    )
    _require(name, cfg, "temperature", fits, "'learned' or a number above 0")
    if smoothing and not cfg["potential_normalization"]:
        warnings.warn(Warnings.T106.format(name=name), stacklevel=5)


def check_maxent_settings(name: str, cfg: dict[str, Any]) -> None:
    """Check the settings of a `maxent_ner` pipe.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings.
    RAISES (ValueError): If one is out of its range.
    """
    values = ("typed", "segment")
    fits = cfg["tagging"] in values
    _require(name, cfg, "tagging", fits, f"one of {values}")
    for setting in ("cutoff", "beam", "n_best"):
        _require(name, cfg, setting, cfg[setting] >= 1, "a number of at least 1")
    fits = cfg["n_best"] <= cfg["beam"]
    _require(name, cfg, "n_best", fits, f"at most the setting 'beam', {cfg['beam']}")
    fits = 0 <= cfg["l2"] < math.inf
    _require(name, cfg, "l2", fits, "a number of at least 0")


def check_reranker_settings(name: str, cfg: dict[str, Any]) -> None:
    """Check the settings of a `ner_reranker` pipe.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings.
    RAISES (ValueError): If one is out of its range.
    """
    from spacy_treecrf.rerank.feature_table import MAX_COUNT

    methods = ("averaged_perceptron", "voted_perceptron", "boosting")
    fits = cfg["method"] in methods
    _require(name, cfg, "method", fits, f"one of {methods}")
    fits = 1 <= cfg["min_sentences"] <= MAX_COUNT
    _require(name, cfg, "min_sentences", fits, f"a number from 1 to {MAX_COUNT}")
    for setting, least in {"rounds": 0, "passes": 1, "runs": 1}.items():
        fits = cfg[setting] >= least
        _require(name, cfg, setting, fits, f"a number of at least {least}")
    # A single pass goes in the order of the data: all runs would be the same.
    differ = cfg["method"] == "averaged_perceptron" and cfg["passes"] > 1
    expected = "1, or the averaged perceptron with several passes"
    _require(name, cfg, "runs", cfg["runs"] == 1 or differ, expected)
    # Without smoothing, a feature of oracles alone would get an infinite weight.
    fits = 0 < cfg["epsilon"] < math.inf
    _require(name, cfg, "epsilon", fits, "a number above 0")
    fits = 0 <= cfg["beta"] < math.inf
    _require(name, cfg, "beta", fits, "a number of at least 0")


def _require(
    name: str, cfg: dict[str, Any], setting: str, fits: bool, expected: str
) -> None:
    if not fits:
        raise ValueError(
            Errors.T002.format(
                setting=setting, name=name, value=cfg[setting], expected=expected
            )
        )


def check_score_weights(name: str, key: str, nlp: Language | None) -> None:
    """Warn if no score of the spans key has a weight: no model would be the best one.

    name (str): Name of the pipe.
    key (str): Its spans key.
    nlp (Language): The pipeline, whose config has the weights.
    """
    training = {} if nlp is None else nlp.config.get("training", {})
    weights = training.get("score_weights") or {}
    mine = (w for score, w in weights.items() if score.startswith(f"spans_{key}_"))
    if weights and not any(mine):
        warnings.warn(Warnings.T103.format(name=name, key=key), stacklevel=4)


def loss_settings(cfg: dict[str, Any], n_entity_labels: int) -> "LossSettings":
    """The settings that decide about the distribution and the loss.

    cfg (dict[str, Any]): Settings of a `treecrf` pipe.
    n_entity_labels (int): Its labels, combinations included.
    RETURNS (LossSettings): The settings.
    """
    from spacy_treecrf.ml.loss import LossSettings

    temperature = cfg["temperature"]
    return LossSettings(
        n_entity_labels=n_entity_labels,
        objective=cfg["objective"],
        potential_normalization=cfg["potential_normalization"],
        temperature=None if temperature == "learned" else float(temperature),
        structure_smoothing=cfg["structure_smoothing"],
        smoothing_scope=cfg["smoothing_scope"],
        softmax_margin=float(cfg["softmax_margin"]),
        inference=cfg["inference"],
    )
