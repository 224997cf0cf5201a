"""Decoding sentences into entities with posterior probabilities."""

from collections.abc import Iterator

import numpy as np

from .model import NameClassModel
from .tokens import TokenBatch
from .viterbi import Posteriors, forward_backward, k_best, viterbi

# See `decode`.
Columns = tuple[np.ndarray, ...]


def decode(model: NameClassModel, batch: TokenBatch, k: int = 1) -> Columns:
    """The entities of the k most probable labellings of each sentence.

    model (NameClassModel): The model.
    batch (TokenBatch): The sentences.
    k (int): How many, at least 1.
    RETURNS (Columns): Rank, half-open token offsets in the batch, name class (from 1 on)
        of each entity, by rank and in text order, and its score, Pr(the span is a segment
        of its class | words), (M,) each; log Pr(labelling | words) of each sentence, in
        nats, -inf where there is none of a rank, (S, k). For k = 1 the last is left at 0,
        which saves work.

    Cost: O(T N^2) time for k = 1.
    """
    parts: list[Columns] = []
    chances = []
    for tokens, words, features, lengths in _blocks(model, batch, k):
        lattice = model.lattice(words, features, lengths)
        posteriors = forward_backward(lattice)
        if k == 1:
            best = viterbi(lattice)
            ranks = [(best.name_classes, best.begins)]
            log_prob = np.zeros((1, len(lengths)))
        else:
            found = k_best(lattice, k)
            log_prob = np.minimum(found.log_joint - posteriors.log_z, 0.0)
            present = np.repeat(np.isfinite(log_prob), lengths, axis=1)
            classes = np.where(present, found.name_classes, 0)
            ranks = list(zip(classes, found.begins, strict=True))
        parts += [
            _entities(rank, classes, begins, posteriors, tokens.start)
            for rank, (classes, begins) in enumerate(ranks)
        ]
        chances.append(log_prob.T)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if not parts:
        columns = [*(np.zeros(0, dtype=np.int64) for _ in range(4)), np.zeros(0)]
    # By rank, and there in the order of the blocks.
    order = np.argsort(columns[0], kind="stable")
    return (
        *(column[order] for column in columns),
        np.concatenate([np.zeros((0, k)), *chances]),
    )


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
    rank: int,
    classes: np.ndarray,
    begins: np.ndarray,
    posteriors: Posteriors,
    offset: int,
) -> Columns:
    """Read the segments off a labelling and keep the names."""
    start = np.flatnonzero(begins)
    end = np.append(start[1:], len(begins))
    is_name = classes[start] > 0
    start, end = start[is_name], end[is_name]
    name_class = classes[start]
    score = posteriors.spans(start, end, name_class)
    return np.full(len(start), rank), start + offset, end + offset, name_class, score
