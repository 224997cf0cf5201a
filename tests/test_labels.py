"""Plain labels and their combinations: numbers, order, storage."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.labels import LabelSet

# Any text is a label, also one that looks like a joined combination.
names = st.text(min_size=1, max_size=4)
combinations = st.lists(st.lists(names, min_size=1, max_size=3), max_size=6)


def label_set(*entries):
    labels = LabelSet()
    for entry in entries:
        labels.add(entry)
    return labels


def test_labels_plain_labels_keep_their_order():
    assert label_set(["B"], ["A"]).plain == ["B", "A"]


def test_labels_a_combination_brings_its_parts():
    labels = label_set(["protein", "DNA"])
    assert labels.plain == ["DNA", "protein"]
    assert labels.combinations == [("DNA", "protein")]
    assert len(labels) == 3


def test_labels_order_within_a_combination_does_not_matter():
    assert len(label_set(["A", "B"], ["B", "A"])) == 3


def test_labels_a_repeated_label_is_no_combination():
    assert label_set(["A", "A"]).as_data() == ["A"]


@pytest.mark.parametrize(
    ("entry", "new"), [(["A"], False), (["B"], True), (["A", "B"], True)]
)
def test_labels_add_tells_what_is_new(entry, new):
    assert label_set(["A"]).add(entry) is new


def test_labels_combination_of_known_labels_is_new_once():
    labels = label_set(["A"], ["B"])
    assert labels.add(["A", "B"])
    assert not labels.add(["B", "A"])


def test_labels_numbers_are_those_of_parts():
    labels = label_set(["A", "B"], ["C"])
    assert labels.parts() == [("A",), ("B",), ("C",), ("A", "B")]
    assert labels.numbers() == {("A",): 0, ("B",): 1, ("C",): 2, ("A", "B"): 3}


def test_labels_membership_marks_the_parts():
    labels = label_set(["A", "B"], ["C"])
    np.testing.assert_array_equal(
        labels.membership(), [[1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]]
    )


def test_labels_without_any():
    assert LabelSet().as_data() == []
    assert LabelSet().membership().shape == (0, 0)


@pytest.mark.parametrize(
    "name", ["A+B", "A + B", "A|B", '["A", "B"]', " ", "Overcast Sky"]
)
def test_labels_names_are_never_parsed(name):
    labels = label_set([name], ["A", "B"])
    assert labels.plain == [name, "A", "B"]
    assert (name,) in labels.numbers()


@given(combinations)
def test_labels_json_round_trip(entries):
    labels = label_set(*entries)
    again = LabelSet(json.loads(json.dumps(labels.as_data())))
    assert again.parts() == labels.parts()


@given(combinations)
def test_labels_membership_sums_to_the_number_of_parts(entries):
    labels = label_set(*entries)
    sums = labels.membership().sum(axis=0)
    assert sums.tolist() == [len(parts) for parts in labels.parts()]
