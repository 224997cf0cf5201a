"""The ner_reranker pipe: learning, choosing, what it keeps."""

import numpy as np
import pytest
import spacy
from candidate_toy import add_rank, two_sentences
from reranker_toy import (
    NAMES,
    found,
    reranked,
    set_gold,
    toy_doc,
    toy_examples,
    trained,
    untrained,
    words_of,
)
from spacy.tokens import Doc, Span
from spacy.training import Example

METHODS = ["averaged_perceptron", "voted_perceptron", "boosting"]
LOC, PER = [(3, 4, "LOC")], [(3, 4, "PER")]


@pytest.mark.parametrize("method", METHODS)
def test_ner_reranker_overrules_the_base(method):
    nlp = trained(method=method, rounds=20)
    assert found(reranked(nlp, "in")) == LOC
    assert found(reranked(nlp, "Mr.")) == PER


def test_ner_reranker_scores_are_the_candidates_values():
    nlp = trained()
    doc = reranked(nlp)
    scores = doc.spans["nested"].attrs["scores"]
    assert scores.dtype == np.float32
    assert len(scores) == 1
    assert doc.spans["nested"].name == "nested"


def test_ner_reranker_spans_of_a_candidate_have_one_score():
    nlp = trained(min_sentences=255)  # no features: the base's order stands
    doc = nlp(two_sentences(nlp.vocab))
    assert found(doc) == [(0, 3, "PER"), (4, 5, "LOC")]
    scores = doc.spans["nested"].attrs["scores"].tolist()
    assert scores[0] == scores[1]


def test_ner_reranker_shares_of_votes_are_scores_of_the_voted_perceptron():
    scores = (
        reranked(trained(method="voted_perceptron")).spans["nested"].attrs["scores"]
    )
    assert 0 < scores[0] <= 1


def test_ner_reranker_leaves_candidates_alone():
    nlp = trained()
    doc = reranked(nlp)
    plain = toy_doc(nlp.vocab, "in", "Gus")
    for rank in range(3):
        key = f"nested:{rank}"
        assert found(doc, key) == found(plain, key)
        for name, values in plain.spans[key].attrs.items():
            np.testing.assert_array_equal(doc.spans[key].attrs[name], values)


@pytest.mark.parametrize("annotate_ents", [True, False])
def test_ner_reranker_writes_ents_if_asked(annotate_ents):
    doc = reranked(trained(annotate_ents=annotate_ents))
    assert [e.label_ for e in doc.ents] == (["LOC"] if annotate_ents else [])


def test_ner_reranker_ents_are_outermost():
    nlp = trained(annotate_ents=True, min_sentences=255)
    doc = Doc(nlp.vocab, words=["New", "York", "Times"])
    add_rank(doc, 0, [(0, 3)], [-0.1], [(0, 2, "LOC"), (0, 3, "PER")])
    doc = nlp(doc)
    assert found(doc) == [(0, 3, "PER"), (0, 2, "LOC")]
    assert [(e.start, e.end) for e in doc.ents] == [(0, 3)]


def test_ner_reranker_labels_are_those_of_the_candidates():
    assert trained().get_pipe("ner_reranker").labels == ("LOC", "PER")


def test_ner_reranker_candidates_of_another_key():
    nlp = untrained(candidates_key="base")
    examples = toy_examples(nlp, key="base", gold_key="nested")
    nlp.initialize(lambda: examples)
    doc = toy_doc(nlp.vocab, "in", "Gus", key="base")
    set_gold(doc, PER, "base")
    doc = nlp(doc)
    assert found(doc) == LOC
    assert found(doc, "base") == PER


def test_ner_reranker_gold_under_the_candidates_key():
    nlp = untrained(candidates_key="base")
    examples = toy_examples(nlp, key="base")
    nlp.initialize(lambda: examples)
    assert found(nlp(toy_doc(nlp.vocab, "in", "Gus", key="base"))) == LOC


def test_ner_reranker_pipe_equals_call():
    nlp = trained()
    texts = [("in", "Gus"), ("Mr.", "Gus"), ("in", "Ann"), ("at", "Ann")]
    one = [found(reranked(nlp, *text)) for text in texts]
    docs = [toy_doc(nlp.vocab, *text) for text in texts]
    assert [found(doc) for doc in nlp.pipe(docs, batch_size=3)] == one


def test_ner_reranker_update_changes_nothing():
    nlp = trained()
    before = nlp.get_pipe("ner_reranker").to_bytes()
    assert nlp.update(toy_examples(nlp)) == {"ner_reranker": 0.0}
    assert nlp.get_pipe("ner_reranker").to_bytes() == before


def test_ner_reranker_training_twice_gives_the_same():
    nlp = trained()
    first = nlp.get_pipe("ner_reranker").to_bytes()
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    assert nlp.get_pipe("ner_reranker").to_bytes() == first


