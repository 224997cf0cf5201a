"""Columns of IOB tags: schemes, layers, and errors that name line and column."""

import zipfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.iob_layers import decode_tags, read_iob_layers
from spacy_treecrf.data.jsonl import read_jsonl
from spacy_treecrf.data.records import ConversionError, Problems

SAMPLES = Path(__file__).parent.parent / "samples"


def read(path, problems=None, **kwargs):
    problems = Problems() if problems is None else problems
    return list(read_iob_layers(path, problems, **kwargs))


def read_raw(tmp_path, text, **kwargs):
    path = tmp_path / "file.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **kwargs)


def encode(scheme, length, spans):
    """Tags of disjoint spans, by the definition of each scheme."""
    last, only = {"BIOES": "ES", "BILUO": "LU"}.get(scheme, "IB")
    tags = ["O"] * length
    previous = None
    for start, end, label in sorted(spans):
        body = ["B"] + ["I"] * (end - start - 2) + [last]
        if end - start == 1:
            body = [only]
        if scheme == "IOB1" and previous != (start, label):
            body[0] = "I"
        tags[start:end] = [f"{prefix}-{label}" for prefix in body]
        previous = (end, label)
    return tags


@st.composite
def layers(draw, length):
    """Disjoint spans in text order."""
    cuts = sorted(draw(st.sets(st.integers(0, length))) | {0, length})
    labels = st.sampled_from([None, "A", "B", "A-B", "a b"])
    spans = [(s, e, draw(labels)) for s, e in pairwise(cuts)]
    return [span for span in spans if span[2] is not None]


TOKENS = st.lists(st.sampled_from(["a", "#", "1", "New York", "\u00a0", "O", " "]))


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "BIOES", "BILUO"])
@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(st.data())
def test_iob_layers_round_trip(tmp_path_factory, scheme, numbered, end, data):
    tokens = data.draw(TOKENS.filter(len))
    n_layers = data.draw(st.integers(1, 3))
    spans = [data.draw(layers(len(tokens))) for _ in range(n_layers)]
    tags = [encode(scheme, len(tokens), layer) for layer in spans]
    columns = [[str(i + 1) for i in range(len(tokens))]] * numbered + [tokens, *tags]
    rows = ["\t".join(row) for row in zip(*columns, strict=True)]
    text = end.join([*rows, "", *rows, ""])
    got = read_raw(
        tmp_path_factory.mktemp("iob"), text, token_column=1 + numbered or None
    )
    expected = sorted({span for layer in spans for span in layer})
    assert [(s.tokens, sorted(s.spans)) for s in got] == [(tokens, expected)] * 2


def test_iob_layers_columns_and_trailing_tabs():
    first, second = read(SAMPLES / "layers.tsv")
    assert first.tokens == ["Bank", "of", "China", "."]
    assert first.spans == [(0, 3, "ORG"), (2, 3, "GPE")]
    assert second.tokens == ["#", "New York"]
    assert second.spans == [(1, 2, "GPE")]
    assert (first.id, second.id, second.doc) == ("layers-0", "layers-1", "layers")


def test_iob_layers_numbered_tokens_and_source_lines():
    first, second = read(SAMPLES / "numbered.tsv")
    assert first.tokens == ["Bank", "of", "China"]
    assert first.spans == [(0, 3, "ORG"), (2, 3, "GPE")]
    assert second.tokens == ["#", "12", "O"]
    assert first.doc == "http://example.org/a [2009-10-17]"


def test_iob_layers_numbers_can_be_tokens(tmp_path):
    (sentence,) = read_raw(tmp_path, "1\tB-A\tO\n2\tI-A\tB-C\n")
    assert (sentence.tokens, sentence.spans) == (["1", "2"], [(0, 2, "A"), (1, 2, "C")])


def test_iob_layers_byte_order_mark_and_white_space_lines(tmp_path):
    got = read_raw(tmp_path, b"\xef\xbb\xbfa\tO\r\n \t\r\n\xef\xbb\xbfb\tO\r\n")
    assert [s.tokens for s in got] == [["a"], ["\ufeffb"]]


