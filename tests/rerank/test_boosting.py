"""Boosting against loops over explicit pairs that compute every sum anew."""

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spacy_treecrf.rerank import boosting as boosting_module
from spacy_treecrf.rerank.boosting import (
    LOG_PROB_WEIGHTS,
    PairSums,
    choose_rounds,
    f_by_rounds,
    log_prob_weight,
    train_boosting,
)
from spacy_treecrf.rerank.pairs import candidate_pairs
from spacy_treecrf.rerank.ranking_data import RankingData

from .random_data import bounds, build, data_sets, feature_sets, random_data

ROUNDS = 25


class Naive:
    """The definition: margins of all pairs, sums over all pairs each time."""

    def __init__(self, data, weight, weighted=False):
        self.n_features = data.n_features
        features = feature_sets(data)
        score = data.f_scores() * np.maximum(1, data.counts[:, 2])
        self.plus, self.minus, self.margins, self.importance = [], [], [], []
        for oracle, bound in zip(data.oracle.tolist(), bounds(data), strict=True):
            for row in range(*bound):
                if row != oracle:
                    self.plus.append(features[oracle] - features[row])
                    self.minus.append(features[row] - features[oracle])
                    difference = data.log_prob[oracle] - data.log_prob[row]
                    self.margins.append(weight * difference)
                    better = score[oracle] - score[row]
                    self.importance.append(better if weighted else 1.0)

    def weights(self):
        pairs = zip(self.importance, self.margins, strict=True)
        return [importance * exp(-margin) for importance, margin in pairs]

    def sums(self, k):
        weights = self.weights()
        return tuple(
            sum(w for w, of in zip(weights, side, strict=True) if k in of)
            for side in (self.plus, self.minus)
        )

    def gain(self, k):
        plus, minus = self.sums(k)
        return abs(sqrt(plus) - sqrt(minus))

    def loss(self):
        return sum(self.weights())

    def step(self, k, epsilon):
        plus, minus = (w + epsilon * self.loss() for w in self.sums(k))
        return 0.5 * log(plus / minus)

    def update(self, k, step):
        for row in range(len(self.margins)):
            if k in self.plus[row]:
                self.margins[row] += step
            elif k in self.minus[row]:
                self.margins[row] -= step


@given(data=data_sets(), weighted=st.booleans())
def test_boosting_is_the_naive_loop(data, weighted):
    boosting = train_boosting(data, ROUNDS, 0.01, weighted)
    naive = Naive(data, boosting.log_prob_weight, weighted)
    assert boosting.loss[0] == pytest.approx(naive.loss(), rel=1e-9)
    rounds = zip(boosting.features, boosting.steps, boosting.loss[1:], strict=True)
    for feature, step, loss in rounds:
        gains = [naive.gain(k) for k in range(data.n_features)]
        # Equal gains may come out unequal in the last digit.
        assert gains[feature] >= max(gains) - 1e-7 * sqrt(naive.loss())
        assert step == pytest.approx(naive.step(feature, 0.01), rel=1e-6, abs=1e-9)
        naive.update(feature, step)
        assert loss == pytest.approx(naive.loss(), rel=1e-9)
    if boosting.n_rounds < ROUNDS:
        gains = [naive.gain(k) for k in range(data.n_features)]
        assert max(gains, default=0) <= 1e-7 * sqrt(naive.loss())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_makes_the_choices_of_the_naive_loop(seed, weighted):
    data = random_data(seed, n_segments=30, n_features=30)
    boosting = train_boosting(data, 60, 0.01, weighted)
    naive = Naive(data, boosting.log_prob_weight, weighted)
    features, steps = [], []
    for _ in range(60):
        features.append(max(range(data.n_features), key=naive.gain))
        steps.append(naive.step(features[-1], 0.01))
        naive.update(features[-1], steps[-1])
    assert boosting.features.tolist() == features
    np.testing.assert_allclose(boosting.steps, steps, rtol=1e-9, atol=1e-12)


@given(data=data_sets(), epsilon=st.sampled_from([0.0001, 0.0025, 0.1]))
def test_boosting_loss_never_rises(data, epsilon):
    loss = train_boosting(data, ROUNDS, epsilon).loss
    assert (np.diff(loss) <= 1e-12 * loss[0]).all()


