"""Pipelines that several test files share; no test may change them."""

import gzip
import json

import pytest
from flat_toy import CONFIGS
from nested_toy import SENTENCES, run, toy_examples, train_until, untrained
from table_scorer import scored


@pytest.fixture(scope="session")
def sure():
    """Trained until every sentence has its gold with a probability of at least 0.99."""
    nlp = untrained()
    # Eight sentences: the loss of each is below 0.008.
    train_until(nlp, toy_examples(nlp), loss=0.001)
    return nlp


@pytest.fixture(scope="session")
def learning():
    """Trained for a while: whatever it finds, its potentials depend on all words.

    What is compared are figures that change smoothly with the potentials, and entities
    up to the rounding of those.
    """
    # A margin would drive probabilities apart.
    nlp = untrained(softmax_margin=0.0, decoder="mbr", entropy=True)
    train_until(nlp, toy_examples(nlp), loss=1.0)
    return nlp


# Log-potentials of each sentence's entities, such that none is certain.
UNSURE = {
    "The Bank of China said so .": {(1, 4, "ORG"): 2.0, (3, 4, "GPE"): 0.8},
    "University of Rome Press wins": {
        **{(0, 4, "ORG"): 1.6, (0, 3, "ORG"): 1.4},
        (2, 3, "GPE"): 0.9,
    },
    "p21ras binds DNA": {
        **{(0, 1, "DNA"): 0.5, (0, 1, "protein"): 0.2},
        (0, 1, ("DNA", "protein")): 1.1,
    },
    "Bank of Rome": {(0, 3, "ORG"): 1.5, (2, 3, "GPE"): 1.0},
    "It rained in Oslo": {(3, 4, "GPE"): 0.7},
    "Mayor of Oslo Ann Lee left": {(0, 5, "PER"): 1.8, (2, 3, "GPE"): 0.6},
    "p21ras gene of Rome": {(0, 1, ("DNA", "protein")): 1.2, (3, 4, "GPE"): 1.3},
}


@pytest.fixture(scope="session")
def unsure():
    """Finds the entities of the toy sentences, each with a probability in (0.2, 0.9)."""
    # Without a margin the loss is minus log p of the gold.
    nlp = scored(UNSURE, softmax_margin=0.0)
    for words, spans in SENTENCES:
        group = run(nlp, words).spans["nested"]
        assert len(group) == len(spans)
        assert all(0.2 < score < 0.9 for score in group.attrs["scores"])
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
