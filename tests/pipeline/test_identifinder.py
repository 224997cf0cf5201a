"""The identifinder pipe: learning, annotation, candidates, settings."""

import numpy as np
import pytest
import spacy
from flat_toy import (
    CITIES,
    ENTITIES,
    PEOPLE,
    TEXT,
    examples_of,
    found,
    make_doc,
    run,
    sentence,
    trained,
)
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_treecrf.hmm.word_features import WordFeatures
from spacy_treecrf.pipeline.identifinder import IdentiFinder, second_half


def test_identifinder_finds_names_it_has_not_seen():
    doc = run(trained(), TEXT)
    assert found(doc) == ENTITIES
    assert [(e.start, e.end, e.label_) for e in doc.ents] == ENTITIES


def test_identifinder_scores_are_posteriors():
    group = run(trained(), TEXT).spans["nested"]
    scores = group.attrs["scores"]
    assert group.name == "nested"
    assert scores.dtype == np.float32
    assert len(scores) == len(group)
    assert ((scores > 0) & (scores <= 1)).all()


def test_identifinder_labels_are_those_of_the_corpus():
    assert trained().get_pipe("identifinder").labels == ("LOC", "PER")


def test_identifinder_learns_from_ents_where_there_is_no_group():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder")
    examples = examples_of(nlp, gold="ents")
    nlp.initialize(lambda: examples)
    assert found(run(nlp, TEXT)) == ENTITIES


def test_identifinder_prefers_the_group_to_ents():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder")
    words, spans = sentence(PEOPLE[0], CITIES[0])
    reference = make_doc(nlp.vocab, words, spans=spans, ents=[(0, 1, "TITLE")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)])
    assert nlp.get_pipe("identifinder").labels == ("LOC", "PER")


def test_identifinder_can_leave_ents_alone():
    doc = Doc(spacy.blank("en").vocab, words=TEXT)
    nlp = trained(annotate_ents=False)
    doc = Doc(nlp.vocab, words=TEXT)
    doc.ents = [Span(doc, 0, 1, label="TITLE")]
    assert [e.label_ for e in nlp(doc).ents] == ["TITLE"]
    assert found(doc) == ENTITIES


def test_identifinder_writes_under_another_key():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder", config={"spans_key": "names"})
    examples = examples_of(nlp, key="names")
    # The default weights are those of the default key.
    with pytest.warns(UserWarning, match="T103"):
        nlp.initialize(lambda: examples)
    assert found(run(nlp, TEXT), "names") == ENTITIES


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


def test_identifinder_pipe_equals_call():
    nlp = trained()
    texts = [TEXT, [], ["Rome"], ["a", "b"], TEXT * 5, ["\n"]]
    one = [found(run(nlp, words)) for words in texts]
    docs = [Doc(nlp.vocab, words=words) for words in texts]
    assert [found(doc) for doc in nlp.pipe(docs, batch_size=2)] == one


@pytest.mark.parametrize("words", [[], [" "], ["\n", "\n"], ["x" * 5000], ["🚀", "\0"]])
def test_identifinder_odd_documents_get_a_group(words):
    doc = run(trained(), words)
    assert "nested" in doc.spans
    assert doc.has_annotation("ENT_IOB") or not words


def test_identifinder_names_neither_start_nor_end_in_white_space():
    words = ["Mr.", "\n", "Gus", " ", "Holt", "\n\n", "lives", "in", "Rome", "."]
    assert found(run(trained(), words)) == [(2, 5, "PER"), (8, 9, "LOC")]


def test_identifinder_gold_with_white_space_at_its_edges_is_learnt():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder")
    words = ["Mr.", " ", "Gus", "\n", "left"]
    reference = make_doc(nlp.vocab, words, spans=[(1, 4, "PER")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)])
    assert found(run(nlp, words)) == [(2, 3, "PER")]


def test_identifinder_keeps_adjacent_names_apart():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder")
    words = ["Al", "Bo", "met"]
    gold = [(0, 1, "PER"), (1, 2, "PER")]
    examples = [
        Example(Doc(nlp.vocab, words=words), make_doc(nlp.vocab, words, spans=gold))
        for _ in range(4)
    ]
    nlp.initialize(lambda: examples)
    assert found(run(nlp, words)) == gold


def test_identifinder_sentences_are_independent():
    nlp = trained()
    alone = run(nlp, TEXT).spans["nested"].attrs["scores"]
    doc = Doc(nlp.vocab, words=TEXT * 2, sent_starts=([True] + [False] * 6) * 2)
    np.testing.assert_array_equal(
        nlp(doc).spans["nested"].attrs["scores"], np.tile(alone, 2)
    )


def test_identifinder_learns_sentence_starts_of_the_reference():
    words, spans = sentence(PEOPLE[0], CITIES[0])
    twice = spans + [(s + len(words), e + len(words), label) for s, e, label in spans]
    starts = ([True] + [False] * (len(words) - 1)) * 2
    models = []
    for docs in ([(words, spans, None)] * 2, [(words * 2, twice, starts)]):
        nlp = spacy.blank("en")
        pipe = nlp.add_pipe("identifinder", config={"unknown": "split"})
        examples = [
            Example(
                Doc(nlp.vocab, words=w), make_doc(nlp.vocab, w, spans=s, starts=given)
            )
            for w, s, given in docs
        ]
        nlp.initialize(lambda examples=examples: examples)
        models.append(pipe.to_bytes())
    assert models[0] == models[1]


# N-best.


def test_identifinder_n_best_writes_a_group_a_rank():
    nlp = trained(n_best=3)
    doc = Doc(nlp.vocab, words=[*TEXT, "Rome"], sent_starts=[1, *[-1] * 6, 1])
    doc = nlp(doc)
    first = doc.spans["nested:0"]
    assert found(doc, "nested:0") == found(doc)
    assert first.attrs["segments"].dtype == np.int32
    assert first.attrs["segments"].tolist() == [[0, 7], [7, 8]]
    log_prob = [doc.spans[f"nested:{rank}"].attrs["log_prob"] for rank in range(3)]
    assert all(values.dtype == np.float64 for values in log_prob)
    assert (np.diff(log_prob, axis=0) <= 0).all()
    assert np.exp(log_prob).sum(axis=0).max() <= 1 + 1e-9


def test_identifinder_n_best_leaves_segments_out_that_have_fewer():
    nlp = trained(n_best=5)
    doc = nlp(Doc(nlp.vocab, words=["Rome"]))
    counts = [len(doc.spans[f"nested:{r}"].attrs["segments"]) for r in range(5)]
    assert counts == [1, 1, 1, 0, 0]  # NOT-A-NAME, LOC, PER


@pytest.mark.parametrize("words", [[], ["\n"]])
def test_identifinder_n_best_of_an_empty_doc(words):
    doc = run(trained(n_best=2), words)
    assert doc.spans["nested:1"].attrs["segments"].shape == (0, 2)


def test_identifinder_n_best_survives_docbin():
    doc = run(trained(n_best=2), TEXT)
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    again = next(DocBin().from_bytes(data).get_docs(Vocab()))
    for key in ("nested", "nested:0", "nested:1"):
        assert found(again, key) == found(doc, key)
        for name, values in doc.spans[key].attrs.items():
            np.testing.assert_array_equal(again.spans[key].attrs[name], values)


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


def test_identifinder_group_is_a_span_group():
    assert isinstance(run(trained(), TEXT).spans["nested"], SpanGroup)
