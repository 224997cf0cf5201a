"""The word features, in the paper's order."""

import pytest

from spacy_treecrf.hmm.word_features import (
    FIVE,
    FOURTEEN,
    WordFeatures,
    is_acronym,
    make_word_features,
)

TABLE = [
    ("90", "twoDigitNum"),
    ("1990", "fourDigitNum"),
    ("A8956-67", "containsDigitAndAlpha"),
    ("1990s", "containsDigitAndAlpha"),
    ("3rd", "containsDigitAndAlpha"),
    ("09-96a", "containsDigitAndAlpha"),
    ("09-96", "containsDigitAndDash"),
    ("11/9/89", "containsDigitAndSlash"),
    ("23,000.00", "containsDigitAndComma"),
    ("1.00", "containsDigitAndPeriod"),
    ("456789", "otherNum"),
    ("5", "otherNum"),
    ("10%", "otherNum"),
    ("5:30", "otherNum"),
    ("$5", "otherNum"),
    ("BBN", "allCaps"),
    ("I", "allCaps"),
    ("ÉTÉ", "allCaps"),
    ("ǅ", "allCaps"),
    ("M.", "capPeriod"),
    ("Sally", "initCap"),
    ("McDonald", "initCap"),
    ("Mr.", "initCap"),
    ("U.S.", "initCap"),
    ("AT&T", "initCap"),
    ("can", "lowerCase"),
    ("iPhone", "lowerCase"),
    (",", "other"),
    ('"', "other"),
    ("'s", "other"),
    ("東京", "other"),
    ("", "other"),
    ("🚀", "other"),
]


@pytest.mark.parametrize(("text", "feature"), TABLE)
def test_word_features_of_table_3_1(text, feature):
    assert FOURTEEN[make_word_features()(text, False)] == feature


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("The", "firstWord"),
        ("BBN", "allCaps"),
        ("M.", "capPeriod"),
        ("3rd", "containsDigitAndAlpha"),
        ("iPhone", "lowerCase"),
        ('"', "other"),
    ],
)
def test_word_features_of_the_first_word(text, feature):
    assert FOURTEEN[make_word_features()(text, True)] == feature


@pytest.mark.parametrize(
    ("text", "is_first", "feature"),
    [
        ("1990s", False, "number"),
        ("BBN", True, "allCaps"),
        ("The", True, "firstWord"),
        ("The", False, "other"),
        ("can", False, "lowerCase"),
        ("can't", False, "other"),
        ("", True, "other"),
    ],
)
def test_word_features_of_the_ablation(text, is_first, feature):
    assert FIVE[make_word_features("five")(text, is_first)] == feature


@pytest.mark.parametrize(
    ("text", "expected"),
    [("U.S.", True), ("M.", True), ("Mr.", False), ("a.m.", False), ("", False)],
)
def test_word_features_acronym(text, expected):
    assert is_acronym(text) is expected


def test_word_features_acronym_periods_is_an_option():
    features = make_word_features(acronym_periods=True)
    assert FOURTEEN[features("U.S.", True)] == "capPeriod"
    assert FOURTEEN[features("Mr.", False)] == "initCap"


def test_word_features_acronym_periods_needs_the_feature():
    with pytest.raises(ValueError, match="capPeriod"):
        make_word_features("five", acronym_periods=True)


def test_word_features_refuse_an_unknown_set():
    with pytest.raises(ValueError, match="fourteen"):
        make_word_features("six")


def test_word_features_refuse_a_number_out_of_range():
    features = WordFeatures(("a", "other"), lambda text, is_first: 2)
    with pytest.raises(ValueError, match="from 0 to 1"):
        features("x", False)
