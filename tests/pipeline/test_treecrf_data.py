"""Odd input of the treecrf pipe: empty, white space, Unicode, long, many labels."""

import math
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
    train_until,
    untrained,
)
from spacy import displacy
from spacy.tokens import Doc
from spacy.training import Example
from table_scorer import scored

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
    """Whether two Docs of `learning` have the same entropies and entities.

    Scores are equal but for rounding, and so are the entities: an entity of the decoder
    "mbr" is one of a probability above 0.5, which rounding may lead across.
    """
    one, two = first.spans["nested"], second.spans["nested"]
    scores = [
        dict(zip(found(doc), doc.spans["nested"].attrs["scores"], strict=True))
        for doc in (first, second)
    ]
    for mine, other in (scores, scores[::-1]):
        for span, score in mine.items():
            assert score == pytest.approx(other.get(span, 0.5), abs=1e-3)
    for name in ("entropy", "segments"):
        # There is none for a Doc without tokens.
        values = [np.ravel(group.attrs.get(name, ())) for group in (one, two)]
        np.testing.assert_allclose(*values, atol=1e-2)
    return True


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


@pytest.mark.trains
def test_treecrf_learns_one_token_with_one_label():  # I-45
    nlp = untrained()
    train_until(nlp, [make_example(nlp.vocab, "Yes", [(0, 1, "X")])])
    assert found(nlp("Yes")) == [(0, 1, "X")]


@pytest.mark.parametrize("gold", [[], [(0, 1, "X")]], ids=["none", "X"])
def test_treecrf_normalisation_leaves_one_token_with_one_label_no_scores(gold):
    # Two potentials of deviation T, which is 1 at first: one is +T, the other -T,
    # whatever the scores are. Which is which lies with their rounding.
    nlp = untrained(potential_normalization=True, softmax_margin=0.0)
    nlp.initialize(lambda: [make_example(nlp.vocab, "Yes", [(0, 1, "X")])])
    example = make_example(nlp.vocab, "Yes", gold)
    higher = 1 / (1 + math.exp(-2))
    chance = math.exp(-nlp.get_pipe("treecrf").update([example])["treecrf"])
    assert max(chance, 1 - chance) == pytest.approx(higher, abs=1e-3)
    for score in run(nlp, "Yes").spans["nested"].attrs["scores"]:
        assert score == pytest.approx(higher, abs=1e-3)
    optimizer = nlp.create_optimizer()
    losses = [nlp.update([example], sgd=optimizer)["treecrf"] for _ in range(20)]
    assert np.isfinite(losses).all()
    scores = run(nlp, "Yes").spans["nested"].attrs["scores"]
    assert ((scores > 0.5) & (scores <= 1)).all()


def test_treecrf_predict_of_nothing(sure):
    assert len(sure.get_pipe("treecrf").predict([]).entities) == 0
    assert list(sure.pipe([])) == []


@pytest.mark.trains
def test_treecrf_evaluate_with_an_empty_doc(sure):  # I-42
    examples = [*toy_examples(sure), make_example(sure.vocab, [], [])]
    assert sure.evaluate(examples)["spans_nested_f"] == 1.0


@pytest.mark.trains
def test_treecrf_learns_from_a_batch_with_empty_docs():
    nlp = untrained()
    examples = [make_example(nlp.vocab, [], []), *toy_examples(nlp)]
    train_until(nlp, examples)
    assert found(run(nlp, "Bank of Rome")) == [(0, 3, "ORG"), (2, 3, "GPE")]


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
@pytest.mark.trains
def test_treecrf_pipe_equals_call(learning, batch):  # I-43, I-45
    one = [run(learning, words) for words in batch]
    docs = [Doc(learning.vocab, words=words) for words in batch]
    piped = list(learning.pipe(docs, batch_size=3))
    assert all(map(same, one, piped))


@pytest.mark.trains
def test_treecrf_batch_mates_change_nothing(learning):  # I-45
    long = [WORDS[number % len(WORDS)] for number in range(60)]
    docs = [Doc(learning.vocab, words=w) for w in (["Bank", "of", "Rome"], long)]
    alone = run(learning, "Bank of Rome")
    assert same(next(learning.pipe(docs, batch_size=2)), alone)


