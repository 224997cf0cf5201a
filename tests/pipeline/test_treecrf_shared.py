"""The treecrf pipe over shared, frozen and annotating parts, and through `spacy train`."""

import numpy as np
import pytest
import spacy
from nested_toy import (
    LISTENER,
    TOK2VEC,
    add_treecrf,
    found,
    make_doc,
    make_example,
    run,
    toy_examples,
    train,
    train_until,
)
from seeds import seed_all
from spacy.cli.train import train as train_cli
from spacy.tokens import Doc, DocBin, Span
from spacy.training import Example
from thinc.api import Adam, Config

WORDS = "The Bank of China said so ."
GOLD = [(1, 4, "ORG"), (3, 4, "GPE")]


def shared(*before, **config):
    """A pipeline: tok2vec, then these pipes over a listener, then ours over one."""
    seed_all()
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": TOK2VEC})
    for factory in before:
        model = {"@architectures": "spacy.Tagger.v2", "tok2vec": LISTENER}
        nlp.add_pipe(factory, config={"model": model})
    add_treecrf(nlp, tok2vec=LISTENER, **config)
    return nlp


def tagged_examples(nlp):
    examples = toy_examples(nlp)
    for example in examples:
        for token in example.reference:
            token.tag_ = "A" if token.text.istitle() else "B"
    return examples


def config_of(nlp, tmp_path, **training):
    """A training config for the pipeline, over the toy sentences."""
    docs = [example.reference for example in tagged_examples(nlp)]
    DocBin(docs=docs).to_disk(tmp_path / "toy.spacy")
    reader = {
        "@readers": "spacy.Corpus.v1",
        "path": str(tmp_path / "toy.spacy"),
        "gold_preproc": False,
        "max_length": 0,
        "limit": 0,
        "augmenter": None,
    }
    config = nlp.config.copy()
    config["corpora"] = {"train": dict(reader), "dev": dict(reader)}
    config["training"].update(
        {"max_steps": 4, "eval_frequency": 2, "seed": 0, **training}
    )
    return config


def train_from(config, tmp_path, **overrides):
    Config(config).to_disk(tmp_path / "config.cfg")
    train_cli(tmp_path / "config.cfg", tmp_path / "out", overrides=overrides)
    return spacy.load(tmp_path / "out" / "model-last")


# Shared encoders.


@pytest.mark.trains
def test_treecrf_learns_through_a_listener():
    nlp = shared()
    train_until(nlp, toy_examples(nlp))
    assert found(run(nlp, WORDS)) == GOLD


@pytest.mark.parametrize("texts", [["nothing here"], ["nothing here", ""]], ids=str)
def test_treecrf_as_last_listener_keeps_the_gradient_of_others(texts):  # I-74
    nlp = shared("tagger", missing_spans_key="missing")
    # Before its first step the tagger's output weights, and so its gradient, are 0.
    train(nlp, tagged_examples(nlp), steps=3)
    examples = [make_example(nlp.vocab, text.split(), []) for text in texts]
    for example in examples:
        reference = example.reference
        # All is marked as not annotated, so that ours has no gradient to give.
        reference.spans["missing"] = [Span(reference, 0, len(reference))]
        for token in reference:
            token.tag_ = "A"
    assert nlp.update(examples, sgd=False)["treecrf"] == pytest.approx(0.0, abs=1e-5)
    encoder = nlp.get_pipe("tok2vec").model
    gradients = [
        np.abs(node.get_grad(name)).max()
        for node in encoder.walk()
        for name in node.grad_names
    ]
    assert max(gradients) > 1e-4


def test_treecrf_batch_of_mixed_docs_matches_the_listener():  # I-75, E953
    nlp = shared()
    nlp.initialize(lambda: toy_examples(nlp))
    two = make_example(nlp.vocab, "It rained . Rome won .", [(3, 4, "GPE")])
    two.predicted[3].is_sent_start = True
    batch = [make_example(nlp.vocab, [], []), two, *toy_examples(nlp)]
    losses = nlp.update(batch, sgd=nlp.create_optimizer())
    assert np.isfinite(losses["treecrf"])