def test_ner_reranker_without_typed_features_learns_too():
    nlp = trained(typed=False)
    assert nlp.get_pipe("ner_reranker").is_initialized
    assert found(reranked(nlp, "Mr.")) == PER


# Odd candidates.


@pytest.mark.parametrize("words", [[], [" "], ["\n", "\n"]])
def test_ner_reranker_docs_without_words_get_an_empty_group(words):
    nlp = trained()
    doc = nlp(Doc(nlp.vocab, words=words))
    assert found(doc) == []
    assert len(doc.spans["nested"].attrs["scores"]) == 0


def test_ner_reranker_docs_without_candidates_keep_their_spans():
    nlp = trained()
    docs = [Doc(nlp.vocab, words=["Ann", "left"]) for _ in range(3)]
    set_gold(docs[0], [(0, 1, "PER")])
    with pytest.warns(UserWarning, match=r"T095.*3 Docs.*'Ann left'") as caught:
        docs = list(nlp.pipe(docs))
    assert [found(doc) for doc in docs] == [[(0, 1, "PER")], [], []]
    assert len(caught) == 1


def test_ner_reranker_warns_of_missing_candidates_once():
    nlp = trained()
    with pytest.warns(UserWarning, match="T095"):
        nlp("Ann left")
    nlp("Ann left")


def test_ner_reranker_ents_of_docs_without_candidates_stay():
    nlp = trained(annotate_ents=True)
    with pytest.warns(UserWarning, match="T095"):
        doc = nlp(Doc(nlp.vocab, words=["Ann"], ents=["B-PER"]))
    assert [e.label_ for e in doc.ents] == ["PER"]


def test_ner_reranker_one_candidate_is_chosen():
    nlp = trained()
    doc = Doc(nlp.vocab, words=words_of("in", "Gus"))
    add_rank(doc, 0, [(0, 5)], [-0.1], PER)
    assert found(nlp(doc)) == PER


def test_ner_reranker_equal_candidates_are_one():
    nlp = trained()
    doc = Doc(nlp.vocab, words=words_of("in", "Gus"))
    for rank in range(4):
        add_rank(doc, rank, [(0, 5)], [-0.1 - rank], PER)
    assert found(nlp(doc)) == PER


def test_ner_reranker_ties_go_to_the_first_rank():
    nlp = trained(min_sentences=255)
    doc = Doc(nlp.vocab, words=words_of("in", "Gus"))
    for rank, label in enumerate(["PER", "LOC"]):
        add_rank(doc, rank, [(0, 5)], [-1.0], [(3, 4, label)])
    assert found(nlp(doc)) == PER


def test_ner_reranker_warns_of_labels_it_has_not_learnt():
    nlp = trained()
    docs = [Doc(nlp.vocab, words=["Ann"]) for _ in range(2)]
    for doc in docs:
        add_rank(doc, 0, [(0, 1)], [-0.1], [(0, 1, "NEW")])
    with pytest.warns(UserWarning, match=r"T096.*\['NEW'\]") as caught:
        docs = [nlp(doc) for doc in docs]
    assert [found(doc) for doc in docs] == [[(0, 1, "NEW")]] * 2
    assert len(caught) == 1


# When it fails.


def broken_doc(vocab):
    doc = toy_doc(vocab, "in", "Gus")
    set_gold(doc, PER)
    add_rank(doc, 1, [(0, 4)], [-1.0], [])
    return doc


def test_ner_reranker_malformed_candidates_raise():
    nlp = trained()
    with pytest.raises(ValueError, match="T090"):
        nlp(broken_doc(nlp.vocab))


def test_ner_reranker_failing_loses_no_output_of_the_base():
    nlp = trained()
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.append((docs, error)))
    docs = [toy_doc(nlp.vocab, "in", "Gus"), broken_doc(nlp.vocab)]
    docs.append(toy_doc(nlp.vocab, "in", "Ann"))
    results = list(nlp.pipe(docs))
    assert results == docs
    assert [found(doc) for doc in results] == [LOC, PER, LOC]
    assert [given for given, _ in failed] == [[docs[1]]]
    assert "T090" in str(failed[0][1])


def test_ner_reranker_untrained_keeps_the_output_of_the_base():
    nlp = untrained()
    nlp.set_error_handler(lambda *args: None)
    doc = toy_doc(nlp.vocab, "in", "Gus")
    set_gold(doc, PER)
    assert found(nlp(doc)) == PER


def test_ner_reranker_untrained_raises():
    nlp = untrained()
    with pytest.raises(ValueError, match="T072"):
        reranked(nlp)


# Training data.


