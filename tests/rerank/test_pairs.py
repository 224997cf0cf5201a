"""Pairs of oracle and candidate against sets."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from spacy_treecrf.rerank import pairs as pairs_module
from spacy_treecrf.rerank.pairs import candidate_pairs, codes_of

from .random_data import bounds, build, data_sets, feature_sets, random_data


def naive_pairs(data):
    """(oracle row, other row), oracle by oracle."""
    return [
        (oracle, row)
        for oracle, bound in zip(data.oracle.tolist(), bounds(data), strict=True)
        for row in range(*bound)
        if row != oracle
    ]


@given(data=data_sets())
def test_pairs_hold_the_features_that_differ(data):
    pairs, features = candidate_pairs(data), feature_sets(data)
    found = [
        set(codes_of(pairs, np.array([row]))[0].tolist())
        for row in range(pairs.n_pairs)
    ]
    assert found == [
        {2 * k for k in features[oracle] - features[other]}
        | {2 * k + 1 for k in features[other] - features[oracle]}
        for oracle, other in naive_pairs(data)
    ]


@given(data=data_sets())
def test_pairs_of_a_feature_are_those_that_have_it(data):
    pairs = candidate_pairs(data)
    rows = [
        (code, row)
        for row in range(pairs.n_pairs)
        for code in codes_of(pairs, np.array([row]))[0].tolist()
    ]
    codes = np.repeat(np.arange(2 * data.n_features), np.diff(pairs.pair_starts))
    assert sorted(rows) == list(zip(codes.tolist(), pairs.pairs.tolist(), strict=True))


@given(data=data_sets())
def test_pairs_differ_in_log_probability(data):
    expected = [data.log_prob[b] - data.log_prob[a] for a, b in naive_pairs(data)]
    assert candidate_pairs(data).log_prob_difference.tolist() == expected


@given(data=data_sets())
def test_pairs_are_weighed_by_what_the_oracle_is_better(data):
    score = data.f_scores() * np.maximum(1, data.counts[:, 2])
    expected = [score[a] - score[b] for a, b in naive_pairs(data)]
    assert candidate_pairs(data, weighted=True).importance.tolist() == expected


def test_pairs_do_not_depend_on_blocks(monkeypatch):
    data = random_data(1, n_segments=30)
    whole = candidate_pairs(data)
    monkeypatch.setattr(pairs_module, "_BLOCK_PAIRS", 7)
    for name in ("code_starts", "codes", "pair_starts", "pairs"):
        np.testing.assert_array_equal(
            getattr(candidate_pairs(data), name), getattr(whole, name)
        )


def test_pairs_need_oracles_and_weights_need_counts():
    data = random_data(0)
    with pytest.raises(ValueError, match="oracle"):
        candidate_pairs(replace(data, oracle=None))
    with pytest.raises(ValueError, match="counts"):
        candidate_pairs(replace(data, counts=None), weighted=True)


def test_pairs_refuse_weights_below_zero():
    data = build([[(-1.0, {0}, (1, 1, 1)), (-1.0, {1}, (0, 1, 1))]], 2)
    with pytest.raises(ValueError, match="highest F"):
        candidate_pairs(replace(data, oracle=np.array([1])), weighted=True)
