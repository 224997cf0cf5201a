"""Viterbi, k-best and forward-backward equal enumeration of all labellings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.viterbi import forward_backward, k_best, viterbi

from .toy import NAN, PER, labellings, learn_from, toy_model

WORDS = ["Mr.", "Jones", "IBM", "of", "eats", ".", "Zzz", "7", ","]
sentences = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4), min_size=1, max_size=4
)
options = st.fixed_dictionaries(
    {
        "unknown": st.sampled_from(["split", "merged"]),
        "punctuation_context": st.booleans(),
        "product_level": st.booleans(),
    }
)


def lattice_of(model, batch):
    return model.lattice(*model.encode(batch), batch.lengths)


def enumerate_joint(model, sentence):
    """log Pr(words, labelling) of every labelling of one sentence, best first."""
    every = list(labellings(len(sentence), 3))
    batch = TokenBatch.from_sentences([sentence] * len(every))
    classes, begins = (np.array(part).reshape(-1) for part in zip(*every, strict=True))
    scores = model.log_joint(batch, classes, begins)
    scored = [(score, *one) for score, one in zip(scores.tolist(), every, strict=True)]
    return sorted(scored, key=lambda item: -item[0])


def cut(values, batch):
    return np.split(values, np.cumsum(batch.lengths)[:-1])


@settings(deadline=None, max_examples=40)
@given(sentences, options)
def test_viterbi_equals_enumeration(texts, option):
    model, batch = toy_model(**option), TokenBatch.from_sentences(texts)
    best = viterbi(lattice_of(model, batch))
    log_joint = model.log_joint(batch, best.name_classes, best.begins)
    expected = [enumerate_joint(model, text)[0][0] for text in texts]
    np.testing.assert_allclose(log_joint, expected, rtol=1e-10)


@settings(deadline=None, max_examples=30)
@given(sentences, options, st.sampled_from([1, 2, 5, 400]))
def test_viterbi_k_best_equals_enumeration(texts, option, k):
    model, batch = toy_model(**option), TokenBatch.from_sentences(texts)
    result = k_best(lattice_of(model, batch), k)
    for at, text in enumerate(texts):
        expected = [score for score, _, _ in enumerate_joint(model, text)][:k]
        got = result.log_joint[:, at]
        np.testing.assert_allclose(got[: len(expected)], expected, rtol=1e-10)
        assert (got[len(expected) :] == -np.inf).all()
        found = {
            (tuple(cut(c, batch)[at]), tuple(cut(b, batch)[at]))
            for c, b in zip(
                result.name_classes[: len(expected)],
                result.begins[: len(expected)],
                strict=True,
            )
        }
        assert len(found) == len(expected)


@settings(deadline=None, max_examples=30)
@given(sentences, options)
def test_viterbi_log_z_equals_enumeration(texts, option):
    model, batch = toy_model(**option), TokenBatch.from_sentences(texts)
    log_z = forward_backward(lattice_of(model, batch)).log_z
    expected = [
        np.logaddexp.reduce([score for score, _, _ in enumerate_joint(model, text)])
        for text in texts
    ]
    np.testing.assert_allclose(log_z, expected, rtol=1e-10)


@settings(deadline=None, max_examples=30)
@given(sentences, options)
def test_viterbi_span_posteriors_equal_enumeration(texts, option):
    model, batch = toy_model(**option), TokenBatch.from_sentences(texts)
    posteriors = forward_backward(lattice_of(model, batch))
    offset = 0
    for text in texts:
        expected = {}
        scored = enumerate_joint(model, text)
        log_z = np.logaddexp.reduce([score for score, _, _ in scored])
        for score, classes, begins in scored:
            starts = [t for t, b in enumerate(begins) if b]
            for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
                key = (start, end, classes[start])
                expected[key] = expected.get(key, 0) + np.exp(score - log_z)
        spans = np.array(list(expected))
        got = posteriors.spans(spans[:, 0] + offset, spans[:, 1] + offset, spans[:, 2])
        np.testing.assert_allclose(got, list(expected.values()), rtol=1e-8, atol=1e-12)
        offset += len(text)


def test_viterbi_tells_adjacent_names_of_one_class_apart():
    texts = [["Al", "Bo", "met"], ["Al", "met"], ["Bo", "met"]] * 4
    classes = [[PER, PER, NAN], [PER, NAN], [PER, NAN]] * 4
    begins = [[True, True, True], [True, True], [True, True]] * 4
    model = learn_from(texts, classes, begins)
    batch = TokenBatch.from_sentences([["Al", "Bo", "met"]])
    best = viterbi(lattice_of(model, batch))
    assert best.name_classes.tolist() == [PER, PER, NAN]
    assert best.begins.tolist() == [True, True, True]


def test_viterbi_never_splits_text_that_is_no_name():
    model = toy_model()
    batch = TokenBatch.from_sentences([["eats", "eats", ".", "of"] * 5])
    best = viterbi(lattice_of(model, batch))
    both = (best.name_classes[1:] == NAN) & (best.name_classes[:-1] == NAN)
    assert not (best.begins[1:] & both).any()


@pytest.mark.parametrize("length", [1, 2, 1500])
def test_viterbi_takes_sentences_of_any_length(length):
    model = toy_model()
    batch = TokenBatch.from_sentences([(["Mr.", "Jones", "eats"] * length)[:length]])
    posteriors = forward_backward(lattice_of(model, batch))
    assert np.isfinite(posteriors.log_z).all()
    starts = np.arange(length)
    spans = posteriors.spans(starts, starts + 1, np.full(length, PER))
    assert np.isfinite(spans).all()
    assert ((spans >= 0) & (spans <= 1)).all()


def test_viterbi_a_batch_equals_its_sentences_one_by_one():
    texts = [["Mr.", "Jones"], ["IBM"], ["Zzz", "of", "IBM", "eats", "."] * 9, ["7"]]
    model, batch = toy_model(), TokenBatch.from_sentences(texts)
    together = viterbi(lattice_of(model, batch))
    for at, text in enumerate(texts):
        alone = viterbi(lattice_of(model, TokenBatch.from_sentences([text])))
        assert cut(together.name_classes, batch)[at].tolist() == (
            alone.name_classes.tolist()
        )
