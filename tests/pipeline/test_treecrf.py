"""The treecrf pipe: labels, initialisation, learning, output, settings."""

import math

import numpy as np
import pytest
import spacy
from nested_toy import (
    LABELS,
    SENTENCES,
    add_treecrf,
    copy_of,
    found,
    initialized,
    make_doc,
    make_example,
    run,
    toy_examples,
    train_until,
    untrained,
)
from spacy.tokens import Doc, Span
from spacy.training import Example

WORDS = "The Bank of China said so ."


def in_order(spans):
    """Text order, outer before inner, as predictions come."""
    return sorted(spans, key=lambda span: (span[0], -span[1], span[2]))


# Labels.


def test_treecrf_labels_come_from_the_examples():
    assert set(initialized().get_pipe("treecrf").labels) == LABELS


def test_treecrf_label_data_lists_combinations():
    data = initialized().get_pipe("treecrf").label_data
    assert ["DNA", "protein"] in data
    assert [entry for entry in data if isinstance(entry, str)] == list(
        initialized().get_pipe("treecrf").labels
    )


def test_treecrf_labels_may_be_given():
    nlp = untrained()
    pipe = nlp.get_pipe("treecrf")
    given = ["PER", "ORG", "GPE", "DNA", "protein", "EXTRA", ["DNA", "protein"]]
    examples = toy_examples(nlp)
    pipe.initialize(lambda: examples, nlp=nlp, labels=given)
    assert pipe.label_data == given
    assert pipe.model.get_ref("output_layer").get_dim("nO") == len(given) + 1


def test_treecrf_given_labels_survive_their_own_label_data():
    first = initialized().get_pipe("treecrf").label_data
    nlp = untrained()
    examples = toy_examples(nlp)
    nlp.get_pipe("treecrf").initialize(lambda: examples, nlp=nlp, labels=first)
    assert nlp.get_pipe("treecrf").label_data == first


def test_treecrf_add_label_before_initialisation():
    nlp = untrained()
    pipe = nlp.get_pipe("treecrf")
    assert pipe.add_label("Overcast Sky Cover") == 1
    assert pipe.add_label("Overcast Sky Cover") == 0
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    assert set(pipe.labels) == {*LABELS, "Overcast Sky Cover"}
    assert "Overcast Sky Cover" in nlp.vocab.strings


def test_treecrf_add_label_takes_strings_only():
    with pytest.raises(ValueError, match="E187"):
        untrained().get_pipe("treecrf").add_label(3)


def test_treecrf_add_label_after_initialisation_is_refused():  # I-28
    with pytest.raises(ValueError, match="E922"):
        initialized().get_pipe("treecrf").add_label("NEW")


def test_treecrf_gold_with_a_label_that_was_not_given_is_named():
    nlp = untrained()
    examples = toy_examples(nlp)
    with pytest.raises(ValueError, match=r"T004.*'GPE'.*The Bank of China"):
        nlp.get_pipe("treecrf").initialize(lambda: examples, labels=["ORG"])


def test_treecrf_update_with_an_unknown_label_is_refused():
    nlp = initialized()
    with pytest.raises(ValueError, match=r"T004.*'NEW'"):
        nlp.update([make_example(nlp.vocab, "New York", [(0, 2, "NEW")])])


def test_treecrf_predict_needs_initialisation():
    nlp = untrained()
    with pytest.raises(ValueError, match="E143"):
        nlp("Some text")


def test_treecrf_update_needs_initialisation():
    nlp = untrained()
    with pytest.raises(ValueError, match="E143"):
        nlp.get_pipe("treecrf").update(toy_examples(nlp))


def test_treecrf_without_any_span_names_the_keys_that_are_there():  # I-02
    nlp = untrained(spans_key="sc")
    examples = toy_examples(nlp, key="nested")
    with pytest.raises(ValueError, match=r"T001.*'sc'.*\['nested'\]"):
        nlp.initialize(lambda: examples)


@pytest.mark.parametrize("examples", [None, []])
def test_treecrf_initialize_needs_examples(examples):
    nlp = untrained()
    with pytest.raises((ValueError, TypeError), match=r"E930|E978|T001"):
        nlp.get_pipe("treecrf").initialize(lambda: examples)


# Learning.


@pytest.mark.parametrize(("words", "spans"), SENTENCES)
@pytest.mark.trains
def test_treecrf_overfits(sure, words, spans):  # I-16, I-18
    # Nesting, nesting in the same label, two labels on one token, no entity at all.
    assert found(run(sure, words)) == in_order(spans)


