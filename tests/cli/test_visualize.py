"""`python -m spacy treecrf visualize`: brackets, table and displaCy's page."""

import re

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.cli.visualize import (
    print_table,
    render_page,
    show_brackets,
)

# Four spans inside one another.
DEEP = [
    (0, 10, "ROLE"),
    (2, 10, "ORG"),
    (6, 10, "UNI"),
    (9, 10, "GPE"),
]
TEXT = "The dean of Law at the University of old Leiden resigned ."


def make_doc(words, spans, scores=None):
    doc = Doc(spacy.blank("en").vocab, words=words.split(" "))
    doc.spans["nested"] = [Span(doc, s, e, label=label) for s, e, label in spans]
    if scores is not None:
        doc.spans["nested"].attrs["scores"] = scores
    return doc


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A pipeline of rules, saved."""
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler", config={"spans_key": "nested"})
    ruler.add_patterns(
        [
            {"label": "ORG", "pattern": "Bank of China"},
            {"label": "GPE", "pattern": "China"},
        ]
    )
    path = tmp_path_factory.mktemp("visualize") / "model"
    nlp.to_disk(path)
    return path


def run(*args):
    return CliRunner().invoke(app, ["visualize", *map(str, args)])


def test_visualize_prints_brackets_and_table(model):
    result = run(model, "The Bank of China rose.")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0] == "The [ORG Bank of [GPE China]] rose ."
    rows = [line.split() for line in lines[1:] if line.strip()]
    assert rows[0] == ["Text", "Label", "Probability", "Depth"]
    assert rows[2:] == [
        ["Bank", "of", "China", "ORG", "-", "1"],
        ["China", "GPE", "-", "2"],
    ]


def test_visualize_reads_a_file_line_by_line(model, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("China rose.\n\n  None here.\n", encoding="utf8")
    result = run(model, path)
    assert result.output.splitlines()[0] == "[GPE China] rose ."
    assert result.output.splitlines()[-1] == "None here ."


@pytest.mark.parametrize("has_spaces", [True, False])
def test_visualize_reads_docs(model, tmp_path, has_spaces):
    words = ["Bank", "of", "China", "rose."]
    doc = Doc(spacy.blank("en").vocab, words=words)
    if has_spaces:
        doc = Doc(doc.vocab, words=words, spaces=[True, True, True, False])
    # Gold that the pipeline would not find is not shown.
    doc.spans["nested"] = [Span(doc, 3, 4, label="GOLD")]
    path = tmp_path / "docs.spacy"
    DocBin(docs=[doc]).to_disk(path)
    result = run(model, path)
    assert result.exit_code == 0, result.output
    # Tokens of unknown spacing are kept, as in evaluation; a text is split anew.
    end = "rose ." if has_spaces else "rose."
    assert result.output.splitlines()[0] == f"[ORG Bank of [GPE China]] {end}"
    assert "GOLD" not in result.output


@pytest.mark.parametrize(
    "content",
    [
        '{"text": "China rose."}\n{"tokens": ["No", "one"], "spans": []}\n',
        '[{"text": "China rose."}, {"tokenized_text": ["No", "one"], "ner": []}]',
    ],
)
def test_visualize_reads_json(model, tmp_path, content):
    path = tmp_path / "texts.jsonl"
    path.write_text(content, encoding="utf8")
    result = run(model, path)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[0] == "[GPE China] rose ."
    assert result.output.splitlines()[-1] == "No one"
    assert "without a field" not in result.output


def test_visualize_writes_a_page(model, tmp_path):
    path = tmp_path / "new" / "page.html"
    result = run(model, "Bank of China", "--html", path)
    assert result.exit_code == 0, result.output
    page = path.read_text(encoding="utf8")
    assert page.startswith("<!DOCTYPE html>")
    assert labels_in(page) == ["ORG", "GPE"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no_such_model", "x"], "[T114] Can't load the pipeline no_such_model"),
        (["MODEL", "China", "--spans-key", "sc"], "[T115]"),
        (["MODEL", "empty.txt"], "holds no sentence"),
        (["MODEL", "latin1.txt"], "latin1.txt:1: not UTF-8"),
        (["MODEL", "missing.spacy"], "Can't read missing.spacy: no such file"),
        (["MODEL", "missing.jsonl"], "Can't read missing.jsonl: no such file"),
        (["MODEL", "bad.spacy"], "[T055]"),
    ],
)
def test_visualize_refuses(model, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "bad.spacy").write_bytes(b"no docbin")
    (tmp_path / "latin1.txt").write_bytes(b"\xe4\n")
    result = run(*(str(model) if arg == "MODEL" else arg for arg in args))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())


def test_visualize_takes_texts_that_can_be_no_file_name(model):
    result = run(model, "China " * 1000)
    assert result.exit_code == 0, result.output


def test_visualize_brackets_without_white_space_and_crossing():
    spans = [(0, 3, "my LABEL"), (2, 5, "X"), (1, 2, "SPACE")]
    doc = make_doc("a \n b [c] d", spans)
    assert show_brackets(doc, "nested") == "[my_LABEL a b] \\[c\\] d"


def test_visualize_table_shows_probability_and_depth(capsys):
    doc = make_doc(TEXT, DEEP, [0.5, 0.25, 0.125, 1.0])
    print_table(doc, "nested")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.strip()][2:]
    assert [row.split()[-3:] for row in rows] == [
        ["ROLE", "0.500", "1"],
        ["ORG", "0.250", "2"],
        ["UNI", "0.125", "3"],
        ["GPE", "1.000", "4"],
    ]
    assert rows[3].startswith("      Leiden ")


def test_visualize_table_of_no_entities(capsys):
    print_table(make_doc("a b", []), "nested")
    assert capsys.readouterr().out == ""


def labels_in(page):
    """Labels at span starts: the innermost element of a start holds nothing else."""
    return re.findall(r">\s*([^<>\s]+)\s*</span>\s*</span>", page)


def test_visualize_page_shows_each_label_once():
    page = render_page([make_doc(TEXT, DEEP)], "nested")
    assert sorted(labels_in(page)) == ["GPE", "ORG", "ROLE", "UNI"]
    # Each level has a line of its own.
    heights = [int(top) for top in re.findall(r"top: (\d+)px; height: 4px", page)]
    by_level = {top: heights.count(top) for top in sorted(set(heights))}
    starts = 4
    assert sum(by_level.values()) == sum(e - s for s, e, _ in DEEP) + starts
    assert len(by_level) == 4


def test_visualize_page_escapes_labels():
    page = render_page([make_doc("a <b>", [(0, 1, "<X>")])], "nested")
    assert "<X>" not in page
    assert "&lt;X&gt;" in page


def test_visualize_page_snapshot():
    doc = make_doc("of old Leiden", [(0, 3, "ORG"), (2, 3, "GPE")])
    page = render_page([doc], "nested")
    body = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.split("<figure")[1]))
    assert body.split(">", 1)[-1].split() == ["of", "ORG", "old", "Leiden", "GPE"]
