"""Written tokens as they are spoken."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.speech import LANGUAGES, spoken_words, to_snor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("26", "TWENTY SIX"),
        ("150", "ONE HUNDRED FIFTY"),
        (
            "1990",
            "ONE THOUSAND NINE HUNDRED NINETY",
        ),
        ("23,000.50", "TWENTY THREE THOUSAND POINT FIVE ZERO"),
        ("3rd", "THREE RD"),
        ("A8", "A EIGHT"),
        ("10%", "TEN PERCENT"),
        ("$5", "DOLLARS FIVE"),
        ("%", "PERCENT"),
        ("$", "DOLLARS"),
        ("1.1.99", "ONE ONE NINETY NINE"),
        ("09-96", "ZERO NINE NINETY SIX"),
        ("U.S.", "US"),
        ("don't", "DON'T"),
        ("'s", "'S"),
        ("cafe\u0301", "CAFE\u0301"),
        ("東京", "東京"),
        (",", ""),
        ("'", ""),
        ("--", ""),
        ("\n", ""),
    ],
)
def test_speech_words_of_a_token(text, expected):
    assert " ".join(spoken_words(text, "en")) == expected


@pytest.mark.parametrize(
    ("lang", "expected"),
    [
        ("es", "MIL DOSCIENTOS COMA CINCO"),
        ("de", "EINTAUSENDZWEIHUNDERT KOMMA FÜNF"),
        ("nl", "DUIZENDTWEEHONDERD KOMMA VIJF"),
        ("fr", "MILLE DEUX CENTS VIRGULE CINQ"),
    ],
)
def test_speech_reads_the_marks_of_the_language(lang, expected):
    assert " ".join(spoken_words("1.200,5", lang)) == expected


def test_speech_numbers_too_long_for_the_library_are_read_digit_by_digit():
    assert spoken_words("9" * 400, "en") == ["NINE"] * 400


def test_speech_spans_stretch_and_shrink():
    tokens = ["On", "May", "26", ",", "``", "Eric", "'", "paid", "$", "150"]
    spans = [(1, 4, "DATE"), (4, 7, "PER"), (8, 10, "MONEY")]
    spoken = to_snor(tokens, spans)
    assert spoken.tokens == (
        [
            "ON",
            "MAY",
            "TWENTY",
            "SIX",
            "ERIC",
            "PAID",
            "DOLLARS",
            "ONE",
            "HUNDRED",
            "FIFTY",
        ]
    )
    assert spoken.spans == [(1, 4, "DATE"), (4, 5, "PER"), (6, 10, "MONEY")]
    assert spoken.lost == []


def test_speech_a_span_of_which_nothing_is_spoken_is_lost():
    spoken = to_snor(["Yahoo", "!"], [(0, 1, "ORG"), (1, 2, "MISC")])
    assert spoken.spans == [(0, 1, "ORG")]
    assert spoken.lost == [(1, 2, "MISC")]


def test_speech_refuses_a_language_without_conventions():
    with pytest.raises(ValueError, match=r"T083.*'tlh'"):
        to_snor(["a"], [], "tlh")


def test_speech_names_the_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "num2words", None)
    with pytest.raises(ValueError, match=r"T084.*spacy-treecrf\[snor\]"):
        to_snor(["a"], [])


@given(st.text(max_size=12), st.sampled_from(sorted(LANGUAGES)))
def test_speech_words_hold_no_digits_and_no_white_space(text, lang):
    for word in spoken_words(text, lang):
        assert word
        assert word == word.upper()
        assert not any(c.isdecimal() or c.isspace() for c in word)
        assert any(map(str.isalnum, word))