@pytest.mark.trains
def test_treecrf_listener_can_be_replaced():
    nlp = shared("tagger")
    train_until(nlp, tagged_examples(nlp))
    expected = run(nlp, WORDS).spans["nested"].attrs["scores"]
    assert len(expected) == len(GOLD)
    nlp.replace_listeners("tok2vec", "treecrf", ["model.tok2vec"])
    scores = run(nlp, WORDS).spans["nested"].attrs["scores"]
    np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize(
    "tok2vec",
    [
        TOK2VEC,
        {
            "@architectures": "spacy.Tok2Vec.v2",
            "embed": {
                "@architectures": "spacy.MultiHashEmbed.v2",
                "width": 24,
                "attrs": ["NORM", "SHAPE"],
                "rows": [200, 50],
                "include_static_vectors": False,
            },
            "encode": {
                "@architectures": "spacy.MaxoutWindowEncoder.v2",
                "width": 24,
                "depth": 1,
                "window_size": 1,
                "maxout_pieces": 2,
            },
        },
    ],
    ids=["HashEmbedCNN", "MultiHashEmbed"],
)
def test_treecrf_trains_over_any_encoder_of_spacy(tok2vec, tmp_path):  # I-61, I-56
    nlp = spacy.blank("en")
    add_treecrf(nlp, tok2vec=tok2vec)
    again = train_from(config_of(nlp, tmp_path), tmp_path)
    assert "nested" in again(WORDS).spans


# Through `spacy train`.


@pytest.mark.trains
def test_treecrf_trains_with_a_shared_encoder(tmp_path):  # I-61
    nlp = shared("tagger")
    config = config_of(nlp, tmp_path, max_steps=40, eval_frequency=20, dropout=0.0)
    again = train_from(config, tmp_path, **{"training.optimizer.learn_rate": 0.005})
    # Four times the steps that `train_until` needs, so that the loss has to be this low.
    losses = again.update(tagged_examples(again), sgd=False)
    assert losses["treecrf"] < 0.01
    assert again.meta["performance"]["spans_nested_f"] == 1.0
    assert found(run(again, WORDS)) == GOLD


def test_treecrf_frozen_encoder_must_annotate(tmp_path):  # I-72
    nlp = shared()
    train(nlp, toy_examples(nlp), steps=2)
    nlp.to_disk(tmp_path / "source")
    config = config_of(nlp, tmp_path, frozen_components=["tok2vec"])
    config["components"]["tok2vec"] = {"source": str(tmp_path / "source")}
    with pytest.raises(ValueError, match="E203"):
        train_from(config, tmp_path)


def test_treecrf_learns_over_a_frozen_annotating_encoder(tmp_path):  # I-72
    nlp = shared()
    train(nlp, toy_examples(nlp), steps=2)
    nlp.to_disk(tmp_path / "source")
    parts = {"frozen_components": ["tok2vec"], "annotating_components": ["tok2vec"]}
    config = config_of(nlp, tmp_path, **parts)
    config["components"]["tok2vec"] = {"source": str(tmp_path / "source")}
    again = train_from(config, tmp_path)
    source = nlp.get_pipe("tok2vec").model.to_bytes()
    assert again.get_pipe("tok2vec").model.to_bytes() == source
    assert "nested" in again(WORDS).spans


@pytest.mark.parametrize("annotating", [[], ["sentencizer"]], ids=str)
def test_treecrf_trains_with_a_sentencizer(annotating, tmp_path):  # I-76
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path, annotating_components=annotating)
    again = train_from(config, tmp_path)
    doc = again("It rained . Rome won .")
    assert len(list(doc.sents)) == 2


