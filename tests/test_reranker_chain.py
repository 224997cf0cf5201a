"""The chain that configs/ner_reranker_treecrf.cfg describes: base, jackknife, reranker."""

from pathlib import Path

import pytest
import spacy
from nested_toy import SENTENCES, toy_examples
from spacy.cli.evaluate import evaluate
from spacy.cli.train import train
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_treecrf.cli import app

CONFIGS = Path(__file__).parent.parent / "configs"
KEY = "nested"
# The toy sentences are learnt by heart within so many updates.
BASE = {
    "components.treecrf.softmax_margin": 0.0,
    "training.optimizer.learn_rate.total_steps": 60,
    "training.optimizer.learn_rate.warmup_steps": 5,
    "training.eval_frequency": 60,
}


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Folder of the base, the candidates and the reranker."""
    folder = tmp_path_factory.mktemp("chain")
    # Each sentence is in both folds, since nothing else could tell its labels.
    docs = [e.reference for e in toy_examples(spacy.blank("en"), sentences=SENTENCES)]
    DocBin(docs=docs * 2).to_disk(folder / "train.spacy")
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    paths = {
        f"paths.{part}": str(folder / f"{part}.spacy") for part in ("train", "dev")
    }
    overrides = {**BASE, **paths, "components.treecrf.n_best": 20}
    train(CONFIGS / "treecrf.cfg", folder / "base", overrides=overrides)
    options = [f"--{key}={value}" for key, value in {**BASE, **paths}.items()]
    candidates = folder / "candidates.spacy"
    arguments = [
        "jackknife",
        CONFIGS / "treecrf.cfg",
        candidates,
        "--folds",
        2,
        *options,
    ]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    overrides = {
        **paths,
        "paths.train": str(candidates),
        "paths.base": str(folder / "base" / "model-best"),
        "components.ner_reranker.min_sentences": 1,
    }
    config = CONFIGS / "ner_reranker_treecrf.cfg"
    train(config, folder / "reranker", overrides=overrides)
    return folder


@pytest.mark.slow
def test_reranker_chain_base_finds_entities(chain):
    scores = evaluate(
        str(chain / "base" / "model-best"), chain / "dev.spacy", silent=True
    )
    assert scores["spans_nested_r"] > 0


@pytest.mark.slow
def test_reranker_chain_trains_on_candidates(chain):
    docs = list(
        DocBin().from_disk(chain / "candidates.spacy").get_docs(spacy.blank("en").vocab)
    )
    assert sum(len(doc.spans[KEY]) for doc in docs) == 2 * sum(
        len(spans) for _, spans in SENTENCES
    )
    assert any(len(doc.spans[f"{KEY}:0"]) for doc in docs)


@pytest.mark.slow
def test_reranker_chain_base_hears_its_encoder(chain):
    base, nlp = (
        spacy.load(chain / part / "model-best") for part in ("base", "reranker")
    )
    assert nlp.pipe_names == ["tok2vec", "treecrf", "ner_reranker"]
    for words, _ in SENTENCES:
        candidates = [
            (
                doc.spans[f"{KEY}:0"].attrs["log_prob"].tolist(),
                spans_of(doc, f"{KEY}:0"),
            )
            for doc in (base(words), nlp(words))
        ]
        assert candidates[0] == candidates[1]
        assert candidates[0][0]


@pytest.mark.slow
def test_reranker_chain_chooses_among_the_candidates(chain):
    nlp = spacy.load(chain / "reranker" / "model-best")
    for words, _ in SENTENCES:
        doc = nlp(words)
        groups = [spans_of(doc, key) for key in doc.spans if key.startswith(f"{KEY}:")]
        assert len(groups) > 1
        assert spans_of(doc, KEY) in groups
    scores = evaluate(
        str(chain / "reranker" / "model-best"), chain / "dev.spacy", silent=True
    )
    assert scores["spans_nested_r"] > 0


def spans_of(doc, key):
    return {(span.start, span.end, span.label_) for span in doc.spans[key]}
