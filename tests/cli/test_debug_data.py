"""`python -m spacy treecrf debug-data`: what it prints and when it fails."""

import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from typer.testing import CliRunner

from spacy_treecrf.cli import app

VOCAB = spacy.blank("en").vocab

CONFIG = """
[paths]
train = null
dev = null

[nlp]
lang = "en"
pipeline = ["treecrf"]

[components]

[components.treecrf]
factory = "treecrf"
spans_key = "nested"

[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
gold_preproc = false

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}
gold_preproc = false

[training]
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"

[training.score_weights]
spans_nested_f = 1.0
"""


def run(*args):
    return CliRunner().invoke(app, ["debug-data", *map(str, args)])


def make_doc(words, spans, key="nested"):
    doc = Doc(VOCAB, words=words.split())
    made = [Span(doc, start, end, label=label) for start, end, label in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=made)
    return doc


@pytest.fixture
def paths(tmp_path):
    """A config, training and development data."""
    corpora = {
        "train": [
            make_doc("Bank of China rose", [(0, 3, "ORG"), (2, 3, "GPE")]),
            make_doc("Bank of China rose in China", [(0, 3, "ORG"), (2, 6, "GPE")]),
            make_doc("Nothing", []),
        ],
        "dev": [
            make_doc("China and Laos", [(0, 1, "GPE"), (2, 3, "GPE")]),
            make_doc("China", [(0, 1, "ORG"), (0, 1, "PER")]),
            make_doc("Nothing", []),
            make_doc(" ".join("abcdefghij"), [(0, 9, "ORG")]),
        ],
    }
    for name, docs in corpora.items():
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    (tmp_path / "config.cfg").write_text(CONFIG)
    return [tmp_path / name for name in ("config.cfg", "train.spacy", "dev.spacy")]


def rows(output):
    """The cells of all rows of figures."""
    found = re.findall(r"^(\S[^\n]*?)  +(\d[^\n]*)$", output, flags=re.M)
    return {name: re.split("  +", cells.strip()) for name, cells in found}


def test_debug_data_prints_figures_of_train_and_dev(paths):
    result = run(*paths[1:])
    assert result.exit_code == 0, result.output
    assert rows(result.output) == {
        "Docs": ["3", "4"],
        "Docs without spans": ["1 (33.3%)", "1 (25.0%)"],
        "Docs without sentence boundaries": ["2 (66.7%)", "2 (50.0%)"],
        "Sentences": ["3", "4"],
        "Tokens": ["11", "15"],
        "Spans": ["4", "5"],
        "ORG": ["2", "2"],
        "GPE": ["2", "2"],
        "PER": ["0", "1"],
        "Depth 1": ["3", "4"],
        "Depth 2": ["1", "0"],
        "Inside a longer span": ["1 (25.0%)", "0 (0.0%)"],
        "Inside or around another": ["2 (50.0%)", "0 (0.0%)"],
        "Crossing pairs": ["1", "0"],
        "Spans with several labels": ["0", "1"],
        "Span, median": ["3", "1"],
        "Span, 90%": ["4", "9"],
        "Span, 95%": ["4", "9"],
        "Span, 99%": ["4", "9"],
        "Span, longest": ["4", "9"],
        "Spans over 8 (n-gram limit of spancat)": ["0 (0.0%)", "1 (20.0%)"],
        "Sentence, median": ["4", "1"],
        "Sentence, 90%": ["6", "10"],
        "Sentence, 95%": ["6", "10"],
        "Sentence, 99%": ["6", "10"],
        "Sentence, longest": ["6", "10"],
        "Dev spans whose text is one in train": ["3 (60.0%)"],
        "... with the same label": ["1 (20.0%)"],
        "Dev Docs whose text is one in train": ["1 (25.0%)"],
    }


def test_debug_data_names_labels_and_trouble(paths):
    output = " ".join(run(*paths[1:]).output.split())
    assert "Labels with fewer than 10 training spans: 'GPE', 'ORG'" in output
    assert "Labels of dev that train lacks: 'PER'" in output
    assert "train: 1 crossing pairs of spans" in output
    assert "doc 1: 'Bank of China' and 'China rose in China'" in output
    assert "doc 1: ORG + PER 'China'" in output


