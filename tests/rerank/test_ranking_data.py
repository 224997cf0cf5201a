"""Ranking data: what it refuses, its scores, and the first maximum."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.rerank.candidates import (
    Candidate,
    CandidateSegment,
    oracle_index,
    span_counts,
)
from spacy_treecrf.rerank.ranking_data import RankingData, first_maximum, span_rows

from .random_data import bounds, build, data_sets, random_data

TWO = [
    [(-0.5, {0, 2}, (1, 2, 3)), (-0.9, {1}, (0, 0, 3))],
    [(-0.1, set(), (0, 0, 0)), (-0.1, {2}, (0, 1, 0))],
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([0, 2, 3, 4])}, "indptr of 5"),
        ({"indptr": np.array([0, 2, 3, 3, 5])}, "indptr to rise"),
        ({"indptr": np.array([0, 3, 2, 3, 4])}, "indptr to rise"),
        ({"borders": np.array([0, 2, 2, 4])}, "none in 1"),
        ({"borders": np.array([0, 2, 3])}, "borders to rise"),
        ({"borders": np.array([], dtype=int)}, "borders to rise"),
        ({"log_prob": np.array([-1.0, np.nan, -1.0, -1.0])}, "finite"),
        ({"log_prob": np.array([-1.0, -np.inf, -1.0, -1.0])}, "finite"),
        ({"log_prob": np.array([-1.0, -0.9, -1.0, -1.0])}, "row 1"),
        ({"indices": np.array([0, 3, 1, 2])}, "from 0 to 2, received 3"),
        ({"indices": np.array([0, 2, -1, 2])}, "received -1"),
        ({"indices": np.array([2, 0, 1, 2])}, "in row 0"),
        ({"indptr": np.array([0, 1, 1, 1, 4])}, "in row 3"),
        ({"oracle": np.array([0, 1])}, "oracle"),
        ({"oracle": np.array([0])}, "oracle"),
        ({"counts": np.zeros((4, 2), dtype=int)}, "counts of shape"),
    ],
)
def test_ranking_data_refuses_arrays_that_do_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        replace(build(TWO, 3), **change)


@pytest.mark.parametrize("name", ["oracle", "counts"])
def test_ranking_data_without_gold_cannot_be_learnt_from(name):
    data = replace(build(TWO, 3), **{name: None})
    with pytest.raises(ValueError, match="expected data with"):
        getattr(data, f"require_{name}")()


def test_ranking_data_may_be_empty():
    data = random_data(0, n_segments=0)
    assert (data.n_segments, data.n_candidates) == (0, 0)
    assert data.precision_recall_f(data.base()) == (0.0, 0.0, 0.0)


def test_ranking_data_scores_candidates_and_choices():
    data = build(TWO, 3)
    np.testing.assert_allclose(data.f_scores(), [2 / 5, 0, 1, 0])
    assert data.oracle.tolist() == [0, 2]
    assert data.precision_recall_f(np.array([0, 3])) == (1 / 3, 1 / 3, 1 / 3)


@given(data=data_sets())
def test_ranking_data_survives_the_disk(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "data.npz"
    data.to_disk(path)
    read = RankingData.from_disk(path)
    assert read.n_features == data.n_features
    for name in ("indptr", "indices", "log_prob", "borders", "oracle", "counts"):
        np.testing.assert_array_equal(getattr(read, name), getattr(data, name))


def test_ranking_data_survives_the_disk_without_gold(tmp_path):
    replace(build(TWO, 3), oracle=None, counts=None).to_disk(tmp_path / "data.npz")
    read = RankingData.from_disk(tmp_path / "data.npz")
    assert read.oracle is None
    assert read.counts is None


@given(data=data_sets(), seed=st.integers(0, 100))
def test_ranking_data_first_maximum_is_that_of_each_segment(data, seed):
    values = np.random.default_rng(seed).integers(0, 3, data.n_candidates) / 7
    expected = [a + int(np.argmax(values[a:b])) for a, b in bounds(data)]
    assert first_maximum(values, data.borders).tolist() == expected


@pytest.mark.parametrize(
    ("starts", "sizes", "expected"),
    [
        ([], [], []),
        ([5], [0], []),
        ([5, 0, 2], [2, 0, 3], [5, 6, 2, 3, 4]),
    ],
)
def test_ranking_data_span_rows_concatenates_ranges(starts, sizes, expected):
    rows = span_rows(np.array(starts, dtype=int), np.array(sizes, dtype=int))
    assert rows.tolist() == expected


SPANS = st.sets(
    st.tuples(st.integers(0, 2), st.integers(3, 4), st.sampled_from("AB")), max_size=3
).map(lambda spans: tuple(sorted(spans)))


@st.composite
def candidate_segments(draw):
    """Segments of a few words with candidates that may tie."""
    segments = []
    for _ in range(draw(st.integers(0, 4))):
        spans = draw(st.lists(SPANS, min_size=1, max_size=4))
        log_prob = draw(st.lists(st.integers(-3, 0), min_size=4, max_size=4))
        pairs = zip(sorted(log_prob, reverse=True), spans, strict=False)
        candidates = tuple(Candidate(float(value), of) for value, of in pairs)
        segments.append(CandidateSegment(tuple("abcd"), candidates, gold=draw(SPANS)))
    return segments


@given(segments=candidate_segments())
def test_ranking_data_of_segments_is_theirs(segments):
    rows = [c for segment in segments for c in segment.candidates]
    indptr = np.arange(len(rows) + 1)
    data = RankingData.from_segments(segments, indptr, np.zeros(len(rows), int), 1)
    assert data.log_prob.tolist() == [c.log_prob for c in rows]
    assert np.diff(data.borders).tolist() == [len(s.candidates) for s in segments]
    assert data.counts.tolist() == [
        list(span_counts(c, s.gold)) for s in segments for c in s.candidates
    ]
    expected = [oracle_index(segment) for segment in segments]
    assert (data.oracle - data.base()).tolist() == expected


def test_ranking_data_of_segments_without_gold_has_no_oracle():
    segment = CandidateSegment(("a",), (Candidate(-1.0, ()),))
    data = RankingData.from_segments([segment], np.array([0, 0]), np.zeros(0, int), 1)
    assert data.oracle is None
    assert data.counts is None
