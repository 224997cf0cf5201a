"""Counting events."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from spacy_treecrf.hmm.counts import (
    END_WORD,
    Events,
    LabelledTokens,
    count_events,
    extract_events,
    unique_rows,
)


def events_of(words, classes, begins, lengths, punctuation=(), known=None):
    is_punctuation = np.zeros(20, dtype=bool)
    is_punctuation[list(punctuation)] = True
    tokens = LabelledTokens(
        np.array(words),
        np.zeros(len(words), dtype=int),
        np.array(classes),
        np.array(begins, dtype=bool),
        np.array(lengths),
        None if known is None else np.array(known, dtype=bool),
    )
    return extract_events(tokens, 2, 1, is_punctuation)


def test_counts_events_of_one_sentence():
    # x [y z] . with classes 0 1 1 0; 2 stands for START and END.
    events = events_of([2, 3, 4, 5], [0, 1, 1, 0], [1, 1, 0, 1], [4])
    assert events.name_class.tolist() == [
        [END_WORD, 2, 0],
        [2, 0, 1],
        [4, 1, 0],
        [5, 0, 2],
    ]
    assert events.first_word.tolist() == [[2, 2, 0], [3, 0, 1], [5, 1, 0]]
    assert events.next_word.tolist() == [[2, -1, 0], [3, 4, 1], [4, -1, 1], [5, -1, 0]]


def test_counts_adjacent_names_of_one_class_are_two_segments():
    events = events_of([2, 3], [1, 1], [1, 1], [2])
    assert [END_WORD, 2, 1] in events.name_class.tolist()
    assert [2, 1, 1] in events.name_class.tolist()
    assert events.next_word[:, 1].tolist() == [-1, -1]


def test_counts_sentences_are_independent():
    events = events_of([2, 3], [0, 0], [1, 1], [1, 1])
    assert events.name_class.tolist() == [
        [END_WORD, 2, 0],
        [END_WORD, 2, 0],
        [2, 0, 2],
        [3, 0, 2],
    ]


def test_counts_the_word_beyond_punctuation():
    events = events_of([2, 3, 4], [0, 0, 1], [1, 0, 1], [3], punctuation=[3])
    assert events.beside_punctuation.tolist() == [[2, 3, 0, 1]]


def test_counts_no_word_lies_beyond_punctuation_that_opens_a_sentence():
    events = events_of([2, 3], [0, 1], [1, 1], [2], punctuation=[2])
    assert events.beside_punctuation.tolist() == [[END_WORD, 2, 0, 1]]


# x [y z] . u v with classes 0 1 1 0 0 0, then a second sentence w.
PARTLY = ([2, 3, 4, 5, 6, 7, 8], [0, 1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 0, 0, 1], [6, 1])
SECOND = {
    "name_class": [[END_WORD, 2, 0], [8, 0, 2]],
    "first_word": [[8, 2, 0]],
    "next_word": [[8, -1, 0]],
}


@pytest.mark.parametrize(
    ("known", "name_class", "first_word", "next_word"),
    [
        # The last words of a sentence.
        (
            [1, 1, 1, 1, 0, 0, 1],
            [[END_WORD, 2, 0], [2, 0, 1], [4, 1, 0]],
            [[2, 2, 0], [3, 0, 1], [5, 1, 0]],
            [[2, -1, 0], [3, 4, 1], [4, -1, 1]],
        ),
        # The first word, and the one behind the name, whose end is known.
        (
            [0, 1, 1, 0, 1, 1, 1],
            [[7, 0, 2]],
            [],
            [[3, 4, 1], [4, -1, 1], [6, 7, 0], [7, -1, 0]],
        ),
        # A whole sentence.
        ([0, 0, 0, 0, 0, 0, 1], [], [], []),
    ],
)
def test_counts_leave_out_what_touches_an_unknown_class(
    known, name_class, first_word, next_word
):
    events = events_of(*PARTLY, known=known)
    expected = {
        "name_class": name_class,
        "first_word": first_word,
        "next_word": next_word,
    }
    for name, rows in expected.items():
        found = sorted(getattr(events, name).tolist())
        assert found == sorted([*rows, *SECOND[name]]), name


def test_counts_know_no_word_of_unknown_class_beyond_punctuation():
    given = ([2, 3, 4], [0, 0, 1], [1, 0, 1], [3], [3])
    assert len(events_of(*given).beside_punctuation) == 1
    events = events_of(*given, known=[0, 1, 1])
    assert len(events.beside_punctuation) == 0
    assert [3, 0, 1] in events.name_class.tolist()


def test_counts_round_trip_through_narrow_arrays():
    counted = count_events([events_of([2, 3, 2], [0, 1, 0], [1, 1, 1], [3], [3])])
    stored = counted.to_arrays("a_")
    assert all(values.dtype.itemsize == 1 for values in stored.values())
    again = Events.from_arrays(stored, "a_")
    for name, values in vars(counted).items():
        np.testing.assert_array_equal(values, getattr(again, name))


@given(
    arrays(
        np.int64,
        st.tuples(st.integers(0, 8), st.just(3)),
        elements={"min_value": 0, "max_value": 3},
    )
)
def test_counts_unique_rows_equal_numpy(rows):
    distinct, counts = unique_rows(rows)
    expected, expected_counts = np.unique(rows, axis=0, return_counts=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(counts, expected_counts)


@pytest.mark.parametrize("largest", [2**30, 2**62])
def test_counts_unique_rows_of_large_numbers(largest):
    rows = np.array([[largest, 1, largest], [0, 1, 2], [largest, 1, largest]])
    distinct, counts = unique_rows(rows)
    assert distinct.tolist() == [[0, 1, 2], [largest, 1, largest]]
    assert counts.tolist() == [1, 2]
