"""Trained pipelines that several test files share; no test may change them."""

import gzip
import json

import pytest
from flat_toy import CONFIGS
from nested_toy import toy_examples, train, untrained


@pytest.fixture(scope="session")
def sure():
    """Trained until every gold span has a probability near 1."""
    nlp = untrained()
    train(nlp, toy_examples(nlp), steps=30)
    return nlp


@pytest.fixture(scope="session")
def unsure():
    """Barely trained, so that probabilities lie between 0 and 1."""
    # A margin would drive them apart.
    nlp = untrained(softmax_margin=0.0)
    train(nlp, toy_examples(nlp), steps=8, learn_rate=0.002)
    return nlp


@pytest.fixture(scope="session")
def litbank_texts(corpora):
    """The texts of LitBank's test set, each joined from its sentences."""
    texts = {}
    with gzip.open(
        corpora / "litbank" / "test.jsonl.gz", "rt", encoding="utf8"
    ) as file:
        for line in map(json.loads, file):
            texts.setdefault(line["doc"], []).extend(line["tokens"])
    return [" ".join(tokens) for tokens in texts.values()]


@pytest.fixture(params=list(CONFIGS))
def factory(request):
    """Each of the pipes of flat entities."""
    return request.param