def test_treecrf_sentences_are_independent(unsure):
    starts = [1, -1, -1, 1, -1, -1]
    texts = [w.split(" ") for w in ("Bank of Rome", "p21ras binds DNA")]
    doc = run(unsure, texts[0] + texts[1], sent_starts=starts)
    pipe = unsure.get_pipe("treecrf")
    assert pipe._cut([doc]).lengths.tolist() == [3, 3]
    assert all(s.end <= 3 or s.start >= 3 for s in doc.spans["nested"])


# White space and Unicode.


def test_treecrf_spans_bridge_white_space():  # I-34
    words = ("Bank", "\n ", "of", "China", "\n", "fell")
    gold = [(0, 4, "ORG"), (3, 4, "GPE")]
    nlp = scored({words: dict.fromkeys(gold, 8.0)})
    assert found(run(nlp, words)) == gold


def test_treecrf_white_space_at_an_end_bars_a_span_of_any_score():  # I-34
    words = ("Bank", "\n ", "of", "China", "\n", "fell")
    barred = {(0, 5, "ORG"): 50.0, (1, 4, "ORG"): 50.0, (4, 5, "ORG"): 50.0}
    nlp = scored({words: {**barred, (3, 4, "ORG"): 1.0}})
    assert found(run(nlp, words)) == [(3, 4, "ORG")]


def test_treecrf_learns_a_span_that_bridges_white_space():
    nlp = initialized()
    words = ["Bank", "\n", "of", "Rome"]
    gold = make_example(nlp.vocab, words, [(0, 4, "ORG")])
    assert 0 < nlp.get_pipe("treecrf").update([gold])["treecrf"] < 1e3


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
@pytest.mark.trains
def test_treecrf_learns_and_predicts_odd_tokens(words):  # I-35, I-38
    nlp = untrained()
    train_until(nlp, [make_example(nlp.vocab, words, [(0, 1, "X")])])
    assert found(run(nlp, words)) == [(0, 1, "X")]


# Long, and many labels.


def test_treecrf_token_of_5000_characters(sure):  # I-49
    doc = run(sure, ["x" * 5000, "of", "Rome"])
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


def test_treecrf_long_docs_are_cut_into_windows_with_one_warning():  # I-48
    nlp = scored({"Oslo": {(0, 1, "GPE"): 8.0}}, max_length=64)
    words = [WORDS[number % len(WORDS)] for number in range(1000)]
    with pytest.warns(UserWarning, match="T104") as caught:
        docs = list(nlp.pipe([Doc(nlp.vocab, words=words) for _ in range(2)]))
    assert len(caught) == 1
    assert "raise `max_length`" in str(caught[0].message)
    expected = [(at, at + 1, "GPE") for at, word in enumerate(words) if word == "Oslo"]
    assert expected[-1][0] > 900
    assert [found(doc) for doc in docs] == [expected, expected]


def test_treecrf_entity_after_token_600_is_found():  # I-54
    nlp = scored({"Bank of Rome": {(0, 3, "ORG"): 8.0, (2, 3, "GPE"): 8.0}})
    words = ["nothing", "here", "to", "see"] * 160 + ["Bank", "of", "Rome"]
    starts = ([1, -1, -1, -1] * 160) + [1, -1, -1]
    doc = run(nlp, words, sent_starts=starts)
    assert found(doc) == [(640, 643, "ORG"), (642, 643, "GPE")]


@pytest.mark.trains
def test_treecrf_scores_after_token_600_depend_on_the_words(learning):  # I-54
    words = ["nothing", "here", "to", "see"] * 160
    starts = ([1, -1, -1, -1] * 160) + [1, -1, -1]
    entropies = [
        run(learning, [*words, *last], sent_starts=starts)
        .spans["nested"]
        .attrs["entropy"]
        for last in (["Bank", "of", "Rome"], ["to", "see", "here"])
    ]
    assert abs(entropies[0][-1] - entropies[1][-1]) > 1e-3
    np.testing.assert_allclose(entropies[0][:-2], entropies[1][:-2], atol=1e-3)


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


@pytest.mark.trains
def test_treecrf_real_texts_in_batches(litbank_texts, learning):
    nlp = copy_of(learning)
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


@pytest.mark.trains
def test_treecrf_merge_entities_leaves_spans_at_other_words(sure):  # I-67
    # spaCy does not move span groups when tokens are merged: put a pipe that retokenizes
    # before this one.
    nlp = spacy.blank("en")
    add_treecrf(nlp).from_bytes(sure.get_pipe("treecrf").to_bytes())
    doc = run(nlp, "The Bank of China said so .")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:4])
    assert doc.spans["nested"][0].text != "Bank of China"