def test_debug_data_of_one_file(paths):
    result = run(paths[1])
    assert result.exit_code == 0, result.output
    assert rows(result.output)["Docs"] == ["3"]
    assert "Overlap" not in result.output


def test_debug_data_counts_spans_over_the_ngram_limit(tmp_path):
    doc = make_doc(" ".join("abcdefghi"), [(0, 8, "A"), (0, 9, "A")])
    DocBin(docs=[doc]).to_disk(tmp_path / "train.spacy")
    result = run(tmp_path / "train.spacy")
    (row,) = (r for name, r in rows(result.output).items() if "n-gram" in name)
    assert row == ["1 (50.0%)"]


def test_debug_data_of_a_folder(paths):
    result = run(paths[0].parent)
    assert rows(result.output)["Docs"] == ["7"]


def test_debug_data_of_a_config_with_overrides(paths):
    config, train, dev = paths
    result = run(config, "--paths.train", train, f"--paths.dev={dev}")
    assert result.exit_code == 0, result.output
    assert rows(result.output)["Docs"] == ["3", "4"]


def test_debug_data_takes_the_key_of_the_config(paths):
    config, train, dev = paths
    result = run(
        *(config, "--paths.train", train, "--paths.dev", dev),
        *("--components.treecrf.spans_key", "sc"),
    )
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert "[T057] No spans under 'sc' in the 3 training documents" in output
    assert "Keys that are there: nested" in output


@pytest.mark.parametrize(("weight", "warns"), [("1.0", False), ("0.0", True)])
def test_debug_data_checks_score_weights(paths, weight, warns):
    config, train, dev = paths
    override = ("--training.score_weights.spans_nested_f", weight)
    result = run(config, "--paths.train", train, "--paths.dev", dev, *override)
    assert result.exit_code == 0, result.output
    assert ("No weight in [training.score_weights]" in result.output) == warns


def test_debug_data_warns_of_a_dev_corpus_without_the_key(paths, tmp_path):
    DocBin(docs=[make_doc("a", [], "sc")]).to_disk(tmp_path / "other.spacy")
    result = run(paths[1], tmp_path / "other.spacy")
    assert result.exit_code == 0, result.output
    assert "dev has no spans under 'nested'" in result.output
    assert "dev: 1 documents without the span group" in result.output


def test_debug_data_verbose_names_all(tmp_path):
    docs = [make_doc("a b c", [(0, 2, "A"), (1, 3, "A")]) for _ in range(9)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    assert "doc 8:" not in run(tmp_path / "train.spacy").output
    assert "doc 8:" in run(tmp_path / "train.spacy", "--verbose").output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.spacy"], "[T040] Can't read missing.spacy"),
        (["missing.cfg"], "[T040] Can't read missing.cfg"),
        (["broken.spacy"], "[T055] broken.spacy is no .spacy file"),
        (["text.spacy"], "[T055] text.spacy is no .spacy file"),
        (["empty"], "[T046] empty holds no file"),
        (["config.cfg"], "[T056] Can't read the corpora of config.cfg"),
        (
            ["config.cfg", "--paths.train", "missing.spacy", "--paths.dev", "x.spacy"],
            "[T056] Can't read the corpora of config.cfg",
        ),
        (["config.cfg", "--paths", "x"], "No such option '--paths'"),
        (["config.cfg", "x.spacy"], "[T055] config.cfg is no .spacy file"),
        (["a.spacy", "b.spacy", "c.spacy"], "[T058] Expected a config"),
        (["train.spacy", "--paths.train", "x"], "[T058] Expected a config"),
        (["train.spacy", "--spans-key", "sc"], "[T057] No spans under 'sc'"),
        (["none.spacy"], "[T057] No spans under 'nested' in the 0 training documents"),
    ],
)
def test_debug_data_refuses_what_cannot_be_used(paths, monkeypatch, args, message):
    folder = paths[0].parent
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    Path("text.spacy").write_text("text")
    Path("broken.spacy").write_bytes(paths[1].read_bytes()[:-20])
    DocBin().to_disk("none.spacy")
    result = run(*args)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())