@pytest.mark.parametrize(
    "config",
    [
        {"objective": "local"},
        {"initial_bias": "zero"},
        {"potential_normalization": True},
        {"potential_normalization": True, "temperature": 3.0},
        {"potential_normalization": True, "structure_smoothing": 0.01},
        {
            "potential_normalization": True,
            "structure_smoothing": 0.01,
            "smoothing_scope": "rejected",
        },
        {"latent_labels": 3},
        {"decoder": "mbr"},
        {"decoder": "mbr", "threshold": 0.3},
        {"threshold": 0.5},
        {"objective": "local", "threshold": 0.5},
        {"span_scorer": {"separate_views": False}},
        {"span_scorer": {"depth": 1, "activation": "gelu"}},
        {
            "span_scorer": {
                "@architectures": "spacy-treecrf.BilinearSpanScorer.v1",
                "dropout": 0.1,
            }
        },
    ],
    ids=str,
)
@pytest.mark.trains
def test_treecrf_every_setting_learns(config):
    nlp = untrained(**config)
    # Normalised scores are pulled apart by the temperature alone, which is slow, and at
    # rates above 0.01 some starts never come to rest.
    slow = (
        {"loss": 0.02, "learn_rate": 0.01}
        if "potential_normalization" in config
        else {}
    )
    train_until(nlp, toy_examples(nlp), **slow)
    assert found(run(nlp, WORDS)) == [(1, 4, "ORG"), (3, 4, "GPE")]


def test_treecrf_torch_struct_gives_the_same(unsure):
    pytest.importorskip("torch_struct")
    fused, other = (
        copy_of(unsure, inference=inference) for inference in ("fused", "torch_struct")
    )
    losses = [
        nlp.get_pipe("treecrf").update(toy_examples(nlp))["treecrf"]
        for nlp in (fused, other)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for words, _ in SENTENCES:
        ours, theirs = (run(nlp, words) for nlp in (fused, other))
        assert found(ours) == found(theirs)
        scores = [doc.spans["nested"].attrs["scores"] for doc in (ours, theirs)]
        np.testing.assert_allclose(*scores, atol=1e-5)


def test_treecrf_loss_is_the_mean_over_segments():
    nlp = initialized()
    pipe = nlp.get_pipe("treecrf")
    one = [toy_examples(nlp)[number] for number in (0, 1)]
    alone = [pipe.update([example])["treecrf"] for example in one]
    assert pipe.update(one)["treecrf"] == pytest.approx(np.mean(alone), rel=1e-5)


def test_treecrf_update_without_optimizer_changes_no_weight():
    nlp = initialized()
    before = nlp.get_pipe("treecrf").to_bytes(exclude=["vocab"])
    losses = nlp.get_pipe("treecrf").update(toy_examples(nlp))
    assert losses["treecrf"] > 0
    assert nlp.get_pipe("treecrf").to_bytes(exclude=["vocab"]) == before


def test_treecrf_losses_are_added_up():
    nlp = initialized()
    losses = {"treecrf": 100.0}
    nlp.get_pipe("treecrf").update(toy_examples(nlp), losses=losses)
    assert losses["treecrf"] > 100.0
    assert isinstance(losses["treecrf"], float)


@pytest.mark.parametrize("words", [[], ["", ""]])
def test_treecrf_losses_have_the_pipe_even_if_there_is_nothing_to_learn(words):
    nlp = initialized()
    examples = [make_example(nlp.vocab, [], []) for _ in words]
    assert nlp.get_pipe("treecrf").update(examples) == {"treecrf": 0.0}


def test_treecrf_dropout_of_the_encoder_is_applied():
    nlp = initialized()
    pipe = nlp.get_pipe("treecrf")
    pipe.update(toy_examples(nlp), drop=0.5)
    rates = [n.attrs["dropout_rate"] for n in pipe.model.walk() if n.name == "dropout"]
    assert set(rates) == {0.5}


def test_treecrf_refuses_what_is_no_example():
    nlp = initialized()
    with pytest.raises(TypeError, match="E978"):
        nlp.get_pipe("treecrf").update([make_doc(nlp.vocab, "a b")])


def test_treecrf_update_needs_no_group_on_the_predicted_doc():  # I-08
    nlp = initialized()
    example = toy_examples(nlp)[0]
    assert not example.predicted.spans
    nlp.get_pipe("treecrf").update([example])
    assert not example.predicted.spans


def diverged():
    """A pipeline whose weights are no numbers."""
    nlp = initialized()
    scorer = nlp.get_pipe("treecrf").model.get_ref("output_layer")
    scorer.shims[0]._model.bilinear.data.fill_(math.nan)
    return nlp


def test_treecrf_loss_that_is_not_finite_names_the_docs():  # I-11
    nlp = diverged()
    with pytest.raises(ValueError, match=r"T005.*is nan.*\['Bank of Rome '\]"):
        nlp.update([make_example(nlp.vocab, "Bank of Rome", [])])


def test_treecrf_potentials_that_are_not_finite_name_the_docs():
    nlp = diverged()
    with pytest.raises(ValueError, match=r"T007.*\['Bank of Rome '\]"):
        run(nlp, "Bank of Rome")


# Output.


def test_treecrf_scores_are_exact_marginals(unsure):
    # By definition: p(span, label) = 1 - Z without it / Z, from the pipe's own loss with
    # the label marked incorrect and all else not annotated.
    doc = run(unsure, "Bank of Rome")
    assert doc.spans["nested"]
    keys = {"missing_spans_key": "missing", "incorrect_spans_key": "incorrect"}
    pipe = copy_of(unsure, **keys).get_pipe("treecrf")
    for span, score in zip(
        doc.spans["nested"], doc.spans["nested"].attrs["scores"], strict=True
    ):
        example = make_example(unsure.vocab, "Bank of Rome", [])
        reference = example.reference
        reference.spans["missing"] = [Span(reference, 0, 3)]
        reference.spans["incorrect"] = [
            Span(reference, span.start, span.end, label=span.label_)
        ]
        loss = pipe.update([example])["treecrf"]
        assert 1 - math.exp(-loss) == pytest.approx(score, abs=1e-5)


def test_treecrf_group_has_name_and_scores(sure):
    group = run(sure, WORDS).spans["nested"]
    assert group.name == "nested"
    assert group.attrs["scores"].dtype == np.float32
    assert len(group.attrs["scores"]) == len(group)


def test_treecrf_threshold_drops_what_is_not_sure(unsure):
    doc = run(unsure, WORDS)
    scores = doc.spans["nested"].attrs["scores"]
    again = run(copy_of(unsure, threshold=float(np.median(scores))), WORDS)
    kept = again.spans["nested"]
    assert 0 < len(kept) < len(scores)
    assert (kept.attrs["scores"] > np.median(scores)).all()


def test_treecrf_leaves_ents_alone_by_default(sure):  # I-22
    doc = Doc(sure.vocab, words=WORDS.split(" "))
    doc.ents = [Span(doc, 0, 1, label="DET")]
    doc = sure(doc)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("The", "DET")]
    assert len(doc.spans["nested"]) == 2


