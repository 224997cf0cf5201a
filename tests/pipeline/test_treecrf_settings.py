"""Settings of the treecrf pipe, and what they are checked against."""

import math
import warnings

import pytest
from nested_toy import initialized, toy_examples, untrained

from spacy_treecrf.pipeline.treecrf import TreeCRF


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("initial_bias", "random"),
        ("objective", "global"),
        ("smoothing_scope", "none"),
        ("decoder", "greedy"),
        ("crossing", "ignore"),
        ("inference", "slow"),
        ("latent_labels", 0),
        ("max_length", 0),
        ("max_width", 1),
        ("max_width", -3),
        ("structure_smoothing", 1.0),
        ("structure_smoothing", -0.1),
        ("structure_smoothing", math.nan),
        ("softmax_margin", -0.5),
        ("softmax_margin", math.inf),
        ("threshold", 1.5),
        ("threshold", -0.1),
        ("temperature", 0.0),
        ("temperature", math.inf),
        ("temperature", "high"),
    ],
)
def test_treecrf_bad_setting_is_named(setting, value):
    pipe = untrained().get_pipe("treecrf")
    with pytest.raises(ValueError, match=f"T002.*'{setting}' of pipe 'x'"):
        TreeCRF(pipe.vocab, pipe.model, "x", **{setting: value})


@pytest.mark.parametrize(
    "config",
    [
        {"decoder": "greedy"},
        {"max_length": "long"},
        {"max_width": "wide"},
        {"no_such": 1},
    ],
)
def test_treecrf_bad_config_is_refused(config):
    with pytest.raises(ValueError, match=next(iter(config))):
        untrained(**config)


def test_treecrf_width_limit_needs_the_inference_that_has_chains():
    nlp = initialized(max_width=7, inference="torch_struct")
    nlp.get_pipe("treecrf").cfg["max_width"] = 4
    assert "nested" in nlp("Four tokens are fine").spans
    with pytest.raises(
        ValueError, match=r"T014.*'treecrf'.*Five tokens.*max_width = 4"
    ):
        nlp("Five tokens are too many")


def test_treecrf_unknown_setting_is_refused():
    pipe = untrained().get_pipe("treecrf")
    with pytest.raises(ValueError, match="no_such"):
        TreeCRF(pipe.vocab, pipe.model, no_such=1)


def test_treecrf_smoothing_without_normalisation_warns():
    with pytest.warns(UserWarning, match="T106"):
        untrained(structure_smoothing=0.01)


@pytest.mark.parametrize(
    ("weights", "warned"),
    [
        ({"spans_nested_f": 1.0}, False),
        ({"spans_other_f": 0.5, "spans_nested_inner_f": 0.5}, False),
        ({"tag_acc": 1.0, "spans_nested_f": 0.0}, True),
        ({"tag_acc": 1.0, "spans_nested_f": None}, True),
    ],
)
def test_treecrf_warns_if_no_score_weight_is_its_own(weights, warned):  # I-01
    nlp = untrained()
    nlp.config["training"]["score_weights"] = weights
    examples = toy_examples(nlp)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp.initialize(lambda: examples)
    assert [str(w.message)[:6] for w in caught] == ["[T103]"] * warned
