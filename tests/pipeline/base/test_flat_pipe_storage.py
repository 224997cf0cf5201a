"""The pipes of flat entities: storage, processes, training through spaCy."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from flat_toy import (
    ENTITIES,
    TEXT,
    examples_of,
    found,
    run,
    trained,
    untrained,
)
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin


def test_flat_pipe_disk_round_trip(factory, tmp_path):
    nlp = trained(factory)
    nlp.to_disk(tmp_path)
    assert found(run(spacy.load(tmp_path), TEXT)) == ENTITIES


def test_flat_pipe_loads_in_a_new_process(factory, tmp_path):
    trained(factory).to_disk(tmp_path)
    code = (
        "import sys, spacy\n"
        "from spacy.tokens import Doc\n"
        "nlp = spacy.load(sys.argv[1])\n"
        f"doc = nlp(Doc(nlp.vocab, words={TEXT!r}))\n"
        "print([(s.start, s.end, s.label_) for s in doc.spans['nested']])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(ENTITIES)


def test_flat_pipe_loads_into_another_vocab(factory):
    data = trained(factory).get_pipe(factory).to_bytes()
    nlp = spacy.blank("xx")
    nlp.add_pipe(factory).from_bytes(data)
    assert found(run(nlp, TEXT)) == ENTITIES
    assert "PER" in nlp.vocab.strings


def test_flat_pipe_pickles(factory):
    nlp = pickle.loads(pickle.dumps(trained(factory)))
    assert found(run(nlp, TEXT)) == ENTITIES


def test_flat_pipe_runs_in_several_processes(factory):
    nlp = trained(factory)
    docs = [Doc(nlp.vocab, words=TEXT) for _ in range(8)]
    results = list(nlp.pipe(docs, n_process=2, batch_size=2))
    assert [found(doc) for doc in results] == [ENTITIES] * 8


def test_flat_pipe_untrained_pipeline_round_trips(factory, tmp_path):
    nlp = untrained(factory)
    nlp.to_disk(tmp_path)
    assert not spacy.load(tmp_path).get_pipe(factory).is_initialized


def test_flat_pipe_can_be_sourced(factory):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, source=trained(factory))
    assert found(run(nlp, TEXT)) == ENTITIES


@pytest.mark.parametrize("data", [b"x", b"PK\x03\x04broken"])
def test_flat_pipe_refuses_broken_bytes(factory, data):
    pipe = untrained(factory).get_pipe(factory)
    with pytest.raises(ValueError, match="T073"):
        pipe.from_bytes(data)


def test_flat_pipe_update_changes_nothing(factory):
    nlp = trained(factory)
    before = nlp.get_pipe(factory).to_bytes()
    losses = nlp.update(examples_of(nlp))
    assert losses == {factory: 0.0}
    assert nlp.get_pipe(factory).to_bytes() == before


def test_flat_pipe_training_twice_replaces_the_model(factory):
    nlp = trained(factory)
    first = nlp.get_pipe(factory).to_bytes()
    examples = examples_of(nlp)
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe(factory).to_bytes() == first


def test_flat_pipe_refuses_a_sampled_stream(factory):
    nlp = untrained(factory)
    nlp.config["training"] = {"max_epochs": -1}
    examples = examples_of(nlp)
    with pytest.raises(ValueError, match="T071"):
        nlp.initialize(lambda: examples)


def test_flat_pipe_refuses_to_predict_untrained(factory):
    nlp = untrained(factory)
    with pytest.raises(ValueError, match="T072"):
        nlp("Some text")


def test_flat_pipe_scores_examples(factory):
    nlp = trained(factory)
    scores = nlp.evaluate(examples_of(nlp))
    assert scores["spans_nested_f"] == 1.0
    assert scores["spans_nested_muc_f"] == 1.0


def test_flat_pipe_trains_with_the_shipped_config(factory, tmp_path):
    nlp = spacy.blank("en")
    for name in ("train", "dev"):
        docs = [example.reference for example in examples_of(nlp)]
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    config = Path(__file__).parents[3] / "configs" / f"{factory}.cfg"
    overrides = {
        "paths.train": str(tmp_path / "train.spacy"),
        "paths.dev": str(tmp_path / "dev.spacy"),
    }
    train(config, tmp_path / "out", overrides=overrides)
    best = spacy.load(tmp_path / "out" / "model-best")
    assert best.meta["performance"]["spans_nested_f"] == 1.0
    assert found(run(best, TEXT)) == ENTITIES
