"""Columns of IOB tags: schemes, layers, and errors that name line and column."""

import zipfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.formats.iob_layers import (
    LIKE_CHUNKS,
    SPACES,
    read_iob_layers,
)
from spacy_treecrf.data.formats.iob_tags import (
    BEGINS,
    FOREIGN,
    NOT_ENDED,
    decode_tags,
    find_scheme,
)
from spacy_treecrf.data.formats.jsonl import read_jsonl
from spacy_treecrf.problems import ConversionError, Problems

SAMPLES = Path(__file__).parents[2] / "samples"


def read(path, problems=None, **kwargs):
    problems = Problems() if problems is None else problems
    return list(read_iob_layers(path, problems, **kwargs))


def read_raw(tmp_path, text, **kwargs):
    path = tmp_path / "file.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **kwargs)


PREFIXES = {"BIOES": "IES", "BILUO": "ILU", "BMES": "MES", "BMEWO": "MEW"}


def encode(scheme, length, spans):
    """Tags of disjoint spans, by the definition of each scheme."""
    inside, last, only = PREFIXES.get(scheme, "IIB")
    tags = ["O"] * length
    previous = None
    for start, end, label in sorted(spans):
        body = ["B"] + [inside] * (end - start - 2) + [last]
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


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", *PREFIXES])
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


# A text, the place that --strict names, the kind of repair, and what is read.
ILL_FORMED = [
    (
        "a\tB-A\nb\tI-B\nc\tO\nd\tB-B\n",
        ":2, column 2",
        BEGINS,
        [(0, 1), (1, 2), (3, 4)],
    ),
    ("a\tO\tB-X\nb\tO\tO\nc\tO\tI-X\n", ":3, column 3", BEGINS, [(0, 1), (2, 3)]),
    ("a\tB-A\nb\tI-A\nc\tE-B\n", ":3, column 2", FOREIGN, [(0, 2), (2, 3)]),
    ("a\tB-A\nb\tO\nc\tS-A\n", ":1, column 2", NOT_ENDED, [(0, 1), (2, 3)]),
    ("a\tO\nb\tE-A\n", ":2, column 2", BEGINS, [(1, 2)]),
    ("a\tO\nb\tL-A\nc\tU-B\n", ":2, column 2", BEGINS, [(1, 2), (2, 3)]),
    ("a\tI-A\nb\tE-A\nc\tS-B\n", ":1, column 2", BEGINS, [(0, 2), (2, 3)]),
    ("a\tS-A\nb\tI-A\nc\tE-A\n", ":2, column 2", BEGINS, [(0, 1), (1, 3)]),
    ("a\tB-A\nb\tE-A\nc\tE-A\n", ":3, column 2", BEGINS, [(0, 2), (2, 3)]),
    ("a\tS-A\nb\tU-A\nc\tU-A\n", ":1, column 2", FOREIGN, [(0, 1), (1, 2), (2, 3)]),
    (
        "a\tB-A\nb\tI-A\nc\tB-B\nd\tS-C\n",
        ":4, column 2",
        FOREIGN,
        [(0, 2), (2, 3), (3, 4)],
    ),
    ("a\tB-A\nb\tM-A\nc\tS-B\n", ":2, column 2", NOT_ENDED, [(0, 2), (2, 3)]),
    ("a\tB-A\nb O\nc\tB-B\n", ":2", SPACES, [(0, 1), (2, 3)]),
]


@pytest.mark.parametrize(("text", "place", "kind", "bounds"), ILL_FORMED)
def test_iob_layers_ill_formed_tags_are_repaired(tmp_path, text, place, kind, bounds):
    problems = Problems()
    (sentence,) = read_raw(tmp_path, text, problems=problems)
    assert [span[:2] for span in sentence.spans] == bounds
    assert kind in problems.repairs
    assert f"file.tsv{place}" in problems.named[kind][0]
    with pytest.raises(ConversionError, match=rf"T120.*file\.tsv{place}"):
        read_raw(tmp_path, text, problems=Problems(strict=True))


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("a\tO\nb\tB\n", ":2, column 2: 'B' of 'b' is no IOB tag"),
        ("a\tU-\n", ":1, column 2: 'U-' of 'a' is no IOB tag"),
        ("a\tO\nb\tO\tO\n", ":2: 3 columns, but 2 at the sentence's begin"),
        ("a\tO\nb\n", ":2: 1 columns, but 2"),
        ("1\n2\n", ":1: expected a token and its tags"),
        ("\tO\n", ":1: token 0 is ''"),
        ("caf\udce9\tO\n", ":1: token 0 is .*not UTF-8"),
    ],
)
def test_iob_layers_bad_lines_cost_their_sentence(tmp_path, sentence, message):
    text = (sentence + "\nx\tB-A\ny\tO\nz\tO\n").encode("utf8", "surrogateescape")
    problems = Problems()
    (kept,) = read_raw(tmp_path, text, problems=problems)
    assert (kept.tokens, kept.spans) == (["x", "y", "z"], [(0, 1, "A")])
    assert problems.lost_records == problems.n_repairs == 1
    with pytest.raises(ConversionError, match=rf"file\.tsv{message}"):
        read_raw(tmp_path, text, problems=Problems(strict=True))


