"""The identifinder pipe: learning, annotation, candidates, settings."""

import numpy as np
import pytest
import spacy
from flat_toy import (
    ENTITIES,
    TEXT,
    examples_of,
    found,
    run,
    trained,
)
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.hmm.word_features import WordFeatures
from spacy_treecrf.pipeline.identifinder import IdentiFinder, second_half


def test_identifinder_scores_are_posteriors():
    group = run(trained(), TEXT).spans["nested"]
    scores = group.attrs["scores"]
    assert group.name == "nested"
    assert scores.dtype == np.float32
    assert len(scores) == len(group)
    assert ((scores > 0) & (scores <= 1)).all()


@pytest.mark.parametrize(
    "config",
    [
        {"unknown": "merged"},
        {"product_level": True},
        {"punctuation_context": False},
        {"acronym_periods": True},
        {"lists": {"city": ["Rome", "New York"]}},
        {
            "features": {
                "@misc": "spacy-treecrf.identifinder_features.v1",
                "feature_set": "five",
            }
        },
    ],
)
def test_identifinder_options_train_and_round_trip(config):
    nlp = trained(**config)
    expected = run(nlp, TEXT)
    assert found(expected) == ENTITIES
    again = spacy.blank("en")
    again.add_pipe("identifinder", config=config)
    again.from_bytes(nlp.to_bytes())
    np.testing.assert_array_equal(
        run(again, TEXT).spans["nested"].attrs["scores"],
        expected.spans["nested"].attrs["scores"],
    )


def test_identifinder_lists_may_come_with_initialize():
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("identifinder")
    pipe.initialize(lambda: examples_of(nlp), nlp=nlp, lists={"city": ["Rome"]})
    again = spacy.blank("en").add_pipe("identifinder").from_bytes(pipe.to_bytes())
    assert again.lists.to_dict() == {"city": ["Rome"]}


def test_identifinder_n_best_leaves_segments_out_that_have_fewer():
    nlp = trained(n_best=5)
    doc = nlp(Doc(nlp.vocab, words=["Rome"]))
    counts = [len(doc.spans[f"nested:{r}"].attrs["segments"]) for r in range(5)]
    assert counts == [1, 1, 1, 0, 0]  # NOT-A-NAME, LOC, PER


def test_identifinder_n_best_must_be_positive():
    with pytest.raises(ValueError, match="n_best"):
        IdentiFinder(Vocab(), n_best=0)


def test_identifinder_refuses_a_setting_without_meaning():
    with pytest.raises(ValueError, match="merged"):
        spacy.blank("en").add_pipe("identifinder", config={"unknown": "none"})


def test_identifinder_refuses_features_that_are_no_set():
    with pytest.raises(ValueError, match="WordFeatures"):
        IdentiFinder(Vocab(), features=lambda text, is_first: 0)


def test_identifinder_takes_features_of_ones_own():
    features = WordFeatures(("long", "other"), lambda text, is_first: len(text) < 4)
    nlp = spacy.blank("en")
    pipe = IdentiFinder(nlp.vocab, features=features)
    pipe.initialize(lambda: examples_of(nlp))
    assert found(pipe(Doc(nlp.vocab, words=TEXT))) == ENTITIES


@pytest.mark.parametrize(
    ("docs", "expected"),
    [
        ([0, 1, 2, 3], [0, 0, 1, 1]),
        ([0, 0, 0, 1], [0, 0, 0, 1]),
        ([0, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
        ([0, 0, 0, 0], [0, 0, 1, 1]),
        ([0], [1]),
    ],
)
def test_identifinder_halves_are_whole_documents(docs, expected):
    assert second_half(np.array(docs)).astype(int).tolist() == expected
