"""The back-off chains of IdentiFinder and their weights.

Every probability is a mixture of levels from the most to the least specific history,

    p = l1 p1 + (1 - l1) [ l2 p2 + (1 - l2) [ ... + (1 - lk) uniform ] ],

and every family sums to one over its outcomes after any history, seen or not. Nothing
is tabulated in full: the sparse counts are kept and a batch asks for the rows that its
own words need, so memory does not grow with words times classes squared.

Source: Bikel et al. 1999, Table 3.2 and Eq. 3.10.
"""

from dataclasses import dataclass

import numpy as np

from .counts import Events, unique_rows


def backoff_weight(
    c: np.ndarray, u: np.ndarray, old: np.ndarray | float = 0.0
) -> np.ndarray:
    """The weight lambda of a level, against all levels below it.

    c (np.ndarray): Sample size of the history.
    u (np.ndarray): Distinct outcomes seen after it.
    old (np.ndarray): Sample size of the level above for the same query, 0 at the top.
    RETURNS (np.ndarray): (1 - old / c) * c / (c + u), the first factor clipped to
        [0, 1]; 0 where c is 0.

    Source: Bikel et al. 1999, Eq. 3.10. The second factor is Witten-Bell's; the first
    switches a level off that knows no more than the level above it.
    """
    c, u, old = np.broadcast_arrays(
        np.asarray(c, dtype=np.float64), np.asarray(u, dtype=np.float64), old
    )
    seen = np.maximum(c, 1.0)
    return np.where(c > 0, np.clip(1 - old / seen, 0, 1) * (c / (seen + u)), 0.0)


class Rows:
    """Sparse rows of values, grouped by an ascending key."""

    def __init__(self, keys: np.ndarray, columns: np.ndarray, values: np.ndarray):
        """Group rows.

        keys (np.ndarray): The key of each row, in any order. Shape: (m,).
        columns (np.ndarray): Positions in the dense result. Shape: (m, k).
        values (np.ndarray): The values. Shape: (m,).
        """
        order = np.argsort(keys, kind="stable")
        self.keys, start = np.unique(keys[order], return_index=True)
        self.start = np.append(start, len(keys))
        self.columns = columns[order]
        self.values = np.asarray(values, dtype=np.float64)[order]

    def add_to(self, dense: np.ndarray, keys: np.ndarray) -> None:
        """Add the rows of some keys to a dense array, in place.

        dense (np.ndarray): Shape: (len(keys), ...), the rest indexed by the columns.
        keys (np.ndarray): One key a first index; those without rows add nothing.
        """
        if not len(self.keys):
            return
        group = np.searchsorted(self.keys, keys)
        group[group == len(self.keys)] = 0
        found = np.flatnonzero(self.keys[group] == keys)
        group = group[found]
        sizes = self.start[group + 1] - self.start[group]
        target = np.repeat(found, sizes)
        offset = np.repeat(self.start[group] - (np.cumsum(sizes) - sizes), sizes)
        source = np.arange(len(target)) + offset
        # Rows of one key have distinct columns: no position is written twice.
        place = (target, *self.columns[source].T)
        dense[place] += self.values[source]


@dataclass(frozen=True)
class WordRows:
    """Probabilities that depend on one pair <w, f>, for the pairs of a batch.

    first (np.ndarray): F: Pr(<w,f> | class, class before). Shape: (U, N, N + 1).
    end (np.ndarray): W: Pr(+end+ | <w,f>, class). Shape: (U, N).
    bow, switch (np.ndarray): As a history of W: 1 - lambda1, and lambda2.
        Shape: (U, N).
    unigram, bottom (np.ndarray): As an outcome of W: level 2, and the mixture of the
        levels below. Shape: (U, N).
    """

    first: np.ndarray
    end: np.ndarray
    bow: np.ndarray
    switch: np.ndarray
    unigram: np.ndarray
    bottom: np.ndarray


