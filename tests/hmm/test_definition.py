"""The arrays give the probabilities of the definition, whatever the corpus."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features

from .oracle import NAN, Oracle
from .toy import learn_from, segment_starts

# Few words and many marks, so that all histories and the halves meet often.
WORDS = st.sampled_from(["Al", "bo", "C.", "77", ",", "(", "DD"])
NEW = st.sampled_from(["Al", "bo", ",", "(", "DD", "New", "new", "99", ";"])


@st.composite
def sentence(draw, words):
    tokens = draw(st.lists(words, min_size=1, max_size=6))
    classes = [draw(st.integers(0, 2)) for _ in tokens]
    begins = segment_starts(classes)
    for at in range(1, len(tokens)):
        if classes[at] == classes[at - 1] != NAN:
            begins[at] = draw(st.booleans())
    return tokens, classes, begins


@pytest.mark.parametrize("unknown", ["split", "merged"])
@pytest.mark.parametrize("product_level", [False, True])
@pytest.mark.parametrize("punctuation_context", [False, True])
@settings(deadline=None, max_examples=60)
@given(
    corpus=st.lists(sentence(WORDS), min_size=2, max_size=8),
    tested=st.lists(sentence(NEW), min_size=1, max_size=4),
)
def test_definition_of_the_joint_probability(
    unknown, product_level, punctuation_context, corpus, tested
):
    options = {
        "unknown": unknown,
        "product_level": product_level,
        "punctuation_context": punctuation_context,
    }
    features = make_word_features()
    words, classes, begins = (list(part) for part in zip(*corpus, strict=True))
    model = learn_from(words, classes, begins, features=features, **options)
    half = [at >= len(corpus) // 2 for at in range(len(corpus))]
    oracle = Oracle(corpus, half, features, 3, **options)
    batch = TokenBatch.from_sentences([tokens for tokens, _, _ in tested])
    got = model.log_joint(
        batch,
        np.array([c for _, of_sentence, _ in tested for c in of_sentence]),
        np.array([b for *_, of_sentence in tested for b in of_sentence]),
    )
    expected = [sum(map(math.log, oracle.log_joint_factors(*s))) for s in tested]
    np.testing.assert_allclose(got, expected, rtol=1e-9)
