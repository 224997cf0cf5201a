"""`python -m spacy treecrf export`: what comes out, and what comes back."""

import json

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin, Span
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.data.export import Tool, make_record
from spacy_treecrf.data.formats.jsonl import read_jsonl
from spacy_treecrf.data.offsets import Offsets, OffsetUnit
from spacy_treecrf.problems import Problems

NLP = spacy.blank("en")
WORDS = ["👞👞", "The", "Bank", "of", "China", ",", "🇨🇳", "rose"]
SPANS = [(1, 5, "ORG"), (2, 5, "ORG"), (4, 5, "GPE"), (4, 5, "COUNTRY"), (6, 7, "FLAG")]


def tokenize(text):
    doc = NLP.make_doc(text)
    return [t.text for t in doc], [bool(t.whitespace_) for t in doc]


def make_doc(words=WORDS, spans=SPANS, scores=None, spaces=None, key="nested"):
    doc = Doc(NLP.vocab, words=words, spaces=spaces)
    doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    if scores is not None:
        doc.spans[key].attrs["scores"] = scores
    return doc


def run(*args, command="export"):
    return CliRunner().invoke(app, [command, *map(str, args)])


def write(path, *docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def read(path):
    docs = DocBin().from_disk(path).get_docs(NLP.vocab)
    return [{(s.text, s.label_, s.start_char) for s in d.spans["nested"]} for d in docs]


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
    path = tmp_path_factory.mktemp("export") / "model"
    nlp.to_disk(path)
    return path


@pytest.mark.parametrize("tool", list(Tool))
@pytest.mark.parametrize("unit", list(OffsetUnit))
@pytest.mark.parametrize("scores", [None, [0.5, 0.25, 1.0, 0.125, 0.75]])
def test_export_comes_back_as_it_went(tmp_path, tool, unit, scores):
    gold = make_doc(scores=scores)
    data = write(tmp_path / "gold.spacy", gold, make_doc(["None", "here"], []))
    out, back = tmp_path / "new" / "out.json", tmp_path / "back.spacy"
    options = ["--offsets", unit.value]
    result = run(data, out, "--to", tool.value, *options)
    assert result.exit_code == 0, result.output
    assert "(2 texts, 5 spans)" in " ".join(result.output.split())
    result = run("jsonl", out, back, "--strict", *options, command="convert")
    assert result.exit_code == 0, result.output
    assert read(back) == read(data)


@pytest.mark.parametrize("tool", list(Tool))
@given(st.data())
def test_export_round_trip_of_any_text(tmp_path_factory, tool, data):
    word = st.sampled_from(["a", "é", "👞", "👨‍👩‍👧", "Bank", "\u00a0b", "\n", "中"])
    words = data.draw(st.lists(word, min_size=1, max_size=6))
    edges = st.tuples(*[st.integers(0, len(words))] * 2).filter(lambda b: b[0] < b[1])
    spans = data.draw(st.sets(st.tuples(edges, st.sampled_from(["X", "Y Z"]))))
    doc = make_doc(words, [(*bounds, label) for bounds, label in spans])
    path = tmp_path_factory.mktemp("export") / "out.json"
    path.write_text(json.dumps(make_record(doc, "nested", tool)), encoding="utf8")
    # The words as they were; a text does not say how it was split.
    split = {doc.text.removesuffix(" "): (words, [True] * (len(words) - 1) + [False])}
    (sentence,) = read_jsonl(path, Problems(), split.__getitem__, offsets=Offsets())
    got = {(sentence.text(s, e), label) for s, e, label in sentence.spans}
    assert len(sentence.spans) == len(spans)
    assert got == {(doc[s:e].text, label) for (s, e), label in spans}


def test_export_prodigy():
    doc = make_doc(["Bank", "of", "China", "."], [(0, 3, "ORG")], [0.5], [1, 1, 0, 0])
    doc.user_data["id"] = "d1"
    assert make_record(doc, "nested", Tool.prodigy) == {
        "text": "Bank of China.",
        "tokens": [
            {"text": "Bank", "start": 0, "end": 4, "id": 0, "ws": True},
            {"text": "of", "start": 5, "end": 7, "id": 1, "ws": True},
            {"text": "China", "start": 8, "end": 13, "id": 2, "ws": False},
            {"text": ".", "start": 13, "end": 14, "id": 3, "ws": False},
        ],
        "spans": [
            {
                "start": 0,
                "end": 13,
                "token_start": 0,
                "token_end": 2,
                "label": "ORG",
                "score": 0.5,
            }
        ],
        "meta": {"id": "d1"},
    }


def test_export_doccano():
    doc = make_doc(["Bank", "of", "China"], [(2, 3, "GPE"), (0, 3, "ORG")], [0.5, 1.0])
    assert make_record(doc, "nested", Tool.doccano) == {
        "text": "Bank of China",
        "label": [[0, 13, "ORG"], [8, 13, "GPE"]],
    }


def test_export_label_studio_predictions_and_gold():
    words, spans = ["👞", "of", "China"], [(0, 3, "ORG"), (2, 3, "GPE")]
    value = {"start": 6, "end": 11, "text": "China", "labels": ["GPE"]}
    names = {"from_name": "label", "to_name": "text", "type": "labels"}
    unit = OffsetUnit.utf_16
    predicted = make_record(
        make_doc(words, spans, [0.75, 0.5]), "nested", Tool.label_studio, unit, "m"
    )
    assert predicted["data"] == {"text": "👞 of China"}
    (prediction,) = predicted["predictions"]
    assert (prediction["model_version"], prediction["score"]) == ("m", 0.5)
    assert prediction["result"][1] == {
        "id": "1",
        **names,
        "value": value,
        "score": 0.5,
    }
    gold = make_record(make_doc(words, spans), "nested", Tool.label_studio, unit)
    (annotation,) = gold["annotations"]
    assert annotation["result"][1] == {"id": "1", **names, "value": value}


@pytest.mark.parametrize("name", ["texts.txt", "texts.jsonl", "texts.spacy"])
def test_export_predictions_of_a_model(tmp_path, model, name):
    data = tmp_path / name
    text = "The Bank of China rose."
    if name.endswith(".spacy"):
        # What stands there before is not exported.
        write(data, make_doc([*text[:-1].split(), "."], [(0, 1, "OLD")]))
    else:
        data.write_text(text if name.endswith("txt") else json.dumps({"text": text}))
    out = tmp_path / "out.json"
    result = run(data, out, "--to", "label-studio", "--model", model)
    assert result.exit_code == 0, result.output
    (task,) = json.loads(out.read_text(encoding="utf8"))
    (prediction,) = task["predictions"]
    found = [(r["value"]["text"], r["value"]["labels"]) for r in prediction["result"]]
    assert found == [("Bank of China", ["ORG"]), ("China", ["GPE"])]
    assert prediction["model_version"].startswith("en_")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.spacy", "o", "--to", "prodigy"], "[T040]"),
        (["bad.spacy", "o", "--to", "prodigy"], "[T055]"),
        (["empty.spacy", "o", "--to", "prodigy"], "[T049]"),
        (["gold.spacy", "o", "--to", "prodigy", "--spans-key", "sc"], "[T126]"),
        (["gold.spacy", "o", "--to", "prodigy", "--model", "nothing"], "[T114]"),
        (["gold.spacy", "bad.spacy/o", "--to", "doccano"], "[T127]"),
        (["texts.txt", "o", "--to", "doccano"], "Keys that are there: none"),
    ],
)
def test_export_refuses(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.spacy").write_bytes(b"no docbin")
    (tmp_path / "texts.txt").write_text("a")
    write(tmp_path / "empty.spacy")
    write(tmp_path / "gold.spacy", make_doc())
    result = run(*args)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())


def test_export_counts_texts_without_the_group(tmp_path):
    data = write(tmp_path / "gold.spacy", make_doc(), make_doc(key="other"))
    result = run(data, tmp_path / "out.jsonl", "--to", "doccano")
    assert result.exit_code == 0, result.output
    assert "1 texts without the span group" in " ".join(result.output.split())