@pytest.mark.trains
def test_treecrf_stands_behind_an_ner_pipe():  # I-22
    nlp = untrained()
    nlp.add_pipe("ner", first=True)
    examples = toy_examples(nlp)
    for example in examples:
        example.reference.ents = [Span(example.reference, 0, 1, label="FIRST")]
    train_until(nlp, examples)
    doc = run(nlp, WORDS)
    assert {ent.label_ for ent in doc.ents} <= {"FIRST"}
    assert found(doc) == [(1, 4, "ORG"), (3, 4, "GPE")]


def test_treecrf_annotate_ents_writes_the_outermost(sure):  # I-22
    doc = run(copy_of(sure, annotate_ents=True), WORDS)
    assert [(ent.start, ent.end, ent.label_) for ent in doc.ents] == [(1, 4, "ORG")]


def test_treecrf_writes_under_its_key():
    with pytest.warns(UserWarning, match="T103"):
        nlp = initialized(
            toy_examples(spacy.blank("en"), key="names"), spans_key="names"
        )
    doc = run(nlp, WORDS)
    assert set(doc.spans) == {"names"}
    assert doc.spans["names"].name == "names"


def test_treecrf_predict_changes_no_doc(sure):
    doc = Doc(sure.vocab, words=WORDS.split(" "))
    before = doc.to_bytes()
    sure.get_pipe("treecrf").predict([doc])
    assert doc.to_bytes() == before


# Through the pipeline.


@pytest.mark.trains
def test_treecrf_two_pipes_of_one_pipeline_do_not_meet():
    nlp = untrained()
    add_treecrf(nlp, name="second", spans_key="second")
    nlp.config["training"]["score_weights"] = {"spans_second_f": 0.5}
    examples = toy_examples(nlp)
    for example in examples:
        reference = example.reference
        reference.spans["second"] = [Span(reference, 0, 1, label="FIRST")]
    train_until(nlp, examples, pipes=("treecrf", "second"))
    doc = run(nlp, WORDS)
    assert found(doc, "second") == [(0, 1, "FIRST")]
    assert found(doc) == [(1, 4, "ORG"), (3, 4, "GPE")]


@pytest.mark.trains
def test_treecrf_evaluates_to_one_on_what_it_has_learnt(sure):
    scores = sure.evaluate(toy_examples(sure))
    assert scores["spans_nested_f"] == 1.0
    assert set(scores["spans_nested_per_type"]) == LABELS


@pytest.mark.trains
def test_treecrf_trains_from_example_dicts():
    nlp = untrained()
    doc = nlp.make_doc("Bank of China fell")
    gold = {"spans": {"nested": [(0, 13, "ORG"), (8, 13, "GPE")]}}
    train_until(nlp, [Example.from_dict(doc, gold)])
    assert found(nlp("Bank of China fell")) == [(0, 3, "ORG"), (2, 3, "GPE")]
