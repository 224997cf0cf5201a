"""Nesting, crossing and quantiles, against their definitions."""

from collections import Counter
from itertools import combinations, permutations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_treecrf.data.statistics import (
    SpanCounts,
    crossing_pairs,
    labels_by_bounds,
    nesting_depths,
    quantile,
    spans_around_others,
)

BOUNDS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda b: (b[0], b[0] + b[1])),
    max_size=7,
)


def lies_in(inner, outer):
    return inner != outer and outer[0] <= inner[0] and inner[1] <= outer[1]


@given(BOUNDS)
def test_statistics_depth_is_the_longest_chain_of_spans(bounds):
    distinct = set(bounds)

    def depth(span):
        return 1 + max((depth(o) for o in distinct if lies_in(span, o)), default=0)

    assert nesting_depths(bounds) == {span: depth(span) for span in distinct}


@given(BOUNDS)
def test_statistics_spans_around_others(bounds):
    expected = {o for i, o in permutations(set(bounds), 2) if lies_in(i, o)}
    assert spans_around_others(bounds) == expected


@given(BOUNDS)
def test_statistics_crossing_pairs(bounds):
    expected = [
        (a, b)
        for a, b in combinations(sorted(set(bounds)), 2)
        if set(range(*a)) & set(range(*b)) and a != b
        if not lies_in(a, b) and not lies_in(b, a)
    ]
    assert crossing_pairs(bounds) == expected


def test_statistics_labels_by_bounds():
    spans = [(0, 1, "B"), (0, 1, "A"), (0, 2, "A"), (0, 1, "B")]
    assert labels_by_bounds(spans) == {(0, 1): ["A", "B"], (0, 2): ["A"]}


def test_statistics_counts():
    counts = SpanCounts()
    counts.add(6, [(0, 4, "A"), (0, 4, "B"), (1, 3, "A"), (1, 2, "A"), (5, 6, "C")])
    counts.add(3, [(0, 2, "A"), (1, 3, "B")])
    counts.add(2, [])
    assert (counts.sentences, counts.tokens, counts.spans) == (3, 11, 7)
    assert (counts.inner, counts.nested, counts.max_depth) == (2, 4, 3)
    assert (counts.crossing, counts.multi_label) == (1, 1)
    assert counts.labels == {"A": 4, "B": 2, "C": 1}
    assert counts.depths == {1: 4, 2: 1, 3: 1}
    assert counts.lengths == {4: 2, 2: 3, 1: 2}


@given(
    st.lists(st.integers(0, 9), min_size=1),
    st.floats(0, 1) | st.sampled_from([0.25, 0.5, 0.75]),
)
@example([1, 2, 3, 4], 0.5)
def test_statistics_quantile_is_the_least_value_not_below_its_share(values, share):
    value = quantile(Counter(values), share)
    at_most = {v: sum(w <= v for w in values) for v in values}
    assert value == min(v for v in values if at_most[v] >= share * len(values))


def test_statistics_quantile_of_nothing():
    with pytest.raises(ValueError, match="expected counted values"):
        quantile(Counter(), 0.5)
