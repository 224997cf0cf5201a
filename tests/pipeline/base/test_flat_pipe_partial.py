"""The pipes of flat entities: words that nobody has annotated are not learnt from."""

import numpy as np
import pytest
import spacy
from flat_toy import examples_of, found, make_doc, run, untrained
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.pipeline.docs.flat_gold import read_flat_corpus

VOCAB = spacy.blank("en").vocab


def tagged(vocab, words, tags, starts=None):
    """An Example whose gold is in `doc.ents`; "" is an unknown tag."""
    words = words.split(" ")
    reference = Doc(vocab, words=words, ents=tags, sent_starts=starts)
    return Example(Doc(vocab, words=words), reference)


def corpus_of(*examples, **kwargs):
    return read_flat_corpus(lambda: examples, "pipe", "nested", **kwargs)


def learnt(factory, examples):
    """The numbers that a pipe has learnt."""
    nlp = untrained(factory)
    nlp.initialize(lambda: examples)
    header, arrays = nlp.get_pipe(factory)._to_arrays()
    return header, {name: array.tolist() for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("tags", "known"),
    [
        (["B-PER", "O", "", "O"], [1, 1, 0, 1]),
        (["", "O", "B-PER", ""], [0, 1, 1, 0]),
        (["B-PER", "I-PER", "", ""], [1, 1, 0, 0]),
        (["B-PER", "O", "O", "O"], [1, 1, 1, 1]),
    ],
)
def test_flat_pipe_partial_words_are_known_or_not(tags, known):
    corpus = corpus_of(tagged(VOCAB, "Ann met Bo Ek", tags))
    assert corpus.known.tolist() == [bool(value) for value in known]


def test_flat_pipe_partial_tags_of_from_dict():
    doc = Doc(VOCAB, words=["Ann", "met", "Bo"])
    example = Example.from_dict(doc, {"entities": ["U-PER", "O", "-"]})
    assert corpus_of(example).known.tolist() == [True, True, False]


def test_flat_pipe_partial_words_in_other_tokens_are_unknown():
    words = ["mail", "@", "foo.com", "Rome"]
    spaces = [True, False, True, False]
    tags = ["O", "", "O", "B-GPE"]
    reference = Doc(VOCAB, words=words, spaces=spaces, ents=tags)
    predicted = Doc(VOCAB, words=["mail", "@foo.com", "Rome"], spaces=[1, 1, 0])
    corpus = corpus_of(Example(predicted, reference))
    assert corpus.known.tolist() == [True, False, True]
    assert (corpus.start.tolist(), corpus.end.tolist()) == ([2], [3])


def test_flat_pipe_partial_tags_beside_the_group_do_not_count():
    example = tagged(VOCAB, "Ann met Bo", ["B-X", "", ""])
    example.reference.spans["nested"] = [Span(example.reference, 2, 3, label="PER")]
    corpus = corpus_of(example)
    assert corpus.known.all()
    assert corpus.start.tolist() == [2]


def test_flat_pipe_partial_sentence_is_as_if_it_were_not_there():
    known = [
        tagged(VOCAB, "Ann met Bo", ["B-PER", "O", "B-PER"]),
        tagged(VOCAB, "Bo left", ["B-PER", "O"]),
    ]
    tags = ["B-PER", "O", "B-PER", "", "", ""]
    starts = [1, -1, -1, 1, -1, -1]
    more = [tagged(VOCAB, "Ann met Bo Cy saw Di", tags, starts), known[1]]
    whole, cut = corpus_of(*more), corpus_of(*known)
    assert whole.known.all()
    for name in ("start", "end", "labels"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(cut, name))
    for name in ("orths", "lengths", "docs"):
        np.testing.assert_array_equal(
            getattr(whole.sentences, name), getattr(cut.sentences, name)
        )


def test_flat_pipe_partial_corpus_teaches_what_the_known_part_does(factory):
    known, more = [], []
    for name in ("Ann", "Bo", "Cy", "Di"):
        known.append(tagged(VOCAB, f"Mr. {name} left", ["O", "B-PER", "O"]))
        tags = ["O", "B-PER", "O", "", "", ""]
        text = f"Mr. {name} left {name} saw Rome"
        more.append(tagged(VOCAB, text, tags, [1, -1, -1, 1, -1, -1]))
    assert learnt(factory, known) == learnt(factory, more)


