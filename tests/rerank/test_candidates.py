"""Candidates: what is merged, what is counted, which one is the oracle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.rerank.candidates import (
    Candidate,
    CandidateSegment,
    f_score,
    merge_duplicates,
    oracle_index,
    span_counts,
)

A, B, C = (0, 1, "A"), (0, 2, "B"), (2, 3, "C")


def make_segment(*span_sets, gold=None, log_probs=None):
    log_probs = log_probs or [-float(rank) for rank in range(len(span_sets))]
    candidates = tuple(map(Candidate, log_probs, span_sets))
    return CandidateSegment(("x",) * 4, candidates, gold=gold)


def test_candidates_merge_adds_probabilities():
    merged = merge_duplicates(
        [
            Candidate(math.log(0.4), (A,)),
            Candidate(math.log(0.3), (B,)),
            Candidate(math.log(0.25), (B,)),
        ]
    )
    assert [c.spans for c in merged] == [(B,), (A,)]
    assert [c.log_prob for c in merged] == pytest.approx(
        [math.log(0.55), math.log(0.4)]
    )


def test_candidates_merge_sorts_spans_and_drops_repeats():
    merged = merge_duplicates([Candidate(-1.0, (C, A, A)), Candidate(-2.0, (A, C))])
    assert [c.spans for c in merged] == [(A, C)]


def test_candidates_merge_keeps_order_of_ties():
    tied = [Candidate(-1.0, (span,)) for span in (C, A, B)]
    assert merge_duplicates(tied) == tuple(tied)


def test_candidates_merge_keeps_impossible_ones():
    impossible = -math.inf
    merged = merge_duplicates([Candidate(impossible, ()), Candidate(impossible, ())])
    assert merged == (Candidate(impossible, ()),)


@pytest.mark.parametrize("log_prob", [math.nan, math.inf])
def test_candidates_merge_refuses_what_is_no_log_probability(log_prob):
    with pytest.raises(ValueError, match="log probability"):
        merge_duplicates([Candidate(log_prob, ())])


@given(st.lists(st.tuples(st.floats(-50, 0), st.sets(st.sampled_from([A, B, C])))))
def test_candidates_merge_keeps_the_mass(drawn):
    candidates = [Candidate(log_prob, tuple(spans)) for log_prob, spans in drawn]
    merged = merge_duplicates(candidates)
    assert len({c.spans for c in merged}) == len(merged)
    assert sorted(merged, key=lambda c: -c.log_prob) == list(merged)
    assert sum(math.exp(c.log_prob) for c in merged) == pytest.approx(
        sum(math.exp(c.log_prob) for c in candidates)
    )


@pytest.mark.parametrize(
    ("spans", "gold", "expected"),
    [
        ((A, B), (B, C), (1, 2, 2)),
        ((), (A,), (0, 0, 1)),
        ((A,), (), (0, 1, 0)),
        (((0, 1, "A"),), ((0, 1, "B"),), (0, 1, 1)),
        ((A,), (A, A), (1, 1, 1)),
    ],
)
def test_candidates_span_counts(spans, gold, expected):
    assert span_counts(Candidate(0.0, spans), gold) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((0, 0, 0), 1.0), ((0, 0, 2), 0.0), ((0, 3, 0), 0.0), ((1, 2, 2), 0.5)],
)
def test_candidates_f_score(counts, expected):
    assert f_score(*counts) == expected


def test_candidates_oracle_has_the_best_f():
    assert oracle_index(make_segment((A,), (A, C), (B,), gold=(A, C))) == 1


def test_candidates_oracle_need_not_be_gold():
    assert oracle_index(make_segment((), (A, B), (A,), gold=(A, C))) == 2


def test_candidates_oracle_ties_go_to_the_more_probable():
    assert oracle_index(make_segment((B,), (A,), (C,), gold=(A, C))) == 1


def test_candidates_oracle_ties_in_log_prob_go_to_the_lower_index():
    segment = make_segment((B,), (C,), (A,), gold=(A, C), log_probs=[-1.0, -1.0, -1.0])
    assert oracle_index(segment) == 1


def test_candidates_oracle_of_nothing_is_nothing():
    assert oracle_index(make_segment((A,), (), gold=())) == 1


def test_candidates_oracle_needs_gold():
    with pytest.raises(ValueError, match="with gold"):
        oracle_index(make_segment((A,)))


def test_candidates_refuse_an_empty_list():
    with pytest.raises(ValueError, match="at least one candidate"):
        CandidateSegment(("x",), ())


@pytest.mark.parametrize("span", [(0, 5, "A"), (-1, 1, "A"), (1, 1, "A")])
def test_candidates_refuse_a_span_outside_the_words(span):
    with pytest.raises(ValueError, match="within 4 words"):
        make_segment((span,))


@pytest.mark.parametrize("spans", [(B, A), (A, A)])
def test_candidates_refuse_unsorted_spans(spans):
    with pytest.raises(ValueError, match="sorted, distinct"):
        make_segment(spans)


@pytest.mark.parametrize("log_probs", [[-2.0, -1.0], [math.nan, -1.0]])
def test_candidates_refuse_a_wrong_order(log_probs):
    with pytest.raises(ValueError, match="best first"):
        make_segment((A,), (B,), log_probs=log_probs)
