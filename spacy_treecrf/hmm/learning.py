"""Counting a name-class HMM from a labelled corpus."""

import numpy as np

from .counts import (
    FIRST_WORD,
    UNKNOWN_WORD,
    LabelledTokens,
    count_events,
    extract_events,
    keep_unknown,
)
from .model import NameClassModel, Settings
from .tokens import (
    TokenBatch,
    count_features,
    features_by_position,
    punctuation_mask,
    token_features,
)
from .word_features import WordFeatures
from .word_lists import WordLists


def learn(
    batch: TokenBatch,
    name_classes: np.ndarray,
    begins: np.ndarray,
    second_half: np.ndarray,
    settings: Settings,
    features: WordFeatures,
    lists: WordLists | None = None,
    known: np.ndarray | None = None,
) -> NameClassModel:
    """Count a model; one pass over arrays, no optimisation.

    batch (TokenBatch): The sentences; every type occurs.
    name_classes (np.ndarray): Class of each token, 0 = NOT-A-NAME. Shape: (T,).
    begins (np.ndarray): Whether it is the first of its segment. Shape: (T,).
    second_half (np.ndarray): Whether a sentence is in the second half of the hold-out.
        Shape: (S,).
    settings (Settings): How the counts are smoothed.
    features (WordFeatures): The word features.
    lists (Optional[WordLists]): Lists whose members have features of their own.
    known (Optional[np.ndarray]): Whether the class of each token is known. The others
        are in no count, and a string that has no other token is not in the vocabulary.
        By default all are. Shape: (T,), bool.
    RETURNS (NameClassModel): The model.

    Source: Bikel et al. 1999, Eq. 3.7-3.9 and section 3.2.3.
    """
    by_position = [features_by_position(features, text) for text in batch.types]
    of_type = np.array(by_position, dtype=np.int64).T
    n_features = count_features(features, lists)
    all_features = token_features(of_type, batch, features, lists)
    types = batch.types
    if known is None or known.all():
        known = np.ones(len(batch.token_types), dtype=bool)
        words = batch.token_types + FIRST_WORD
    else:
        used = np.unique(batch.token_types[known])
        number = np.full(len(types), UNKNOWN_WORD)
        number[used] = np.arange(len(used)) + FIRST_WORD
        words = number[batch.token_types]
        types, of_type = [types[place] for place in used.tolist()], of_type[:, used]
    corpus = LabelledTokens(
        words,
        all_features,
        name_classes,
        begins,
        batch.lengths,
        known,
    )
    relabelled = LabelledTokens(
        relabel(words, np.repeat(second_half, batch.lengths), known),
        corpus.features,
        name_classes,
        begins,
        batch.lengths,
        known,
    )
    punctuation = punctuation_mask(types)
    normal, held_out = (
        extract_events(tokens, settings.n_classes, n_features, punctuation)
        for tokens in (corpus, relabelled)
    )
    if settings.unknown == "split":
        events = [count_events([normal]), count_events([held_out])]
    else:
        events = [count_events([normal, keep_unknown(held_out, n_features)])]
    return NameClassModel(settings, types, of_type, events, features, lists)


def relabel(
    words: np.ndarray, second_half: np.ndarray, known: np.ndarray | None = None
) -> np.ndarray:
    """Replace by `_UNK_` each word of one half that the other half lacks.

    words (np.ndarray): Word numbers. Shape: (T,).
    second_half (np.ndarray): The half of each token. Shape: (T,).
    known (Optional[np.ndarray]): Tokens that count for a half; by default all. Shape:
        (T,), bool.
    RETURNS (np.ndarray): Word numbers. Shape: (T,).

    Source: Bikel et al. 1999, section 3.2.3.
    """
    in_first, in_second = np.zeros((2, int(words.max(initial=0)) + 1), dtype=bool)
    known = np.ones(len(words), dtype=bool) if known is None else known
    in_first[words[~second_half & known]] = True
    in_second[words[second_half & known]] = True
    in_other = np.where(second_half, in_first[words], in_second[words])
    return np.where(in_other, words, UNKNOWN_WORD)