CONLL_2003 = """-DOCSTART- -X- -X- O

U.N. NNP I-NP I-ORG
official NN I-NP O
Ekeus NNP I-NP I-PER

-DOCSTART- -X- -X- O

Peace NN I-NP O
"""


@pytest.mark.parametrize("separator", [" ", "\t", "   "])
def test_iob_layers_conll_2003_by_the_column_of_tags(tmp_path, separator):
    text = CONLL_2003.replace(" ", separator)
    problems = Problems()
    first, second = read_raw(tmp_path, text, tag_columns=[4], problems=problems)
    assert first.tokens == ["U.N.", "official", "Ekeus"]
    assert first.spans == [(0, 1, "ORG"), (2, 3, "PER")]
    assert (first.doc, second.doc, second.spans) == ("file-1", "file-2", [])
    assert not problems.counts


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_iob_layers_conll_2003_names_the_columns_to_choose_from(tmp_path, separator):
    text = CONLL_2003.replace(" ", separator)
    with pytest.raises(ConversionError, match="T122") as error:
        read_raw(tmp_path, text)
    message = str(error.value)
    assert "column 2 holds no IOB tags but NNP, NN." in message
    assert "--tag-columns 4, or those of entities among 3,4" in message
    assert "column 3: I-NP; column 4: I-ORG, I-PER" in message
    assert "--token-column" not in message


def test_iob_layers_phrases_are_named(tmp_path):
    problems = Problems()
    read_raw(tmp_path, "a I-NP I-ORG\nb I-VP O\n", problems=problems)
    assert problems.counts == {LIKE_CHUNKS: 1}
    assert "column 2: NP, VP" in problems.named[LIKE_CHUNKS][0]


def test_iob_layers_tags_may_stand_before_tokens(tmp_path):
    text = "O\twhat\nB-TITLE\tJaws\nI-TITLE\tII\n"
    (sentence,) = read_raw(tmp_path, text, token_column=2, tag_columns=[1])
    assert (sentence.tokens, sentence.spans) == (
        ["what", "Jaws", "II"],
        [(1, 3, "TITLE")],
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tag_columns": [5]}, "columns 1, 5"),
        ({"tag_columns": [1]}, "columns 1, 1"),
        ({"token_column": 9}, "columns 9"),
        ({"tag_columns": [2]}, "column 2 holds no IOB tags"),
    ],
)
def test_iob_layers_columns_that_are_not_there(tmp_path, options, message):
    with pytest.raises(ConversionError, match=message):
        read_raw(tmp_path, CONLL_2003, **options)


def test_iob_layers_no_column_of_tags(tmp_path):
    with pytest.raises(ConversionError, match="of another format"):
        read_raw(tmp_path, "a\tNN\nb\tNN\n")


def test_iob_layers_i_that_begins_in_a_column_of_iob2(tmp_path):
    # As in DaN+: one such tag among tags that are IOB2.
    text = "Anna\tB-PER\nHu\tI-PER\nlas\tO\nPolitiken\tI-MISC\n"
    problems = Problems()
    (sentence,) = read_raw(tmp_path, text, problems=problems)
    assert sentence.spans == [(0, 2, "PER"), (3, 4, "MISC")]
    assert problems.counts == {BEGINS: 1}
    assert problems.named[BEGINS][0].endswith(
        "file.tsv:4, column 2, 'Politiken': I-MISC as B-MISC"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n"])
def test_iob_layers_empty(tmp_path, text):
    assert read_raw(tmp_path, text) == []


def test_iob_layers_scheme_is_that_of_the_file(tmp_path):
    problems = Problems()
    first, second = read_raw(tmp_path, "a\tS-A\n\nb\tB-A\nc\tO\n", problems=problems)
    assert (first.spans, second.spans) == ([(0, 1, "A")], [(0, 1, "A")])
    assert problems.counts == {NOT_ENDED: 1}
    assert ":3, column 2" in problems.named[NOT_ENDED][0]


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2"])
def test_iob_layers_a_first_i_is_iob1(scheme):
    tags = [("I", "A"), ("B", "A"), ("O", ""), ("I", "B")]
    problems = Problems()
    spans = [(0, 1, "A"), (1, 2, "A"), (3, 4, "B")]
    assert decode_tags(tags, str, scheme, problems) == spans
    assert problems.counts == ({BEGINS: 2} if scheme == "IOB2" else {})
    assert find_scheme([tags]) == "IOB1"


@given(st.lists(st.tuples(st.sampled_from("BIESLUMW"), st.sampled_from("AB"))))
def test_iob_layers_any_sequence_has_one_reading(tags):
    # By the definition of conlleval: where an entity begins, and where it ends.
    begins = [
        i
        for i, (prefix, label) in enumerate(tags)
        if prefix in "BSUW"
        or i == 0
        or tags[i - 1][1] != label
        or tags[i - 1][0] in "ELSUW"
    ]
    expected = [
        (start, end, tags[start][1])
        for start, end in zip(begins, [*begins[1:], len(tags)], strict=False)
    ]
    for scheme in ("IOB1", "IOB2", "BIOES", "BILUO", "BMES", "BMEWO"):
        assert decode_tags(tags, str, scheme, Problems()) == expected


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