def test_treecrf_ignores_sentences_of_the_reference():  # I-76
    # Prediction sees only what pipes before it set, so training does the same.
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    losses = []
    for starts in ([1, 0, 1, 0], None):
        words, spans = ["a", "b", "c", "d"], [(1, 3, "X")]
        gold = make_doc(nlp.vocab, words, spans, sent_starts=starts)
        example = Example(Doc(nlp.vocab, words=words), gold)
        if not losses:
            nlp.initialize(lambda: [example])  # noqa: B023
        # A warning of a cut would be an error here.
        losses.append(nlp.get_pipe("treecrf").update([example])["treecrf"])
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize(
    "setting", [{"gold_preproc": True}, {"max_length": 5}], ids=str
)
def test_treecrf_corpus_settings_that_drop_spans_are_named(setting, tmp_path):  # I-06
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path)
    config["corpora"]["train"].update(setting)
    # Sentence starts let spaCy cut the Docs, which is what drops their groups.
    reader = DocBin().from_disk(tmp_path / "toy.spacy")
    docs = list(reader.get_docs(nlp.vocab))
    docs = [doc for doc in docs if len(doc) > 5]
    for doc in docs:
        for at, token in enumerate(doc):
            token.is_sent_start = at in (0, 3)
    DocBin(docs=docs).to_disk(tmp_path / "toy.spacy")
    with pytest.raises(ValueError, match=r"T001.*gold_preproc = true"):
        train_from(config, tmp_path)


def test_treecrf_dropped_spans_are_named_with_a_labels_file_too(tmp_path):  # I-07
    nlp = spacy.blank("en")
    pipe = add_treecrf(nlp)
    examples = toy_examples(nlp, key="other")
    with pytest.warns(UserWarning, match=r"T105.*8 of 8.*gold_preproc = true"):
        pipe.initialize(lambda: examples, labels=["ORG"])


def test_treecrf_dev_corpus_under_another_key_is_named(tmp_path):  # I-03
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path)
    docs = [example.reference for example in toy_examples(nlp, key="other")]
    DocBin(docs=docs).to_disk(tmp_path / "dev.spacy")
    config["corpora"]["dev"]["path"] = str(tmp_path / "dev.spacy")
    with pytest.warns(UserWarning, match=r"T101.*\['other'\]"):
        again = train_from(config, tmp_path)
    assert "nested" in again(WORDS).spans


def test_treecrf_other_spans_key_needs_its_score_weights(tmp_path):  # I-01
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path)
    docs = [example.reference for example in toy_examples(nlp, key="other")]
    DocBin(docs=docs).to_disk(tmp_path / "toy.spacy")
    with pytest.warns(UserWarning, match=r"T103.*spans_other_f = 1\.0"):
        train_from(config, tmp_path, **{"components.treecrf.spans_key": "other"})


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@pytest.mark.parametrize(("step", "code"), [(1, "T005"), (0, "T007")])
def test_treecrf_diverged_training_stops_before_a_checkpoint(step, code, tmp_path):
    # I-11: the next loss, or the evaluation if that comes first, finds the weights out.
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path, max_steps=20, eval_frequency=10)
    config["training"]["optimizer"]["grad_clip"] = 0.0
    rates = {"@schedules": "constant_then.v1", "rate": 0.0, "steps": step}
    rates["schedule"] = {"@schedules": "constant.v1", "rate": 1e15}
    config["training"]["optimizer"]["learn_rate"] = rates
    with pytest.raises(ValueError, match=rf"{code}.*Bank of Rome"):
        train_from(config, tmp_path)
    # That of step 0, if it was evaluated before the weights diverged.
    assert (tmp_path / "out" / "model-best").exists() == (step > 0)


def test_treecrf_empty_corpus_is_refused(tmp_path):  # I-15
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    config = config_of(nlp, tmp_path)
    DocBin().to_disk(tmp_path / "toy.spacy")
    with pytest.raises(ValueError, match=r"E930|E978|T001"):
        train_from(config, tmp_path)


def test_treecrf_averages_of_weights_leave_torch_weights_alone():  # I-85
    # Thinc's `use_params` knows no weight of a torch layer: `use_averages` has no effect
    # on ours, and the configs leave it at false.
    nlp = spacy.blank("en")
    pipe = add_treecrf(nlp)
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    optimizer = Adam(0.01, use_averages=True)
    nlp.update(examples, sgd=optimizer)
    scorer = pipe.model.get_ref("output_layer")
    before = scorer.to_bytes()
    with nlp.use_params(optimizer.averages):
        assert scorer.to_bytes() == before
