"""Gold of a corpus, read in chunks."""

import numpy as np
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.pipeline.docs import flat_gold as _flat_gold
from spacy_treecrf.pipeline.docs.flat_gold import read_flat_corpus


def examples_of(nlp, count):
    for number in range(count):
        words = ["x"] * (number % 3) + ["Al", "\n", "Bo", "y"]
        doc = Doc(nlp.vocab, words=words)
        start = number % 3
        label = "ABC"[number % 3]
        doc.spans["nested"] = [Span(doc, start, start + 3, label=label)]
        yield Example(Doc(nlp.vocab, words=words), doc)


def test_flat_gold_chunks_do_not_change_the_corpus(monkeypatch):
    nlp = spacy.blank("en")
    whole = read_flat_corpus(lambda: examples_of(nlp, 7), "pipe", "nested")
    monkeypatch.setattr(_flat_gold, "CHUNK", 2)
    chunked = read_flat_corpus(lambda: examples_of(nlp, 7), "pipe", "nested")
    assert whole.label_names == chunked.label_names == ("A", "B", "C")
    for name in ("start", "end", "labels"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(chunked, name))
    for name in ("orths", "tokens", "lengths", "docs"):
        np.testing.assert_array_equal(
            getattr(whole.sentences, name), getattr(chunked.sentences, name)
        )


def test_flat_gold_offsets_count_words_without_white_space():
    nlp = spacy.blank("en")
    corpus = read_flat_corpus(lambda: examples_of(nlp, 2), "pipe", "nested")
    assert corpus.start.tolist() == [0, 4]
    assert corpus.end.tolist() == [2, 6]


def test_flat_gold_logs_its_progress(monkeypatch, caplog):
    nlp = spacy.blank("en")
    monkeypatch.setattr(_flat_gold, "CHUNK", 3)
    monkeypatch.setattr("spacy.util.logger.propagate", True)
    with caplog.at_level("INFO", logger="spacy"):
        read_flat_corpus(lambda: examples_of(nlp, 7), "pipe", "nested")
    assert [r.getMessage() for r in caplog.records] == [
        "pipe: read 3 documents, 12 words",
        "pipe: read 6 documents, 24 words",
        "pipe: read 7 documents, 27 words",
    ]
