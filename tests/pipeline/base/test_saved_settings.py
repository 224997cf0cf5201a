"""Settings that are changed after training: obeyed or refused, wherever they are set."""

import json

import flat_toy
import numpy as np
import pytest
import reranker_toy
import spacy
from nested_toy import (
    SPAN_SCORER,
    TOK2VEC,
    found,
    initialized,
    run,
    toy_examples,
)
from spacy.util import load_config

from spacy_treecrf.pipeline.base.saved_settings import reconcile

WORDS = "The Bank of China said so ."
PREDICTION = {
    "n_best": 5,
    "threshold": 0.4,
    "decoder": "mbr",
    "entropy": True,
    "annotate_ents": True,
    "max_length": 40,
    "inference": "torch_struct",
}


@pytest.fixture(scope="module")
def model(unsure, tmp_path_factory):
    path = tmp_path_factory.mktemp("model")
    unsure.to_disk(path)
    return path


def load(path, name="treecrf", **settings):
    return spacy.load(path, config={"components": {name: settings}})


def edit(path, to, edits, name="treecrf"):
    """A copy of a model with an edited config.cfg."""
    nlp = spacy.load(path)
    nlp.to_disk(to)
    config = load_config(to / "config.cfg")
    config["components"][name].update(edits)
    config.to_disk(to / "config.cfg")
    return to


def written(nlp):
    """All that a pipeline writes to a Doc."""
    doc = run(nlp, WORDS)
    groups = {
        key: (
            found(doc, key),
            {name: np.asarray(v).tolist() for name, v in group.attrs.items()},
        )
        for key, group in doc.spans.items()
    }
    return groups, [(e.start, e.end, e.label_) for e in doc.ents]


# What concerns prediction.


def test_settings_of_prediction_are_obeyed_in_every_way(model, tmp_path):
    at_load = load(model, **PREDICTION)
    edited = spacy.load(edit(model, tmp_path / "edited", PREDICTION))
    by_cfg = spacy.load(model)
    by_cfg.get_pipe("treecrf").cfg.update(PREDICTION)
    groups, ents = written(at_load)
    assert {"nested", "nested:0", "nested:1"} <= set(groups)
    assert "entropy" in groups["nested"][1]
    assert ents
    assert written(edited) == written(by_cfg) == (groups, ents)
    for nlp in (at_load, edited, by_cfg):
        cfg = nlp.get_pipe("treecrf").cfg
        assert {key: cfg[key] for key in PREDICTION} == PREDICTION


@pytest.mark.parametrize(("setting", "value"), [*PREDICTION.items(), ("max_width", 4)])
def test_settings_of_prediction_are_obeyed_one_by_one(model, setting, value):
    cfg = load(model, **{setting: value}).get_pipe("treecrf").cfg
    plain = spacy.load(model).get_pipe("treecrf").cfg
    changed = {key for key in plain if cfg[key] != plain[key]}
    assert changed == {setting, "configured"}
    assert cfg[setting] == value


def test_settings_set_in_cfg_are_saved(model, tmp_path):
    nlp = spacy.load(model)
    nlp.get_pipe("treecrf").cfg["threshold"] = 0.4
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("treecrf").cfg["threshold"] == 0.4
    # What is configured later is stronger, the former value too.
    for value in (0.6, None):
        config = {"components": {"treecrf": {"threshold": value}}}
        cfg = spacy.load(tmp_path, config=config).get_pipe("treecrf").cfg
        # Null is what the config says anyway: no edit, so that 0.4 stays.
        assert cfg["threshold"] == (0.4 if value is None else value)


def test_settings_can_be_set_back_to_the_default(model, tmp_path):
    path = edit(model, tmp_path / "edited", {"n_best": 5})
    spacy.load(path).to_disk(tmp_path / "saved")
    assert load(tmp_path / "saved").get_pipe("treecrf").cfg["n_best"] == 5
    assert load(tmp_path / "saved", n_best=1).get_pipe("treecrf").cfg["n_best"] == 1


def test_settings_of_a_pipe_loaded_by_itself_are_the_saved_ones(model):
    # No config comes with the bytes of a pipe.
    nlp = load(model, threshold=0.4)
    config = dict(nlp.get_pipe_config("treecrf"))
    again = spacy.blank("en")
    del config["threshold"]
    pipe = again.add_pipe(config.pop("factory"), config=config)
    pipe.from_bytes(nlp.get_pipe("treecrf").to_bytes())
    assert pipe.cfg["threshold"] == 0.4


def test_settings_out_of_range_in_cfg_are_refused(model):
    nlp = spacy.load(model)
    nlp.get_pipe("treecrf").cfg["threshold"] = 7
    with pytest.raises(ValueError, match=r"T002.*'threshold' of pipe 'treecrf' is 7"):
        run(nlp, WORDS)


# What was learnt.

