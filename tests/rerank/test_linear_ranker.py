"""A linear ranker against its definition, candidate by candidate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.rerank.linear_ranker import LinearRanker

from .random_data import bounds, build, data_sets, feature_sets, random_data


@given(data=data_sets(), seed=st.integers(0, 100))
def test_linear_ranker_values_are_those_of_the_definition(data, seed):
    random = np.random.default_rng(seed)
    ranker = LinearRanker(float(random.normal()), random.normal(size=data.n_features))
    expected = [
        ranker.log_prob_weight * log_prob + sum(ranker.weights[k] for k in sorted(held))
        for log_prob, held in zip(data.log_prob, feature_sets(data), strict=True)
    ]
    np.testing.assert_allclose(ranker.values(data), expected, atol=1e-12)
    chosen = [a + int(np.argmax(ranker.values(data)[a:b])) for a, b in bounds(data)]
    assert ranker.choose(data).tolist() == chosen


@given(data=data_sets())
def test_linear_ranker_without_features_ranks_as_the_base(data):
    ranker = LinearRanker(1.0, np.zeros(data.n_features))
    assert ranker.choose(data).tolist() == data.base().tolist()


@given(data=data_sets(), n=st.integers(1, 4), seed=st.integers(0, 100))
def test_linear_ranker_mean_has_the_mean_values(data, n, seed):
    random = np.random.default_rng(seed)
    rankers = [
        LinearRanker(float(random.normal()), random.normal(size=data.n_features))
        for _ in range(n)
    ]
    expected = np.mean([ranker.values(data) for ranker in rankers], axis=0)
    np.testing.assert_allclose(
        LinearRanker.mean(rankers).values(data), expected, atol=1e-12
    )


def test_linear_ranker_takes_the_first_of_equal_candidates():
    equal = (-2.0, {0, 1, 4}, (1, 1, 1))
    ranker = LinearRanker(0.3, np.array([0.1, 0.7, 0.0, 0.0, -0.2]))
    assert ranker.choose(build([[equal] * 5] * 3, 5)).tolist() == [0, 5, 10]


def test_linear_ranker_refuses_data_with_other_features():
    with pytest.raises(ValueError, match="expected data with 9 features"):
        LinearRanker(1.0, np.zeros(9)).values(random_data(0))


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_linear_ranker_refuses_weights_that_are_not_finite(weight):
    with pytest.raises(ValueError, match="finite"):
        LinearRanker(1.0, np.array([weight]))
    with pytest.raises(ValueError, match="finite"):
        LinearRanker(weight, np.array([0.0]))
