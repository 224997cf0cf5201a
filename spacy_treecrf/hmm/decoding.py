"""Decoding sentences into entities with posterior probabilities."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .model import NameClassModel
from .tokens import TokenBatch
from .viterbi import Posteriors, forward_backward, k_best, viterbi


@dataclass(frozen=True)
class Entities:
    """The entities of one labelling of each sentence of a batch, in text order.

    start, end (np.ndarray): Half-open token offsets in the batch. Shape: (M,).
    name_class (np.ndarray): Classes, from 1 on. Shape: (M,).
    posterior (np.ndarray): Pr(the span is a segment of its class | words). Shape: (M,).
    log_prob (np.ndarray): log Pr(the labelling | words) of each sentence, in nats, -inf
        where a sentence has no such labelling, whose entities are absent. Shape: (S,).
    """

    start: np.ndarray
    end: np.ndarray
    name_class: np.ndarray
    posterior: np.ndarray
    log_prob: np.ndarray


def decode(model: NameClassModel, batch: TokenBatch) -> Entities:
    """The entities of the most probable labelling of each sentence.

    model (NameClassModel): The model.
    batch (TokenBatch): The sentences.
    RETURNS (Entities): `log_prob` is left empty, which saves work.

    Cost: O(T N^2) time.
    """
    parts = []
    for tokens, words, features, lengths in _blocks(model, batch, 1):
        lattice = model.lattice(words, features, lengths)
        best = viterbi(lattice)
        parts.append(
            _entities(
                best.name_classes,
                best.begins,
                forward_backward(lattice),
                tokens.start,
                np.zeros(0),
            )
        )
    return _join(parts)


def decode_k_best(model: NameClassModel, batch: TokenBatch, k: int) -> list[Entities]:
    """The entities of the k most probable labellings of each sentence.

    model (NameClassModel): The model.
    batch (TokenBatch): The sentences.
    k (int): How many, at least 1.
    RETURNS (list[Entities]): The r-th best of every sentence, for r from 0 to k - 1.
    """
    parts: list[list[Entities]] = [[] for _ in range(k)]
    for tokens, words, features, lengths in _blocks(model, batch, k):
        lattice = model.lattice(words, features, lengths)
        posteriors, best = forward_backward(lattice), k_best(lattice, k)
        for rank, part in enumerate(parts):
            log_prob = np.minimum(best.log_joint[rank] - posteriors.log_z, 0.0)
            present = np.repeat(np.isfinite(log_prob), lengths)
            part.append(
                _entities(
                    np.where(present, best.name_classes[rank], 0),
                    best.begins[rank],
                    posteriors,
                    tokens.start,
                    log_prob,
                )
            )
    return [_join(part) for part in parts]


def _blocks(
    model: NameClassModel, batch: TokenBatch, width: int
) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
    """Tokens, words, features and lengths of each block of a batch."""
    words, features = model.encode(batch)
    ends = np.cumsum(batch.lengths)
    for sentences in model.blocks(batch.lengths, width):
        lengths = batch.lengths[sentences]
        end = int(ends[sentences.stop - 1])
        tokens = slice(end - int(lengths.sum()), end)
        yield tokens, words[tokens], features[tokens], lengths


def _entities(
    classes: np.ndarray,
    begins: np.ndarray,
    posteriors: Posteriors,
    offset: int,
    log_prob: np.ndarray,
) -> Entities:
    """Read the segments off a labelling and keep the names."""
    start = np.flatnonzero(begins)
    end = np.append(start[1:], len(begins))
    is_name = classes[start] > 0
    start, end = start[is_name], end[is_name]
    name_class = classes[start]
    posterior = posteriors.spans(start, end, name_class)
    return Entities(start + offset, end + offset, name_class, posterior, log_prob)


def _join(parts: list[Entities]) -> Entities:
    """Put the entities of successive blocks together."""
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Entities(empty, empty, empty, np.zeros(0), np.zeros(0))
    columns = Entities.__dataclass_fields__
    return Entities(
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in columns}
    )