@given(data=data_sets())
def test_boosting_loss_bounds_the_ranking_errors(data):
    boosting = train_boosting(data, ROUNDS)
    values = boosting.ranker().values(data)
    errors = sum(
        int((np.delete(values[a:b], oracle - a) >= values[oracle]).sum())
        for (a, b), oracle in zip(bounds(data), data.oracle.tolist(), strict=True)
    )
    assert errors <= boosting.loss[-1] + 1e-9


@given(seed=st.integers(0, 2**32 - 1), feature=st.integers(0, 5))
def test_boosting_full_step_balances_the_sums(seed, feature):
    data = random_data(seed, n_segments=12, n_features=6, density=0.5)
    state = PairSums(candidate_pairs(data), 0.3)
    plus, minus = state.sums[2 * feature : 2 * feature + 2]
    assume(plus > 0 and minus > 0)
    before = state.loss
    state.update(feature, state.step(feature, 0.0))
    after = state.sums[2 * feature : 2 * feature + 2]
    np.testing.assert_allclose(after, [sqrt(plus * minus)] * 2, rtol=1e-9)
    gain = (sqrt(plus) - sqrt(minus)) ** 2
    assert state.loss == pytest.approx(before - gain, rel=1e-9)


@given(data=data_sets(), seed=st.integers(0, 100))
def test_boosting_sums_stay_those_that_are_computed_anew(data, seed):
    assume(data.n_features)
    random = np.random.default_rng(seed)
    state = PairSums(candidate_pairs(data), 0.3)
    for _ in range(20):
        state.update(int(random.integers(data.n_features)), float(random.normal()))
    sums, gains, loss = state.sums.copy(), state.gains.copy(), state.loss
    state.recompute()
    scale = max(float(state.sums.max(initial=0)), 1.0)
    np.testing.assert_allclose(sums, state.sums, rtol=1e-9, atol=1e-9 * scale)
    np.testing.assert_allclose(gains, state.gains, rtol=1e-9, atol=1e-4 * scale)
    assert loss == pytest.approx(state.loss, rel=1e-9)


@pytest.mark.parametrize("repeats", [1, 9])
def test_boosting_sums_that_round_below_zero_are_taken_for_zero(repeats):
    # Feature 0 sums up e^{37} and 1, loses the first to rounding's cost of the second.
    heavy = [(0.0, {3}, (0, 1, 1)), (-37.0, {0, 1}, (1, 1, 1))]
    light = [(0.0, {3}, (0, 1, 1)), (0.0, {0, 2}, (1, 1, 1))]
    state = PairSums(candidate_pairs(build([heavy, *[light] * repeats], 4)), 1.0)
    state.update(1, 60.0)
    state.update(2, 60.0)
    assert state.sums.min() < 0 or repeats > 1
    assert np.isfinite(state.gains).all()
    assert state.step(0, 0.1) >= 0


@pytest.mark.parametrize("name", ["_RECOMPUTE_ROUNDS", "_BLOCK_CODES"])
def test_boosting_does_not_depend_on_blocks_and_recomputing(name, monkeypatch):
    data = random_data(7, n_segments=40, n_features=40)
    expected = train_boosting(data, 80)
    monkeypatch.setattr(boosting_module, name, 3)
    found = train_boosting(data, 80)
    assert found.features.tolist() == expected.features.tolist()
    np.testing.assert_allclose(found.steps, expected.steps, rtol=1e-9, atol=1e-12)


@given(data=data_sets(), weighted=st.booleans())
def test_boosting_weight_of_the_log_probability_is_the_best_of_a_grid(data, weighted):
    pairs = candidate_pairs(data, weighted)
    assume((pairs.importance > 0).any())
    weight = log_prob_weight(pairs)
    assert LOG_PROB_WEIGHTS[0] <= weight <= LOG_PROB_WEIGHTS[1]
    grid = np.linspace(*LOG_PROB_WEIGHTS, 2000)
    difference = pairs.log_prob_difference
    losses = np.exp(np.outer(grid, difference)) @ pairs.importance
    assert np.exp(weight * difference) @ pairs.importance <= losses.min() * (1 + 1e-12)


