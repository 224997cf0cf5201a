"""The treecrf pipe on disk, in bytes, in other processes, and in spaCy's commands."""

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
from nested_toy import (
    SENTENCES,
    add_treecrf,
    copy_of,
    found,
    run,
    toy_examples,
    untrained,
)
from spacy.cli import app
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from typer.testing import CliRunner

WORDS = "The Bank of China said so ."
GOLD = [(1, 4, "ORG"), (3, 4, "GPE")]
TESTS = Path(__file__).parent.parent


def same(first, second):
    assert found(first) == found(second)
    scores = [doc.spans["nested"].attrs["scores"] for doc in (first, second)]
    # The same weights at other places in memory: products may round otherwise.
    np.testing.assert_allclose(*scores, atol=1e-5)


def like(nlp):
    """An untrained pipeline of the same architecture."""
    again = spacy.blank("en")
    add_treecrf(again)
    return again


def python(*arguments, **kwargs):
    """Run Python in another process. RETURNS (str): What it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


# The pipe.


def test_treecrf_disk_round_trip(sure, tmp_path):  # I-56
    sure.to_disk(tmp_path)
    same(run(spacy.load(tmp_path), WORDS), run(sure, WORDS))


def test_treecrf_bytes_round_trip(sure):  # I-56
    same(run(like(sure).from_bytes(sure.to_bytes()), WORDS), run(sure, WORDS))


def test_treecrf_pipe_bytes_round_trip(sure):
    again = like(sure)
    again.get_pipe("treecrf").from_bytes(sure.get_pipe("treecrf").to_bytes())
    same(run(again, WORDS), run(sure, WORDS))


def test_treecrf_bytes_keep_labels_and_settings(sure):
    pipe = sure.get_pipe("treecrf")
    again = like(sure).get_pipe("treecrf").from_bytes(pipe.to_bytes())
    assert again.cfg == pipe.cfg
    assert again.label_data == pipe.label_data
    assert ["DNA", "protein"] in again.label_data


def test_treecrf_loaded_pipe_takes_no_label(sure):  # I-28
    pipe = (
        like(sure).get_pipe("treecrf").from_bytes(sure.get_pipe("treecrf").to_bytes())
    )
    with pytest.raises(ValueError, match="E922"):
        pipe.add_label("NEW")


@pytest.mark.trains
def test_treecrf_loaded_pipe_learns_on(sure):
    nlp = like(sure).from_bytes(sure.to_bytes())
    optimizer = nlp.resume_training()
    losses = nlp.update(toy_examples(nlp), sgd=optimizer)
    assert losses["treecrf"] < 1


def test_treecrf_pickle_round_trip(sure):  # I-63
    same(run(pickle.loads(pickle.dumps(sure)), WORDS), run(sure, WORDS))


def test_treecrf_can_be_sourced(sure):
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf", source=sure)
    same(run(nlp, WORDS), run(sure, WORDS))


def test_treecrf_model_can_be_copied(sure):
    nlp = like(sure).from_bytes(sure.to_bytes())
    pipe = nlp.get_pipe("treecrf")
    pipe.model = copy.deepcopy(pipe.model)
    same(run(nlp, WORDS), run(sure, WORDS))


def test_treecrf_weights_are_plain_tensors(sure):  # I-58
    scorer = sure.get_pipe("treecrf").model.get_ref("output_layer")
    state = spacy.util.srsly.msgpack_loads(scorer.shims[0].to_bytes())
    saved = torch.load(BytesIO(state["state"]), weights_only=True)
    assert all(isinstance(value, torch.Tensor) for value in saved["state"].values())


def test_treecrf_untrained_pipeline_is_not_saved(tmp_path):
    # The widths are not known yet, so there is nothing that could be loaded again.
    with pytest.raises(ValueError, match="expected an initialised span scorer"):
        untrained().to_disk(tmp_path)


@pytest.mark.trains
def test_treecrf_loads_in_a_new_process(sure, tmp_path):  # I-56
    sure.to_disk(tmp_path)
    code = (
        "import sys, spacy\n"
        "from spacy.tokens import Doc\n"
        "nlp = spacy.load(sys.argv[1])\n"
        f"doc = nlp(Doc(nlp.vocab, words={WORDS.split(' ')!r}))\n"
        "print([(s.start, s.end, s.label_) for s in doc.spans['nested']])\n"
    )
    output = python("-c", code, tmp_path, cwd=tmp_path)
    assert output.strip() == str(GOLD)


# Several processes.

PARALLEL = """
import json, multiprocessing, sys
import numpy as np
import spacy

def main(folder, method):
    multiprocessing.set_start_method(method)
    texts = json.load(open(f"{folder}/texts.json"))
    nlp = spacy.load(f"{folder}/model")
    one = [nlp(text) for text in texts]
    two = list(nlp.pipe(texts, n_process=2, batch_size=4))
    total = 0
    for docs in zip(one, two, strict=True):
        groups = [doc.spans["nested"] for doc in docs]
        # Children compute in one thread each, which rounds otherwise: entropies tell of
        # every score, and an entity of the decoder is one of a probability above 0.5.
        np.testing.assert_allclose(*(g.attrs["entropy"] for g in groups), atol=1e-2)
        scores = [
            {(s.start, s.end, s.label_): p for s, p in zip(g, g.attrs["scores"])}
            for g in groups
        ]
        for mine, other in (scores, scores[::-1]):
            for span, p in mine.items():
                assert abs(p - other.get(span, 0.5)) < 1e-3, (span, p)
        total += len(groups[0].attrs["entropy"])
    print(total)

