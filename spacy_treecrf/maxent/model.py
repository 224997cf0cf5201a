"""The conditional model of a tag, given the words around it and the two tags before it.

p(t | h) = exp(sum of the weights of (t, predicate of h)) / the same summed over all tags

Tags are numbers: 0 outside (N), 1 + 2x the start (S) of an entity of label x, 2 + 2x its
continuation (C); `n_tags` stands for a tag before the sentence.

Source: Collins (2002), section 2.2; Ratnaparkhi (1996).
"""

from typing import Any

import numpy as np

from .features import WordBatch, WordPredicates

OUTSIDE = 0


def count_tags(n_labels: int) -> int:
    """RETURNS (int): Tags of a model of so many labels."""
    return 1 + 2 * n_labels


def tag_entities(
    n_words: int, start: np.ndarray, end: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Write disjoint entities as tags.

    n_words (int): Words of the text.
    start, end (np.ndarray): Half-open word offsets of the entities. Shape: (M,).
    labels (np.ndarray): Their labels. Shape: (M,).
    RETURNS (np.ndarray): The tags. Shape: (T,).
    """
    # +1 where an entity starts, -1 behind its end: its sum so far is 1 inside.
    inside = np.zeros(n_words + 1, dtype=np.int64)
    np.add.at(inside, start, 2 + 2 * labels)
    np.subtract.at(inside, end, 2 + 2 * labels)
    tags = np.cumsum(inside)[:-1]
    tags[start] -= 1
    return tags


def history_numbers(
    tags: np.ndarray, lengths: np.ndarray, n_tags: int
) -> tuple[np.ndarray, np.ndarray]:
    """The two tags before each word.

    tags (np.ndarray): Tags of the words. Shape: (T,).
    lengths (np.ndarray): Words of each sentence. Shape: (S,).
    n_tags (int): Tags of the model, also the number of the tag before a sentence.
    RETURNS (tuple[np.ndarray, np.ndarray]): Second last and last tag. Shapes: (T,).
    """
    first = np.cumsum(lengths) - lengths
    last = np.roll(tags, 1)
    last[first] = n_tags
    second_last = np.roll(last, 1)
    second_last[first] = n_tags
    return second_last, last


class MaxEntModel:
    """The weights, as one table of the words' predicates and one of the histories."""

    def __init__(
        self,
        predicates: WordPredicates,
        n_labels: int,
        features: np.ndarray,
        weights: np.ndarray,
    ):
        """Spread the weights over their tables.

        predicates (WordPredicates): The predicates of words.
        n_labels (int): Labels, at least 1.
        features (np.ndarray): The features that have a weight, each as (column of its
            predicate) * (number of tags) + tag; behind the words' columns come those of
            the last tag and of the last two tags. Shape: (F,), int64.
        weights (np.ndarray): Their weights. Shape: (F,), float32.
        """
        self.predicates = predicates
        self.n_labels = n_labels
        self.features, self.weights = features, weights
        n_tags, n_words = count_tags(n_labels), predicates.n_columns
        columns = n_words + (n_tags + 1) + (n_tags + 1) ** 2
        table = np.zeros((columns, n_tags))
        table.reshape(-1)[features] = weights
        last = table[n_words : n_words + n_tags + 1]
        last_two = table[n_words + n_tags + 1 :].reshape(n_tags + 1, n_tags + 1, n_tags)
        # Row `n_columns` is that of unknown predicates.
        self.word_weights = np.concatenate((table[:n_words], np.zeros((1, n_tags))))
        # By second last tag, last tag, tag.
        self.history_weights = last_two + last

    @property
    def n_tags(self) -> int:
        """RETURNS (int): Tags of the model."""
        return count_tags(self.n_labels)

    def word_scores(self, batch: WordBatch) -> np.ndarray:
        """Sum of the weights of the predicates of words.

        batch (WordBatch): The sentences.
        RETURNS (np.ndarray): For each word and tag. Shape: (T, K).
        """
        columns = self.predicates.encode(batch)
        scores = self.word_weights[columns[:, 0]]
        for column in columns.T[1:]:
            scores += self.word_weights[column]
        return scores

    def log_prob(self, batch: WordBatch, tags: np.ndarray) -> np.ndarray:
        """Log probability of a tagging of each sentence.

        batch (WordBatch): The sentences.
        tags (np.ndarray): The tag of each word. Shape: (T,).
        RETURNS (np.ndarray): Sums of log p(t | h), in nats. Shape: (S,).
        """
        history = history_numbers(tags, batch.lengths, self.n_tags)
        scores = self.word_scores(batch) + self.history_weights[history]
        log_p = scores[np.arange(len(tags)), tags] - log_normalizer(scores)
        return np.add.reduceat(log_p, batch.first)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """RETURNS (tuple[dict, dict]): A header for JSON, and arrays."""
        header = {
            "predicates": self.predicates.kept,
            "lower_case": sorted(self.predicates.lower_case),
            "n_labels": self.n_labels,
        }
        return header, {"features": self.features, "weights": self.weights}

    @classmethod
    def from_arrays(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> "MaxEntModel":
        """Build the model that `to_arrays` wrote.

        header (dict[str, Any]): The header.
        arrays (dict[str, np.ndarray]): The arrays.
        RETURNS (MaxEntModel): The model.
        """
        predicates = WordPredicates(header["predicates"], header["lower_case"])
        return cls(
            predicates, header["n_labels"], arrays["features"], arrays["weights"]
        )


def log_normalizer(scores: np.ndarray) -> np.ndarray:
    """Log of the sum of the exponentials of the last axis.

    scores (np.ndarray): Shape: (..., K).
    RETURNS (np.ndarray): Shape: (...).
    """
    highest = scores.max(axis=-1)
    return np.log(np.exp(scores - highest[..., None]).sum(axis=-1)) + highest
