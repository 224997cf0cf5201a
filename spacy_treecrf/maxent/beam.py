"""Beam search for the most probable taggings, for a block of sentences at a time.

Source: Collins (2002), section 2.2: left to right, 20 hypotheses, which are the candidates
of the reranker. Probabilities are those of the model, which knows no forbidden tags.
Deviates: C follows only S or C of its label; the paper is silent.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .model import OUTSIDE, log_normalizer

# Sentences, and words times hypotheses, searched together: measured on sentences of 22
# words with 17 tags; a large document is searched in less memory than it has itself.
BLOCK_SENTENCES = 128
BLOCK_CELLS = 2**22


class Beam(NamedTuple):
    """The taggings that the search ends with, best first.

    tags (np.ndarray): Tags of the words by each hypothesis; 0 where a sentence has no
        hypothesis of that rank. Shape: (beam, T).
    log_prob (np.ndarray): Log probability of each, in nats, -inf where there is none.
        Shape: (beam, S).
    """

    tags: np.ndarray
    log_prob: np.ndarray


def beam_search(
    word_scores: np.ndarray,
    history_weights: np.ndarray,
    lengths: np.ndarray,
    beam: int,
) -> Beam:
    """The most probable well-formed taggings of each sentence.

    word_scores (np.ndarray): Scores of the tags of each word. Shape: (T, K).
    history_weights (np.ndarray): Scores of the tags after two others, of which K is the
        one before a sentence. Shape: (K + 1, K + 1, K).
    lengths (np.ndarray): Words of each sentence, at least 1. Shape: (S,).
    beam (int): Hypotheses that are kept at every word, at least 1.
    RETURNS (Beam): The hypotheses; taggings of equal probability in a fixed order.

    Cost: O(T beam K) time.
    """
    n_words, n_tags = word_scores.shape
    successors = _Successors(history_weights)
    tags = np.zeros((beam, n_words), dtype=np.min_scalar_type(n_tags))
    log_prob = np.full((beam, len(lengths)), -np.inf)
    first = np.cumsum(lengths) - lengths
    for block in _blocks(lengths, beam):
        found, scores = _search(
            word_scores, successors, first[block], lengths[block], beam
        )
        log_prob[:, block] = scores.T
        absent = np.isneginf(scores)
        # Step t of the block's sentences that are longer than t.
        for step, step_tags in enumerate(found):
            step_tags[absent[: len(step_tags)]] = OUTSIDE
            tags[:, first[block[: len(step_tags)]] + step] = step_tags.T
    return Beam(tags, log_prob)


def _blocks(lengths: np.ndarray, beam: int) -> Iterator[np.ndarray]:
    """Sentences of similar length, the longest first."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        room = BLOCK_CELLS // (int(lengths[order[start]]) * beam)
        size = min(max(room, 1), BLOCK_SENTENCES)
        yield order[start : start + size]
        start += size


class _Successors:
    """The tags that may follow a history: N, every S, and at most one C.

    There are 2 + (K - 1) / 2 of them, in place of K.
    """

    def __init__(self, history_weights: np.ndarray):
        n_tags = history_weights.shape[-1]
        self.n_tags = n_tags
        self.all = history_weights.reshape(-1, n_tags)
        last = np.arange(n_tags + 1)
        # The C of S and of C; a dummy of N and of the sentence's border.
        self.continuation = np.where(last % 2 == 1, last + 1, last)
        self.continuation[[0, n_tags]] = 0
        # N and the S of every label.
        self.anywhere = np.concatenate(([0], np.arange(1, n_tags, 2)))
        self.may_continue = self.continuation > 0

    def tags(self, last: np.ndarray, choice: np.ndarray) -> np.ndarray:
        """Tag of a choice, of which the last is C."""
        is_continuation = choice == len(self.anywhere)
        plain = self.anywhere[np.where(is_continuation, 0, choice)]
        return np.where(is_continuation, self.continuation[last], plain)


def _search(
    word_scores: np.ndarray,
    successors: _Successors,
    first: np.ndarray,
    lengths: np.ndarray,
    beam: int,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Search sentences that are sorted by length, the longest first."""
    n_sentences, n_tags = len(lengths), successors.n_tags
    n_choices = len(successors.anywhere) + 1
    log_prob = np.full((n_sentences, beam), -np.inf)
    log_prob[:, 0] = 0.0
    second_last = np.full((n_sentences, beam), n_tags)
    last = np.full((n_sentences, beam), n_tags)
    active_at = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    parents: list[np.ndarray] = []
    tags: list[np.ndarray] = []
    for step, active in enumerate(active_at.tolist()):
        now = last[:active]
        history = second_last[:active] * (n_tags + 1) + now
        scores = successors.all[history]
        scores += word_scores[first[:active] + step][:, None, :]
        kept = log_prob[:active] - log_normalizer(scores)
        choices = np.empty((active, beam, n_choices))
        choices[:, :, :-1] = scores[:, :, successors.anywhere]
        continued = np.take_along_axis(
            scores, successors.continuation[now][:, :, None], axis=2
        )[:, :, 0]
        choices[:, :, -1] = np.where(successors.may_continue[now], continued, -np.inf)
        choices += kept[:, :, None]
        flat = choices.reshape(active, beam * n_choices)
        best = np.argpartition(-flat, beam - 1, axis=1)[:, :beam]
        log_prob[:active] = np.take_along_axis(flat, best, axis=1)
        parent, choice = np.divmod(best, n_choices)
        before = np.take_along_axis(now, parent, axis=1)
        chosen = successors.tags(before, choice)
        second_last[:active], last[:active] = before, chosen
        parents.append(parent.astype(np.min_scalar_type(beam)))
        tags.append(chosen.astype(np.min_scalar_type(n_tags)))
    order = np.argsort(-log_prob, axis=1, kind="stable")
    return _trace_back(parents, tags, order), np.take_along_axis(log_prob, order, 1)


def _trace_back(
    parents: list[np.ndarray], tags: list[np.ndarray], order: np.ndarray
) -> list[np.ndarray]:
    """The tags of the finished hypotheses, step by step."""
    place = order.copy()
    traced = []
    for parent, tag in zip(reversed(parents), reversed(tags), strict=True):
        here = place[: len(tag)]
        traced.append(np.take_along_axis(tag, here, axis=1))
        place[: len(tag)] = np.take_along_axis(parent, here, axis=1)
    return traced[::-1]
