"""Beam search against the enumeration of all well-formed taggings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.maxent import beam as beam_module
from spacy_treecrf.maxent.beam import beam_search
from spacy_treecrf.maxent.model import log_normalizer

from .oracle import taggings, well_formed

shapes = st.tuples(
    st.integers(1, 2),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(0, 2**31),
)


def random_scores(n_labels, lengths, seed, size=2.0):
    rng = np.random.default_rng(seed)
    n_tags = 1 + 2 * n_labels
    words = rng.normal(scale=size, size=(sum(lengths), n_tags))
    history = rng.normal(scale=size, size=(n_tags + 1, n_tags + 1, n_tags))
    return words, history


def enumerated(words, history):
    """(log probability, tags) of every tagging of one sentence, best first."""
    n_tags = words.shape[1]
    found = []
    for tags in taggings(len(words), n_tags):
        padded = (n_tags, n_tags, *tags)
        total = 0.0
        for at, tag in enumerate(tags):
            scores = words[at] + history[padded[at], padded[at + 1]]
            total += scores[tag] - log_normalizer(scores)
        found.append((total, tags))
    return sorted(found, reverse=True)


def by_sentence(lengths):
    ends = np.cumsum(lengths).tolist()
    return [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]


@given(shapes)
def test_beam_of_full_width_is_enumeration(shape):
    _, lengths, _ = shape
    words, history = random_scores(*shape)
    width = len(taggings(max(lengths), words.shape[1]))
    found = beam_search(words, history, np.array(lengths), width)
    for number, part in enumerate(by_sentence(lengths)):
        expected = enumerated(words[part], history)
        log_prob = found.log_prob[:, number]
        np.testing.assert_allclose(
            log_prob[: len(expected)], [value for value, _ in expected], rtol=1e-9
        )
        assert np.isneginf(log_prob[len(expected) :]).all()
        tags = found.tags[: len(expected), part].tolist()
        assert list(map(tuple, tags)) == [tags for _, tags in expected]
        assert not found.tags[len(expected) :, part].any()


@given(shapes, st.integers(1, 6))
def test_beam_hypotheses_are_distinct_taggings_with_their_log_prob(shape, width):
    _, lengths, _ = shape
    words, history = random_scores(*shape)
    found = beam_search(words, history, np.array(lengths), width)
    for number, part in enumerate(by_sentence(lengths)):
        values = {tags: value for value, tags in enumerated(words[part], history)}
        log_prob = found.log_prob[:, number]
        present = np.isfinite(log_prob)
        assert present.sum() == min(width, len(values))
        tags = list(map(tuple, found.tags[present, part].tolist()))
        assert len(set(tags)) == len(tags)
        np.testing.assert_allclose(log_prob[present], [values[t] for t in tags])
        assert (np.diff(log_prob[present]) <= 0).all()


@given(shapes)
def test_beam_sentences_are_independent(shape):
    _, lengths, _ = shape
    words, history = random_scores(*shape)
    together = beam_search(words, history, np.array(lengths), 4)
    for number, part in enumerate(by_sentence(lengths)):
        alone = beam_search(words[part], history, np.array([lengths[number]]), 4)
        np.testing.assert_array_equal(together.tags[:, part], alone.tags)
        np.testing.assert_array_equal(together.log_prob[:, [number]], alone.log_prob)


@pytest.mark.parametrize(("sentences", "cells"), [(1, 10**6), (3, 10**6), (128, 60)])
def test_beam_blocks_change_nothing(monkeypatch, sentences, cells):
    lengths = [3, 1, 7, 2, 2, 9]
    words, history = random_scores(2, lengths, 0)
    expected = beam_search(words, history, np.array(lengths), 5)
    monkeypatch.setattr(beam_module, "BLOCK_SENTENCES", sentences)
    monkeypatch.setattr(beam_module, "BLOCK_CELLS", cells)
    found = beam_search(words, history, np.array(lengths), 5)
    np.testing.assert_array_equal(found.tags, expected.tags)
    np.testing.assert_array_equal(found.log_prob, expected.log_prob)


def test_beam_of_one_takes_the_best_tag_that_may_follow():
    # The model prefers C of label 1 everywhere, which may follow nothing here.
    words = np.array([[0.0, 1.0, 0.0, 0.0, 9.0]] * 2)
    history = np.zeros((6, 6, 5))
    found = beam_search(words, history, np.array([2]), 1)
    assert found.tags.tolist() == [[1, 1]]


def test_beam_probabilities_are_those_of_the_model():
    # What ill-formed tags would get is lost, and is not shared out.
    words, history = np.zeros((1, 3)), np.zeros((4, 4, 3))
    found = beam_search(words, history, np.array([1]), 3)
    np.testing.assert_allclose(np.exp(found.log_prob[:2, 0]), 1 / 3)
    assert np.isneginf(found.log_prob[2, 0])


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_beam_long_sentences_stay_finite_and_well_formed(scale):
    words, history = random_scores(3, [500], 1, size=scale)
    found = beam_search(words, history, np.array([500]), 20)
    assert np.isfinite(found.log_prob).all()
    assert all(map(well_formed, found.tags.tolist()))


def test_beam_many_labels_and_hypotheses_fit_their_types():
    words, history = random_scores(150, [4], 2)
    found = beam_search(words, history, np.array([4]), 300)
    assert found.tags.max() > 255
    assert len(np.unique(found.tags, axis=0)) == 300


def test_beam_of_no_sentences():
    _, history = random_scores(1, [1], 0)
    found = beam_search(np.zeros((0, 3)), history, np.zeros(0, dtype=np.int64), 2)
    assert found.tags.shape == (2, 0)
    assert found.log_prob.shape == (2, 0)