def test_flat_pipe_partial_words_are_not_learnt_as_no_name(factory):
    # Of fifteen Romes three are annotated, all of them as names.
    examples = [tagged(VOCAB, "in Rome .", ["O", "B-GPE", "O"])] * 3
    open_ones = [tagged(VOCAB, "in Rome .", ["O", "", "O"])] * 12
    nlp = untrained(factory)
    nlp.initialize(lambda: [*examples, *open_ones])
    assert found(run(nlp, ["in", "Rome", "."])) == [(1, 2, "GPE")]


@pytest.mark.parametrize("unknown", ["split", "merged"])
def test_flat_pipe_partial_words_are_not_in_the_vocabulary(unknown):
    nlp = untrained("identifinder", unknown=unknown)
    examples = [
        tagged(VOCAB, "Ann met Bo", ["B-PER", "O", ""]),
        tagged(VOCAB, "Cy met Bo", ["B-PER", "O", ""]),
    ]
    nlp.initialize(lambda: examples)
    model = nlp.get_pipe("identifinder").name_class_model
    assert sorted(model.words) == ["Ann", "Cy", "met"]
    doc = run(nlp, ["Bo", "met", "Ann"])
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


def test_flat_pipe_partial_names_alone_give_finite_scores(factory):
    # Nothing but names is annotated: no event crosses a border of theirs.
    tags = ["", "B-PER", "", "B-GPE", ""]
    examples = [tagged(VOCAB, "Mr. Ann in Rome .", tags)] * 6
    nlp = untrained(factory, n_best=3)
    nlp.initialize(lambda: examples)
    doc = run(nlp, ["Mr.", "Ann", "in", "Rome", "."])
    for key in ("nested", "nested:0"):
        assert np.isfinite(doc.spans[key].attrs["scores"]).all()
    assert np.isfinite(doc.spans["nested:0"].attrs["log_prob"]).all()


def test_flat_pipe_partial_docs_without_any_tag_are_counted(factory):
    nlp = untrained(factory)
    bare = tagged(nlp.vocab, "Nothing here", ["", ""])
    with pytest.warns(UserWarning, match=r"T081.*1 of 25"):
        nlp.initialize(lambda: [*examples_of(nlp), bare])


def test_flat_pipe_partial_predictions_are_no_false_positives(factory):
    nlp = untrained(factory)
    example = tagged(nlp.vocab, "Ann met Bo", ["B-PER", "O", ""])
    doc = example.predicted
    doc.spans["nested"] = [Span(doc, 0, 1, label="PER"), Span(doc, 2, 3, label="PER")]
    scores = nlp.get_pipe(factory).scorer([example], spans_key="nested")
    assert (scores["spans_nested_p"], scores["spans_nested_r"]) == (1.0, 1.0)
    assert scores["spans_nested_muc_f"] == 1.0


# Regions under a key.


def test_flat_pipe_partial_regions_have_a_setting(factory):
    nlp = untrained(factory, missing_spans_key="missing")
    sure = make_doc(nlp.vocab, ["in", "Rome", "."], spans=[(1, 2, "GPE")])
    examples = [Example(Doc(nlp.vocab, words=["in", "Rome", "."]), sure)] * 3
    unsure = make_doc(nlp.vocab, ["in", "Rome", "."], spans=[])
    unsure.spans["missing"] = [Span(unsure, 1, 2)]
    examples += [Example(Doc(nlp.vocab, words=["in", "Rome", "."]), unsure)] * 12
    nlp.initialize(lambda: examples)
    doc = run(nlp, ["in", "Rome", "."])
    assert found(doc) == [(1, 2, "GPE")]
    example = Example(doc, unsure)
    assert nlp.get_pipe(factory).score([example])["spans_nested_p"] == 0.0
    # Nothing was to be found, and what was found nobody can judge.
    doc.spans["nested"] = [*doc.spans["nested"], Span(doc, 0, 1, label="GPE")]
    per_type = nlp.get_pipe(factory).score([example])["spans_nested_per_type"]
    assert list(per_type) == ["GPE"]


def test_flat_pipe_partial_region_without_a_word_is_counted(factory):
    nlp = untrained(factory, missing_spans_key="missing")
    examples = examples_of(nlp)
    doc = examples[0].reference
    doc.spans["missing"] = [Span(doc, 1, 1)]
    with pytest.warns(UserWarning, match=r"T149.*1 regions under 'missing'"):
        nlp.initialize(lambda: examples)
