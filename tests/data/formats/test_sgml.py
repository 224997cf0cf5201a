"""MUC's mark-up."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.formats.sgml import format_sgml, read_sgml, write_sgml
from spacy_treecrf.data.records import Sentence
from spacy_treecrf.problems import ConversionError, Problems


def split(text):
    """Words between single spaces, each followed by one but the last."""
    words = text.split(" ")
    return words, [True] * (len(words) - 1) + [False]


def read(path, text, problems=None):
    path.write_text(text, encoding="utf8")
    return list(read_sgml(path, problems or Problems(), split))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "muc.sgml"


def test_sgml_labels_are_element_and_type(file):
    (sentence,) = read(
        file,
        '<s><ENAMEX TYPE="PERSON">Ann Lee</ENAMEX> paid <NUMEX TYPE="MONEY">$ 5</NUMEX> '
        "on <TIMEX TYPE='DATE'>Monday</TIMEX></s>",
    )
    assert sentence.tokens == ["Ann", "Lee", "paid", "$", "5", "on", "Monday"]
    assert sentence.spans == [
        (0, 2, "ENAMEX/PERSON"),
        (3, 5, "NUMEX/MONEY"),
        (6, 7, "TIMEX/DATE"),
    ]


def test_sgml_documents_have_names(file):
    text = (
        "<DOC>\n<DOCNO> w-1 </DOCNO><TXT><p><s>a b</s>\n<s>c</s></p></TXT></DOC>"
        "<DOC><TXT>d</TXT></DOC>"
    )
    found = [(s.doc, s.id, s.tokens) for s in read(file, text)]
    assert found == [
        ("w-1", "w-1-0", ["a", "b"]),
        ("w-1", "w-1-1", ["c"]),
        ("muc-2", "muc-2-0", ["d"]),
    ]


def test_sgml_text_outside_sentences_is_text(file):
    found = [s.tokens for s in read(file, "<HL>a</HL> b <p>c\n  d</p>")]
    assert found == [["a"], ["b"], ["c", "d"]]


def test_sgml_character_entities_and_comments(file):
    (sentence,) = read(file, "<s>AT&amp;T &lt; x<!-- <no> --> &MD; y</s>")
    assert sentence.tokens == ["AT&T", "<", "x", "&MD;", "y"]


def test_sgml_white_space_inside_a_name_is_no_part_of_it(file):
    (sentence,) = read(file, '<s>by <ENAMEX TYPE="PERSON">\nAnn\nLee </ENAMEX>now</s>')
    assert sentence.spans == [(1, 3, "ENAMEX/PERSON")]


def test_sgml_names_may_nest(file):
    (sentence,) = read(
        file,
        '<ENAMEX TYPE="ORG">Bank of <ENAMEX TYPE="GPE">China</ENAMEX></ENAMEX>',
    )
    assert sentence.spans == [(0, 3, "ENAMEX/ORG"), (2, 3, "ENAMEX/GPE")]


def test_sgml_misaligned_names_are_reported(file):
    problems = Problems()
    read(file, '<s>un<ENAMEX TYPE="X">happy</ENAMEX></s>', problems)
    assert sum(problems.counts.values()) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<s>\na < b</s>", r":2: '<' that opens no tag"),
        ("<ENAMEX>a</ENAMEX>", r":1: ENAMEX without TYPE"),
        ("a</ENAMEX>", r":1: </ENAMEX> that closes nothing"),
        ('<ENAMEX TYPE="X">a</TIMEX>', r":1: </TIMEX> that closes nothing"),
        ('<s>a\n<ENAMEX TYPE="X">b</s>', r":2: ENAMEX/X is not closed"),
    ],
)
def test_sgml_errors_name_the_line(file, text, message):
    good = '<s><ENAMEX TYPE="GOOD">x</ENAMEX></s>'
    problems = Problems()
    *_, last = read(file, text + good, problems)
    assert last.spans == [(0, 1, "ENAMEX/GOOD")]
    details = [d for kind in problems.repairs for d in problems.named[kind]]
    assert any(re.search(message, detail) for detail in details)
    with pytest.raises(ConversionError, match=f"T120.*{message}"):
        read(file, text + good, Problems(strict=True))


def test_sgml_write_marks_names_up():
    text = format_sgml(
        ["AT&T", "'s", "boss"],
        [(0, 1, "ORG"), (0, 3, "ENAMEX/PER")],
        [False, True, False],
    )
    assert text == (
        '<ENAMEX TYPE="PER"><ENAMEX TYPE="ORG">AT&amp;T</ENAMEX>\'s boss</ENAMEX>'
    )


def test_sgml_write_refuses_crossing_names():
    with pytest.raises(ValueError, match="cross"):
        format_sgml(["a", "b", "c"], [(0, 2, "X"), (1, 3, "Y")])


def test_sgml_write_refuses_an_unknown_element():
    with pytest.raises(ValueError, match="elements"):
        format_sgml(["a"], [(0, 1, "FOO/BAR")])


words = st.text("ab&<>\"'é🚀", min_size=1, max_size=4)
kinds = st.sampled_from(["ENAMEX/P", "TIMEX/B-C", 'NUMEX/a"&b', "ENAMEX/x y/z"])


@st.composite
def records(draw):
    sentences = []
    for number in range(draw(st.integers(1, 4))):
        tokens = draw(st.lists(words, min_size=1, max_size=6))
        edges = sorted(
            draw(st.lists(st.integers(0, len(tokens)), max_size=6, unique=True))
        )
        spans = [
            (start, end, draw(kinds))
            for start, end in zip(edges[::2], edges[1::2], strict=False)
        ]
        name = f"doc{number // 2}"
        sentences.append(Sentence(f"{name}-{number % 2}", tokens, spans, name))
    return sentences


@given(records())
def test_sgml_round_trip(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("sgml") / "x.sgml"
    write_sgml(sentences, path)
    again = list(read_sgml(path, Problems(), split))
    assert [(s.id, s.doc, s.tokens, s.spans) for s in again] == [
        (s.id, s.doc, s.tokens, s.spans) for s in sentences
    ]