class BackoffModel:
    """The three smoothed families, over one set of counts."""

    def __init__(
        self,
        events: Events,
        n_classes: int,
        n_features: int,
        *,
        product_level: bool = False,
        punctuation_context: bool = True,
    ):
        """Derive every level's sample size and distinct outcomes from the counts.

        events (Events): The counts.
        n_classes (int): Name classes, NOT-A-NAME included (N).
        n_features (int): Word features.
        product_level (bool): Whether Pr(w | NC) Pr(f | NC) has weight. As printed its
            history is that of the level above, so Eq. 3.10 gives it none.
        punctuation_context (bool): Whether family N sees one word more behind a
            punctuation mark (section 6.2).
        """
        self.n_classes = n_classes
        self.n_features = n_features
        self.product_level = product_level
        self.punctuation_context = punctuation_context
        self.pairs = events.pairs
        self.words = np.unique(events.pairs // n_features)
        self._add_name_class(events)
        self._add_words(events)

    # Family N: Pr(class | class before, word before).

    def _add_name_class(self, events: Events) -> None:
        n = self.n_classes + 1
        before, outcome = events.name_class[:, 1], events.name_class[:, 2]
        counts = events.name_class_counts
        table = np.zeros((n, n))  # class before, class
        np.add.at(table, (before, outcome), counts)
        self._n2_c, n2_u = table.sum(1), (table > 0).sum(1)
        self._n2_u = n2_u
        total = table.sum(0)
        c3, u3 = total.sum(), (total > 0).sum()
        self._n2 = (table / np.maximum(self._n2_c, 1)[:, None]).T
        weight3 = backoff_weight(c3, u3, self._n2_c)
        self._n3 = weight3 * (total / c3)[:, None] + (1 - weight3) / n
        self._n1 = _direct_and_history(events.name_class, counts)
        # Words before a boundary behind punctuation: one key for (beyond, before).
        self._beyond_size = int(events.pairs.max(initial=0)) // self.n_features + 1
        rows = events.beside_punctuation
        keyed = np.concatenate(
            ((rows[:, 1] * self._beyond_size + rows[:, 0])[:, None], rows[:, 2:]),
            axis=1,
        )
        self._n0 = _direct_and_history(keyed, events.beside_punctuation_counts)

    def name_class(self, before: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """Family N for some contexts.

        before (np.ndarray): Number of the word before the new segment. Shape: (U,).
        beyond (np.ndarray): The word before that; it counts only where `before` is
            punctuation, and -1 stands for "not used". Shape: (U,).
        RETURNS (np.ndarray): Pr(class | class before, words); the last class is
            END-OF-SENTENCE as an outcome, START-OF-SENTENCE as a history.
            Shape: (U, N + 1 outcomes, N + 1 histories).

        Source: Bikel et al. 1999, Eq. 3.3 and 3.6; A-8 for the uniform level: N classes
        and END.
        """
        n = self.n_classes + 1
        direct, c, u = self._n1
        c1, u1 = np.zeros((2, len(before), n))
        c.add_to(c1, before)
        u.add_to(u1, before)
        bow = 1 - backoff_weight(c1, u1)
        weight2 = backoff_weight(self._n2_c, self._n2_u, c1)
        p = (bow * weight2)[:, None, :] * self._n2
        p += (bow * (1 - weight2))[:, None, :] * self._n3
        direct.add_to(p, before)
        if self.punctuation_context:
            self._add_beyond(p, before, beyond)
        return p

    def _add_beyond(
        self, p: np.ndarray, before: np.ndarray, beyond: np.ndarray
    ) -> None:
        """Mix in the level above N1, in place."""
        known = np.flatnonzero((beyond >= 0) & (beyond < self._beyond_size))
        if not len(known):
            return
        keys = before[known] * self._beyond_size + beyond[known]
        direct, c, u = self._n0
        c0, u0 = np.zeros((2, len(keys), self.n_classes + 1))
        c.add_to(c0, keys)
        u.add_to(u0, keys)
        mixed = (1 - backoff_weight(c0, u0))[:, None, :] * p[known]
        direct.add_to(mixed, keys)
        p[known] = mixed

    # Families F and W.

    def _add_words(self, events: Events) -> None:
        n, n_pairs = self.n_classes, len(events.pairs)
        w, f = events.next_word, events.first_word
        is_end = w[:, 1] == n_pairs
        inner, inner_counts = w[~is_end], events.next_word_counts[~is_end]
        # Tokens as outcomes: first words and continuations.
        unigram, unigram_counts = unique_rows(
            np.concatenate((f[:, [0, 2]], inner[:, [1, 2]])),
            np.concatenate((events.first_word_counts, inner_counts)),
        )
        tokens = np.bincount(unigram[:, 1], unigram_counts, minlength=n)
        distinct = np.bincount(unigram[:, 1], minlength=n)
        segments = np.bincount(
            w[is_end, 2], events.next_word_counts[is_end], minlength=n
        )
        first, first_counts = unique_rows(f[:, [0, 2]], events.first_word_counts)
        starts = np.bincount(first[:, 1], first_counts, minlength=n)
        first_u = np.bincount(first[:, 1], minlength=n)
        vocabulary = len(self.words)
        uniform_f = 1 / (self.n_features * vocabulary)
        uniform_w = 1 / (self.n_features * vocabulary + 1)

        # F1: histories (class before, class), few enough to be dense.
        f1_c, f1_u = np.zeros((2, n, n + 1))
        np.add.at(f1_c, (f[:, 2], f[:, 1]), events.first_word_counts)
        np.add.at(f1_u, (f[:, 2], f[:, 1]), 1)
        bow = 1 - backoff_weight(f1_c, f1_u)
        weight2 = backoff_weight(starts[:, None], first_u[:, None], f1_c)
        weight3 = backoff_weight(tokens, distinct, starts)
        weight1 = (1 - bow)[f[:, 2], f[:, 1]] / f1_c[f[:, 2], f[:, 1]]
        self._f1 = Rows(f[:, 0], f[:, [2, 1]], weight1 * events.first_word_counts)
        self._f2_weight, self._f3_weight = bow * weight2, bow * (1 - weight2)
        self._f2 = Rows(first[:, 0], first[:, 1:], first_counts / starts[first[:, 1]])
        self._unigram = Rows(
            unigram[:, 0], unigram[:, 1:], unigram_counts / tokens[unigram[:, 1]]
        )

        # The level Pr(w | NC) Pr(f | NC): its history is the one of the level above.
        columns = np.stack(
            (events.pairs[unigram[:, 0]] // self.n_features, unigram[:, 1]), axis=1
        )
        word, word_counts = unique_rows(columns, unigram_counts)
        columns = np.stack(
            (events.pairs[unigram[:, 0]] % self.n_features, unigram[:, 1]), axis=1
        )
        word_u = np.bincount(word[:, 1], minlength=n)
        self._word = Rows(word[:, 0], word[:, 1:], word_counts / tokens[word[:, 1]])
        self._feature = np.zeros((self.n_features, n))
        np.add.at(self._feature, tuple(columns.T), unigram_counts)
        self._feature /= np.maximum(tokens, 1)
        weight4 = backoff_weight(tokens, word_u, 0 if self.product_level else tokens)
        self._f3 = weight3
        self._f4, self._f5 = (
            (1 - weight3) * weight4,
            (1 - weight3) * (1 - weight4) * uniform_f,
        )
        self._w3, self._w4 = weight4, (1 - weight4) * uniform_w

        # W1: histories (pair, class).
        self._w2_c, self._w2_u = tokens + segments, distinct + 1
        seen_w2 = np.maximum(self._w2_c, 1)
        self._w2_end, self._w2_scale = segments / seen_w2, tokens / seen_w2
        at, place, c, u = _count_histories(
            w[:, 0] * n + w[:, 2], events.next_word_counts
        )
        self._w1_c = Rows(w[at, 0], w[at, 2:], c)
        self._w1_u = Rows(w[at, 0], w[at, 2:], u)
        value = backoff_weight(c, u)[place] * events.next_word_counts / c[place]
        self._w1_end = Rows(w[is_end, 0], w[is_end][:, 2:], value[is_end])
        self._w1 = Rows(
            inner[:, 0] * n_pairs + inner[:, 1], inner[:, 2:], value[~is_end]
        )

    def pair_numbers(self, words: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The model's own numbers of some pairs, -1 for those never seen.

        words, features (np.ndarray): Word and feature numbers. Shape: (U,).
        RETURNS (np.ndarray): Positions in `pairs`. Shape: (U,).
        """
        keys = words * self.n_features + features
        at = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
        return np.where(self.pairs[at] == keys, at, -1)

    def word_rows(self, words: np.ndarray, features: np.ndarray) -> WordRows:
        """Families F and W, as far as they depend on one pair.

        words, features (np.ndarray): Word and feature numbers. Shape: (U,).
        RETURNS (WordRows): The rows of each pair.

        Source: Bikel et al. 1999, Eq. 3.3-3.5; Table 3.2. Level 2 of W includes +end+,
        the levels of F do not (A-7).
        """
        pair = self.pair_numbers(words, features)
        shape = (len(pair), self.n_classes)
        unigram, first, by_word, c1, u1, end = np.zeros((6, *shape))
        self._unigram.add_to(unigram, pair)
        self._f2.add_to(first, pair)
        self._w1_c.add_to(c1, pair)
        self._w1_u.add_to(u1, pair)
        self._w1_end.add_to(end, pair)
        if self.product_level:
            self._word.add_to(by_word, words)
            by_word *= self._feature[features]
        bottom_f = self._f3 * unigram + self._f4 * by_word + self._f5
        f = first[:, :, None] * self._f2_weight
        f += bottom_f[:, :, None] * self._f3_weight
        self._f1.add_to(f, pair)
        bow = 1 - backoff_weight(c1, u1)
        switch = backoff_weight(self._w2_c, self._w2_u, c1)
        end += bow * (switch * self._w2_end + (1 - switch) * self._w4)
        return WordRows(
            first=f,
            end=end,
            bow=bow,
            switch=switch,
            unigram=unigram * self._w2_scale,
            bottom=self._w3 * by_word + self._w4,
        )

    def add_bigrams(
        self, dense: np.ndarray, previous: np.ndarray, current: np.ndarray
    ) -> None:
        """Add lambda1 p1 of family W to a dense array, in place.

        dense (np.ndarray): Shape: (T, N).
        previous, current (np.ndarray): Numbers of `pair_numbers`. Shape: (T,).
        """
        seen = (previous >= 0) & (current >= 0)
        self._w1.add_to(dense, np.where(seen, previous * len(self.pairs) + current, -1))


def _count_histories(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sizes of histories, given the history of each distinct event.

    keys (np.ndarray): One number a history. Shape: (m,).
    counts (np.ndarray): Count of each event. Shape: (m,).
    RETURNS (tuple[np.ndarray, ...]): First event of each history, the history's place
        of each event, c and u of each history.
    """
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place, np.bincount(place, counts), np.bincount(place)


def _direct_and_history(
    rows: np.ndarray, counts: np.ndarray
) -> tuple[Rows, Rows, Rows]:
    """Level-1 values and history sizes of family N.

    rows (np.ndarray): (key, class before, class). Shape: (m, 3).
    counts (np.ndarray): Count of each row. Shape: (m,).
    RETURNS (tuple[Rows, Rows, Rows]): lambda * c(event) / c(history), indexed by (class,
        class before); c and u of each history, indexed by class before.
    """
    width = int(rows[:, 1].max(initial=0)) + 1
    first, place, c, u = _count_histories(rows[:, 0] * width + rows[:, 1], counts)
    value = backoff_weight(c, u)[place] * counts / c[place]
    return (
        Rows(rows[:, 0], rows[:, [2, 1]], value),
        Rows(rows[first, 0], rows[first, 1:2], c),
        Rows(rows[first, 0], rows[first, 1:2], u),
    )
