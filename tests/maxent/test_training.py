"""Estimation: the objective, its gradient, which features there are, the optimum."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.maxent.features import WordPredicates
from spacy_treecrf.maxent.model import MaxEntModel
from spacy_treecrf.maxent.training import TaggingObjective, distinct_rows, train

from .oracle import batch_of, history, log_prob, predicates, weights_of

N_LABELS, N_TAGS = 2, 5


@st.composite
def corpora(draw):
    words = st.sampled_from(["Al", "Bo", "met", "in", "1999"])
    sentences = draw(
        st.lists(st.lists(words, min_size=1, max_size=4), min_size=1, max_size=5)
    )
    length = sum(map(len, sentences))
    tags = draw(st.lists(st.integers(0, 4), min_size=length, max_size=length))
    return sentences, tags


def objective_of(sentences, tags, cutoff=1, l2=0.1):
    batch = batch_of(sentences)
    known = WordPredicates.learn(batch, cutoff, ())
    columns = known.encode(batch)
    objective = TaggingObjective(
        columns, known.n_columns, np.array(tags), batch.lengths, N_LABELS, cutoff, l2
    )
    return known, objective


def by_sentence(sentences, tags):
    tags = iter(tags)
    return [(words, [next(tags) for _ in words]) for words in sentences]


@given(corpora(), st.integers(0, 2**31))
def test_training_objective_is_the_definition(corpus, seed):
    known, objective = objective_of(*corpus, l2=0.3)
    w = np.random.default_rng(seed).normal(size=len(objective.features))
    names = weights_of(MaxEntModel(known, N_LABELS, objective.features, w))
    log_p = [
        log_prob(names, N_TAGS, (), words, tags) for words, tags in by_sentence(*corpus)
    ]
    expected = -math.fsum(log_p) + 0.3 / 2 * (w @ w)
    assert objective(w)[0] * len(corpus[1]) == pytest.approx(expected)


@given(corpora(), st.integers(0, 2**31), st.sampled_from([0.0, 0.1, 2.0]))
def test_training_gradient_is_that_of_finite_differences(corpus, seed, l2):
    _, objective = objective_of(*corpus, l2=l2)
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=len(objective.features))
    direction = rng.normal(size=len(weights))
    step = 1e-5
    above, below = (objective(weights + s * direction)[0] for s in (step, -step))
    expected = (above - below) / (2 * step)
    assert objective(weights)[1] @ direction == pytest.approx(expected, abs=1e-7)


@given(corpora(), st.integers(1, 3))
def test_training_features_are_those_seen_often_enough(corpus, cutoff):
    known, objective = objective_of(*corpus, cutoff=cutoff)
    counts = Counter()
    for words, tags in by_sentence(*corpus):
        for at, tag in enumerate(tags):
            for name in predicates(words, at, ()) + history(tags, at, N_TAGS):
                counts.update([(*name, tag)])
    expected = {name: n for name, n in counts.items() if n >= cutoff}
    model = MaxEntModel(known, N_LABELS, objective.features, objective.observed)
    assert weights_of(model) == expected


SENTENCES = [["Mr.", "Al", "left"], ["Mr.", "Bo", "left"], ["Bo", "met", "Al"]] * 3
TAGS = [0, 1, 0, 0, 1, 0, 1, 0, 1] * 3


def partly_known(sentences, tags, known, l2=0.3):
    batch = batch_of(sentences)
    predicates = WordPredicates.learn(batch, 1, ())
    return TaggingObjective(
        predicates.encode(batch),
        predicates.n_columns,
        np.array(tags),
        batch.lengths,
        N_LABELS,
        1,
        l2,
        np.array(known, dtype=bool),
    )


def by_feature(objective):
    return dict(zip(objective.features.tolist(), objective.observed, strict=True))


def test_training_unknown_tags_at_the_end_are_as_if_cut_out():
    sentence = ["Al", "met", "Bo"]
    other = [["Bo", "met", "Al"], ["Al"]]
    # The first two words keep what is behind them in sight: the text is known.
    objective = partly_known(
        [sentence, *other], [1, 0, 3, 0, 0, 1, 1], [1, 1, 0] + [1] * 4
    )
    whole = partly_known([sentence, *other], [1, 0, 3, 0, 0, 1, 1], [1] * 7)
    gone = {f for f in by_feature(whole) if f not in by_feature(objective)}
    assert all(feature % N_TAGS == 3 for feature in gone)
    assert (objective.counts.sum(), whole.counts.sum()) == (6, 7)


def test_training_a_whole_unknown_sentence_changes_nothing():
    known = [["Al", "met", "Bo"], ["Al"]]
    cut = partly_known(known, [1, 0, 3, 1], [1] * 4)
    more = partly_known([*known, ["Bo", "Al"]], [1, 0, 3, 1, 0, 0], [1] * 4 + [0, 0])
    assert more.counts.sum() == cut.counts.sum() == 4
    assert sorted(by_feature(more).values()) == sorted(by_feature(cut).values())
    w = np.random.default_rng(0).normal(size=len(cut.features))
    assert more(w)[0] == pytest.approx(cut(w)[0])


@pytest.mark.parametrize(
    ("known", "last", "last_two"),
    [
        ([1, 1, 1], {N_TAGS: 1, 1: 1, 0: 1}, 3),
        ([0, 1, 1], {0: 1}, 0),  # behind an unknown tag the history is not known
        ([1, 0, 1], {N_TAGS: 1}, 1),
        ([1, 1, 0], {N_TAGS: 1, 1: 1}, 2),
    ],
)
def test_training_history_is_seen_as_far_as_it_is_known(known, last, last_two):
    objective = partly_known([["Al", "met", "Bo"]], [1, 0, 3], known)
    n_words = objective.by_context.shape[1] - (N_TAGS + 1) - (N_TAGS + 1) ** 2
    seen = np.asarray(objective.by_context.sum(axis=0)).reshape(-1)
    of_last = seen[n_words : n_words + N_TAGS + 1]
    assert {n: int(of_last[n]) for n in np.flatnonzero(of_last).tolist()} == last
    assert seen[n_words + N_TAGS + 1 :].sum() == last_two


def test_training_ends_where_the_gradient_is_zero():
    _, objective = objective_of(SENTENCES, TAGS)
    model = train(
        batch_of(SENTENCES), np.array(TAGS), N_LABELS, cutoff=1, lower_case=()
    )
    np.testing.assert_array_equal(model.features, objective.features)
    np.testing.assert_allclose(objective(model.weights)[1], 0, atol=2e-4)


def test_training_learns_its_lower_case_words():
    model = train(batch_of(SENTENCES), np.array(TAGS), 1, cutoff=1)
    assert model.predicates.lower_case == {"left", "met"}


def test_training_takes_lower_case_words():
    model = train(batch_of(SENTENCES), np.array(TAGS), 1, cutoff=1, lower_case=["al"])
    assert model.predicates.lower_case == {"al"}
    assert "0-1-A" in model.predicates.kept[3]


def test_training_prior_keeps_weights_small():
    norms = [
        np.linalg.norm(train(batch_of(SENTENCES), np.array(TAGS), 1, l2=l2).weights)
        for l2 in (0.01, 0.1, 1.0, 10.0)
    ]
    assert norms == sorted(norms, reverse=True)


def test_training_reports_a_loss_that_never_rises():
    losses = []
    train(
        batch_of(SENTENCES),
        np.array(TAGS),
        1,
        progress=lambda iteration, loss: losses.append((iteration, loss)),
    )
    assert [iteration for iteration, _ in losses] == list(range(1, len(losses) + 1))
    values = [loss for _, loss in losses]
    assert values == sorted(values, reverse=True)


def test_training_without_frequent_features_gives_equal_probabilities():
    batch = batch_of([["Al", "left"]])
    model = train(batch, np.array([1, 0]), 1, cutoff=5)
    expected = 2 * math.log(1 / 3)
    assert model.log_prob(batch, np.array([0, 0]))[0] == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1))
def test_training_distinct_rows(rows):
    distinct, number = distinct_rows(np.array(rows))
    assert sorted(map(tuple, distinct.tolist())) == sorted(set(rows))
    assert [tuple(row) for row in distinct[number].tolist()] == rows