def test_iob_layers_count_what_two_layers_repeat(tmp_path):
    problems = Problems()
    (sentence,) = read_raw(tmp_path, "a\tB-A\tB-A\n", problems=problems)
    assert sentence.spans == [(0, 1, "A")]
    assert problems.counts == {"repeated spans: kept once": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tB-A\nb\tI-B\nc\tO\nd\tB-B\n", r":2, column 2: ill-formed tag I-B"),
        ("a\tO\tB-X\nb\tO\tO\nc\tO\tI-X\n", r":3, column 3: ill-formed tag I-X"),
        ("a\tB-A\nb\tE-B\n", ":1, column 2: .*not ended"),
        ("a\tB-A\nb\tO\nc\tS-A\n", ":1, column 2: .*not ended"),
        ("a\tO\nb\tE-A\n", ":2, column 2: ill-formed tag E-A"),
        ("a\tO\nb\tL-A\n", ":2, column 2: ill-formed tag L-A"),
        ("a\tS-A\nb\tU-A\n", ":2, column 2: ill-formed tag U-A"),
        ("a\tU-\n", ":1, column 2: 'U-' is no IOB tag"),
        ("a\tO\nb\tB\n", ":2, column 2: 'B' is no IOB tag"),
        ("a\tNN\tO\n", ":1, column 2: 'NN' is no IOB tag. Set --token-column"),
        ("a\tO\tO\nb\tO\n", ":2: 2 columns, but 3 at the sentence's begin"),
        ("a\tO\tO\nb\tO\tO\tO\n", ":2: 4 columns"),
        ("a O\nb O\n", ":1: expected a token and its tags"),
        ("1\n2\n", ":1: expected a token and its tags"),
        ("a\tO\n\nb\n", ":3: expected a token and its tags"),
        ("a\tO\n\tO\n", ":1: token 1 is ''"),
    ],
)
def test_iob_layers_ill_formed(tmp_path, text, message):
    with pytest.raises(ConversionError, match=rf"file\.tsv{message}"):
        read_raw(tmp_path, text)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n"])
def test_iob_layers_empty(tmp_path, text):
    assert read_raw(tmp_path, text) == []


def test_iob_layers_scheme_is_that_of_the_file(tmp_path):
    with pytest.raises(ConversionError, match=r":3, column 2: .*not ended"):
        read_raw(tmp_path, "a\tS-A\n\nb\tB-A\nc\tO\n")


def test_iob_layers_decode_needs_iob1_for_a_first_i():
    tags = [("I", "A"), ("B", "A"), ("O", ""), ("I", "B")]
    spans = [(0, 1, "A"), (1, 2, "A"), (3, 4, "B")]
    assert decode_tags(tags, [""] * 4, "IOB1") == spans
    with pytest.raises(ConversionError, match="it begins no entity"):
        decode_tags(tags, [""] * 4, "IOB2")


def by_tokens(sentences):
    return [(s.tokens, s.spans) for s in sentences]


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_iob_layers_germeval_original(corpora, tmp_path, split):
    archive = zipfile.ZipFile(corpora / "raw" / "germeval2014" / "GermEval2014.zip")
    path = tmp_path / "germ.tsv"
    path.write_bytes(archive.read(f"GermEval2014/germ.{split}.iob2"))
    expected = read_jsonl(
        corpora / "germeval2014" / f"{split}.jsonl.gz", Problems(), str.split
    )
    assert by_tokens(read(path)) == by_tokens(expected)


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_iob_layers_litbank_original(corpora, split):
    expected = list(
        read_jsonl(corpora / "litbank" / f"{split}.jsonl.gz", Problems(), str.split)
    )
    folder = corpora / "raw" / "litbank" / "entities" / "tsv"
    names = dict.fromkeys(sentence.doc for sentence in expected)
    got = [s for name in names for s in read(folder / f"{name}_brat.tsv")]
    assert by_tokens(got) == by_tokens(expected)