def test_ner_reranker_training_needs_candidates():
    nlp = untrained()
    reference = Doc(nlp.vocab, words=["Ann"])
    set_gold(reference, [(0, 1, "PER")])
    example = Example(Doc(nlp.vocab, words=["Ann"]), reference)
    with pytest.raises(ValueError, match=r"T091.*1 training Docs.*\['nested'\]"):
        nlp.initialize(lambda: [example])


def test_ner_reranker_training_docs_without_candidates_are_counted():
    nlp = untrained()
    plain = Doc(nlp.vocab, words=["Ann", "left"])
    examples = [*toy_examples(nlp), Example(plain, plain)]
    with pytest.warns(UserWarning, match=r"T098.*1 of 13 training Docs.*'Ann left'"):
        nlp.initialize(lambda: examples)
    assert found(reranked(nlp)) == LOC


def test_ner_reranker_gold_across_segments_is_counted():
    nlp = untrained()
    doc = two_sentences(nlp.vocab)
    set_gold(doc, [(0, 3, "PER"), (5, 7, "ODD")])
    examples = [*toy_examples(nlp), Example(doc, doc)]
    with pytest.warns(UserWarning, match=r"T080.*1 of 14 gold.*\(5, 7, 'ODD'\)"):
        nlp.initialize(lambda: examples)


def test_ner_reranker_training_refuses_gold_of_other_labels():
    nlp = untrained()
    doc = two_sentences(nlp.vocab)
    set_gold(doc, [(0, 3, "NAME")])
    with pytest.raises(ValueError, match="T086"):
        nlp.initialize(lambda: [Example(doc, doc)])


def test_ner_reranker_training_refuses_malformed_candidates():
    nlp = untrained()
    doc = broken_doc(nlp.vocab)
    with pytest.raises(ValueError, match="T090"):
        nlp.initialize(lambda: [Example(doc, doc)])


def test_ner_reranker_refuses_a_sampled_stream():
    nlp = untrained()
    nlp.config["training"] = {"max_epochs": -1}
    examples = toy_examples(nlp)
    with pytest.raises(ValueError, match="T071"):
        nlp.initialize(lambda: examples)


@pytest.mark.parametrize(
    "setting",
    [
        {"rounds": -1},
        {"epsilon": 0.0},
        {"beta": -0.1},
        {"passes": 0},
        {"runs": 0},
        {"runs": 2, "passes": 1},
        {"runs": 2, "method": "boosting"},
        {"min_sentences": 0},
        {"min_sentences": 256},
    ],
)
def test_ner_reranker_refuses_settings_out_of_range(setting):
    name, *_ = setting
    with pytest.raises(ValueError, match=f"T002.*'{name}'"):
        untrained(**setting)


def test_ner_reranker_refuses_another_method():
    with pytest.raises(ValueError, match="method"):
        untrained(method="svm")


def test_ner_reranker_runs_are_averaged():
    def scores(**config):
        nlp = trained(**config)
        return reranked(nlp).spans["nested"].attrs["scores"].astype(float)

    single = [scores(seed=seed) for seed in (3, 4)]
    np.testing.assert_allclose(
        scores(seed=3, runs=2), np.mean(single, axis=0), rtol=1e-6
    )


# Rounds.


def development(nlp, label):
    """Data in which every name has one label."""
    examples = []
    for before in ("in", "Mr."):
        for name in NAMES:
            doc = toy_doc(nlp.vocab, before, name)
            set_gold(doc, [(3, 4, label)])
            examples.append(Example(doc, doc))
    return examples


def initialized(dev, **config):
    nlp = untrained(method="boosting", rounds=8, **config)
    examples = toy_examples(nlp)
    pipe = nlp.get_pipe("ner_reranker")
    pipe.initialize(lambda: examples, nlp=nlp, development=dev and dev(nlp))
    return pipe


def test_ner_reranker_rounds_are_chosen_on_development_data():
    # Where the base is always right, no round is of use.
    pipe = initialized(lambda nlp: lambda nlp: development(nlp, "PER"))
    assert pipe.rounds == 0


def test_ner_reranker_rounds_are_all_used_without_development_data():
    assert initialized(None).rounds > 0


def test_ner_reranker_rounds_of_perceptrons_are_none():
    assert trained().get_pipe("ner_reranker").rounds is None


class ToyBase:
    """A pipe that writes the candidates of the toy corpus."""

    def pipe(self, stream, **kwargs):
        for doc in stream:
            for rank, label in enumerate(["PER", "LOC"]):
                add_rank(doc, rank, [(0, 5)], [-1.0 * rank], [(3, 4, label)])
            yield doc


@spacy.Language.factory("toy_base")
def make_toy_base(nlp, name):
    return ToyBase()


