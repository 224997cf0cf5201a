"""The family of probabilities that choose the next name class."""

import numpy as np

from .counts import Events
from .sparse import SparseRows
from .weights import backoff_weight, count_histories


class NameClassFamily:
    """N: Pr(class | class before, word before), down to 1 / (N + 1).

    Source: Bikel et al. 1999, Eq. 3.3 (left) and 3.6. The uniform level is over the N
    classes and END-OF-SENTENCE (A-8).
    """

    def __init__(self, events: Events, n_classes: int, n_words: int):
        """Derive the levels from the counts.

        events (Events): The counts.
        n_classes (int): Name classes, NOT-A-NAME included (N).
        n_words (int): One more than the largest word number.
        """
        n = self._size = n_classes + 1
        before, outcome = events.name_class[:, 1], events.name_class[:, 2]
        table = np.zeros((n, n))  # class before, class
        np.add.at(table, (before, outcome), events.name_class_counts)
        c2, u2 = table.sum(axis=1), (table > 0).sum(axis=1)
        total = table.sum(axis=0)
        c3, u3 = total.sum(), (total > 0).sum()
        weight3 = backoff_weight(c3, u3, c2)
        self._level2 = (table / np.maximum(c2, 1)[:, None]).T
        self._below = weight3 * (total / max(c3, 1))[:, None] + (1 - weight3) / n

        first, place, c1, u1 = count_histories(
            events.name_class[:, 0] * n + before, events.name_class_counts
        )
        at = before[first]
        weight1, weight2 = backoff_weight(c1, u1), backoff_weight(c2[at], u2[at], c1)
        self._unseen = backoff_weight(c2, u2)
        unseen = self._unseen[at]
        to_level2, to_below = (1 - weight1) * weight2, (1 - weight1) * (1 - weight2)
        self._history = SparseRows(
            events.name_class[first, 0],
            at[:, None],
            np.stack((to_level2 - unseen, to_below - (1 - unseen)), axis=1),
            n_words,
        )
        self._direct = SparseRows(
            events.name_class[:, 0],
            events.name_class[:, [2, 1]],
            weight1[place] * events.name_class_counts / c1[place],
            n_words,
        )
        self._add_level_above(events, n_words)

    def _add_level_above(self, events: Events, n_words: int) -> None:
        """The level whose history has the word beyond a punctuation mark too."""
        rows, counts = events.beside_punctuation, events.beside_punctuation_counts
        self._n_words = n_words
        keys = rows[:, 1] * n_words + rows[:, 0]
        first, place, c, u = count_histories(keys * self._size + rows[:, 2], counts)
        weight = backoff_weight(c, u)
        self._above = SparseRows(keys[first], rows[first, 2:3], -weight)
        self._above_direct = SparseRows(
            keys, rows[:, [3, 2]], weight[place] * counts / np.maximum(c, 1)[place]
        )

    def __call__(self, before: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """The family for some contexts.

        before (np.ndarray): Number of the word before the new segment. Shape: (U,).
        beyond (np.ndarray): The word before that, where `before` is punctuation; -1
            for "not used". Shape: (U,).
        RETURNS (np.ndarray): Pr(class | class before, words); the last class is
            END-OF-SENTENCE as an outcome, START-OF-SENTENCE as a history.
            Shape: (U, N + 1 outcomes, N + 1 histories).

        Source: Bikel et al. 1999, section 6.2 for the level above, whose existence does
        not change the weights below it.
        """
        weights = np.empty((len(before), self._size, 2))
        weights[:, :, 0], weights[:, :, 1] = self._unseen, 1 - self._unseen
        self._history.add_to(weights, before)
        p = weights[:, None, :, 0] * self._level2
        p += weights[:, None, :, 1] * self._below
        self._direct.add_to(p, before)
        used = np.flatnonzero(beyond >= 0)
        if len(used):
            keys = before[used] * self._n_words + beyond[used]
            bow = np.ones((len(used), self._size))
            self._above.add_to(bow, keys)
            mixed = bow[:, None, :] * p[used]
            self._above_direct.add_to(mixed, keys)
            p[used] = mixed
        return p
