"""Sentences as arrays of numbers over their distinct strings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .counts import FIRST_WORD
from .word_features import WordFeatures
from .word_lists import WordLists


@dataclass(frozen=True)
class TokenBatch:
    """Sentences as numbers over their distinct strings.

    types (Sequence[str]): Distinct strings.
    token_types (np.ndarray): Type of each token, sentence after sentence. Shape: (T,).
    lengths (np.ndarray): Tokens of each sentence, at least 1. Shape: (S,).
    """

    types: Sequence[str]
    token_types: np.ndarray
    lengths: np.ndarray

    @classmethod
    def from_sentences(cls, sentences: Sequence[Sequence[str]]) -> "TokenBatch":
        """Number the strings of tokenised sentences.

        sentences (Sequence[Sequence[str]]): The tokens of each, at least one.
        RETURNS (TokenBatch): The batch.
        """
        numbers: dict[str, int] = {}
        tokens = [numbers.setdefault(w, len(numbers)) for s in sentences for w in s]
        return cls(
            list(numbers),
            np.array(tokens, dtype=np.int64),
            np.array([len(s) for s in sentences], dtype=np.int64),
        )


def features_by_position(features: WordFeatures, text: str) -> tuple[int, int]:
    """The features of a string inside a sentence and at its start.

    features (WordFeatures): The features.
    text (str): The token.
    RETURNS (tuple[int, int]): Two feature numbers.
    """
    return features(text, False), features(text, True)


def token_features(
    of_type: np.ndarray,
    batch: TokenBatch,
    features: WordFeatures,
    lists: WordLists | None,
) -> np.ndarray:
    """The feature of each token; members of lists have features of their own.

    of_type (np.ndarray): Base feature of each type, inside and first in a sentence.
        Shape: (2, len(types)).
    batch (TokenBatch): The sentences.
    features (WordFeatures): The base features.
    lists (Optional[WordLists]): The lists.
    RETURNS (np.ndarray): Feature numbers below `count_features`. Shape: (T,).
    """
    result = of_type[0, batch.token_types]
    first = np.cumsum(batch.lengths) - batch.lengths
    result[first] = of_type[1, batch.token_types[first]]
    if lists is not None:
        member = lists.match(batch.types, batch.token_types, batch.lengths)
        result += member * len(features.names)
    return result


def count_features(features: WordFeatures, lists: WordLists | None) -> int:
    """Distinct features of a model.

    features (WordFeatures): The base features.
    lists (Optional[WordLists]): The lists.
    RETURNS (int): Base features, once for each list and once outside all.
    """
    return len(features.names) * (1 + (len(lists.names) if lists else 0))


def punctuation_mask(words: Sequence[str]) -> np.ndarray:
    """Which word numbers are punctuation: no letter and no digit.

    words (Sequence[str]): The vocabulary, from word number 2 on.
    RETURNS (np.ndarray): False for `+end+` and `_UNK_`. Shape: (len(words) + 2,).
    """
    mask = [not any(map(str.isalnum, word)) for word in words]
    return np.array([False] * FIRST_WORD + mask, dtype=bool)
