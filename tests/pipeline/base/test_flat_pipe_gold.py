"""The pipes of flat entities: gold that it cannot use as it stands."""

import pytest
import spacy
from flat_toy import (
    CITIES,
    PEOPLE,
    examples_of,
    found,
    make_doc,
    run,
    sentence,
    untrained,
)
from spacy.tokens import Doc, Span
from spacy.training import Example


def test_flat_pipe_refuses_a_corpus_without_entities(factory):
    nlp = untrained(factory)
    examples = examples_of(nlp, key="other")
    with pytest.raises(ValueError, match=r"T070.*\['other'\]"):
        nlp.initialize(lambda: examples)


def test_flat_pipe_warns_once_of_nested_gold(factory):
    nlp = untrained(factory)
    words = ["Bank", "of", "China", "fell"]
    reference = make_doc(nlp.vocab, words, spans=[(2, 3, "GPE"), (0, 3, "ORG")])
    examples = [Example(Doc(nlp.vocab, words=words), reference)] * 3
    with pytest.warns(UserWarning, match=r"T080.*3 of 6 gold spans") as caught:
        nlp.initialize(lambda: examples)
    assert len(caught) == 1
    assert "'China' in document 0" in str(caught[0].message)
    assert found(run(nlp, words)) == [(0, 3, "ORG")]


def test_flat_pipe_warns_of_gold_that_fits_no_tokens(factory):
    nlp = untrained(factory)
    words, spans = sentence(PEOPLE[0], CITIES[0])
    odd = make_doc(nlp.vocab, ["No", "way", "Jo", "se"], spans=[(2, 3, "PER")])
    predicted = Doc(nlp.vocab, words=["No", "way", "Jose"], spaces=[True, True, False])
    odd = Doc(nlp.vocab, words=["No", "way", "Jo", "se"], spaces=[True, True, 0, 0])
    odd.spans["nested"] = [Span(odd, 2, 3, label="PER")]
    good = make_doc(nlp.vocab, words, spans=spans)
    examples = [Example(predicted, odd), Example(Doc(nlp.vocab, words=words), good)]
    with pytest.warns(UserWarning, match=r"T080.*1 of 3 .*do not fit the tokens"):
        nlp.initialize(lambda: examples)


def test_flat_pipe_aligns_gold_of_other_tokens(factory):
    nlp = untrained(factory)
    predicted = Doc(nlp.vocab, words=["New", "York-based"], spaces=[True, False])
    words = ["New York", "-", "based"]
    reference = Doc(nlp.vocab, words=words, spaces=[False] * 3)
    reference.spans["nested"] = [Span(reference, 0, 3, label="ADJ")]
    nlp.initialize(lambda: [Example(predicted, reference)])
    assert found(run(nlp, ["New", "York-based"])) == [(0, 2, "ADJ")]


def test_flat_pipe_warns_of_gold_that_crosses_a_sentence_start(factory):
    nlp = untrained(factory)
    words = ["Al", "Bo", "Cy", "left"]
    reference = make_doc(
        nlp.vocab, words, spans=[(0, 2, "PER"), (2, 3, "PER")], starts=[1, 1, -1, -1]
    )
    with pytest.warns(UserWarning, match=r"T080.*cross a sentence start"):
        nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)])


def test_flat_pipe_warns_of_documents_without_annotation(factory):
    nlp = untrained(factory)
    examples = examples_of(nlp)
    bare = Doc(nlp.vocab, words=["Nothing", "here"])
    examples.append(Example(Doc(nlp.vocab, words=["Nothing", "here"]), bare))
    with pytest.warns(UserWarning, match=r"T081.*1 of 25"):
        nlp.initialize(lambda: examples)


@pytest.mark.parametrize("label", ["B-CELL", "O", "two words", "🚀", "A/B:c"])
def test_flat_pipe_labels_may_hold_any_characters(factory, label, tmp_path):
    nlp = untrained(factory)
    words = ["Mr.", "Gus", "left"]
    reference = make_doc(nlp.vocab, words, spans=[(1, 2, label)])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)] * 3)
    nlp.to_disk(tmp_path)
    assert found(run(spacy.load(tmp_path), words)) == [(1, 2, label)]
