"""The two families of probabilities that generate words and the ends of segments."""

from dataclasses import dataclass

import numpy as np

from .counts import Events, unique_rows
from .sparse import SparseRows
from .weights import backoff_weight, count_histories


@dataclass(frozen=True)
class WordRows:
    """Families F and W as far as they depend on one pair <w, f>, for a batch's pairs.

    first (np.ndarray): F: Pr(<w,f> | class, class before). Shape: (U, N, N + 1).
    end (np.ndarray): W: Pr(+end+ | <w,f>, class). Shape: (U, N).
    to_unigram, to_bottom (np.ndarray): As a history of W, the weight of level 2 and of
        all levels below it. Shape: (U, N).
    unigram, bottom (np.ndarray): As an outcome of W: level 2, and the mixture of the
        levels below. Shape: (U, N).
    """

    first: np.ndarray
    end: np.ndarray
    to_unigram: np.ndarray
    to_bottom: np.ndarray
    unigram: np.ndarray
    bottom: np.ndarray


class WordFamilies:
    """F: Pr(<w,f> | class, class before), and W: Pr(<w,f> or +end+ | <w,f>, class).

    Source: Bikel et al. 1999, Eq. 3.3 (right), 3.4 and 3.5. Level 2 of W includes
    +end+, the levels of F do not (A-7). The uniform levels are over features times
    words, with +end+ as one outcome more in W (A-8).
    """

    def __init__(
        self, events: Events, n_classes: int, n_features: int, product_level: bool
    ):
        """Derive the levels from the counts.

        events (Events): The counts.
        n_classes (int): Name classes, NOT-A-NAME included (N).
        n_features (int): Word features.
        product_level (bool): Whether Pr(w | NC) Pr(f | NC) has weight (A-6).
        """
        self._n_classes = n_classes
        self._n_pairs = len(events.pairs)
        n_words = len(np.unique(events.pairs // n_features))
        w, f = events.next_word, events.first_word
        is_end = w[:, 1] == self._n_pairs
        # Tokens as outcomes: first words and continuations.
        outcomes, outcome_counts = unique_rows(
            np.concatenate((f[:, [0, 2]], w[~is_end][:, 1:])),
            np.concatenate(
                (events.first_word_counts, events.next_word_counts[~is_end])
            ),
        )
        self._tokens = self._by_class(outcomes[:, 1], outcome_counts)
        self._distinct = self._by_class(outcomes[:, 1])
        self._segments = self._by_class(w[is_end, 2], events.next_word_counts[is_end])
        self._add_product(events, outcomes, outcome_counts, n_features, product_level)
        weight4 = backoff_weight(
            self._tokens, self._distinct_words, 0.0 if product_level else self._tokens
        )
        # Below F3 and below W2: the weight of the product level, and what is uniform.
        self._product_weight = weight4
        self._uniform_f = (1 - weight4) / (n_features * n_words)
        self._uniform_w = (1 - weight4) / (n_features * n_words + 1)
        starts = self._add_first(events)
        self._add_pairs(events, is_end, starts, outcomes, outcome_counts)

    def _by_class(
        self, classes: np.ndarray, counts: np.ndarray | None = None
    ) -> np.ndarray:
        return np.bincount(classes, counts, minlength=self._n_classes).astype(float)

    def _add_product(
        self,
        events: Events,
        outcomes: np.ndarray,
        counts: np.ndarray,
        n_features: int,
        product_level: bool,
    ) -> None:
        """Pr(w | NC) and Pr(f | NC)."""
        pairs, classes = events.pairs[outcomes[:, 0]], outcomes[:, 1]
        words, word_counts = unique_rows(
            np.stack((pairs // n_features, classes), axis=1), counts
        )
        self._distinct_words = self._by_class(words[:, 1])
        self._word: SparseRows | None = None
        if product_level:
            values = word_counts / self._tokens[words[:, 1]]
            self._word = SparseRows(words[:, 0], words[:, 1:], values)
        self._feature = np.zeros((n_features, self._n_classes))
        np.add.at(self._feature, (pairs % n_features, classes), counts)
        self._feature /= np.maximum(self._tokens, 1)

    def _add_first(self, events: Events) -> tuple[np.ndarray, np.ndarray]:
        """Levels 1 to 3 of F.

        RETURNS (tuple[np.ndarray, np.ndarray]): (pair, class) of first words, and their
            share among all first words of the class (F2).
        """
        f, n = events.first_word, self._n_classes
        c1, u1 = np.zeros((2, n, n + 1))
        np.add.at(c1, (f[:, 2], f[:, 1]), events.first_word_counts)
        np.add.at(u1, (f[:, 2], f[:, 1]), 1)
        first, first_counts = unique_rows(f[:, [0, 2]], events.first_word_counts)
        c2 = self._by_class(first[:, 1], first_counts)
        u2 = self._by_class(first[:, 1])
        weight1, weight3 = (
            backoff_weight(c1, u1),
            backoff_weight(self._tokens, self._distinct, c2),
        )
        weight2 = backoff_weight(c2[:, None], u2[:, None], c1)
        self._to_first2 = (1 - weight1) * weight2
        self._to_first3 = (1 - weight1) * (1 - weight2)
        self._first3 = weight3
        history = (f[:, 2], f[:, 1])
        self._first1 = SparseRows(
            f[:, 0],
            f[:, [2, 1]],
            weight1[history] * events.first_word_counts / c1[history],
            self._n_pairs,
        )
        return first, first_counts / c2[first[:, 1]]

    def _add_pairs(
        self,
        events: Events,
        is_end: np.ndarray,
        starts: tuple[np.ndarray, np.ndarray],
        outcomes: np.ndarray,
        outcome_counts: np.ndarray,
    ) -> None:
        """All that hangs on (pair, class), as differences to an unseen history."""
        n, w = self._n_classes, events.next_word
        c2, u2 = self._tokens + self._segments, self._distinct + 1
        end2 = self._segments / np.maximum(c2, 1)
        self._unigram_scale = self._tokens / np.maximum(c2, 1)
        self._unseen = backoff_weight(c2, u2)
        self._unseen_end = self._unseen * end2 + (1 - self._unseen) * self._uniform_w

        keys = w[:, 0] * n + w[:, 2]
        first, place, c1, u1 = count_histories(keys, events.next_word_counts)
        at = w[first, 2]
        weight1, weight2 = backoff_weight(c1, u1), backoff_weight(c2[at], u2[at], c1)
        direct = weight1[place] * events.next_word_counts / c1[place]
        to_unigram, to_bottom = (1 - weight1) * weight2, (1 - weight1) * (1 - weight2)
        end = to_unigram * end2[at] + to_bottom * self._uniform_w[at]
        end[place[is_end]] += direct[is_end]

        parts = (
            (keys[first], 0, to_unigram - self._unseen[at]),
            (keys[first], 1, to_bottom - (1 - self._unseen[at])),
            (keys[first], 2, end - self._unseen_end[at]),
            (outcomes[:, 0] * n + outcomes[:, 1], 3, outcome_counts),
            (starts[0][:, 0] * n + starts[0][:, 1], 4, starts[1]),
        )
        every = np.unique(np.concatenate([part_keys for part_keys, _, _ in parts]))
        values = np.zeros((len(every), 5))
        for part_keys, column, part in parts:
            values[np.searchsorted(every, part_keys), column] = part
        values[:, 3] /= np.maximum(self._tokens[every % n], 1)
        self._pairs = SparseRows(every // n, every[:, None] % n, values, self._n_pairs)
        self._bigrams = SparseRows(
            w[~is_end, 0] * self._n_pairs + w[~is_end, 1],
            w[~is_end][:, 2:],
            direct[~is_end],
        )

    def rows(
        self, pairs: np.ndarray, words: np.ndarray, features: np.ndarray
    ) -> WordRows:
        """Both families, as far as they depend on one pair.

        pairs (np.ndarray): Numbers of the pairs, -1 for those never seen. Shape: (U,).
        words, features (np.ndarray): Their word and feature numbers. Shape: (U,).
        RETURNS (WordRows): The rows of each pair.
        """
        values = np.zeros((len(pairs), self._n_classes, 5))
        values[:, :, 0], values[:, :, 1] = self._unseen, 1 - self._unseen
        values[:, :, 2] = self._unseen_end
        self._pairs.add_to(values, pairs)
        to_unigram, to_bottom, end, unigram, first2 = np.moveaxis(values, 2, 0)
        product: np.ndarray | float = 0.0
        if self._word is not None:
            product = np.zeros((len(pairs), self._n_classes))
            self._word.add_to(product, words)
            product *= self._product_weight * self._feature[features]
        below = (1 - self._first3) * (product + self._uniform_f)
        first3 = self._first3 * unigram + below
        first = first2[:, :, None] * self._to_first2
        first += first3[:, :, None] * self._to_first3
        self._first1.add_to(first, pairs)
        return WordRows(
            first=first,
            end=end,
            to_unigram=to_unigram,
            to_bottom=to_bottom,
            unigram=unigram * self._unigram_scale,
            bottom=np.broadcast_to(product + self._uniform_w, end.shape),
        )

    def add_bigrams(
        self, dense: np.ndarray, previous: np.ndarray, current: np.ndarray
    ) -> None:
        """Add lambda1 p1 of family W to a dense array, in place.

        dense (np.ndarray): Shape: (T, N).
        previous, current (np.ndarray): Numbers of pairs, -1 if never seen. Shape: (T,).
        """
        seen = (previous >= 0) & (current >= 0)
        self._bigrams.add_to(
            dense, np.where(seen, previous * self._n_pairs + current, -1)
        )
