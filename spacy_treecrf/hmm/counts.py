"""Counts of the three families of events that a labelled corpus holds.

A sentence is a sequence of segments, each a maximal run of one name class. Family N is
the choice of a segment's name class, F its first word, W every later word and the
segment's end. Words are numbered: 0 is `+end+`, 1 is `_UNK_`, real words follow. The
last name class number, N, stands for START-OF-SENTENCE as a history and for
END-OF-SENTENCE as an outcome.

Source: Bikel et al. 1999, section 3.2.1 and Eq. 3.7-3.9.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

END_WORD = 0
UNKNOWN_WORD = 1
FIRST_WORD = 2
NOT_A_NAME = 0


@dataclass(frozen=True)
class LabelledTokens:
    """A corpus as arrays over its tokens, sentence after sentence.

    words (np.ndarray): Number of each word. Shape: (T,).
    features (np.ndarray): Number of its word feature. Shape: (T,).
    name_classes (np.ndarray): Its name class, 0 = NOT-A-NAME. Shape: (T,).
    begins (np.ndarray): Whether it is the first of its segment. Shape: (T,).
    lengths (np.ndarray): Tokens of each sentence, at least 1. Shape: (S,).
    known (Optional[np.ndarray]): Whether the name class of each is known; by default
        all are. Shape: (T,), bool.
    """

    words: np.ndarray
    features: np.ndarray
    name_classes: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray
    known: np.ndarray | None = None


@dataclass(frozen=True)
class Events:
    """Distinct events and how often each occurred, the columns as combined below.

    A pair is word * number of features + feature.

    pairs (np.ndarray): The distinct pairs <w, f>, ascending. Shape: (n,).
    next_word (np.ndarray): W: (pair before, pair or n for +end+, class). Shape: (., 3).
    first_word (np.ndarray): F: (pair, class before or N, class). Shape: (., 3).
    name_class (np.ndarray): N: (word before, class before or N, class or N).
        Shape: (., 3).
    beside_punctuation (np.ndarray): N with one word more: (last but one word, word
        before, class before, class or N), where the word before is punctuation.
        Shape: (., 4).
    *_counts (np.ndarray): How often each row occurred.
    """

    pairs: np.ndarray
    next_word: np.ndarray
    next_word_counts: np.ndarray
    first_word: np.ndarray
    first_word_counts: np.ndarray
    name_class: np.ndarray
    name_class_counts: np.ndarray
    beside_punctuation: np.ndarray
    beside_punctuation_counts: np.ndarray

    def to_arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """The counts as named arrays, whose type is as narrow as their values allow.

        prefix (str): Put before each name.
        RETURNS (dict[str, np.ndarray]): The arrays.
        """
        return {
            f"{prefix}{field.name}": _narrow(getattr(self, field.name))
            for field in fields(self)
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], prefix: str) -> "Events":
        """The counts that `to_arrays` wrote.

        arrays (dict[str, np.ndarray]): The arrays.
        prefix (str): The prefix of their names.
        RETURNS (Events): The counts.
        """
        return cls(
            **{
                field.name: arrays[f"{prefix}{field.name}"].astype(np.int64)
                for field in fields(cls)
            }
        )


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


@dataclass(frozen=True)
class RawEvents:
    """Events as they occur, not yet counted; the same columns, pairs uncompressed.

    `next_pair` of a segment's end is -1.
    """

    next_word: np.ndarray
    first_word: np.ndarray
    name_class: np.ndarray
    beside_punctuation: np.ndarray


def extract_events(
    tokens: LabelledTokens, n_classes: int, n_features: int, is_punctuation: np.ndarray
) -> RawEvents:
    """Read off every event of a corpus, but those that touch an unknown name class.

    The end of a name before an unknown token is an event: the name's extent is known.

    tokens (LabelledTokens): The corpus.
    n_classes (int): Name classes, NOT-A-NAME included.
    n_features (int): Word features.
    is_punctuation (np.ndarray): By word number, whether it has no letter or digit.
    RETURNS (RawEvents): The events.
    """
    words, classes = tokens.words.astype(np.int64), tokens.name_classes.astype(np.int64)
    pairs = words * n_features + tokens.features
    n_tokens = len(words)
    last = np.cumsum(tokens.lengths) - 1
    first = last - tokens.lengths + 1
    is_first, is_last = np.zeros((2, n_tokens), dtype=bool)
    is_first[first], is_last[last] = True, True

    ends = is_last.copy()
    ends[:-1] |= tokens.begins[1:]
    next_pair = np.append(pairs[1:], -1)
    next_pair[ends] = -1
    class_before = np.concatenate(([n_classes], classes[:-1]))
    class_before[is_first] = n_classes
    word_before = np.concatenate(([END_WORD], words[:-1]))
    word_before[is_first] = END_WORD
    last_but_one = np.concatenate(([END_WORD], word_before[:-1]))
    last_but_one[is_first] = END_WORD

    known = np.ones(n_tokens, bool) if tokens.known is None else tokens.known
    known_before = np.concatenate(([True], known[:-1])) | is_first
    known_behind = (
        np.concatenate((known[1:], [True])) | is_last | (classes > NOT_A_NAME)
    )
    goes_on = known & known_behind
    begins = tokens.begins & known & known_before
    last = last[known[last]]
    # Boundaries: before each segment, and at the end of each sentence.
    before = np.concatenate((word_before[begins], words[last]))
    beyond = np.concatenate((last_but_one[begins], word_before[last]))
    before_class = np.concatenate((class_before[begins], classes[last]))
    outcome = np.concatenate((classes[begins], np.full(len(last), n_classes)))
    two_before = np.concatenate(([True], known_before[:-1])) | is_first
    beside = is_punctuation[before] & np.append(two_before[begins], known_before[last])
    return RawEvents(
        next_word=np.stack((pairs, next_pair, classes), axis=1)[goes_on],
        first_word=np.stack(
            (pairs[begins], class_before[begins], classes[begins]), axis=1
        ),
        name_class=np.stack((before, before_class, outcome), axis=1),
        beside_punctuation=np.stack(
            (beyond[beside], before[beside], before_class[beside], outcome[beside]),
            axis=1,
        ),
    )


def keep_unknown(events: RawEvents, n_features: int) -> RawEvents:
    """Keep the events that hold `_UNK_`.

    events (RawEvents): Events of a relabelled corpus.
    n_features (int): Word features.
    RETURNS (RawEvents): Those with an unknown word in them.
    """
    w, f, n = events.next_word, events.first_word, events.name_class
    beside = events.beside_punctuation
    return RawEvents(
        next_word=w[(w[:, :2] // n_features == UNKNOWN_WORD).any(axis=1)],
        first_word=f[f[:, 0] // n_features == UNKNOWN_WORD],
        name_class=n[n[:, 0] == UNKNOWN_WORD],
        beside_punctuation=beside[(beside[:, :2] == UNKNOWN_WORD).any(axis=1)],
    )


def count_events(parts: Iterable[RawEvents]) -> Events:
    """Count the events of one or more corpora together.

    parts (Iterable[RawEvents]): The events of each.
    RETURNS (Events): Distinct events and their counts.
    """
    parts = list(parts)
    w, f, n, beside = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("next_word", "first_word", "name_class", "beside_punctuation")
    )
    pairs = np.unique(np.concatenate((w[:, 0], w[w[:, 1] >= 0, 1], f[:, 0])))
    next_pair = np.where(w[:, 1] < 0, len(pairs), np.searchsorted(pairs, w[:, 1]))
    w = np.stack((np.searchsorted(pairs, w[:, 0]), next_pair, w[:, 2]), axis=1)
    f = np.stack((np.searchsorted(pairs, f[:, 0]), f[:, 1], f[:, 2]), axis=1)
    counted: list[np.ndarray] = []
    for rows in (w, f, n, beside):
        counted.extend(unique_rows(rows))
    return Events(pairs, *counted)


def unique_rows(
    rows: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows in ascending order and how often each occurs.

    rows (np.ndarray): Non-negative integers. Shape: (m, k).
    weights (Optional[np.ndarray]): What each row adds to its count, else 1.
    RETURNS (tuple[np.ndarray, np.ndarray]): Shapes: (d, k) and (d,).

    Cost: one sort of m combined keys; no loop over rows.
    """
    if not len(rows):
        return rows.astype(np.int64), np.zeros(0, dtype=np.int64)
    sizes = [int(n) for n in rows.max(axis=0) + 1]
    if np.prod([float(n) for n in sizes]) >= 2**63:
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    else:
        keys = np.ravel_multi_index(tuple(rows.T), sizes)
        keys, inverse = np.unique(keys, return_inverse=True)
        distinct = np.stack(np.unravel_index(keys, sizes), axis=1)
    counts = np.bincount(inverse.reshape(-1), weights, minlength=len(distinct))
    return distinct.astype(np.int64), counts.astype(np.int64)