def test_boosting_weight_of_the_log_probability_meets_no_overflow():
    # 100 e^{100 w} against 3 * 100 e^{-100 w}: e^{1000} is met at the highest weight.
    better = [(0.0, {0}, (0, 1, 1)), (-100.0, {1}, (1, 1, 1))]
    worse = [(0.0, {0}, (1, 1, 1)), (-100.0, {1}, (0, 1, 1))]
    pairs = candidate_pairs(build([better, worse, worse, worse], 2))
    assert log_prob_weight(pairs) == pytest.approx(log(3) / 200)


def test_boosting_weight_of_the_log_probability_survives_large_differences():
    data = build(
        [
            [(-1.0, {0}, (0, 1, 1)), (-9000.0, {1}, (1, 1, 1))],
            [(-1.0, {0}, (1, 1, 1)), (-8000.0, {1}, (0, 1, 1))],
        ],
        2,
    )
    boosting = train_boosting(data, 10)
    assert np.isfinite(boosting.loss).all()
    assert np.isfinite(boosting.ranker().values(data)).all()


@given(data=data_sets())
def test_boosting_without_rounds_ranks_as_the_base(data):
    boosting = train_boosting(data, 0)
    assert boosting.loss.shape == (1,)
    assert boosting.ranker().choose(data).tolist() == data.base().tolist()
    rounds = train_boosting(data, ROUNDS)
    assert rounds.ranker(0).choose(data).tolist() == data.base().tolist()


def separable(n_segments=40):
    """Feature 7 is held by the oracle alone, and by every oracle."""
    random = np.random.default_rng(0)
    return build(
        [
            [
                (
                    -float(rank),
                    {*random.choice(7, 3).tolist(), *([7] if rank == good else [])},
                    (int(rank == good), 1, 1),
                )
                for rank in range(5)
            ]
            for good in random.integers(0, 5, n_segments)
        ],
        8,
    )


def test_boosting_takes_a_separating_feature_first():
    assert train_boosting(separable(), 3).features[0] == 7


def test_boosting_separates_separable_data():
    data = separable()
    boosting = train_boosting(data, 400)
    assert boosting.loss[-1] < 1
    assert boosting.ranker().choose(data).tolist() == data.oracle.tolist()


def test_boosting_stays_exact_when_the_loss_vanishes():
    data = separable()
    boosting = train_boosting(data, 3000, 0.1)
    assert boosting.loss[-1] < 1e-30
    assert (np.diff(boosting.loss) <= 0).all()
    values = boosting.ranker().values(data)
    margins = np.repeat(values[data.oracle], np.diff(data.borders)) - values
    expected = np.exp(-margins).sum() - data.n_segments
    assert boosting.loss[-1] == pytest.approx(expected, abs=1e-12)


def test_boosting_cannot_take_an_infinite_step():
    with pytest.raises(ValueError, match="epsilon above 0"):
        train_boosting(separable(), 3, epsilon=0.0)


def test_boosting_ends_when_no_step_lowers_the_loss():
    # Both features speak as much for an oracle as against one, and no other is left.
    data = build(
        [
            [(-1.0, {0}, (1, 1, 1)), (-1.0, {1}, (0, 1, 1))],
            [(-1.0, {1}, (1, 1, 1)), (-1.0, {0}, (0, 1, 1))],
        ],
        2,
    )
    boosting = train_boosting(data, 10)
    assert boosting.n_rounds == 0
    assert boosting.loss.tolist() == [2.0]