LEARNT = {
    "spans_key": "other",
    "latent_labels": 2,
    "objective": "local",
    "potential_normalization": True,
    "temperature": 2.0,
}


@pytest.mark.parametrize(("setting", "value"), list(LEARNT.items()))
def test_settings_that_were_learnt_are_refused_at_load(model, tmp_path, setting, value):
    message = (
        rf"T008.*'{setting}' of pipe 'treecrf' is {value!r} in the config.*trained"
    )
    with pytest.raises(ValueError, match=message):
        load(model, **{setting: value})
    with pytest.raises(ValueError, match=message):
        spacy.load(edit(model, tmp_path / "edited", {setting: value}))


@pytest.mark.parametrize(
    ("setting", "value"), [*LEARNT.items(), ("labels", ["ORG", "GPE"])]
)
def test_settings_that_were_learnt_are_refused_in_cfg(model, tmp_path, setting, value):
    nlp = spacy.load(model)
    nlp.get_pipe("treecrf").cfg[setting] = value
    for use in (
        lambda: run(nlp, WORDS),
        lambda: nlp.update(toy_examples(nlp), sgd=False),
        lambda: nlp.to_disk(tmp_path / "saved"),
        nlp.to_bytes,
    ):
        with pytest.raises(ValueError, match=rf"T009.*'{setting}' of pipe 'treecrf'"):
            use()


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A model with the package's own scorer."""
    path = tmp_path_factory.mktemp("real")
    initialized().to_disk(path)
    return path


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("hidden_width", 32),
        ("depth", 1),
        ("separate_views", False),
        ("activation", "tanh"),
        ("activation", "identity"),
        ("pooling", None),
    ],
)
def test_settings_of_the_scorer_are_refused(real, setting, value):
    with pytest.raises(
        ValueError,
        match=rf"T008.*'model.span_scorer.{setting}' of pipe 'treecrf' is {value!r}",
    ):
        load(real, model={"span_scorer": {setting: value}})


def test_settings_of_the_other_scorer_are_refused(real):
    name = "spacy-treecrf.BilinearSpanScorer.v1"
    scorer = {**SPAN_SCORER, "@architectures": name}
    with pytest.raises(ValueError, match=r"T008.*Bilinear.*Biaffine"):
        load(real, model={"span_scorer": scorer})


@pytest.mark.parametrize("setting", ["width", "depth", "embed_size"])
def test_settings_of_the_encoder_are_refused(real, setting):
    with pytest.raises(ValueError, match=r"T013.*'treecrf'.*components.treecrf.model"):
        load(real, model={"tok2vec": {setting: 3 * TOK2VEC[setting]}})


def test_settings_of_the_scorer_s_dropout_are_obeyed(real):
    nlp = load(real, model={"span_scorer": {"dropout": 0.4}})
    module = nlp.get_pipe("treecrf").model.get_ref("span_scorer").shims[0]._model
    assert module.input_dropout.p == 0.4


# Models that do not say what was configured.


def without_record(path, **settings):
    """A saved pipe as the first versions wrote it."""
    file = path / "treecrf" / "cfg"
    saved = json.loads(file.read_text(encoding="utf8"))
    del saved["configured"]
    file.write_text(json.dumps({**saved, **settings}), encoding="utf8")
    return path


def test_settings_of_an_old_model_are_obeyed_and_refused(unsure, tmp_path):
    unsure.to_disk(tmp_path)
    path = without_record(tmp_path)
    assert written(spacy.load(path)) == written(unsure)
    assert load(path, n_best=5).get_pipe("treecrf").cfg["n_best"] == 5
    with pytest.raises(ValueError, match=r"T008.*objective"):
        load(path, objective="local")


def test_reconcile_takes_the_edited_value_and_else_the_saved_one():
    saved = {"a": 1, "b": 2, "configured": {"a": 0, "b": 2}}
    vocab = ["vocab"]
    assert reconcile("x", {"a": 0, "b": 2}, saved, ["a"], vocab) == {"a": 1, "b": 2}
    assert reconcile("x", {"a": 5, "b": 2}, saved, ["a"], vocab) == {"a": 5, "b": 2}
    assert reconcile("x", {"a": 5, "b": 3}, saved, ["a"], []) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match=r"T008.*'b' of pipe 'x' is 3.*with 2"):
        reconcile("x", {"a": 0, "b": 3}, saved, ["a"], vocab)


def test_reconcile_takes_floats_as_json_gives_them():
    # As srsly writes and reads them: 0.3 comes back as 0.30000000000000004.
    other = 0.1 + 0.2
    saved = {"a": 0.4, "b": other, "configured": {"a": other, "b": other}}
    settings = reconcile("x", {"a": 0.3, "b": 0.3}, saved, ["a"], ["vocab"])
    assert settings == {"a": 0.4, "b": other}


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 1 / 3, 1.1])
def test_settings_that_are_floats_load_again(value, tmp_path):
    nlp = initialized(temperature=value, softmax_margin=value)
    nlp.to_disk(tmp_path)
    cfg = spacy.load(tmp_path).get_pipe("treecrf").cfg
    assert cfg["temperature"] == pytest.approx(value)


