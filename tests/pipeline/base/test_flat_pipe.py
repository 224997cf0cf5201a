"""The pipes of flat entities: learning, annotation, candidates, settings."""

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
    untrained,
)
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.vocab import Vocab


def test_flat_pipe_finds_names_it_has_not_seen(factory):
    doc = run(trained(factory), TEXT)
    assert found(doc) == ENTITIES
    assert [(e.start, e.end, e.label_) for e in doc.ents] == ENTITIES


def test_flat_pipe_labels_are_those_of_the_corpus(factory):
    assert trained(factory).get_pipe(factory).labels == ("LOC", "PER")


def test_flat_pipe_learns_from_ents_where_there_is_no_group(factory):
    nlp = untrained(factory)
    examples = examples_of(nlp, gold="ents")
    nlp.initialize(lambda: examples)
    assert found(run(nlp, TEXT)) == ENTITIES


def test_flat_pipe_prefers_the_group_to_ents(factory):
    nlp = untrained(factory)
    words, spans = sentence(PEOPLE[0], CITIES[0])
    reference = make_doc(nlp.vocab, words, spans=spans, ents=[(0, 1, "TITLE")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)])
    assert nlp.get_pipe(factory).labels == ("LOC", "PER")


def test_flat_pipe_can_leave_ents_alone(factory):
    doc = Doc(spacy.blank("en").vocab, words=TEXT)
    nlp = trained(factory, annotate_ents=False)
    doc = Doc(nlp.vocab, words=TEXT)
    doc.ents = [Span(doc, 0, 1, label="TITLE")]
    assert [e.label_ for e in nlp(doc).ents] == ["TITLE"]
    assert found(doc) == ENTITIES


def test_flat_pipe_writes_under_another_key(factory):
    nlp = untrained(factory, spans_key="names")
    examples = examples_of(nlp, key="names")
    # The default weights are those of the default key.
    with pytest.warns(UserWarning, match="T103"):
        nlp.initialize(lambda: examples)
    assert found(run(nlp, TEXT), "names") == ENTITIES


def test_flat_pipe_pipe_equals_call(factory):
    nlp = trained(factory)
    texts = [TEXT, [], ["Rome"], ["a", "b"], TEXT * 5, ["\n"]]
    one = [found(run(nlp, words)) for words in texts]
    docs = [Doc(nlp.vocab, words=words) for words in texts]
    assert [found(doc) for doc in nlp.pipe(docs, batch_size=2)] == one


@pytest.mark.parametrize("words", [[], [" "], ["\n", "\n"], ["x" * 5000], ["🚀", "\0"]])
def test_flat_pipe_odd_documents_get_a_group(factory, words):
    doc = run(trained(factory), words)
    assert "nested" in doc.spans
    assert doc.has_annotation("ENT_IOB") or not words


def test_flat_pipe_names_neither_start_nor_end_in_white_space(factory):
    words = ["Mr.", "\n", "Gus", " ", "Holt", "\n\n", "lives", "in", "Rome", "."]
    assert found(run(trained(factory), words)) == [(2, 5, "PER"), (8, 9, "LOC")]


def test_flat_pipe_gold_with_white_space_at_its_edges_is_learnt(factory):
    nlp = untrained(factory)
    words = ["Mr.", " ", "Gus", "\n", "left"]
    reference = make_doc(nlp.vocab, words, spans=[(1, 4, "PER")])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)])
    assert found(run(nlp, words)) == [(2, 3, "PER")]


def test_flat_pipe_keeps_adjacent_names_apart(factory):
    nlp = untrained(factory)
    words = ["Al", "Bo", "met"]
    gold = [(0, 1, "PER"), (1, 2, "PER")]
    examples = [
        Example(Doc(nlp.vocab, words=words), make_doc(nlp.vocab, words, spans=gold))
        for _ in range(4)
    ]
    nlp.initialize(lambda: examples)
    assert found(run(nlp, words)) == gold


def test_flat_pipe_sentences_are_independent(factory):
    nlp = trained(factory)
    alone = run(nlp, TEXT).spans["nested"].attrs["scores"]
    doc = Doc(nlp.vocab, words=TEXT * 2, sent_starts=([True] + [False] * 6) * 2)
    np.testing.assert_array_equal(
        nlp(doc).spans["nested"].attrs["scores"], np.tile(alone, 2)
    )


def test_flat_pipe_learns_sentence_starts_of_the_reference(factory):
    words, spans = sentence(PEOPLE[0], CITIES[0])
    twice = spans + [(s + len(words), e + len(words), label) for s, e, label in spans]
    starts = ([True] + [False] * (len(words) - 1)) * 2
    models = []
    for docs in ([(words, spans, None)] * 2, [(words * 2, twice, starts)]):
        nlp = untrained(factory)
        pipe = nlp.get_pipe(factory)
        examples = [
            Example(
                Doc(nlp.vocab, words=w), make_doc(nlp.vocab, w, spans=s, starts=given)
            )
            for w, s, given in docs
        ]
        nlp.initialize(lambda examples=examples: examples)
        models.append(pipe.to_bytes())
    assert models[0] == models[1]


def test_flat_pipe_n_best_writes_a_group_a_rank(factory):
    nlp = trained(factory, n_best=3)
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


@pytest.mark.parametrize("words", [[], ["\n"]])
def test_flat_pipe_n_best_of_an_empty_doc(factory, words):
    doc = run(trained(factory, n_best=2), words)
    assert doc.spans["nested:1"].attrs["segments"].shape == (0, 2)


def test_flat_pipe_n_best_survives_docbin(factory):
    doc = run(trained(factory, n_best=2), TEXT)
    data = DocBin(docs=[doc], store_user_data=True).to_bytes()
    again = next(DocBin().from_bytes(data).get_docs(Vocab()))
    for key in ("nested", "nested:0", "nested:1"):
        assert found(again, key) == found(doc, key)
        for name, values in doc.spans[key].attrs.items():
            np.testing.assert_array_equal(again.spans[key].attrs[name], values)


def test_flat_pipe_group_is_a_span_group(factory):
    assert isinstance(run(trained(factory), TEXT).spans["nested"], SpanGroup)


@pytest.mark.parametrize("factory", ["identifinder", "maxent_ner"])
def test_flat_pipe_reads_the_corpus_once(factory):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe(factory)
    doc = Doc(nlp.vocab, words=["Ann", "left"], ents=["B-PER", "O"])
    reads = []

    def get_examples():
        reads.append(1)
        for _ in range(6):
            yield Example(Doc(nlp.vocab, words=["Ann", "left"]), doc)

    pipe.initialize(get_examples)
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (None, "E930"),
        (lambda: [], "E930"),
        (lambda: 3, "E978"),
        (lambda: iter([3]), "E978"),
    ],
)
def test_flat_pipe_refuses_what_is_no_corpus(given, code):
    pipe = spacy.blank("en").add_pipe("identifinder")
    with pytest.raises(TypeError, match=code):
        pipe.initialize(given)
