"""Matching lists on tokens."""

import numpy as np

from spacy_treecrf.hmm.learning import learn
from spacy_treecrf.hmm.model import Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features
from spacy_treecrf.hmm.word_lists import WordLists

from .toy import CLASSES, SENTENCES, learn_from


def matched(lists, *sentences):
    batch = TokenBatch.from_sentences(sentences)
    return (
        WordLists(lists).match(batch.types, batch.token_types, batch.lengths).tolist()
    )


def test_word_lists_longest_entry_first():
    lists = {"place": ["New York", "New"], "paper": ["New York Times"]}
    assert matched(lists, ["New", "York", "Times", "New"]) == [2, 2, 2, 1]


def test_word_lists_do_not_cross_sentences():
    assert matched({"place": ["New York"]}, ["New"], ["York"]) == [0, 0]


def test_word_lists_first_list_wins():
    assert matched({"a": ["x"], "b": ["x"]}, ["x", "y"]) == [1, 0]


def test_word_lists_ignore_empty_entries():
    assert matched({"a": ["", " "]}, ["x"]) == [0]


def test_word_lists_round_trip():
    lists = {"a": ["x y", "z"], "b": ["w"], "c": []}
    assert WordLists(lists).to_dict() == lists


def test_word_lists_members_have_features_of_their_own():
    lists = WordLists({"firm": ["IBM"]})
    model = learn_from(SENTENCES, CLASSES)
    batch = TokenBatch.from_sentences(SENTENCES)
    with_lists = learn(
        batch,
        np.concatenate(CLASSES),
        np.ones(10, dtype=bool),
        np.array([False, True]),
        Settings(3),
        make_word_features(),
        lists,
    )
    plain, listed = model.encode(batch)[1], with_lists.encode(batch)[1]
    assert (listed - plain).tolist() == [0] * 7 + [14] + [0] * 2
