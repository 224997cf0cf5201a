"""Checks of a pipe's settings, before anything is trained."""

import math
import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from spacy.language import Language

from spacy_treecrf.errors import Errors, Warnings

if TYPE_CHECKING:
    from spacy_treecrf.ml.loss import LossSettings


# Longest segment without a width limit: its chart has W = n.
WINDOW = 512


def longest_segment(cfg: dict[str, Any]) -> int | None:
    """Tokens of the longest segment that a `treecrf` pipe makes; None if any will do.

    Time grows with the length of a segment under a width limit, and with its cube without
    one.
    """
    length: int | None = cfg["max_length"]
    return WINDOW if length is None and cfg["max_width"] is None else length


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
    for setting in ("latent_labels", "n_best"):
        _require(name, cfg, setting, cfg[setting] >= 1, "a number of at least 1")
    fits = cfg["max_length"] is None or cfg["max_length"] >= 1
    _require(name, cfg, "max_length", fits, "null or a number of at least 1")
    width = cfg["max_width"]
    fits = width is None or width >= 2
    _require(name, cfg, "max_width", fits, "null or a number of at least 2")
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
    check_keys(name, cfg)


def warn_of_smoothing(name: str, cfg: dict[str, Any]) -> None:
    """Warn of a combination of settings that does not converge."""
    if cfg["structure_smoothing"] and not cfg["potential_normalization"]:
        warnings.warn(Warnings.T106.format(name=name), stacklevel=5)


def check_keys(name: str, cfg: dict[str, Any]) -> None:
    """Check that the keys of span groups are strings of their own.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings; those that end in "_key" are checked.
    RAISES (ValueError): If one is empty, or is used for two things.
    """
    spans_key = cfg["spans_key"]
    _require(name, cfg, "spans_key", bool(spans_key), "a string that is not empty")
    used = {spans_key: "spans_key"}
    for setting in ("missing_spans_key", "incorrect_spans_key", "candidates_key"):
        key = cfg.get(setting)
        if key is None:
            continue
        _require(name, cfg, setting, bool(key), "null or a string that is not empty")
        if setting == "candidates_key":
            continue
        fits = key not in used
        _require(name, cfg, setting, fits, f"another key than '{used.get(key)}' has")
        used[key] = setting
        head, _, rank = key.rpartition(":")
        fits = head != spans_key or not rank.isdecimal()
        expected = f"a key that is none of the candidates' '{spans_key}:0', ..."
        _require(name, cfg, setting, fits, expected)


# Pairs of pipes that were warned of, for each pipeline.
_warned: WeakKeyDictionary[Language, set[frozenset[str]]] = WeakKeyDictionary()


def warn_of_shared_key(nlp: Language, name: str, key: str) -> None:
    """Warn once if another pipe writes the same span group: one replaces the other's.

    nlp (Language): The pipeline, with or without the pipe itself.
    name (str): Name of the pipe. key (str): Its spans key.
    """
    for other, pipe in nlp.components:
        cfg = getattr(pipe, "cfg", None) or {}
        # A reranker replaces the choice of the pipe before it, as it should.
        if other == name or not isinstance(cfg, dict) or "candidates_key" in cfg:
            continue
        known, pair = _warned.setdefault(nlp, set()), frozenset((name, other))
        is_shared = key in (cfg.get("spans_key"), getattr(pipe, "key", None))
        if is_shared and pair not in known:
            known.add(pair)
            message = Warnings.T107.format(name=name, other=other, key=key)
            warnings.warn(message, stacklevel=4)


def check_flat_settings(name: str, cfg: dict[str, Any]) -> None:
    """Check the settings that the pipes of flat entities have in common.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings.
    RAISES (ValueError): If one is out of its range.
    """
    _require(name, cfg, "n_best", cfg["n_best"] >= 1, "a number of at least 1")
    check_keys(name, cfg)


def check_maxent_settings(name: str, cfg: dict[str, Any]) -> None:
    """Check the settings of a `maxent_ner` pipe.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings.
    RAISES (ValueError): If one is out of its range.
    """
    values = ("typed", "segment")
    fits = cfg["tagging"] in values
    _require(name, cfg, "tagging", fits, f"one of {values}")
    check_flat_settings(name, cfg)
    for setting in ("cutoff", "beam"):
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
    check_keys(name, cfg)


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


def check_schedule(name: str, nlp: Language | None) -> None:
    """Warn if training would go on after the learning rate has fallen to 0.

    name (str): Name of the pipe.
    nlp (Language): The pipeline, whose config has the schedule.
    """
    training = {} if nlp is None else nlp.config.interpolate().get("training", {})
    rate = (training.get("optimizer") or {}).get("learn_rate")
    last = rate.get("total_steps") if isinstance(rate, dict) else None
    steps = training.get("max_steps") or 0
    if last is not None and steps > last:
        warnings.warn(
            Warnings.T160.format(name=name, steps=steps, last=last), stacklevel=4
        )


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
