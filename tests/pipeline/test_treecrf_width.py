"""The width limit of `treecrf`: long Docs as chains of trees, through the whole pipe."""

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
import spacy
from nested_toy import (
    SENTENCES,
    copy_of,
    found,
    initialized,
    learn_until,
    make_example,
    run,
    toy_examples,
    train_until,
    untrained,
)
from spacy.tokens import Doc
from table_scorer import scored, table_of

from spacy_treecrf.pipeline.docs.tree_gold import compressed
from spacy_treecrf.structure.masks import largest_compatible

# The widest entity of the toy sentences has 5 tokens.
WIDTH = 6


def joined(sentences):
    """Sentences as one, without boundaries."""
    words, spans = [], []
    for text, own in sentences:
        spans += [(s + len(words), e + len(words), label) for s, e, label in own]
        words += text.split(" ")
    return words, spans


LONG = [joined(SENTENCES), joined(SENTENCES[::-1])]


@pytest.fixture(scope="module")
def chained():
    """Trained on documents without boundaries that are longer than the limit."""
    nlp = untrained(max_width=WIDTH)
    train_until(nlp, toy_examples(nlp, sentences=LONG), loss=0.05)
    return nlp


@pytest.fixture(scope="module")
def doubtful():
    """Not sure of anything, whatever the words."""
    nlp = untrained(max_width=WIDTH, softmax_margin=0.0)
    train_until(nlp, toy_examples(nlp, sentences=LONG), loss=8.0)
    return nlp


def written(doc):
    return {
        key: (found(doc, key), {name: np.asarray(v) for name, v in group.attrs.items()})
        for key, group in doc.spans.items()
    }


def assert_same(one, other, **tolerance):
    """The same groups, and the same figures."""
    assert one.keys() == other.keys()
    for key, (spans, attrs) in one.items():
        assert spans == other[key][0]
        for name, values in attrs.items():
            np.testing.assert_allclose(values, other[key][1][name], **tolerance)


def test_treecrf_learns_long_docs_under_a_width_limit(chained):
    for words, spans in LONG:
        assert set(found(run(chained, words))) == set(spans)


def test_treecrf_losses_under_a_width_limit_are_finite_and_fall():
    for objective in ("treecrf", "local"):
        nlp = untrained(max_width=WIDTH, objective=objective)
        curve = train_until(nlp, toy_examples(nlp, sentences=LONG), loss=0.0, share=0.2)
        assert np.isfinite(curve).all()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"decoder": "mbr", "threshold": 0.01},
        {"n_best": 4, "entropy": True},
        {"decoder": "mbr", "n_best": 3},
    ],
)
def test_treecrf_finds_nothing_beyond_the_width_limit(doubtful, settings):
    nlp = copy_of(doubtful, **{**settings, "max_width": 3})
    doc = run(nlp, LONG[0][0])
    for group in doc.spans.values():
        assert all(len(span) <= 3 for span in group)
        spans = sorted({(s.start, -s.end) for s in group})
        assert all(
            two[0] >= -one[1] or -two[1] <= -one[1] for one, two in pairwise(spans)
        )
    group = doc.spans["nested"]
    assert all(0.0 <= score <= 1.0 for score in group.attrs["scores"])
    if settings.get("entropy"):
        assert group.attrs["segments"].tolist() == [[0, len(doc)]]
        assert 0 < float(group.attrs["entropy"][0]) < np.inf
    if "n_best" in settings:
        ranks = range(settings["n_best"])
        log_probs = [
            float(doc.spans[f"nested:{r}"].attrs["log_prob"][0]) for r in ranks
        ]
        assert all(a >= b for a, b in pairwise(log_probs))
        assert np.exp(log_probs).sum() <= 1 + 1e-6


