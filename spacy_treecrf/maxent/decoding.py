"""From taggings to entities, and how sure the hypotheses are of each."""

import numpy as np

from .beam import Beam, beam_search
from .features import WordBatch
from .model import MaxEntModel

Columns = tuple[np.ndarray, ...]


def decode(model: MaxEntModel, batch: WordBatch, beam: int, n_best: int) -> Columns:
    """The entities of the best taggings of each sentence.

    model (MaxEntModel): The model.
    batch (WordBatch): The sentences.
    beam (int): Hypotheses that are kept at every word.
    n_best (int): How many of them to return, at most `beam`.
    RETURNS (Columns): Rank, half-open word offsets, label (from 0 on) of each entity, by
        rank and in text order, and its score: the share of the hypotheses' probability
        that is with hypotheses that have it, (M,) each; log probability of the taggings
        of each sentence, in nats, -inf where there is none of a rank, (S, n_best).
    """
    found = beam_search(
        model.word_scores(batch), model.history_weights, batch.lengths, beam
    )
    return read_entities(found, batch.lengths, n_best)


def read_entities(beam: Beam, lengths: np.ndarray, n_best: int) -> Columns:
    """Read entities off the hypotheses.

    beam (Beam): The hypotheses, well formed.
    lengths (np.ndarray): Words of each sentence. Shape: (S,).
    n_best (int): How many ranks to return.
    RETURNS (Columns): As `decode`.
    """
    n_words = beam.tags.shape[1]
    tags = beam.tags.reshape(-1)
    is_continuation = (tags > 0) & (tags % 2 == 0)
    # Whatever is no continuation ends what is before it.
    breaks = np.flatnonzero(~is_continuation)
    behind = np.append(breaks[1:], len(tags))
    is_start = tags[breaks] > 0
    start, end = breaks[is_start], behind[is_start]
    label = tags[start].astype(np.int64) // 2
    rank = start // max(n_words, 1)
    start, end = start - rank * n_words, end - rank * n_words
    sentence = np.repeat(np.arange(len(lengths)), lengths)[start]
    score = _shares(beam.log_prob, rank, sentence, start, end, label)
    kept = rank < n_best
    return (
        *(column[kept] for column in (rank, start, end, label, score)),
        beam.log_prob[:n_best].T,
    )


def _shares(
    log_prob: np.ndarray,
    rank: np.ndarray,
    sentence: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    label: np.ndarray,
) -> np.ndarray:
    """Probability, among all hypotheses of its sentence, of those that hold a span."""
    weight = np.exp(log_prob - log_prob[:1])
    weight /= weight.sum(axis=0)
    # One number for each (start, end, label): rows take five times as long to sort.
    length, n_labels = end - start, label.max(initial=0) + 1
    key = (start * (length.max(initial=0) + 1) + length) * n_labels + label
    _, span = np.unique(key, return_inverse=True)
    mass = np.bincount(span, weights=weight[rank, sentence])
    return np.minimum(mass[span], 1.0)
