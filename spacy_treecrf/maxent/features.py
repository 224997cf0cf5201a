"""What the tagger sees of a word and its neighbours: the contextual predicates.

Source: Collins (2002), "Ranking Algorithms for Named-Entity Extraction", section 2.2.
The two predicates of the tags before a word are in `model.py`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

# Predicates that depend on the words alone, in the order of their columns.
TEMPLATES = ("word", "previous word", "next word", "start", "types", "collapsed types")

_REPEATS = re.compile(r"(.)\1+", re.DOTALL)


@dataclass(frozen=True)
class WordBatch:
    """Sentences as numbers over their distinct words.

    types (Sequence[str]): Distinct words. Length: U.
    tokens (np.ndarray): Type of each word, sentence after sentence. Shape: (T,).
    lengths (np.ndarray): Words of each sentence, at least 1. Shape: (S,).
    """

    types: Sequence[str]
    tokens: np.ndarray
    lengths: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """RETURNS (np.ndarray): Place of each sentence's first word. Shape: (S,)."""
        return np.cumsum(self.lengths) - self.lengths


class _CharacterTypes(dict[int, int]):
    """A table for `str.translate` that fills itself."""

    def __missing__(self, code: int) -> int:
        character, given = chr(code), code
        if character.isupper() or character.istitle():
            code = ord("A")
        elif character.islower():
            code = ord("a")
        elif character.isdigit():
            code = ord("0")
        self[given] = code
        return code


_TYPE_OF = _CharacterTypes()


def character_types(word: str) -> str:
    """The type of every character: A, a, 0, or the character itself.

    word (str): The word.
    RETURNS (str): E.g. "Aaaaaa" of "Animal", "A.A." of "G.M.".
    """
    return word.translate(_TYPE_OF)


def collapsed_types(word: str) -> str:
    """The types of the characters, runs of one type written once.

    word (str): The word.
    RETURNS (str): E.g. "Aa" of "Animal", "A.A." of "G.M.".
    """
    return _REPEATS.sub(r"\1", character_types(word))


def start_predicate(word: str, is_first: bool, lower_case: Iterable[str]) -> str:
    """Sentence start, often written in lower case, type of the first character.

    word (str): The word, not empty.
    is_first (bool): Whether it is the first of its sentence.
    lower_case (Container[str]): The words that are often in lower case.
    RETURNS (str): E.g. "1-1-A" of "Animal" at a start, with "animal" in the list.
    """
    listed = word.lower() in lower_case
    return f"{int(is_first)}-{int(listed)}-{character_types(word[:1])}"


def learn_lower_case(batch: WordBatch) -> frozenset[str]:
    """The words that are more often in lower case than capitalised.

    batch (WordBatch): Text. Capitals at a sentence's start say nothing and are not
        counted.
    RETURNS (frozenset[str]): The words, in lower case.
    """
    n_types = len(batch.types)
    total = np.bincount(batch.tokens, minlength=n_types)
    at_start = np.bincount(batch.tokens[batch.first], minlength=n_types)
    balance: Counter[str] = Counter()
    for word, count, inside in zip(
        batch.types, total.tolist(), (total - at_start).tolist(), strict=True
    ):
        if word[:1].islower():
            balance[word.lower()] += count
        elif word[:1].isupper():
            balance[word.lower()] -= inside
    return frozenset(word for word, surplus in balance.items() if surplus > 0)


class WordPredicates:
    """The predicates of words that a model knows, each with a column of its own."""

    def __init__(
        self, kept: Sequence[Sequence[str | None]], lower_case: Iterable[str] = ()
    ):
        """Number the predicates.

        kept (Sequence[Sequence[str | None]]): The values of each of `TEMPLATES`; None
            is the word beyond a sentence's border.
        lower_case (Iterable[str]): The words that are often in lower case.
        """
        self.kept = [list(values) for values in kept]
        self.lower_case = frozenset(lower_case)
        self._columns: list[dict[str | None, int]] = []
        self.n_columns = 0
        for values in self.kept:
            numbers = range(self.n_columns, self.n_columns + len(values))
            self._columns.append(dict(zip(values, numbers, strict=True)))
            self.n_columns += len(values)

    @classmethod
    def learn(
        cls, batch: WordBatch, cutoff: int, lower_case: Iterable[str]
    ) -> "WordPredicates":
        """Keep the predicates that are frequent enough.

        batch (WordBatch): The training text.
        cutoff (int): How often a predicate must occur.
        lower_case (Iterable[str]): The words that are often in lower case.
        RETURNS (WordPredicates): The predicates.
        """
        kept = []
        for values, places in _views(batch, frozenset(lower_case)):
            counts: Counter[str | None] = Counter()
            occurrences = np.bincount(places, minlength=len(values)).tolist()
            for value, count in zip(values, occurrences, strict=True):
                counts[value] += count
            kept.append([value for value, count in counts.items() if count >= cutoff])
        return cls(kept, lower_case)

    def encode(self, batch: WordBatch) -> np.ndarray:
        """The columns of each word.

        batch (WordBatch): Text.
        RETURNS (np.ndarray): A column below `n_columns` for each of `TEMPLATES`, or
            `n_columns` where the predicate is not known. Shape: (T, 6), int32.
        """
        result = np.empty((len(batch.tokens), len(TEMPLATES)), dtype=np.int32)
        views = _views(batch, self.lower_case)
        for number, (values, places) in enumerate(views):
            columns = self._columns[number]
            found = [columns.get(value, self.n_columns) for value in values]
            result[:, number] = np.array(found, dtype=np.int32)[places]
        return result


def _views(
    batch: WordBatch, lower_case: frozenset[str]
) -> list[tuple[Sequence[str | None], np.ndarray]]:
    """For each template the values that it may have, and which one each word has."""
    types, tokens, n_types = batch.types, batch.tokens, len(batch.types)
    beyond = [*types, None]
    is_first = np.zeros(len(tokens), dtype=bool)
    is_first[batch.first] = True
    before = np.where(is_first, n_types, np.roll(tokens, 1))
    behind = np.where(np.roll(is_first, -1), n_types, np.roll(tokens, -1))
    starts = [
        start_predicate(t, first, lower_case) for first in (False, True) for t in types
    ]
    return [
        (types, tokens),
        (beyond, before),
        (beyond, behind),
        (starts, tokens + n_types * is_first),
        ([character_types(word) for word in types], tokens),
        ([collapsed_types(word) for word in types], tokens),
    ]
