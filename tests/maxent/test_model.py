"""The model of a tag: the definition, distributions, storage."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.maxent.model import MaxEntModel, history_numbers, tag_entities
from spacy_treecrf.maxent.training import train

from .oracle import batch_of, log_prob, spans_of, weights_of, well_formed

TRAINING = [["Mr.", "Al", "Bo", "left"], ["Rome", "fell"], ["Mr.", "Cy", "left"]]
TAGS = [0, 1, 2, 0, 3, 0, 0, 1, 0]
NEW = [["Mr.", "Bo", "fell"], ["Al"], ["in", "Rome"]]


@pytest.fixture(scope="module")
def model():
    return train(batch_of(TRAINING), np.array(TAGS), 2, cutoff=1)


def test_model_is_the_definition(model):
    weights = weights_of(model)
    rng = np.random.default_rng(0)
    tags = [rng.integers(0, model.n_tags, len(sentence)) for sentence in NEW]
    expected = [
        log_prob(weights, model.n_tags, model.predicates.lower_case, words, of_words)
        for words, of_words in zip(NEW, tags, strict=True)
    ]
    found = model.log_prob(batch_of(NEW), np.concatenate(tags))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_model_probabilities_sum_to_one(model, length):
    # Over all taggings, the ill-formed ones too, which the model knows nothing of.
    batch = batch_of([["Mr.", "Rome", "Cy"][:length]])
    total = sum(
        np.exp(model.log_prob(batch, np.array(tags)))
        for tags in itertools.product(range(model.n_tags), repeat=length)
    )
    assert total == pytest.approx(1.0)


def test_model_survives_json_and_arrays(model):
    header, arrays = model.to_arrays()
    again = MaxEntModel.from_arrays(json.loads(json.dumps(header)), arrays)
    np.testing.assert_array_equal(
        again.word_scores(batch_of(NEW)), model.word_scores(batch_of(NEW))
    )
    np.testing.assert_array_equal(again.history_weights, model.history_weights)


def test_model_history_starts_anew_in_each_sentence():
    second_last, last = history_numbers(np.array([1, 2, 0, 3, 0]), np.array([3, 2]), 5)
    assert second_last.tolist() == [5, 5, 1, 5, 5]
    assert last.tolist() == [5, 1, 2, 5, 3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(well_formed))
def test_model_tags_of_entities(tags):
    spans = np.array(spans_of(tags), dtype=np.int64).reshape(-1, 3)
    assert tag_entities(len(tags), *spans.T).tolist() == tags
