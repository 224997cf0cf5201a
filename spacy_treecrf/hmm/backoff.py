"""The back-off chains of IdentiFinder and their weights.

Every probability is a mixture of levels from the most to the least specific history,

    p = l1 p1 + (1 - l1) [ l2 p2 + (1 - l2) [ ... + (1 - lk) uniform ] ],

and every family sums to one over its outcomes after any history, seen or not. Nothing
is tabulated in full: of each level the sparse difference to what an unseen history
gives is kept, and a batch asks for the rows that its own words need. Memory does not
grow with words times classes squared.

Source: Bikel et al. 1999, Table 3.2 and Eq. 3.10.
"""

import numpy as np

from .counts import Events
from .name_class import NameClassFamily
from .words import WordFamilies, WordRows


class BackoffModel:
    """The three smoothed families over one set of counts."""

    def __init__(
        self,
        events: Events,
        n_classes: int,
        n_features: int,
        *,
        product_level: bool = False,
        punctuation_context: bool = True,
    ):
        """Derive every level from the counts.

        events (Events): The counts.
        n_classes (int): Name classes, NOT-A-NAME included (N).
        n_features (int): Word features.
        product_level (bool): Whether Pr(w | NC) Pr(f | NC) has weight. As printed its
            history is that of the level above, so Eq. 3.10 gives it none (A-6).
        punctuation_context (bool): Whether family N sees one word more behind a
            punctuation mark (section 6.2).
        """
        self.n_features = n_features
        self.pairs = events.pairs
        self.words = np.unique(events.pairs // n_features)
        self._punctuation_context = punctuation_context
        n_words = int(self.words.max(initial=0)) + 1
        self._name_class = NameClassFamily(events, n_classes, n_words)
        self._words = WordFamilies(events, n_classes, n_features, product_level)
        self.add_bigrams = self._words.add_bigrams

    def name_class(self, before: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """Family N for some contexts; see `NameClassFamily`.

        before, beyond (np.ndarray): The word before a segment, and the one before that
            where `before` is punctuation, else -1. Shapes: (U,).
        RETURNS (np.ndarray): Shape: (U, N + 1 outcomes, N + 1 histories).
        """
        if not self._punctuation_context:
            beyond = np.full_like(beyond, -1)
        return self._name_class(before, beyond)

    def pair_numbers(self, words: np.ndarray, features: np.ndarray) -> np.ndarray:
        """The model's own numbers of some pairs.

        words, features (np.ndarray): Word and feature numbers. Shape: (U,).
        RETURNS (np.ndarray): Places in `pairs`, -1 for those never seen. Shape: (U,).
        """
        keys = words * self.n_features + features
        at = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
        return np.where(self.pairs[at] == keys, at, -1)

    def word_rows(self, words: np.ndarray, features: np.ndarray) -> WordRows:
        """Families F and W, as far as they depend on one pair; see `WordRows`.

        words, features (np.ndarray): Word and feature numbers. Shape: (U,).
        RETURNS (WordRows): The rows of each pair.
        """
        return self._words.rows(self.pair_numbers(words, features), words, features)