if __name__ == "__main__":
    main(*sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.trains
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_treecrf_several_processes_after_prediction(
    method, learning, litbank_texts, tmp_path
):  # I-62
    # With several threads, as a user has it: torch's threads do not survive a fork.
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no start method {method} on this system")
    nlp = copy_of(learning)
    nlp.add_pipe("sentencizer", first=True)
    nlp.to_disk(tmp_path / "model")
    texts = [" ".join(text.split(" ")[:300]) for text in litbank_texts]
    (tmp_path / "texts.json").write_text(json.dumps(texts), encoding="utf8")
    (tmp_path / "main.py").write_text(PARALLEL, encoding="utf8")
    env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    output = python("main.py", tmp_path, method, cwd=tmp_path, env=env, timeout=600)
    # Sentences, of which every text has several.
    assert int(output) > len(texts)


# Docs.


@pytest.fixture(scope="module")
def predicted(sure):
    return run(sure, WORDS)


def again_by_bytes(doc):
    return Doc(Vocab()).from_bytes(doc.to_bytes())


def again_by_docbin(doc):
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    return next(DocBin().from_bytes(data).get_docs(Vocab()))


@pytest.mark.parametrize("again", [again_by_bytes, again_by_docbin, Doc.copy])
def test_treecrf_scores_travel_with_the_doc(predicted, again):  # I-60, I-64, I-71
    same(again(predicted), predicted)
    assert not predicted.user_data


def test_treecrf_empty_group_travels_with_the_doc(sure):
    doc = again_by_docbin(run(sure, "nothing here to see"))
    assert len(doc.spans["nested"]) == 0


# spaCy's commands.


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


@pytest.fixture
def corpus(tmp_path):
    docs = [example.reference for example in toy_examples(spacy.blank("en"))]
    DocBin(docs=docs).to_disk(tmp_path / "toy.spacy")
    return tmp_path / "toy.spacy"


def test_treecrf_find_threshold(unsure, corpus, tmp_path):
    unsure.to_disk(tmp_path / "model")
    output = call(
        *("find-threshold", tmp_path / "model", corpus, "treecrf", "threshold"),
        *("spans_nested_f", "--n_trials", 3),
    )
    assert "Best threshold" in output


@pytest.mark.trains
def test_treecrf_evaluate_command(sure, corpus, tmp_path):
    sure.to_disk(tmp_path / "model")
    call("evaluate", tmp_path / "model", corpus, "--output", tmp_path / "scores.json")
    scores = json.loads((tmp_path / "scores.json").read_text(encoding="utf8"))
    assert scores["spans_nested_f"] == 1.0


def test_treecrf_init_labels_round_trip(corpus, tmp_path):  # I-25
    nlp = untrained()
    nlp.config["corpora"]["train"]["path"] = str(corpus)
    nlp.config["corpora"]["dev"]["path"] = str(corpus)
    nlp.config.to_disk(tmp_path / "config.cfg")
    call("init", "labels", tmp_path / "config.cfg", tmp_path / "labels")
    file = tmp_path / "labels" / "treecrf.json"
    labels = json.loads(file.read_text(encoding="utf8"))
    assert ["DNA", "protein"] in labels
    nlp.config["initialize"]["components"] = {
        "treecrf": {"labels": {"@readers": "spacy.read_labels.v1", "path": str(file)}}
    }
    nlp.initialize(lambda: toy_examples(nlp))
    assert nlp.get_pipe("treecrf").label_data == labels


@pytest.mark.install
@pytest.mark.trains
@pytest.mark.skipif(
    os.environ.get("SPACY_TREECRF_INSTALL_TESTS") != "1",
    reason="set SPACY_TREECRF_INSTALL_TESTS=1",
)
def test_treecrf_package_installs_and_requires_us(sure, tmp_path):  # I-56
    sure.to_disk(tmp_path / "model")
    (tmp_path / "packages").mkdir()
    # In another process, since the command leaves files open.
    python(
        "-m",
        "spacy",
        "package",
        tmp_path / "model",
        tmp_path / "packages",
        "--name",
        "toy",
        "--build",
        "none",
    )
    (folder,) = (tmp_path / "packages").iterdir()
    meta = json.loads((folder / "meta.json").read_text(encoding="utf8"))
    assert any(entry.startswith("spacy-treecrf") for entry in meta["requirements"])
    # Beside this environment, which stays as it is.
    site = tmp_path / "site"
    install = ("-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target")
    python(*install, site, folder)
    code = (
        "import spacy\n"
        "nlp = spacy.load('en_toy')\n"
        f"doc = nlp({WORDS!r})\n"
        "print([(s.start, s.end) for s in doc.spans['nested']])"
    )
    output = python("-c", code, env={**os.environ, "PYTHONPATH": str(site)})
    assert output.strip() == str([span[:2] for span in GOLD])


def test_treecrf_every_toy_sentence_survives_the_disk(sure, tmp_path):
    sure.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    for words, _ in SENTENCES:
        same(run(again, words), run(sure, words))
