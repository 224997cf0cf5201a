"""Standoff annotations: texts with tokens or without, and what is left out."""

from pathlib import Path

import pytest
import spacy

from spacy_treecrf.data.alignment import LEFT_OUT, n_misaligned
from spacy_treecrf.data.formats.brat import ACROSS_LINES, BAD_LINE, read_brat
from spacy_treecrf.data.formats.iob_layers import read_iob_layers
from spacy_treecrf.problems import ConversionError, Problems

SAMPLES = Path(__file__).parents[2] / "samples"
NLP = spacy.blank("en")


def tokenize(text):
    doc = NLP.make_doc(text)
    return [t.text for t in doc], [bool(t.whitespace_) for t in doc]


def read(path, problems=None, **kwargs):
    problems = Problems() if problems is None else problems
    return list(read_brat(path, problems, tokenize, **kwargs))


def write(tmp_path, text, annotations):
    path = tmp_path / "doc.ann"
    path.with_suffix(".txt").write_bytes(text.encode())
    path.write_bytes(annotations.encode())
    return path


NEWS_PROBLEMS = {
    "discontinuous annotations: left out": 1,
    "relation lines: left out": 1,
    "note lines: left out": 1,
}


@pytest.mark.parametrize("ending", [".ann", ".txt"])
def test_brat_tokenized_lines_are_sentences(ending):
    problems = Problems()
    first, second = read(SAMPLES / "brat" / f"news{ending}", problems, tokenized=True)
    assert first.tokens == ["Bank", "of", "China", "and", "Bank", "rose", "."]
    assert first.spans == [(0, 3, "ORG"), (2, 5, "X"), (2, 3, "GPE")]
    assert second.tokens == ["Nothing", "in", "New", "York", "."]
    assert second.spans == [(2, 4, "GPE")]
    assert (second.id, second.doc, second.spaces) == ("news-1", "news", None)
    assert problems.counts == NEWS_PROBLEMS


def test_brat_text_is_one_record():
    problems = Problems()
    (sentence,) = read(SAMPLES / "brat" / "news.ann", problems)
    assert sentence.text() == (SAMPLES / "brat" / "news.txt").read_text("utf8")
    texts = [(sentence.text(s, e), label) for s, e, label in sentence.spans]
    assert texts == [
        ("Bank of China", "ORG"),
        ("China and Bank", "X"),
        ("China", "GPE"),
        ("New York", "GPE"),
    ]
    assert problems.counts == NEWS_PROBLEMS


def test_brat_names_discontinuous_annotations():
    problems = Problems()
    read(SAMPLES / "brat" / "news.ann", problems)
    details = dict(problems.messages())["1 discontinuous annotations: left out"]
    assert details.endswith("news.ann:3: ORG 'Bank of Bank'")


@pytest.mark.parametrize("tokenized", [False, True])
def test_brat_counts_both_characters_of_crlf(tmp_path, tokenized):
    text = "a b\r\n\r\nNew York\r\n"
    path = write(tmp_path, text, "T1\tGPE 7 15\tNew York\r\n")
    problems = Problems()
    last = read(path, problems, tokenized=tokenized)[-1]
    assert [last.text(s, e) for s, e, _ in last.spans] == ["New York"]
    assert not problems.counts


@pytest.mark.parametrize(("tokenized", "kind"), [(True, ACROSS_LINES), (False, None)])
def test_brat_annotation_across_lines(tmp_path, tokenized, kind):
    path = write(tmp_path, "in New\nYork now\n", "T1\tGPE 3 11\tNew York\n")
    problems = Problems()
    sentences = read(path, problems, tokenized=tokenized)
    assert problems.counts == ({kind: 1} if kind else {})
    assert sum(len(s.spans) for s in sentences) == (kind is None)


@pytest.mark.parametrize("tokenized", [False, True])
@pytest.mark.parametrize(
    "annotation",
    [
        "T1\tX 1 4\tew ",
        "T1\tX 1 4",
        "T1\tX 0 3\tYork",
        "T1\tX 90 94\tYork",
        "T1\tX 3 3",
    ],
    ids=["within tokens", "no text", "other text", "out of text", "empty"],
)
def test_brat_misaligned(tmp_path, tokenized, annotation):
    path = write(tmp_path, "New York\nis new\n", annotation + "\n")
    problems = Problems()
    assert not any(s.spans for s in read(path, problems, tokenized=tokenized))
    assert problems.counts == {LEFT_OUT: 1}


@pytest.mark.parametrize("mode", ["strict", "contract", "expand"])
def test_brat_without_tokens(tmp_path, mode):
    path = write(tmp_path, "\n\n", "T1\tX 0 1\n")
    assert read(path, tokenized=True, mode=mode) == []


@pytest.mark.parametrize(
    "line",
    [
        "T1 X 0 1 a",
        "T1\tX 0\ta",
        "T1\tX 0 b\ta",
        f"T1\tX 0 {'9' * 5_000}",
        "Q1\tX",
        "T1\tA B 0 1\ta",
    ],
)
def test_brat_ill_formed_line(tmp_path, line):
    path = write(tmp_path, "a b", f"T1\tX 0 1\ta\n{line}\n")
    problems = Problems()
    (sentence,) = read(path, problems)
    assert sentence.spans == [(0, 1, "X")]
    assert problems.counts == {BAD_LINE: 1}
    assert problems.n_repairs == 1
    with pytest.raises(ConversionError, match=r"doc\.ann:2: no annotation of brat"):
        read(path, Problems(strict=True))


@pytest.mark.parametrize("missing", [".ann", ".txt"])
def test_brat_half_a_pair(tmp_path, missing):
    path = write(tmp_path, "a", "")
    path.with_suffix(missing).unlink()
    with pytest.raises(ConversionError, match=rf"Can't read .*doc\{missing}"):
        read(path)


def test_brat_litbank_original_equals_its_columns(corpora):
    folder = corpora / "raw" / "litbank" / "entities"
    problems = Problems()
    for path in sorted((folder / "brat").glob("*.ann")):
        got = read(path, problems, tokenized=True, mode="expand")
        expected = read_iob_layers(folder / "tsv" / f"{path.stem}.tsv", Problems())
        assert [(s.id, s.tokens, s.spans) for s in got] == [
            (s.id, s.tokens, s.spans) for s in expected
        ]
    # Some annotations of the corpus stop short of a token's end.
    assert n_misaligned(problems) == problems.counts.total() == 21
