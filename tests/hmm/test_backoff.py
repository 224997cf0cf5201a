"""The back-off chains: worked numbers of the paper, and sums of one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.hmm.counts import END_WORD, FIRST_WORD, UNKNOWN_WORD
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.weights import backoff_weight
from spacy_treecrf.hmm.word_features import FOURTEEN

from .toy import CLASSES, NAN, ORG, PER, SENTENCES, learn_from, toy_model

START = END = 3
FEATURE = {name: number for number, name in enumerate(FOURTEEN)}
OF = {
    "Mr.": "firstWord",
    "Jones": "initCap",
    "Smith": "initCap",
    "IBM": "allCaps",
    "of": "lowerCase",
    "eats": "lowerCase",
    ".": "other",
    "_UNK_": "initCap",
    "never": "lowerCase",
}


def number(model, word):
    if word == "+end+":
        return END_WORD
    return int(model.word_numbers([word])[0])


def pair(model, word):
    return np.array([number(model, word)]), np.array([FEATURE[OF[word]]])


def name_class(model, outcome, before, word):
    words = np.array([number(model, word)])
    return model.normal.name_class(words, np.array([-1]))[0, outcome, before]


def first_word(model, word, name_class, before, unknown=False):
    backoff = model.unknown if unknown else model.normal
    return backoff.word_rows(*pair(model, word)).first[0, name_class, before]


def next_word(model, word, previous, name_class):
    rows = model.normal.word_rows(*pair(model, previous))
    if word == "+end+":
        return rows.end[0, name_class]
    own = model.normal.word_rows(*pair(model, word))
    p = np.zeros((1, 3))
    model.normal.add_bigrams(
        p,
        model.normal.pair_numbers(*pair(model, previous)),
        model.normal.pair_numbers(*pair(model, word)),
    )
    p += rows.to_unigram * own.unigram + rows.to_bottom * own.bottom
    return p[0, name_class]


def factors(model):
    """The eleven factors of "Mr. [PER Jones] eats .", in the paper's order."""
    return [
        name_class(model, NAN, START, "+end+"),
        first_word(model, "Mr.", NAN, START),
        next_word(model, "+end+", "Mr.", NAN),
        name_class(model, PER, NAN, "Mr."),
        first_word(model, "Jones", PER, NAN),
        next_word(model, "+end+", "Jones", PER),
        name_class(model, NAN, PER, "Jones"),
        first_word(model, "eats", NAN, PER),
        next_word(model, ".", "eats", NAN),
        next_word(model, "+end+", ".", NAN),
        name_class(model, END, NAN, "."),
    ]


EXPECTED = [
    67 / 84,
    94333 / 129360,
    7571 / 10098,
    5141 / 6720,
    25 / 98,
    1691 / 2772,
    67 / 84,
    29653 / 86240,
    3538 / 5049,
    7571 / 10098,
    5141 / 6720,
]


def test_backoff_weight_of_come_here_and_come_hither():
    assert backoff_weight(4, 2) == pytest.approx(2 / 3)
    assert 1 - backoff_weight(4, 2) == pytest.approx(1 / 3)


def test_backoff_weight_is_zero_for_an_equally_trained_level():
    assert backoff_weight(10, 2) == pytest.approx(5 / 6)
    assert backoff_weight(10, 2, old=10) == 0.0


def test_backoff_weight_is_small_for_an_almost_equally_trained_level():
    assert backoff_weight(100, 2, old=95) == pytest.approx(0.05 * 100 / 102)


def test_backoff_weight_is_zero_for_an_unseen_history():
    assert backoff_weight(0, 0) == 0.0


def test_backoff_weight_never_leaves_the_unit_interval():
    assert backoff_weight(3, 1, old=5) == 0.0


@pytest.mark.parametrize("place", range(11))
def test_backoff_factor_of_the_toy_corpus(place):
    assert factors(toy_model())[place] == pytest.approx(EXPECTED[place], rel=1e-12)


def test_backoff_product_of_the_eleven_factors():
    assert math.prod(EXPECTED) == pytest.approx(0.00572300, rel=1e-6)
    batch = TokenBatch.from_sentences(SENTENCES[:1])
    begins = np.array([True, True, True, False])
    log_joint = toy_model().log_joint(batch, np.array(CLASSES[0]), begins)
    assert log_joint[0] == pytest.approx(-5.163262, abs=1e-6)
    assert log_joint[0] == pytest.approx(sum(map(math.log, EXPECTED)), rel=1e-12)


def test_backoff_product_level_has_weight_on_request():
    model = toy_model(product_level=True)
    assert first_word(model, "Jones", PER, NAN) == pytest.approx(37 / 98, rel=1e-12)


