"""Rankers survive as headers and arrays."""

import json
import pickle

import pytest

from spacy_treecrf.rerank.boosting import train_boosting
from spacy_treecrf.rerank.model import load_ranker
from spacy_treecrf.rerank.voted_perceptron import train_perceptron

from .random_data import random_data


@pytest.fixture(params=["averaged", "last", "voted", "boosting"])
def ranker(request):
    """A ranker of each kind."""
    data = random_data(3, n_segments=30)
    if request.param == "boosting":
        return train_boosting(data, 20).ranker()
    return getattr(train_perceptron(data), request.param)()


def test_model_ranker_survives_as_header_and_arrays(ranker):
    data = random_data(4)
    header, arrays = ranker.to_arrays()
    loaded = load_ranker(json.loads(json.dumps(header)), arrays)
    assert type(loaded) is type(ranker)
    assert loaded.values(data).tolist() == ranker.values(data).tolist()


def test_model_ranker_survives_a_pickle(ranker):
    data = random_data(4)
    expected = ranker.values(data).tolist()
    assert pickle.loads(pickle.dumps(ranker)).values(data).tolist() == expected


@pytest.mark.parametrize("header", [{}, {"method": "oracle"}])
def test_model_refuses_a_method_that_it_does_not_know(header):
    with pytest.raises(ValueError, match="expected a ranker of method"):
        load_ranker(header, {})