# The pipes that learn in `initialize`.

FLAT = {
    "identifinder": (
        {"n_best": 4, "annotate_ents": False},
        {
            "spans_key": "other",
            "punctuation_context": False,
            "product_level": True,
            "unknown": "merged",
            "acronym_periods": True,
        },
    ),
    "maxent_ner": (
        {"n_best": 4, "beam": 7, "annotate_ents": False},
        {"spans_key": "other", "tagging": "segment", "lower_case": ["the"]},
    ),
}


def test_flat_settings_of_prediction_are_obeyed(factory, tmp_path):
    free, _ = FLAT[factory]
    nlp = flat_toy.trained(factory)
    nlp.to_disk(tmp_path)
    again = load(tmp_path, factory, **free)
    cfg = again.get_pipe(factory).cfg
    assert {key: cfg[key] for key in free} == free
    doc = flat_toy.run(again, flat_toy.TEXT)
    assert "nested:3" in doc.spans
    assert not doc.ents
    nlp.get_pipe(factory).cfg.update(free)
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe(factory).cfg == cfg


def test_flat_settings_that_were_learnt_are_refused(factory, tmp_path):
    _, learnt = FLAT[factory]
    nlp = flat_toy.trained(factory)
    nlp.to_disk(tmp_path)
    pipe = nlp.get_pipe(factory)
    for setting, value in learnt.items():
        with pytest.raises(ValueError, match=f"T008.*'{setting}' of pipe '{factory}'"):
            load(tmp_path, factory, **{setting: value})
        if setting in pipe.cfg:
            old, pipe.cfg[setting] = pipe.cfg[setting], value
            with pytest.raises(ValueError, match=f"T009.*'{setting}'"):
                flat_toy.run(nlp, flat_toy.TEXT)
            with pytest.raises(ValueError, match=f"T009.*'{setting}'"):
                nlp.to_bytes()
            pipe.cfg[setting] = old


def test_identifinder_features_that_were_learnt_are_refused(tmp_path):
    flat_toy.trained("identifinder").to_disk(tmp_path)
    with pytest.raises(ValueError, match=r"T008.*'features'"):
        load(tmp_path, "identifinder", features={"feature_set": "five"})


def test_identifinder_lists_that_were_learnt_are_refused(tmp_path):
    flat_toy.trained("identifinder").to_disk(tmp_path / "saved")
    lists = {"lists": {"first": ["Ann"]}}
    path = edit(tmp_path / "saved", tmp_path / "edited", lists, "identifinder")
    with pytest.raises(ValueError, match=r"T008.*'lists'"):
        spacy.load(path)


def test_identifinder_lists_of_initialisation_load_again(tmp_path):
    nlp = flat_toy.untrained("identifinder")
    examples = flat_toy.examples_of(nlp)
    pipe = nlp.get_pipe("identifinder")
    pipe.initialize(lambda: examples, lists={"first": ["Ann"]})
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("identifinder").lists is not None


def test_ner_reranker_settings(tmp_path):
    nlp = reranker_toy.trained()
    nlp.to_disk(tmp_path)
    again = load(tmp_path, "ner_reranker", annotate_ents=True)
    assert reranker_toy.reranked(again).ents
    for setting, value in {"method": "boosting", "typed": False, "beta": 0.7}.items():
        with pytest.raises(ValueError, match=f"T008.*'{setting}'"):
            load(tmp_path, "ner_reranker", **{setting: value})


# Keys of span groups.


@pytest.mark.parametrize(
    "config",
    [
        {"spans_key": ""},
        {"missing_spans_key": ""},
        {"missing_spans_key": "nested"},
        {"incorrect_spans_key": "nested"},
        {"missing_spans_key": "a", "incorrect_spans_key": "a"},
        {"missing_spans_key": "nested:0"},
        {"incorrect_spans_key": "nested:17"},
    ],
    ids=str,
)
def test_treecrf_keys_must_differ(config):
    model = {"tok2vec": TOK2VEC}
    with pytest.raises(ValueError, match=r"T002.*_key'"):
        spacy.blank("en").add_pipe("treecrf", config={"model": model, **config})


@pytest.mark.parametrize("config", [{"spans_key": ""}, {"candidates_key": ""}], ids=str)
def test_other_pipes_keys_must_not_be_empty(config):
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match="T002"):
        nlp.add_pipe("ner_reranker", config=config)
    for factory in flat_toy.CONFIGS:
        with pytest.raises(ValueError, match="T002"):
            nlp.add_pipe(factory, config={"spans_key": ""})
