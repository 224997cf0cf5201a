"""The model: which of the two answers, storage, odd input."""

import numpy as np
import pytest

from spacy_treecrf.hmm.counts import UNKNOWN_WORD
from spacy_treecrf.hmm.decoding import decode
from spacy_treecrf.hmm.learning import relabel
from spacy_treecrf.hmm.model import NameClassModel, Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features

from .toy import CLASSES, PER, SENTENCES, learn_from, toy_model


def test_model_relabels_what_the_other_half_lacks():
    words = np.array([2, 3, 2, 4])
    second = np.array([False, False, True, True])
    assert relabel(words, second).tolist() == [2, UNKNOWN_WORD, 2, UNKNOWN_WORD]


def test_model_unknown_word_keeps_its_feature():
    words, features = toy_model().encode(TokenBatch.from_sentences([["Mr.", "Qwerty"]]))
    assert words[1] == UNKNOWN_WORD
    assert make_word_features().names[features[1]] == "initCap"


def test_model_finds_an_unknown_name_after_a_known_title():
    texts = [
        ["Mr.", name, "met", "us"] for name in ("Al", "Bo", "Cy", "Di", "Ed", "Fu")
    ]
    model = learn_from(texts, [[0, PER, 0, 0]] * 6)
    found = decode(model, TokenBatch.from_sentences([["Mr.", "Qwerty", "met", "us"]]))
    assert [column.tolist() for column in found[:4]] == [[0], [1], [2], [PER]]


@pytest.mark.parametrize("unknown", ["split", "merged"])
def test_model_round_trip_gives_the_same_probabilities(unknown):
    model = learn_from(SENTENCES, CLASSES, unknown=unknown)
    header, arrays = model.to_arrays()
    again = NameClassModel.from_arrays(header, arrays, make_word_features())
    batch = TokenBatch.from_sentences([["Mr.", "Zz", ",", "eats"], ["IBM"]])
    for one, other in zip(
        decode(model, batch, 3), decode(again, batch, 3), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_model_words_with_any_characters_round_trip():
    odd = ["a\0b", "\n", "🚀", "cafe\u0301", "x" * 5000, "\ufeffBank"]
    model = learn_from([odd], [[0, PER, 0, PER, 0, PER]])
    header, arrays = model.to_arrays()
    again = NameClassModel.from_arrays(header, arrays, make_word_features())
    assert list(again.words) == odd


def test_model_refuses_other_features_at_load():
    header, arrays = toy_model().to_arrays()
    with pytest.raises(ValueError, match="trained with"):
        NameClassModel.from_arrays(header, arrays, make_word_features("five"))


def test_model_refuses_an_unknown_treatment_of_unknown_words():
    with pytest.raises(ValueError, match="merged"):
        Settings(3, unknown="none")


def test_model_blocks_do_not_change_the_result(monkeypatch):
    model = toy_model()
    batch = TokenBatch.from_sentences([*SENTENCES, ["Zz"], ["Mr.", "IBM"]] * 3)
    whole = decode(model, batch, 2)
    monkeypatch.setattr("spacy_treecrf.hmm.model.BLOCK_CELLS", 50)
    assert len(list(model.blocks(batch.lengths, 2))) > 3
    for one, other in zip(whole, decode(model, batch, 2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_model_first_of_the_k_best_is_the_best():
    model = toy_model()
    batch = TokenBatch.from_sentences(SENTENCES)
    best, found = decode(model, batch), decode(model, batch, 4)
    for one, other in zip(best[:5], found[:5], strict=True):
        np.testing.assert_array_equal(one, other[found[0] == 0])


def test_model_k_best_probabilities_fall_and_sum_below_one():
    *_, log_prob = decode(toy_model(), TokenBatch.from_sentences(SENTENCES), 6)
    assert (np.diff(log_prob, axis=1) <= 0).all()
    assert (np.exp(log_prob).sum(axis=1) <= 1 + 1e-9).all()


def test_model_labellings_that_do_not_exist_are_absent():
    # One token has one labelling a class: three in all.
    rank, *_, log_prob = decode(toy_model(), TokenBatch.from_sentences([["IBM"]]), 5)
    assert np.isfinite(log_prob).tolist() == [[True, True, True, False, False]]
    assert rank.max() < 3
    assert np.exp(log_prob).sum() == pytest.approx(1)


def test_model_decodes_an_empty_batch():
    for k in (1, 3):
        *columns, log_prob = decode(toy_model(), TokenBatch.from_sentences([]), k)
        assert [len(column) for column in columns] == [0] * 5
        assert log_prob.shape == (0, k)


def test_model_learns_from_one_sentence_and_many_labels():
    texts = [[f"w{n}" for n in range(300)]]
    model = learn_from(texts, [[*range(300)]], n_classes=300)
    *_, scores, _ = decode(model, TokenBatch.from_sentences([["w7", "w8", "new"] * 13]))
    assert ((scores >= 0) & (scores <= 1)).all()