@pytest.mark.parametrize("n_segments", [0, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_learns_nothing_from_lonely_candidates(n_segments, weighted):
    data = build([[(-1.0, {0}, (0, 1, 1))]] * n_segments, 2)
    boosting = train_boosting(data, 5, weighted=weighted)
    assert boosting.n_rounds == 0
    assert boosting.loss.tolist() == [0.0]
    assert boosting.ranker().choose(data).tolist() == data.base().tolist()


def test_boosting_of_equal_candidates_keeps_the_first():
    data = build([[(-2.0, {0, 1}, (1, 1, 1))] * 4] * 3, 2)
    boosting = train_boosting(data, 5)
    assert boosting.n_rounds == 0
    assert boosting.ranker().choose(data).tolist() == [0, 4, 8]


def test_boosting_weighted_still_learns_from_segments_without_gold():
    data = build([[(-1.0, {0}, (0, 1, 0)), (-2.0, {1}, (0, 0, 0))]], 2)
    boosting = train_boosting(data, 20, weighted=True)
    assert boosting.ranker().choose(data).tolist() == [1]


def naive_f_by_rounds(boosting, dev):
    """All values of all candidates, round after round."""
    features = feature_sets(dev)
    values = boosting.log_prob_weight * dev.log_prob
    scores = []
    for n in range(boosting.n_rounds + 1):
        if n:
            for row, held in enumerate(features):
                if boosting.features[n - 1] in held:
                    values[row] += boosting.steps[n - 1]
        chosen = [a + int(np.argmax(values[a:b])) for a, b in bounds(dev)]
        scores.append(dev.precision_recall_f(np.array(chosen, dtype=int))[2])
    return scores


@given(data=data_sets(), seed=st.integers(0, 100), ties=st.booleans())
def test_boosting_choice_of_rounds_is_that_of_brute_force(data, seed, ties):
    dev = random_data(seed, n_segments=6, n_features=data.n_features, ties=ties)
    boosting = train_boosting(data, ROUNDS)
    expected = naive_f_by_rounds(boosting, dev)
    assert f_by_rounds(boosting, dev).tolist() == expected
    assert choose_rounds(boosting, dev) == expected.index(max(expected))


@pytest.mark.parametrize("seed", range(5))
def test_boosting_f_by_rounds_is_that_of_the_rankers(seed):
    boosting = train_boosting(random_data(seed, n_segments=30), ROUNDS)
    dev = random_data(100 + seed, n_segments=30)
    expected = [
        dev.precision_recall_f(boosting.ranker(n).choose(dev))[2]
        for n in range(boosting.n_rounds + 1)
    ]
    assert f_by_rounds(boosting, dev).tolist() == expected


def test_boosting_of_an_empty_development_set_takes_no_round():
    boosting = train_boosting(random_data(0), 5)
    assert choose_rounds(boosting, random_data(0, n_segments=0)) == 0


def test_boosting_is_deterministic():
    data = random_data(2, n_segments=30)
    one, two = train_boosting(data, 40), train_boosting(data, 40)
    assert one.features.tolist() == two.features.tolist()
    assert one.steps.tolist() == two.steps.tolist()


def test_boosting_tells_its_progress():
    seen = []

    def progress(rounds):
        for number in rounds:
            seen.append(number)
            yield number

    train_boosting(random_data(0), 4, progress=progress)
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": -1}, "rounds"),
        ({"epsilon": -0.1}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
    ],
)
def test_boosting_refuses_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        train_boosting(random_data(0), **{"rounds": 1, **settings})


@pytest.mark.parametrize("n", [-1, 6])
def test_boosting_has_no_model_of_rounds_that_were_not_run(n):
    with pytest.raises(ValueError, match="rounds"):
        train_boosting(random_data(0), 5).ranker(n)


def test_boosting_refuses_development_data_with_other_features_or_no_counts():
    boosting = train_boosting(random_data(0), 5)
    with pytest.raises(ValueError, match="expected data with 10 features"):
        choose_rounds(boosting, random_data(0, n_features=3))
    with pytest.raises(ValueError, match="counts"):
        choose_rounds(boosting, replace(random_data(0), counts=None))


def test_boosting_ends_before_the_loss_underflows():
    # One feature separates, so that each round takes the loss down by a factor.
    data = RankingData(
        indptr=np.array([0, 1, 1]),
        indices=np.array([0]),
        n_features=1,
        log_prob=np.array([-1.0, -2.0]),
        borders=np.array([0, 2]),
        oracle=np.array([0]),
    )
    boosting = train_boosting(data, 100_000)
    assert 0 < boosting.n_rounds < 1000
    assert np.isfinite(boosting.steps).all()
