"""Entities of the hypotheses, and their scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.maxent.beam import beam_search
from spacy_treecrf.maxent.decoding import decode, read_entities
from spacy_treecrf.maxent.training import train

from .oracle import batch_of, spans_of
from .test_beam import by_sentence, random_scores, shapes


@given(shapes, st.integers(1, 5))
def test_decoding_reads_the_entities_of_each_rank(shape, n_best):
    _, lengths, _ = shape
    words, history = random_scores(*shape)
    beam = beam_search(words, history, np.array(lengths), 5)
    *columns, _, log_prob = read_entities(beam, np.array(lengths), n_best)
    np.testing.assert_array_equal(log_prob, beam.log_prob[:n_best].T)
    for rank in range(n_best):
        expected = [
            (part.start + start, part.start + end, label)
            for part in by_sentence(lengths)
            for start, end, label in spans_of(beam.tags[rank, part].tolist())
        ]
        here = columns[0] == rank
        found = zip(*(column[here].tolist() for column in columns[1:]), strict=True)
        assert list(found) == expected


@given(shapes)
def test_decoding_scores_are_shares_of_all_hypotheses(shape):
    _, lengths, _ = shape
    words, history = random_scores(*shape)
    beam = beam_search(words, history, np.array(lengths), 6)
    score = read_entities(beam, np.array(lengths), 1)[4]
    expected = []
    for number, part in enumerate(by_sentence(lengths)):
        probability = np.exp(beam.log_prob[:, number])
        held = [set(spans_of(tags)) for tags in beam.tags[:, part].tolist()]
        expected += [
            sum(p for p, spans in zip(probability, held, strict=True) if span in spans)
            / probability.sum()
            for span in spans_of(beam.tags[0, part].tolist())
        ]
    np.testing.assert_allclose(score, expected)
    assert (score <= 1).all()


def test_decoding_finds_what_was_learnt():
    sentences = [["Mr.", "Al", "Bo", "left"], ["Rome", "fell"]] * 3
    tags = np.array([0, 1, 2, 0, 3, 0] * 3)
    model = train(batch_of(sentences), tags, 2, cutoff=1)
    found = decode(model, batch_of([["Mr.", "Cy", "left"]]), beam=20, n_best=1)
    assert [column.tolist() for column in found[:4]] == [[0], [1], [2], [0]]


@pytest.mark.parametrize("n_best", [1, 3])
def test_decoding_no_sentences(n_best):
    _, history = random_scores(1, [1], 0)
    lengths = np.zeros(0, dtype=np.int64)
    beam = beam_search(np.zeros((0, 3)), history, lengths, 3)
    *columns, log_prob = read_entities(beam, lengths, n_best)
    assert [len(column) for column in columns] == [0] * 5
    assert log_prob.shape == (0, n_best)
