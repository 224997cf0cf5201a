"""What templates see of a word."""

import pytest

from spacy_treecrf.rerank import words as words_module
from spacy_treecrf.rerank.words import (
    NULL_TEXTS,
    SegmentWords,
    WordTable,
    collapsed_types,
    escape,
    escape_label,
    learn_lower_case,
)


@pytest.mark.parametrize(
    ("word", "types"),
    [
        ("Animal", "Aa"), ("G.M.", "A.A."), ("3M", "0A"), ("1,234.5", "0,0.0"),
        ("iPhone", "aAa"), ("--", "-"), ("", ""), ("ÑANDÚ", "A"), ("ǅ", "A"),
        ("中国", "中国"), ("O'Brien", "A'Aa"),
    ],
)  # fmt: skip
def test_words_collapsed_types(word, types):
    assert collapsed_types(word) == types


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Animal", ("Animal", "Aa", "Aa1", "0")),
        ("animal", ("animal", "a", "a1", "1")),
        ("G.M.", ("G.M.", "A.A.", "A.A.0", "0")),
        ("iPod", ("iPod", "aAa", "aAa0", "1")),
        ("", ("", "", "0", "0")),
    ],
)
def test_words_texts(word, expected):
    assert WordTable(frozenset({"animal"})).texts(word)[:4] == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Animal", ("animal", "al", "mal", "imal", "ani", "anim")),
        ("G.M.", ("g.m.", "m.", ".m.", "g.m.", "g.m", "g.m.")),
        ("IBM", ("ibm", "bm", "ibm", "ibm", "ibm", "ibm")),
        ("", ("", "", "", "", "", "")),
        ("a\x1fb", ("a\x101b", "\x101b", "a\x101b", "a\x101b", "a\x101b", "a\x101b")),
    ],
)
def test_words_lower_case_and_affixes(word, expected):
    assert WordTable(frozenset()).texts(word)[4:] == expected


def test_words_outside_are_null():
    words = SegmentWords(["a"], WordTable(frozenset()))
    assert [words[i] == NULL_TEXTS for i in (-2, -1, 0, 1)] == [True, True, False, True]


@pytest.mark.parametrize("escaping", [escape, escape_label])
def test_words_escapes_are_distinct(escaping):
    raw = ["\x00", "\x1f", "\x10", "\x100", "\x101", "\x102", "\x103", "|", "=", "a"]
    assert len(set(map(escaping, raw))) == len(raw)
    assert not any(set("\x00\x1f") & set(escaping(text)) for text in raw)


def test_words_escaped_labels_hold_no_delimiter():
    assert not set("|=") & set(escape_label("A|WE=x"))


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        ([["x", "the"], ["The", "x"]], {"x", "the"}),
        ([["x", "The"], ["x", "the"]], {"x"}),
        ([["x", "THE"], ["x", "the"], ["the"]], {"x", "the"}),
        ([["iPod", ",", "12", "A1"]], set()),
        ([[]], set()),
    ],
)
def test_words_lower_case_list(segments, expected):
    assert learn_lower_case(segments) == expected


def test_words_table_forgets_when_it_is_full(monkeypatch):
    monkeypatch.setattr(words_module, "_CACHE_SIZE", 3)
    table = WordTable(frozenset())
    before = {word: table.hashes[:, table.number(word)].tolist() for word in "abcde"}
    table.make_room()
    assert table.number("e") == 1
    assert table.hashes[:, table.number("e")].tolist() == before["e"]
