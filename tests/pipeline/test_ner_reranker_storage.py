"""The ner_reranker pipe: storage, processes, training through spaCy."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
from flat_toy import ENTITIES, TEXT, examples_of, run
from flat_toy import trained as trained_base
from flat_toy import untrained as untrained_base
from reranker_toy import found, reranked, toy_doc, toy_examples, trained, untrained
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from spacy_treecrf.gold import Gold, GoldKeys
from spacy_treecrf.pipeline.docs.packing import Source, pack

METHODS = ["averaged_perceptron", "voted_perceptron", "boosting"]
CONFIG = Path(__file__).parents[2] / "configs" / "ner_reranker.cfg"
LOC = [(3, 4, "LOC")]


def assert_same(first, second):
    one, other = reranked(first), reranked(second)
    assert found(one) == found(other) == LOC
    np.testing.assert_array_equal(
        one.spans["nested"].attrs["scores"], other.spans["nested"].attrs["scores"]
    )


@pytest.mark.parametrize("method", METHODS)
def test_ner_reranker_bytes_round_trip(method):
    nlp = trained(method=method, rounds=20)
    again = untrained(method=method, rounds=20)
    again.from_bytes(nlp.to_bytes())
    assert_same(nlp, again)
    pipes = [n.get_pipe("ner_reranker") for n in (nlp, again)]
    assert pipes[0].labels == pipes[1].labels
    assert pipes[0].rounds == pipes[1].rounds


def test_ner_reranker_disk_round_trip(tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path)
    assert_same(nlp, spacy.load(tmp_path))


def test_ner_reranker_candidates_key_survives(tmp_path):
    nlp = untrained(candidates_key="base")
    examples = toy_examples(nlp, key="base")
    nlp.initialize(lambda: examples)
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert found(again(toy_doc(again.vocab, "in", "Gus", key="base"))) == LOC


def test_ner_reranker_loads_in_a_new_process_without_heavy_packages(tmp_path):
    nlp = trained()
    nlp.to_disk(tmp_path / "model")
    DocBin(docs=[toy_doc(nlp.vocab, "in", "Gus")]).to_disk(tmp_path / "doc.spacy")
    # Thinc imports torch where it is; here only what we import is of interest.
    code = (
        "import sys\n"
        "for name in ('torch', 'scipy', 'sklearn', 'transformers', 'torch_struct'):\n"
        "    sys.modules[name] = None\n"
        "from importlib.metadata import EntryPoint\n"
        "load = EntryPoint.load\n"
        "EntryPoint.load = lambda point: (\n"
        "    None if point.value.startswith('spacy_transformers') else load(point))\n"
        "import spacy\n"
        "from spacy.tokens import DocBin\n"
        "nlp = spacy.load(sys.argv[1] + '/model')\n"
        "(doc,) = DocBin().from_disk(sys.argv[1] + '/doc.spacy').get_docs(nlp.vocab)\n"
        "doc = nlp(doc)\n"
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
    assert done.stdout.strip() == str(LOC)


def test_ner_reranker_loads_into_another_vocab():
    data = trained().get_pipe("ner_reranker").to_bytes()
    nlp = spacy.blank("xx")
    nlp.add_pipe("ner_reranker").from_bytes(data)
    assert "LOC" in nlp.vocab.strings
    assert found(reranked(nlp)) == LOC


def test_ner_reranker_pickles():
    nlp = trained()
    assert_same(nlp, pickle.loads(pickle.dumps(nlp)))


def test_ner_reranker_runs_in_several_processes():
    nlp = trained()
    docs = [toy_doc(nlp.vocab, "in", "Gus") for _ in range(8)]
    results = list(nlp.pipe(docs, n_process=2, batch_size=2))
    assert [found(doc) for doc in results] == [LOC] * 8


def test_ner_reranker_untrained_pipeline_round_trips(tmp_path):
    untrained().to_disk(tmp_path)
    assert not spacy.load(tmp_path).get_pipe("ner_reranker").is_initialized


def test_ner_reranker_can_be_sourced():
    nlp = spacy.blank("en")
    nlp.add_pipe("ner_reranker", source=trained())
    assert found(reranked(nlp)) == LOC


@pytest.mark.parametrize("data", [b"x", b"PK\x03\x04broken"])
def test_ner_reranker_refuses_broken_bytes(data):
    pipe = spacy.blank("en").add_pipe("ner_reranker")
    with pytest.raises(ValueError, match="T073"):
        pipe.from_bytes(data)


def test_ner_reranker_refuses_the_model_of_another_pipe():
    data = trained_base().get_pipe("identifinder").to_bytes()
    with pytest.raises(ValueError, match="T073"):
        spacy.blank("en").add_pipe("ner_reranker").from_bytes(data)


# Over a base that tells no labels: the set-up of Collins (2002), tags S, C and N.


def segmenting(examples=None):
    nlp = untrained_base("maxent_ner", tagging="segment", n_best=5)
    if examples is not None:
        nlp.initialize(lambda: examples)
    return nlp


@pytest.fixture(scope="module")
def segmentation():
    """A trained base pipe as bytes, and packed candidates by bases of the other half."""
    nlp = segmenting()
    examples = examples_of(nlp)
    decoded = []
    for fold in range(2):
        base = segmenting(examples[1 - fold :: 2])
        (label,) = base.get_pipe("maxent_ner").labels
        for example in examples[fold::2]:
            # Candidates have one label only, under which gold has to be told.
            spans = example.reference.spans["nested"]
            gold = [(span.start, span.end, label) for span in spans]
            decoded.append(
                Source(base(example.predicted), Gold(spans=gold), len(decoded))
            )
    packed = list(pack(decoded, nlp.vocab, GoldKeys("nested")))
    return segmenting(examples).to_bytes(), packed


@pytest.mark.parametrize("method", METHODS)
def test_ner_reranker_of_segments_without_labels(segmentation, method):
    base, packed = segmentation
    config = {"method": method, "rounds": 20, "typed": False}
    nlp, again = segmenting().from_bytes(base), segmenting()
    pipe = nlp.add_pipe("ner_reranker", config=config)
    pipe.initialize(
        lambda: [Example(Doc(doc.vocab, [t.text for t in doc]), doc) for doc in packed]
    )
    again.add_pipe("ner_reranker", config=config)
    again.from_bytes(nlp.to_bytes())
    assert pipe.labels == nlp.get_pipe("maxent_ner").labels
    one, other = run(nlp, TEXT), run(again, TEXT)
    assert [span[:2] for span in found(one)] == [span[:2] for span in ENTITIES]
    assert found(one) == found(other)
    np.testing.assert_array_equal(
        one.spans["nested"].attrs["scores"], other.spans["nested"].attrs["scores"]
    )


# With a base pipe, through `spacy train`.


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A trained base pipe, candidates of training data, and development data."""
    folder = tmp_path_factory.mktemp("reranker")
    nlp = trained_base(n_best=5)
    nlp.to_disk(folder / "base")
    examples = examples_of(nlp)
    DocBin(docs=[e.reference for e in examples]).to_disk(folder / "dev.spacy")
    decoded = []
    for number, example in enumerate(examples):
        gold = [(s.start, s.end, s.label_) for s in example.reference.spans["nested"]]
        decoded.append(Source(nlp(example.predicted), Gold(spans=gold), number))
    packed = pack(decoded, nlp.vocab, GoldKeys("nested"))
    DocBin(docs=packed).to_disk(folder / "train.spacy")
    return folder


