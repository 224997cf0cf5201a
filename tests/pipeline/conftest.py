"""Trained pipelines that several test files share; no test may change them."""

import pytest
from nested_toy import add_treecrf, toy_examples, train, untrained


@pytest.fixture(scope="session")
def sure():
    """Trained until every gold span has a probability near 1."""
    nlp = untrained()
    train(nlp, toy_examples(nlp), steps=30)
    return nlp


@pytest.fixture(scope="session")
def unsure():
    """Barely trained, so that probabilities lie between 0 and 1."""
    nlp = untrained()
    train(nlp, toy_examples(nlp), steps=8, learn_rate=0.002)
    return nlp


@pytest.fixture
def add():
    """How to add a small `treecrf` pipe to a pipeline."""
    return add_treecrf
