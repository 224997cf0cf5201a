"""The voted perceptron against loops over whole weight vectors."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.rerank.voted_perceptron import train_perceptron

from .random_data import bounds, build, data_sets, feature_sets, random_data

PASSES = st.integers(1, 3)
# Powers of two: with whole log probabilities sums stay exact. Otherwise a weight that
# should be 0 is 1e-17, and decides or not as features that all candidates share are
# added to it or left out.
BETA = st.sampled_from([0.0, 0.25, 1.0])


def value(data, features, row, beta, vector):
    """W . h(x): whole numbers first, then the log probability."""
    log_prob_weight, weights = vector
    return sum(weights[k] for k in features[row]) + (
        log_prob_weight * beta * data.log_prob[row]
    )


def choose(data, features, bound, beta, vector):
    """The first maximum of one segment."""
    values = [value(data, features, row, beta, vector) for row in range(*bound)]
    return bound[0] + int(np.argmax(values))


def naive_vectors(data, beta, passes, seed=0):
    """W^1 ... W^n, each a copy."""
    features, random = feature_sets(data), np.random.default_rng(seed)
    order = list(range(data.n_segments))
    if passes > 1:
        order = [s for _ in range(passes) for s in random.permutation(data.n_segments)]
    log_prob_weight, weights = 0.0, np.zeros(data.n_features)
    vectors = []
    for segment in order:
        bound = bounds(data)[segment]
        found = choose(data, features, bound, beta, (log_prob_weight, weights))
        right = int(data.oracle[segment])
        if found != right:
            weights = weights.copy()
            for k in features[right]:
                weights[k] += 1
            for k in features[found]:
                weights[k] -= 1
            log_prob_weight += beta * (data.log_prob[right] - data.log_prob[found])
        vectors.append((log_prob_weight, weights))
    return vectors


@given(data=data_sets(), beta=BETA, passes=PASSES, seed=st.integers(0, 3))
def test_voted_perceptron_last_vector_is_that_of_the_naive_loop(
    data, beta, passes, seed
):
    last = train_perceptron(data, beta, passes, seed).last()
    expected = [
        (0.0, np.zeros(data.n_features)),
        *naive_vectors(data, beta, passes, seed),
    ]
    assert last.log_prob_weight == expected[-1][0] * beta
    assert last.weights.tolist() == expected[-1][1].tolist()


@given(data=data_sets(), beta=BETA, passes=PASSES)
def test_voted_perceptron_average_is_the_mean_of_all_vectors(data, beta, passes):
    averaged = train_perceptron(data, beta, passes).averaged()
    vectors = naive_vectors(data, beta, passes) or [(0.0, np.zeros(data.n_features))]
    expected = np.mean([log_prob_weight for log_prob_weight, _ in vectors]) * beta
    assert averaged.log_prob_weight == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(
        averaged.weights, np.mean([w for _, w in vectors], axis=0), atol=1e-12
    )


@given(train=data_sets(), test=data_sets(), beta=BETA, passes=PASSES)
def test_voted_perceptron_votes_as_the_naive_loop(train, test, beta, passes):
    test = replace(test, n_features=max(train.n_features, test.n_features))
    train = replace(train, n_features=test.n_features)
    voted = train_perceptron(train, beta, passes).voted()
    features, vectors = feature_sets(test), naive_vectors(train, beta, passes)
    votes = np.zeros(test.n_candidates)
    for vector in vectors:
        for bound in bounds(test):
            votes[choose(test, features, bound, beta, vector)] += 1
    assert voted.values(test).tolist() == (votes / max(len(vectors), 1)).tolist()
    chosen = [a + int(np.argmax(votes[a:b])) for a, b in bounds(test)]
    assert voted.choose(test).tolist() == chosen


@given(data=data_sets(), passes=PASSES)
def test_voted_perceptron_counts_every_step(data, passes):
    perceptron = train_perceptron(data, passes=passes)
    assert perceptron.survival.sum() == passes * data.n_segments
    assert len(perceptron.survival) == perceptron.n_mistakes + 1


def test_voted_perceptron_learns_from_ties():
    # At W = 0 all tie: the first candidate is taken, though the oracle is the second.
    data = build([[(-1.0, {0}, (0, 1, 1)), (-1.0, {1}, (1, 1, 1))]], 2)
    perceptron = train_perceptron(data, passes=1)
    assert perceptron.n_mistakes == 1
    assert perceptron.last().weights.tolist() == [-1.0, 1.0]
    assert perceptron.voted().choose(data).tolist() == [1]


def test_voted_perceptron_counts_lonely_candidates_but_learns_nothing_from_them():
    lonely = [(-1.0, {0}, (0, 1, 1))]
    wrong = [(-1.0, {0}, (0, 1, 1)), (-1.0, {1}, (1, 1, 1))]
    perceptron = train_perceptron(build([lonely, wrong, lonely], 2), passes=1)
    assert perceptron.survival.tolist() == [1, 2]
    np.testing.assert_allclose(perceptron.averaged().weights, [-2 / 3, 2 / 3])


def test_voted_perceptron_takes_the_first_of_equal_candidates():
    equal = (-2.0, {0, 3}, (1, 1, 1))
    data = build([[equal] * 4] * 2, 10)
    perceptron = train_perceptron(random_data(3))
    assert perceptron.n_mistakes
    assert perceptron.voted().choose(data).tolist() == [0, 4]
    assert perceptron.averaged().choose(data).tolist() == [0, 4]


@given(data=data_sets())
def test_voted_perceptron_shares_sum_to_one(data):
    shares = train_perceptron(data).voted().values(data)
    sums = [shares[a:b].sum() for a, b in bounds(data)]
    np.testing.assert_allclose(sums, np.ones(len(sums)))


def test_voted_perceptron_without_training_ranks_as_the_base():
    perceptron = train_perceptron(random_data(0, n_segments=0))
    data = random_data(1)
    assert perceptron.voted().choose(data).tolist() == data.base().tolist()
    assert perceptron.averaged().choose(data).tolist() == data.base().tolist()


def test_voted_perceptron_separates_separable_data():
    random = np.random.default_rng(0)
    segments = [
        [
            (-rank, {1 + int(random.integers(20))} | ({0} if rank == good else set()),
             (int(rank == good), 1, 1))
            for rank in range(5)
        ]
        for good in random.integers(0, 5, 60)
    ]  # fmt: skip
    data = build(segments, 21)
    last = train_perceptron(data, passes=20).last()
    assert last.choose(data).tolist() == data.oracle.tolist()


def test_voted_perceptron_depends_on_the_seed_only_if_passes_are_shuffled():
    data = random_data(5, n_segments=40)

    def weights(seed, passes):
        return train_perceptron(data, seed=seed, passes=passes).last().weights.tolist()

    assert weights(1, 3) == weights(1, 3)
    assert weights(1, 3) != weights(2, 3)
    assert weights(1, 1) == weights(2, 1)


def test_voted_perceptron_tells_its_progress():
    seen = []

    def progress(steps):
        for step in steps:
            seen.append(step)
            yield step

    data = random_data(0)
    train_perceptron(data, passes=2, progress=progress)
    assert sorted(seen) == sorted([*range(data.n_segments)] * 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"beta": -1.0}, "beta"), ({"beta": np.nan}, "beta"), ({"passes": 0}, "pass")],
)
def test_voted_perceptron_refuses_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        train_perceptron(random_data(0), **settings)


def test_voted_perceptron_needs_oracles():
    with pytest.raises(ValueError, match="oracle"):
        train_perceptron(replace(random_data(0), oracle=None))


def test_voted_perceptron_refuses_data_with_other_features():
    voted = train_perceptron(random_data(0)).voted()
    with pytest.raises(ValueError, match="expected data with 10 features"):
        voted.values(random_data(0, n_features=3))
