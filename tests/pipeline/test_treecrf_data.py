"""Odd input of the treecrf pipe: empty, white space, Unicode, long, many labels."""

import os
import subprocess
import sys
from itertools import chain
from pathlib import Path

import numpy as np
import psutil
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from nested_toy import (
    SENTENCES,
    add_treecrf,
    copy_of,
    found,
    initialized,
    make_doc,
    make_example,
    run,
    toy_examples,
    train,
    untrained,
)
from spacy import displacy
from spacy.tokens import Doc
from spacy.training import Example

TESTS = Path(__file__).parent.parent
ONE_THREAD = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(TESTS),
}


def in_subprocess(code, *options, limit_s=300):
    """Run code that may import the toy pipelines. RETURNS (str): What it printed."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=ONE_THREAD,
        timeout=limit_s,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def same(first, second):
    """Whether two Docs have the same spans, and scores equal but for rounding."""
    one, two = first.spans["nested"], second.spans["nested"]
    scores = (one.attrs["scores"], two.attrs["scores"])
    return found(first) == found(second) and np.allclose(*scores, atol=1e-5)


# Empty and tiny.


@pytest.mark.parametrize("text", ["", " ", "\n", "\n\n \t", "\u200b"])
def test_treecrf_texts_without_words_get_an_empty_group(sure, text):  # I-42, I-43
    group = sure(text).spans["nested"]
    assert group.attrs["scores"].shape == (len(group),)
    assert not len(group) or text == "\u200b"  # not white space by Unicode


def test_treecrf_pipe_takes_empty_docs(sure):  # I-42
    docs = list(sure.pipe(["", "a", " ", ""]))
    assert all("nested" in doc.spans for doc in docs)


def test_treecrf_one_token(sure):
    nlp = initialized([make_example(sure.vocab, "Yes", [(0, 1, "X")])])
    doc = nlp("Yes")  # I-45: one token, one label
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


@pytest.mark.parametrize("normalization", [False, True])
def test_treecrf_learns_one_token_with_one_label(normalization):  # I-45
    # The paper's pair: normalised potentials and the likelihood.
    margin = 0.0 if normalization else 1.0
    nlp = untrained(potential_normalization=normalization, softmax_margin=margin)
    curve = train(nlp, [make_example(nlp.vocab, "Yes", [(0, 1, "X")])], steps=20)
    assert np.isfinite(curve).all()
    assert found(nlp("Yes")) == [(0, 1, "X")]


def test_treecrf_predict_of_nothing(sure):
    assert sure.get_pipe("treecrf").predict([]) == []
    assert list(sure.pipe([])) == []


def test_treecrf_evaluate_with_an_empty_doc(sure):  # I-42
    examples = [*toy_examples(sure), make_example(sure.vocab, [], [])]
    assert sure.evaluate(examples)["spans_nested_f"] == 1.0


def test_treecrf_learns_from_a_batch_with_empty_docs():
    nlp = untrained()
    examples = [make_example(nlp.vocab, [], []), *toy_examples(nlp)]
    assert train(nlp, examples, steps=15)[-1] < 1


def test_treecrf_initializes_on_empty_docs_with_given_labels():
    nlp = untrained()
    empty = [make_example(nlp.vocab, [], [])]
    nlp.get_pipe("treecrf").initialize(lambda: empty, nlp=nlp, labels=["A"])
    assert "nested" in run(nlp, "a b").spans


# Batches.

WORDS = [word for words, _ in SENTENCES for word in words.split(" ")]
words = st.lists(st.sampled_from([*WORDS, " ", "\n", "🚀"]), max_size=12)


@settings(deadline=None, max_examples=25)
@given(st.lists(words, min_size=1, max_size=4))
def test_treecrf_pipe_equals_call(unsure, batch):  # I-43, I-45
    one = [run(unsure, words) for words in batch]
    docs = [Doc(unsure.vocab, words=words) for words in batch]
    piped = list(unsure.pipe(docs, batch_size=3))
    assert all(map(same, one, piped))


def test_treecrf_batch_mates_change_nothing(unsure):  # I-45
    long = [WORDS[number % len(WORDS)] for number in range(60)]
    docs = [Doc(unsure.vocab, words=w) for w in (["Bank", "of", "Rome"], long)]
    alone = run(unsure, "Bank of Rome")
    assert same(next(unsure.pipe(docs, batch_size=2)), alone)


def test_treecrf_sentences_are_independent(unsure):
    starts = [1, -1, -1, 1, -1, -1]
    texts = [w.split(" ") for w in ("Bank of Rome", "p21ras binds DNA")]
    doc = run(unsure, texts[0] + texts[1], sent_starts=starts)
    pipe = unsure.get_pipe("treecrf")
    assert pipe._cut([doc]).segments.lengths.tolist() == [3, 3]
    assert all(s.end <= 3 or s.start >= 3 for s in doc.spans["nested"])


# White space and Unicode.


def test_treecrf_spans_bridge_white_space():  # I-34
    nlp = untrained()
    words = ["Bank", "\n ", "of", "China", "\n", "fell"]
    example = make_example(nlp.vocab, words, [(0, 4, "ORG"), (3, 4, "GPE")])
    train(nlp, [example], steps=20)
    assert found(run(nlp, words)) == [(0, 4, "ORG"), (3, 4, "GPE")]


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"decoder": "mbr", "threshold": 0.0},
        {"objective": "local", "threshold": 0.0},
    ],
    ids=str,
)
@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["Bank", "of", " ", "\n \n", "\t"]), max_size=9))
def test_treecrf_no_span_starts_or_ends_with_white_space(random_pipes, config, words):
    # Random weights, so that every span has a chance.  I-34
    doc = run(random_pipes(**config), words)
    edges = chain.from_iterable((span[0], span[-1]) for span in doc.spans["nested"])
    assert not any(token.is_space for token in edges)


@pytest.fixture(scope="module")
def random_pipes():
    """Pipelines with random weights, by their settings."""
    made = {}

    def get(**config):
        key = str(config)
        if key not in made:
            made[key] = initialized(**config)
        return made[key]

    return get


@pytest.mark.parametrize(
    "words",
    [
        ["🚀"],
        ["👨‍👩‍👧", "x"],
        ["cafe\u0301"],
        ["\u200b", "\u200d"],
        ["\ufeffBank", "of"],
        ["a\u0000b"],
        ["[CLS]", "<s>", "[SEP]"],
        ["مرحبا", "العالم"],
        ["...", "!!", "?"],
    ],
    ids=ascii,
)
def test_treecrf_learns_and_predicts_odd_tokens(words):  # I-35, I-38
    nlp = untrained()
    train(nlp, [make_example(nlp.vocab, words, [(0, 1, "X")])], steps=15)
    assert found(run(nlp, words)) == [(0, 1, "X")]


# Long, and many labels.


def test_treecrf_token_of_5000_characters(sure):  # I-49
    doc = run(sure, ["x" * 5000, "of", "Rome"])
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


def test_treecrf_long_docs_are_cut_into_windows_with_one_warning():  # I-48
    nlp = initialized(max_length=64, initial_bias="zero")
    words = [WORDS[number % len(WORDS)] for number in range(1000)]
    with pytest.warns(UserWarning, match="T104") as caught:
        docs = list(nlp.pipe([Doc(nlp.vocab, words=words) for _ in range(2)]))
    assert len(caught) == 1
    assert "raise `max_length`" in str(caught[0].message)
    assert max(span.end for span in docs[0].spans["nested"]) > 900


def test_treecrf_entity_after_token_600_is_found(sure):  # I-54
    words = ["nothing", "here", "to", "see"] * 160 + ["Bank", "of", "Rome"]
    starts = ([1, -1, -1, -1] * 160) + [1, -1, -1]
    doc = run(sure, words, sent_starts=starts)
    assert found(doc) == [(640, 643, "ORG"), (642, 643, "GPE")]


def test_treecrf_300_labels():  # I-26
    nlp = untrained()
    words = [f"w{number}" for number in range(300)]
    spans = [(number, number + 1, f"L {number}") for number in range(300)]
    starts = ([1] + [-1] * 39) * 8
    doc = make_doc(nlp.vocab, words, spans, sent_starts=starts[:300])
    predicted = Doc(nlp.vocab, words=words, sent_starts=starts[:300])
    nlp.initialize(lambda: [Example(predicted, doc)])
    assert len(nlp.get_pipe("treecrf").labels) == 300
    assert np.isfinite(
        nlp.get_pipe("treecrf").update([Example(predicted, doc)])["treecrf"]
    )
    assert "nested" in run(nlp, words, sent_starts=starts[:300]).spans


def test_treecrf_2000_labels_on_60_tokens():  # I-27
    nlp = untrained(span_scorer={"hidden_width": 16})
    pipe = nlp.get_pipe("treecrf")
    example = make_example(nlp.vocab, ["w"] * 60, [(0, 2, "L0"), (0, 1, "L1999")])
    labels = [f"L{number}" for number in range(2000)]
    pipe.initialize(lambda: [example], labels=labels)
    assert np.isfinite(pipe.update([example])["treecrf"])
    assert "nested" in run(nlp, ["w"] * 60).spans


@pytest.mark.slow
def test_treecrf_1500_tokens_without_sentences_fit_into_2_gib():  # I-48
    code = (
        "import resource\n"
        "from nested_toy import initialized, run\n"
        "nlp = initialized(max_length=1500)\n"
        "doc = run(nlp, [f'w{n % 99}' for n in range(1500)])\n"
        "assert 'nested' in doc.spans\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    kib = int(in_subprocess(code, limit_s=900))
    assert kib < 2 * 1024**2


@pytest.mark.slow
def test_treecrf_memory_stays_flat_in_training_and_prediction():  # I-51, I-53
    nlp = untrained()
    examples = toy_examples(nlp)
    train(nlp, examples, steps=50)
    texts = [words for words, _ in SENTENCES] * 25
    list(nlp.pipe(texts))
    before = psutil.Process().memory_info().rss
    optimizer = nlp.create_optimizer()
    for _ in range(200):
        nlp.update(examples, sgd=optimizer)
    for _ in range(10):
        for _doc in nlp.pipe(texts):
            pass
    grown = psutil.Process().memory_info().rss - before
    assert grown < 50 * 1024**2


def test_treecrf_loads_and_predicts_with_warnings_as_errors():  # I-81
    code = (
        "from nested_toy import initialized, run\n"
        "import spacy\n"
        "nlp = initialized()\n"
        "again = spacy.blank('en')\n"
        "again.add_pipe('treecrf', source=nlp)\n"
        "print(len(run(again, 'Bank of Rome').spans))\n"
    )
    # spaCy's own command line warns on newer versions of click, which is not ours.
    assert in_subprocess(
        code, "-W", "error", "-W", "ignore::DeprecationWarning"
    ).split() == ["1"]


# The corpus that the package's figures are of.


def test_treecrf_real_texts_in_batches(litbank_texts, unsure):
    nlp = copy_of(unsure)
    nlp.add_pipe("sentencizer", first=True)
    one = [nlp(text) for text in litbank_texts]
    for batch_size in (1, 64):
        assert all(map(same, one, nlp.pipe(litbank_texts, batch_size=batch_size)))


# What others do with the output.


def test_treecrf_four_deep_nesting_renders_each_label_once():  # I-30
    doc = make_doc(
        spacy.blank("en").vocab,
        "Ministry of Trade of China office",
        [(0, 6, "FAC"), (0, 5, "ORG"), (2, 5, "TOPIC"), (4, 5, "GPE")],
    )
    html = displacy.render(
        doc, style="span", options={"spans_key": "nested"}, jupyter=False
    )
    assert all(html.count(label) == 1 for label in ("FAC", "ORG", "TOPIC", "GPE"))


def test_treecrf_merge_entities_leaves_spans_at_other_words(sure):  # I-67
    # spaCy does not move span groups when tokens are merged: put a pipe that retokenizes
    # before this one.
    nlp = spacy.blank("en")
    add_treecrf(nlp).from_bytes(sure.get_pipe("treecrf").to_bytes())
    doc = run(nlp, "The Bank of China said so .")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:4])
    assert doc.spans["nested"][0].text != "Bank of China"
