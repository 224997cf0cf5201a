"""The predicates of words: the paper's examples, the cut-off, the columns."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.maxent.features import (
    TEMPLATES,
    WordPredicates,
    character_types,
    collapsed_types,
    learn_lower_case,
    start_predicate,
)

from .oracle import batch_of, predicates

words = st.text(min_size=1, max_size=6)
sentences = st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("word", "types", "collapsed"),
    [
        ("Animal", "Aaaaaa", "Aa"),
        ("G.M.", "A.A.", "A.A."),
        ("1999", "0000", "0"),
        ("T-2000s", "A-0000a", "A-0a"),
        ("...", "...", "."),
        ("Éva", "Aaa", "Aa"),
        ("北京", "北京", "北京"),
        ("\n\n", "\n\n", "\n"),
        ("", "", ""),
    ],
)
def test_features_character_types(word, types, collapsed):
    assert character_types(word) == types
    assert collapsed_types(word) == collapsed


@given(words)
def test_features_character_types_keep_the_length(word):
    assert len(character_types(word)) == len(word)
    collapsed = collapsed_types(word)
    assert all(a != b for a, b in pairwise(collapsed))


@pytest.mark.parametrize(
    ("word", "is_first", "expected"),
    [
        ("Animal", True, "1-1-A"),
        ("Animal", False, "0-1-A"),
        ("animal", False, "0-1-a"),
        ("Lennon", True, "1-0-A"),
        ("7th", False, "0-0-0"),
        ("“", True, "1-0-“"),
    ],
)
def test_features_start_predicate(word, is_first, expected):
    assert start_predicate(word, is_first, {"animal"}) == expected


def test_features_lower_case_words_are_more_often_lower_case():
    batch = batch_of(
        [
            ["The", "house", "of", "House"],
            ["House", "of", "the", "Lords"],
            ["Bush", "bush", "Bush"],
            ["1999", "is", "IS"],
        ]
    )
    # "The" is at a start, "house" and "is" draw, "Bush" too: its first is at a start.
    assert learn_lower_case(batch) == {"of", "the"}


def test_features_keep_what_is_frequent_enough():
    batch = batch_of([["Al", "met", "Bo"], ["Al", "met", "Cy"], ["Bo", "met", "Al"]])
    kept = dict(zip(TEMPLATES, WordPredicates.learn(batch, 3, ()).kept, strict=True))
    assert {name: set(values) for name, values in kept.items()} == {
        "word": {"Al", "met"},
        "previous word": {None, "met"},
        "next word": {None, "met"},
        "start": {"1-0-A", "0-0-A", "0-0-a"},
        "types": {"Aa", "aaa"},
        "collapsed types": {"Aa", "a"},
    }


@given(sentences, sentences)
def test_features_encode_each_known_predicate(known, new):
    model = WordPredicates.learn(batch_of(known), 1, {"a"})
    columns = {}
    for template, values in zip(TEMPLATES, model.kept, strict=True):
        for value in values:
            columns[template, value] = len(columns)
    expected = [
        [columns.get(p, model.n_columns) for p in predicates(sentence, at, {"a"})]
        for sentence in new
        for at in range(len(sentence))
    ]
    np.testing.assert_array_equal(model.encode(batch_of(new)), expected)


def test_features_border_is_no_word():
    # A token that looks like a border symbol is none.
    model = WordPredicates([["x"], [None], [None], [], [], []])
    columns = model.encode(batch_of([["None", "x"], ["", "x"]]))
    assert columns[:, 1].tolist() == [1, 3, 1, 3]
    assert columns[:, 2].tolist() == [3, 2, 3, 2]