def plain_examples(nlp, label):
    examples = []
    for name in NAMES:
        doc = Doc(nlp.vocab, words=words_of("in", name))
        set_gold(doc, [(3, 4, label)])
        examples.append(Example(Doc(nlp.vocab, words=words_of("in", name)), doc))
    return examples


@pytest.mark.parametrize(("label", "is_used"), [("LOC", True), ("PER", False)])
def test_ner_reranker_development_data_is_decoded_by_the_pipes_before(label, is_used):
    nlp = untrained(method="boosting", rounds=8)
    nlp.add_pipe("toy_base", first=True)
    nlp.disable_pipe("toy_base")  # as spaCy does with frozen ones
    examples, dev = toy_examples(nlp), plain_examples(nlp, label)
    pipe = nlp.get_pipe("ner_reranker")
    pipe.initialize(lambda: examples, nlp=nlp, development=lambda nlp: dev)
    assert (pipe.rounds > 0) == is_used


def test_ner_reranker_development_data_needs_candidates():
    nlp = untrained(method="boosting")
    examples, dev = toy_examples(nlp), plain_examples(nlp, "LOC")
    pipe = nlp.get_pipe("ner_reranker")
    with pytest.raises(ValueError, match=r"T099.*6 Docs"):
        pipe.initialize(lambda: examples, nlp=nlp, development=lambda nlp: dev)


def test_ner_reranker_development_gold_in_no_segment_is_missed(monkeypatch):
    given = {}

    def choose_rounds(boosting, dev):
        given["gold"] = dev.counts[dev.base(), 2].sum()
        return 0

    monkeypatch.setattr("spacy_treecrf.rerank.boosting.choose_rounds", choose_rounds)

    def dev(nlp):
        doc = two_sentences(nlp.vocab)
        set_gold(doc, [(0, 3, "PER"), (4, 5, "LOC"), (5, 7, "LOC")])
        return lambda nlp: [Example(doc, doc)]

    with pytest.warns(UserWarning, match=r"T080.*1 of 3 gold"):
        initialized(dev)
    assert given["gold"] == 3


# Partial annotation.


def open_examples(nlp, before, label=None, n=8, **attrs):
    """Examples whose name nobody has looked at, unless it has a label."""
    examples = []
    for number in range(n):
        reference = toy_doc(nlp.vocab, before, f"N{number}")
        gold = [] if label is None else [(3, 4, label)]
        set_gold(reference, gold)
        if label is None:
            reference.spans["open"] = [Span(reference, 3, 4)]
        group = reference.spans["nested"]
        group.attrs = {**group.attrs, **attrs}
        words = words_of(before, f"N{number}")
        examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


@pytest.mark.parametrize("method", ["averaged_perceptron", "boosting"])
@pytest.mark.parametrize("by_setting", [True, False])
def test_ner_reranker_learns_nothing_from_regions(method, by_setting):
    # If "no name" were learnt from the open ones, they would outweigh the others.
    config = {"missing_spans_key": "open"} if by_setting else {}
    attrs = {} if by_setting else {"missing_spans_key": "open"}
    nlp = untrained(method=method, min_sentences=1, rounds=50, **config)
    examples = [*toy_examples(nlp), *open_examples(nlp, "in", n=40, **attrs)]
    nlp.initialize(lambda: examples)
    assert found(reranked(nlp, "in")) == [(3, 4, "LOC")]


def test_ner_reranker_weights_are_those_of_the_annotated_part():
    def weights(examples):
        nlp = untrained(min_sentences=1, missing_spans_key="open")
        nlp.initialize(lambda: examples)
        doc = reranked(nlp, "in")
        return found(doc), doc.spans["nested"].attrs["scores"]

    nlp = untrained()
    spans, _ = weights([*toy_examples(nlp), *open_examples(nlp, "in")])
    assert spans == weights(toy_examples(nlp))[0] == [(3, 4, "LOC")]


def test_ner_reranker_counts_docs_with_candidates_and_without_gold():
    nlp = untrained()
    bare = toy_doc(nlp.vocab, "in", "Gus")
    with pytest.warns(UserWarning, match=r"T146.*1 of 13 training Docs have no gold"):
        nlp.initialize(lambda: [*toy_examples(nlp), Example(bare, bare)])


def test_ner_reranker_evaluates_regions_too():
    nlp = trained(missing_spans_key="open")
    reference = toy_doc(nlp.vocab, "in", "Gus")
    set_gold(reference, [(1, 2, "X")])
    reference.spans["open"] = [Span(reference, 3, 4)]
    doc = reranked(nlp, "in")
    doc.spans["nested"] = [*doc.spans["nested"], Span(doc, 1, 2, label="X")]
    scores = nlp.get_pipe("ner_reranker").score([Example(doc, reference)])
    assert (scores["spans_nested_p"], scores["spans_nested_r"]) == (1.0, 1.0)