def test_treecrf_local_objective_is_limited_too():
    nlp = untrained(objective="local", max_width=3)
    examples = toy_examples(nlp, sentences=[(w, []) for w, _ in LONG])
    for example, (_, spans) in zip(examples, LONG, strict=True):
        doc = example.reference
        own = [doc.char_span(*_chars(doc, s, e), label=x) for s, e, x in spans]
        doc.spans["nested"] = [span for span in own if len(span) <= 3]
    train_until(nlp, examples, loss=0.0, share=0.2)
    doc = run(nlp, LONG[0][0])
    assert all(len(span) <= 3 for span in doc.spans["nested"])


def _chars(doc, start, end):
    span = doc[start:end]
    return span.start_char, span.end_char


def test_treecrf_pipe_under_a_width_limit_is_one_doc_at_a_time(doubtful):
    nlp = copy_of(doubtful, n_best=3, entropy=True, decoder="mbr")
    texts = [words for words, _ in (*LONG, (["Bank", "of", "Rome"], []))]
    docs = [Doc(nlp.vocab, words=words) for words in texts]
    for doc, words in zip(nlp.pipe(docs), texts, strict=True):
        assert_same(written(doc), written(run(nlp, words)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("max_width", [len(LONG[0][0]), 1000])
def test_treecrf_width_limit_that_nothing_exceeds_changes_no_digit(max_width):
    results = []
    for limit in (None, max_width):
        nlp = initialized(max_width=limit, n_best=3, entropy=True, decoder="mbr")
        examples = toy_examples(nlp, sentences=[*LONG, *SENTENCES])
        losses = [nlp.update(examples, sgd=False)["treecrf"]]
        doc = run(nlp, LONG[0][0])
        results.append((losses, written(doc)))
    assert results[0][0] == results[1][0]
    assert_same(results[0][1], results[1][1], rtol=0, atol=0)


def test_treecrf_width_limit_finds_what_windows_cut():
    text = "w w w Bank of Rome w w w w"
    spans = [(3, 6, "ORG"), (5, 6, "GPE")]
    nested = ("Bank of Rome", [(0, 3, "ORG"), (2, 3, "GPE")])
    table = table_of([nested, ("Rome", [(0, 1, "GPE")])])
    with pytest.warns(UserWarning, match=r"T104.*max_width"):
        doc = run(scored(table, max_length=5), text)
    assert found(doc) == spans[1:]
    assert found(run(scored(table, max_width=5), text)) == spans
    assert found(run(scored(table, max_width=2), text)) == spans[1:]


def test_treecrf_sentences_cut_under_a_width_limit_too():
    table = table_of([("Bank of Rome", [(0, 3, "ORG")])])
    nlp = scored(table, max_width=4)
    words = ["w", "w", "Bank", "of", "Rome", "w", "w", "w", "w"]
    starts = [place == 3 for place in range(len(words))]
    assert found(nlp(Doc(nlp.vocab, words=words, sent_starts=starts))) == []
    starts = [place == 2 for place in range(len(words))]
    doc = nlp(Doc(nlp.vocab, words=words, sent_starts=starts))
    assert found(doc) == [(2, 5, "ORG")]


# Gold that is wider.

WIDE = [(1, 8, "ORG"), (2, 4, "GPE"), (5, 6, "GPE"), (9, 10, "ORG")]
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]


def test_treecrf_wide_gold_is_counted_once_with_the_limit_that_would_hold_it():
    nlp = untrained(max_width=3)
    wider = make_example(nlp.vocab, WORDS, [(0, 9, "ORG"), *WIDE])
    examples = [make_example(nlp.vocab, WORDS, WIDE), wider]
    with pytest.warns(UserWarning, match="T102") as caught:
        nlp.initialize(lambda: examples)
    (message,) = [str(warning.message) for warning in caught]
    assert "3 of 9 gold spans (33.3%) under the key 'nested' are wider" in message
    assert "wider than max_width = 3 (" in message
    assert "max_width = 9 would hold all" in message
    assert "(1, 8, 'ORG') 'b c d e f g h'" in message
    assert "In evaluation they still count as gold." in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nlp.update(examples, sgd=False)
        raised = untrained(max_width=9)
        raised.initialize(lambda: examples)


def test_treecrf_wide_gold_leaves_what_it_holds_and_rejects_what_crosses_it():
    # (0, 3) and (7, 9) cross the wide ORG, which itself cannot be found.
    crossing = {(0, 3, "GPE"): 20.0, (7, 9, "GPE"): 20.0}
    inner = {(2, 4, "GPE"): 20.0, (5, 6, "GPE"): 20.0, (9, 10, "ORG"): 20.0}
    text = " ".join(WORDS)
    losses = []
    for table in (inner, {**inner, **crossing}):
        nlp = scored({text: table}, ["GPE", "ORG"], max_width=3, softmax_margin=0.0)
        example = make_example(nlp.vocab, WORDS, WIDE)
        with pytest.warns(UserWarning, match=r"T102.*1 of 4.*wider than max_width = 3"):
            losses.append(nlp.update([example], sgd=False)["treecrf"])
    # The gold is likely; what crosses the wide span costs about its potential. The loss
    # is finite: borders inside the wide span, which no stretch could hold, are free.
    assert losses[0] < 2
    assert 10 < losses[1] < 50


def test_treecrf_wide_gold_counts_as_gold_in_evaluation():
    table = {" ".join(WORDS): {span: 8.0 for span in WIDE[1:]}}
    nlp = scored(table, max_width=3)
    scores = nlp.evaluate([make_example(nlp.vocab, WORDS, WIDE)])
    assert scores["spans_nested_p"] == 1.0
    assert scores["spans_nested_r"] == pytest.approx(3 / 4)


def test_treecrf_crossing_gold_of_long_segments_is_resolved_over_its_edges():
    spans = [(0, 40, 1), (10, 2000, 2), (20, 30, 1), (25, 1990, 2), (1995, 1999, 1)]
    shorter, length = compressed(spans)
    assert length < 2 * len(spans)
    expected = [False, True, False, True, True]
    assert largest_compatible(shorter, length) == expected


# Saved models.


def test_treecrf_width_limit_may_be_changed_after_training(chained, tmp_path):
    chained.to_disk(tmp_path)
    config = {"components": {"treecrf": {"max_width": 2}}}
    nlp = spacy.load(tmp_path, config=config)
    words, spans = LONG[0]
    within = {span for span in spans if span[1] - span[0] <= 2}
    assert {(e - s) for s, e, _ in found(run(nlp, words))} <= {1, 2}
    assert within
    nlp.get_pipe("treecrf").cfg["max_width"] = WIDTH
    assert set(found(run(nlp, words))) == set(spans)
    examples = toy_examples(nlp, sentences=LONG)
    learn_until(nlp, examples, nlp.resume_training(), loss=0.1, at_most=5)


def test_treecrf_saved_before_there_was_a_limit_does_what_it_did(sure, tmp_path):
    sure.to_disk(tmp_path)
    file = tmp_path / "treecrf" / "cfg"
    saved = json.loads(file.read_text(encoding="utf8"))
    for setting in ("max_width", "max_length"):
        del saved[setting], saved["configured"][setting]
    file.write_text(json.dumps(saved), encoding="utf8")
    config = tmp_path / "config.cfg"
    text = config.read_text(encoding="utf8")
    for line in ("max_width = 48\n", "max_length = null\n"):
        assert line in text
        text = text.replace(line, "")
    config.write_text(text, encoding="utf8")
    pipe = spacy.load(tmp_path).get_pipe("treecrf")
    assert (pipe.cfg["max_width"], pipe.cfg["max_length"]) == (None, 512)
    words = LONG[0][0]
    sure = copy_of(sure, max_width=None)
    assert_same(
        written(run(spacy.load(tmp_path), words)), written(run(sure, words)), rtol=1e-6
    )