def overrides(files):
    return {
        "paths.base": str(files / "base"),
        "paths.train": str(files / "train.spacy"),
        "paths.dev": str(files / "dev.spacy"),
    }


@pytest.mark.parametrize("method", METHODS)
def test_ner_reranker_trains_with_the_shipped_config(files, tmp_path, method):
    method = {"components.ner_reranker.method": method}
    train(CONFIG, tmp_path, overrides={**overrides(files), **method})
    best = spacy.load(tmp_path / "model-best")
    assert best.pipe_names == ["identifinder", "ner_reranker"]
    assert best.meta["performance"]["spans_nested_f"] == 1.0
    doc = best(
        Doc(best.vocab, words=["Mr.", "Gus", "Holt", "lives", "in", "Rome", "."])
    )
    assert found(doc) == [(1, 3, "PER"), (5, 6, "LOC")]
    assert len(doc.spans["nested:4"].attrs["segments"]) == 1


def test_ner_reranker_shipped_config_is_filled(files, tmp_path):
    # `source` names a pipeline that has to be there.
    base = f'base = "{files / "base"}"'
    text = CONFIG.read_text(encoding="utf8").replace("base = null", base)
    (tmp_path / "given.cfg").write_text(text, encoding="utf8")
    fill_config(tmp_path / "filled.cfg", tmp_path / "given.cfg")
    given, filled = (
        load_config(tmp_path / name, interpolate=False)
        for name in ("given.cfg", "filled.cfg")
    )
    assert filled["components"] == given["components"]
    development = given["initialize"]["components"]["ner_reranker"]["development"]
    added = filled["initialize"]["components"]["ner_reranker"]["development"]
    assert {name: added[name] for name in development} == development
