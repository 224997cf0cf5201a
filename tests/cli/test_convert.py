"""`python -m spacy treecrf convert`: what it writes, prints and refuses."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from typer.main import get_command
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.cli.readers import Format, make_reader
from spacy_treecrf.data.docbin import make_docs
from spacy_treecrf.problems import ConversionError, Problems

SAMPLES = Path(__file__).parent.parent / "samples"


NLP = spacy.blank("en")
VOCAB = NLP.vocab


def run(*args):
    return CliRunner().invoke(app, ["convert", *map(str, args)])


def read(path):
    return list(DocBin().from_disk(path).get_docs(VOCAB))


def texts(doc, key="nested"):
    return [(span.text, span.label_) for span in doc.spans[key]]


def counts(output):
    """The table of totals that a run prints."""
    return dict(re.findall(r"^(\w[^\n]*?)  +(\d+)", output, flags=re.M))


@pytest.mark.parametrize(
    ("format", "name", "n_spans", "first", "options"),
    [
        ("jsonl", "uniform.jsonl", [2, 0, 3], "Bank of China", []),
        ("jsonl", "prodigy.jsonl", [2, 2], "Bank of China", []),
        ("jsonl", "doccano.jsonl", [2, 2, 2], "Bank of China", []),
        ("genia", "four_line.data", [2, 0, 1], "IL - 2 gene", []),
        ("genia", "three_line.data", [2, 0, 1], "IL - 2 gene", []),
        ("iob-layers", "layers.tsv", [2, 1], "Bank of China", []),
        ("iob-layers", "numbered.tsv", [2, 0], "Bank of China", []),
        ("conllu", "nested.conllu", [5, 0], "The bank of Norway", []),
        ("brat", "brat", [4], "Bank of China", []),
        ("brat", "brat/news.ann", [3, 1], "Bank of China", ["--tokenized"]),
        ("brat", "brat/news.txt", [3, 1], "Bank of China", ["--tokenized"]),
    ],
)
def test_convert_formats(tmp_path, format, name, n_spans, first, options):
    out = tmp_path / "out.spacy"
    result = run(format, SAMPLES / name, out, *options)
    assert result.exit_code == 0, result.output
    docs = read(out)
    assert [len(doc.spans["nested"]) for doc in docs] == n_spans
    assert docs[0].spans["nested"][0].text == first
    assert counts(result.output)["Spans under 'nested'"] == str(sum(n_spans))


def test_convert_bracketed(tmp_path):
    path = tmp_path / "in.txt"
    path.write_text(
        "[ORG Bank of [GPE China]] rose .\n\nNone here .\n", encoding="utf8"
    )
    result = run("bracketed", path, tmp_path / "out.spacy", "--spans-key", "sc")
    assert result.exit_code == 0, result.output
    first, second = read(tmp_path / "out.spacy")
    assert texts(first, "sc") == [("Bank of China", "ORG"), ("China", "GPE")]
    assert list(second.spans) == ["sc"]


def test_convert_prints_counts(tmp_path):
    path = SAMPLES / "brat"
    result = run("brat", path, tmp_path / "out.spacy", "--tokenized")
    assert counts(result.output) == {
        "Docs": "2",
        "Sentences": "2",
        "Tokens": "12",
        "Spans under 'nested'": "4",
        "Inside a longer span": "1",
        "Inside or around another": "3",
        "Deepest nesting": "2",
        "Crossing pairs": "1",
        "Spans with several labels": "0",
        "Misaligned": "0",
        "Repairs": "1",
        "GPE": "2",
        "ORG": "1",
        "X": "1",
    }
    assert "1 crossing pairs of spans: kept" in result.output
    assert "news-0: 'Bank of China' and 'China and Bank'" in result.output
    assert "1 discontinuous annotations: left out" in result.output


def test_convert_merge_docs_sets_sentence_starts(tmp_path):
    out = tmp_path / "out.spacy"
    result = run("jsonl", SAMPLES / "uniform.jsonl", out, "--merge-docs", "--keep-ids")
    assert result.exit_code == 0, result.output
    first, second = read(out)
    assert [s.text_with_ws for s in first.sents] == [
        "Bank of China rose . ",
        "Nothing here . ",
    ]
    assert (first.user_data["id"], second.user_data["id"]) == ("d1", "d2")


def test_convert_keep_spaces_names_spans_that_training_loses(tmp_path):
    line = {"tokens": ["inBank", "rose"], "spaces": [False, False]}
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({**line, "spans": [[0, 1, "X"], [0, 2, "Y"]]}))
    result = run("jsonl", path, tmp_path / "out.spacy", "--keep-spaces")
    assert result.exit_code == 0, result.output
    assert "1 spans lost in training" in result.output
    assert "in-0: X (0, 6) '' >'inBank'< 'rose'" in result.output
    assert read(tmp_path / "out.spacy")[0].text == "inBankrose"


def test_convert_limit_counts_sentences(tmp_path):
    out = tmp_path / "out.spacy"
    path = SAMPLES / "uniform.jsonl"
    result = run("jsonl", path, path, out, "--limit", 4)
    assert result.exit_code == 0, result.output
    assert len(read(out)) == 4
    assert counts(result.output)["Sentences"] == "4"


def test_convert_folder_to_folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        (folder / name).write_text('{"tokens": ["x"], "spans": [[0, 1, "X"]]}\n')
    result = run("jsonl", folder, tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "a.spacy",
        "b.spacy",
    ]


def test_convert_only_takes_named_files_in_order(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}_x.tsv").write_text(f"{name}\tB-X\n")
    names = tmp_path / "dev.ids"
    names.write_text("c_x.tsv\n\na_x\n")
    out = tmp_path / "out.spacy"
    result = run("iob-layers", tmp_path, out, "--only", names)
    assert result.exit_code == 0, result.output
    assert [doc[0].text for doc in read(out)] == ["c", "a"]


def test_convert_names_texts_without_annotations(tmp_path):
    (tmp_path / "a.txt").write_text("New York")
    (tmp_path / "a.ann").write_text("T1\tGPE 0 8\tNew York\n")
    (tmp_path / "b.txt").write_text("b")
    result = run("brat", tmp_path, tmp_path / "out.spacy")
    assert result.exit_code == 0, result.output
    assert "1 texts without .ann file: left out" in result.output
    assert "b.txt" in result.output


def write_offsets(path, shift, n=20):
    """Annotations of which all begin and end `shift` characters off."""
    span = {"start": 11 + shift, "end": 16 + shift, "label": "GPE"}
    line = json.dumps({"text": "Hello from India today", "spans": [span]})
    path.write_text("\n".join([line] * n), encoding="utf8")


def test_convert_fails_when_all_offsets_are_off_by_one(tmp_path):
    write_offsets(tmp_path / "in.jsonl", shift=-1)
    result = run("jsonl", tmp_path / "in.jsonl", tmp_path / "out.spacy")
    assert result.exit_code == 1
    assert "[T050] 20 of 20 spans" in " ".join(result.output.split())
    assert ">' Indi'<" in result.output
    assert not (tmp_path / "out.spacy").exists()


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ([], 1),
        (["--max-misaligned", "1"], 0),
        (["--alignment-mode", "expand"], 1),
        (["--alignment-mode", "expand", "--max-misaligned", "1"], 0),
    ],
)
def test_convert_limit_on_misaligned_spans(tmp_path, options, exit_code):
    write_offsets(tmp_path / "in.jsonl", shift=-1)
    result = run("jsonl", tmp_path / "in.jsonl", tmp_path / "out.spacy", *options)
    assert result.exit_code == exit_code
    assert (tmp_path / "out.spacy").exists() == (exit_code == 0)
    if "expand" in options and exit_code == 0:
        assert texts(read(tmp_path / "out.spacy")[0]) == [("India", "GPE")]


def test_convert_warns_of_no_spans(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "Hello"}\n')
    result = run("jsonl", tmp_path / "in.jsonl", tmp_path / "out.spacy")
    assert result.exit_code == 0
    assert "texts without a field for spans" in result.output
    assert "No spans in 1 files" in result.output


@pytest.mark.parametrize(
    "format", ["jsonl", "genia", "iob-layers", "brat", "bracketed", "conllu"]
)
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b""), "holds no sentence"),
        (lambda path: path.write_bytes(b"\n\n\n"), "holds no sentence"),
        (lambda path: path.write_bytes(b"\xff\tO\n\xff\n"), "[:.](1|2|3)[: ]"),
        (lambda path: path.mkdir(), "holds no file that ends in"),
        (lambda path: path.write_bytes(b"[X \x00\x01 a|1\n" * 4), ":[13]"),
    ],
    ids=["missing", "empty", "blank", "not utf8", "empty folder", "garbage"],
)
def test_convert_refuses_bad_input(tmp_path, format, make, message):
    path = tmp_path / ("in.ann" if format == "brat" else "in.xyz")
    make(path)
    if format == "brat":
        path.with_suffix(".txt").write_text(" " if "sentence" in message else "a b")
    result = run(format, path, tmp_path / "out.spacy", "--tokenized")
    output = " ".join(result.output.split())
    if format == "brat" and "sentence" in message:
        # No annotations are no error, no text is.
        message = "holds no sentence"
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert re.search(message, output), output
    assert not (tmp_path / "out.spacy").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["jsonl", "a.jsonl", "out", "--lang", "qq"], "no language 'qq'"),
        (["jsonl", "a.jsonl", "a.jsonl"], "is a file, and neither"),
        (["jsonl", "a.jsonl", "x/a.jsonl", "out"], "would both be written"),
        (["jsonl", "a.jsonl", "out", "--only", "list"], "list names b"),
        (["jsonl", "a.jsonl", "out", "--only", "nothing"], "nothing holds no"),
    ],
)
def test_convert_refuses_bad_arguments(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    Path("x").mkdir()
    for name in ("a.jsonl", "x/a.jsonl"):
        Path(name).write_text('{"tokens": ["x"], "spans": []}\n')
    Path("list").write_text("b\n")
    Path("nothing").write_text("\n")
    result = run(*args)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())


def test_convert_through_spacy(tmp_path):
    command = [sys.executable, "-m", "spacy", "treecrf", "convert"]
    out = tmp_path / "out.spacy"
    done = subprocess.run(
        [*command, "jsonl", str(SAMPLES / "uniform.jsonl"), str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert counts(done.stdout)["Docs"] == "3"
    assert texts(read(out)[0]) == [("Bank of China", "ORG"), ("China", "GPE")]


# Pieces of all formats, so that some lines are nearly right.
PIECES = [
    *(
        '{"tokens": ["a", "b"], "spans": [[0, 1, "X"]]}',
        '{"text": "a b", "label": ',
        "]}",
    ),
    *(
        "[[0, 3, 'X']]",
        "[[0, 1, 1e9]",
        '"',
        "{",
        "}",
        "[",
        "]",
        "\\u0000",
        "\\ud800",
        "1e999",
    ),
    *(
        "a b",
        "N N",
        "0,1 X",
        "|",
        "1,2 G#Y",
        "99999999999999999999,1 X",
        "B-X",
        "I-X",
        "O",
    ),
    *(
        "S-",
        "T1\t",
        "X 0 1",
        "\ta",
        ";",
        "#",
        "R1",
        "\ufeff",
        "\u2028",
        "\x85",
        "\0",
        "²",
    ),
    *("\n", "\n", "\n", "\r", "\t", "\t", " ", " "),
]


@pytest.mark.parametrize("format", list(Format))
@pytest.mark.parametrize("tokenized", [True, False])
@given(st.lists(st.sampled_from(PIECES)).map("".join).map(str.encode) | st.binary())
def test_convert_any_input_is_read_or_refused(
    tmp_path_factory, format, tokenized, content
):
    path = tmp_path_factory.mktemp("fuzz") / "in.ann"
    path.write_bytes(content)
    path.with_suffix(".txt").write_bytes(content if tokenized else b"a b\n a\r\nb")
    if format is Format.bracketed:
        path = path.with_suffix(".txt")
    read_file = make_reader(format, NLP, tokenized)
    try:
        sentences = list(read_file(path, Problems()))
    except ConversionError:
        return
    docs = list(make_docs(sentences, VOCAB, "nested", merge_docs=True))
    assert sum(map(len, docs)) == sum(len(s.tokens) for s in sentences)


@pytest.mark.parametrize(
    "command", ["convert", "corpus", "debug-data", "export", "report", "visualize"]
)
def test_convert_docs_name_every_option(command):
    docs = Path(__file__).parent.parent.parent / "docs" / "api" / f"cli-{command}.md"
    parameters = get_command(app).commands[command].params
    options = {o for p in parameters for o in p.opts if o.startswith("--")}
    assert options
    assert options == set(re.findall(r"^\| `(--[a-z-]+)`", docs.read_text(), re.M))