def test_backoff_unknown_model_of_the_toy_corpus():
    model = toy_model()
    assert len(model.unknown.words) == 4
    p = first_word(model, "_UNK_", PER, NAN, unknown=True)
    assert p == pytest.approx(113 / 168, rel=1e-12)


def test_backoff_middle_level_drops_out_where_it_knows_no_more():
    # All ten boundaries after NOT-A-NAME follow "Mr.": 9 persons, 1 organisation.
    sentences, classes = [], []
    for outcome in [PER] * 9 + [ORG]:
        sentences.append(["Mr.", "Jones"])
        classes.append([NAN, outcome])
    model = learn_from(sentences, classes, punctuation_context=False)
    # N3: 30 boundaries with four outcomes (NAN 10, PER 9, ORG 1, END 10); history NAN
    # has 10 of them.
    weight3 = (1 - 10 / 30) * 30 / 34
    below = weight3 * 9 / 30 + (1 - weight3) / 4
    expected = 5 / 6 * 9 / 10 + 1 / 6 * below
    assert name_class(model, PER, NAN, "Mr.") == pytest.approx(expected, rel=1e-12)


def all_pairs(backoff, n_words):
    """Every pair over the model's own vocabulary."""
    words = backoff.words
    assert words.max() < n_words
    grid = np.meshgrid(words, np.arange(backoff.n_features), indexing="ij")
    return [axis.reshape(-1) for axis in grid]


words = st.sampled_from(["a", "B", "C.", "1", ",", ".", "dd"])


@st.composite
def corpora(draw):
    sentences = draw(
        st.lists(st.lists(words, min_size=1, max_size=5), min_size=1, max_size=5)
    )
    classes = [[draw(st.integers(0, 2)) for _ in sentence] for sentence in sentences]
    return sentences, classes


options = st.fixed_dictionaries(
    {
        "unknown": st.sampled_from(["split", "merged"]),
        "product_level": st.booleans(),
        "punctuation_context": st.booleans(),
    }
)


@settings(deadline=None, max_examples=60)
@given(corpora(), options)
def test_backoff_name_classes_sum_to_one(corpus, option):
    model = learn_from(*corpus, **option)
    n = len(model.words) + FIRST_WORD
    before, beyond = (axis.reshape(-1) for axis in np.meshgrid(range(n), range(-1, n)))
    for backoff in (model.normal, model.unknown):
        p = backoff.name_class(before, beyond)
        assert (p > 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(corpora(), options)
def test_backoff_first_words_sum_to_one(corpus, option):
    model = learn_from(*corpus, **option)
    for backoff in (model.normal, model.unknown):
        rows = backoff.word_rows(*all_pairs(backoff, len(model.words) + 2))
        assert (rows.first > 0).all()
        total = rows.first.sum(axis=0)
        # A class never seen has no level above the uniform one.
        np.testing.assert_allclose(total, 1, rtol=1e-12)


@settings(deadline=None, max_examples=60)
@given(corpora(), options)
def test_backoff_next_words_sum_to_one(corpus, option):
    model = learn_from(*corpus, **option)
    for backoff in (model.normal, model.unknown):
        pairs = all_pairs(backoff, len(model.words) + 2)
        rows = backoff.word_rows(*pairs)
        numbers = backoff.pair_numbers(*pairs)
        # The last history was never seen: a pair outside the vocabulary.
        unseen = backoff.word_rows(np.array([10**6]), np.array([0]))
        for at in [*range(len(numbers)), None]:
            source, row = (unseen, 0) if at is None else (rows, at)
            previous = np.full(len(numbers), -1 if at is None else numbers[at])
            p = source.to_unigram[row] * rows.unigram
            p += source.to_bottom[row] * rows.bottom
            backoff.add_bigrams(p, previous, numbers)
            assert (p > 0).all()
            np.testing.assert_allclose(p.sum(axis=0) + source.end[row], 1, rtol=1e-12)


def test_backoff_punctuation_context_is_a_level_above():
    sentences = [["x", ",", "Birgen"], ["y", ",", "here"], ["x", ",", "Air"]]
    classes = [[NAN, NAN, ORG], [NAN, NAN, NAN], [NAN, NAN, ORG]]
    model = learn_from(sentences, classes)
    before = np.array([number(model, ",")])
    beyond = np.array([number(model, "x")])
    with_word = model.normal.name_class(before, beyond)[0, ORG, NAN]
    without = model.normal.name_class(before, np.array([-1]))[0, ORG, NAN]
    # Two boundaries with that triple, one outcome: lambda0 = 2 / 3.
    assert with_word == pytest.approx(2 / 3 + without / 3, rel=1e-12)


def test_backoff_unknown_word_has_a_number_of_its_own():
    assert number(toy_model(), "never") == UNKNOWN_WORD
