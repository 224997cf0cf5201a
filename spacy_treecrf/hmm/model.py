"""The name-class HMM: vocabulary, word features, and the two back-off models.

The normal model is counted over the training data. The unknown model is counted over
the same data, in which each half's words that the other half lacks read `_UNK_`; it
answers for every probability that holds a word outside the vocabulary.

Source: Bikel et al. 1999, sections 3.2.3 (unknown words) and 3.3.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .backoff import BackoffModel
from .counts import (
    END_WORD,
    FIRST_WORD,
    UNKNOWN_WORD,
    Events,
)
from .lattice import Lattice, previous_tokens, time_major
from .tokens import (
    TokenBatch,
    count_features,
    features_by_position,
    punctuation_mask,
    token_features,
)
from .word_features import WordFeatures
from .word_lists import WordLists
from .words import WordRows

# Cells of the largest array, T * N^2: 8 MB of doubles. Smaller blocks pay more for calls
# than they gain from the cache (measured from 2**16 to 2**22).
BLOCK_CELLS = 2**20


@dataclass(frozen=True)
class Settings:
    """How a model is counted and smoothed.

    n_classes (int): Name classes, NOT-A-NAME included.
    unknown (str): "split" for two models as printed, "merged" for one whose counts hold
        the relabelled events with an unknown word too.
    product_level (bool): See `BackoffModel`.
    punctuation_context (bool): See `BackoffModel`.
    """

    n_classes: int
    unknown: str = "split"
    product_level: bool = False
    punctuation_context: bool = True

    def __post_init__(self) -> None:
        if self.unknown not in ("split", "merged"):
            raise ValueError(
                f"expected unknown to be 'split' or 'merged', received {self.unknown!r}"
            )


class NameClassModel:
    """A counted model: scores labelled sentences and builds lattices for decoding."""

    def __init__(
        self,
        settings: Settings,
        words: Sequence[str],
        word_features: np.ndarray,
        events: Sequence[Events],
        features: WordFeatures,
        lists: WordLists | None = None,
    ):
        """Put a model together from its counts.

        settings (Settings): How it is smoothed.
        words (Sequence[str]): The vocabulary, from word number 2 on.
        word_features (np.ndarray): Feature of each word, inside and first in a
            sentence. Shape: (2, len(words)).
        events (Sequence[Events]): Counts of the normal model and, if split, the
            unknown model.
        features (WordFeatures): The features of words outside the vocabulary.
        lists (Optional[WordLists]): Lists whose members have features of their own.
        """
        self.settings = settings
        self.words = words
        self.features = features
        self.lists = lists
        self._word_features = word_features
        self._events = events
        self._number = {word: n for n, word in enumerate(words, FIRST_WORD)}
        self._punctuation = punctuation_mask(words)
        self._n_features = count_features(features, lists)
        self._models = [
            BackoffModel(
                counts,
                settings.n_classes,
                self._n_features,
                product_level=settings.product_level,
                punctuation_context=settings.punctuation_context,
            )
            for counts in events
        ]
        in_unknown = np.zeros(len(words) + FIRST_WORD, dtype=bool)
        in_unknown[self._models[-1].words] = True
        in_unknown[END_WORD] = True
        self._in_unknown = in_unknown

    @property
    def normal(self) -> BackoffModel:
        """RETURNS (BackoffModel): The model of events whose words are all known."""
        return self._models[0]

    @property
    def unknown(self) -> BackoffModel:
        """RETURNS (BackoffModel): The model of events with an unknown word."""
        return self._models[-1]

    def word_numbers(self, words: Sequence[str]) -> np.ndarray:
        """Numbers of some strings.

        words (Sequence[str]): The strings.
        RETURNS (np.ndarray): Word numbers, that of `_UNK_` outside the vocabulary.
        """
        numbers = [self._number.get(word, UNKNOWN_WORD) for word in words]
        return np.array(numbers, dtype=np.int64)

    def encode(self, batch: TokenBatch) -> tuple[np.ndarray, np.ndarray]:
        """Word and feature number of each token.

        batch (TokenBatch): The sentences.
        RETURNS (tuple[np.ndarray, np.ndarray]): Words, those outside the vocabulary as
            `_UNK_`, and features. Shapes: (T,).
        """
        numbers = self.word_numbers(batch.types)
        of_type = self._word_features[:, np.maximum(numbers - FIRST_WORD, 0)]
        for place in np.flatnonzero(numbers == UNKNOWN_WORD).tolist():
            of_type[:, place] = features_by_position(self.features, batch.types[place])
        features = token_features(of_type, batch, self.features, self.lists)
        return numbers[batch.token_types], features

    def blocks(self, lengths: np.ndarray, width: int = 1) -> Iterator[slice]:
        """Cut a batch into runs of sentences whose lattice stays small.

        lengths (np.ndarray): Tokens of each sentence. Shape: (S,).
        width (int): Values kept a cell: k for k-best.
        YIELDS (slice): Sentences of each block, at least one.
        """
        room = BLOCK_CELLS / (self.settings.n_classes**2 * width)
        start = tokens = 0
        for at, length in enumerate(lengths.tolist()):
            if tokens and tokens + length > room:
                yield slice(start, at)
                start, tokens = at, 0
            tokens += length
        if start < len(lengths):
            yield slice(start, len(lengths))

    def lattice(
        self, words: np.ndarray, features: np.ndarray, lengths: np.ndarray
    ) -> Lattice:
        """The factors of a batch of sentences, each from the model that answers for it.

        words, features (np.ndarray): From `encode`. Shapes: (T,).
        lengths (np.ndarray): Tokens of each sentence. Shape: (S,).
        RETURNS (Lattice): The lattice.

        Source: Bikel et al. 1999, section 3.2.3: a probability comes from the unknown
        model if either of its words is unknown. A known word that the unknown model
        lacks is `_UNK_` inside it (A-23).
        """
        sentences, offsets, positions = time_major(lengths)
        ordered = lengths[sentences]
        n_sentences, n = len(lengths), self.settings.n_classes
        words, features = words[positions], features[positions]
        previous, at = previous_tokens(offsets), np.arange(len(words))
        unknown = words == UNKNOWN_WORD
        as_unknown = np.where(self._in_unknown[words], words, UNKNOWN_WORD)
        either = unknown | unknown[previous]
        either[:n_sentences] = unknown[:n_sentences]

        rows, pairs, places = self._word_rows(
            words, as_unknown, features, previous, either
        )
        own, outcome = places[unknown.astype(int), at], places[either.astype(int), at]
        history = places[either.astype(int), previous]
        go_on = rows.to_unigram[history] * rows.unigram[outcome]
        go_on += rows.to_bottom[history] * rows.bottom[outcome]
        for number, model in enumerate(self._models):
            here = at[n_sentences:]
            if len(self._models) > 1:
                here = here[either[n_sentences:] == bool(number)]
            direct = np.zeros((len(here), n))
            pair = pairs[number]
            model.add_bigrams(direct, pair[previous[here]], pair[here])
            go_on[here] += direct

        last = offsets[ordered - 1] + np.arange(n_sentences)
        before, beyond = words[previous], words[previous[previous]]
        second = slice(offsets[1], offsets[min(2, len(offsets) - 1)])
        before[:n_sentences], beyond[:n_sentences] = END_WORD, END_WORD
        beyond[second] = END_WORD
        contexts, of_token = self._contexts(
            np.concatenate((before, words[last])),
            np.concatenate((beyond, before[last])),
        )
        step = contexts[:, :n, :n][of_token[: len(words)]]
        step *= rows.first[:, :, :n][own]
        step *= rows.end[own[previous]][:, None, :]
        step[:, 0, 0] = 0.0
        start = (
            contexts[of_token[:n_sentences], :n, n]
            * rows.first[own[:n_sentences], :, n]
        )
        stop = contexts[of_token[len(words) :], n, :n] * rows.end[own[last]]
        return Lattice(sentences, ordered, offsets, positions, start, step, go_on, stop)

    def _word_rows(
        self,
        words: np.ndarray,
        as_unknown: np.ndarray,
        features: np.ndarray,
        previous: np.ndarray,
        either: np.ndarray,
    ) -> tuple[WordRows, np.ndarray, np.ndarray]:
        """Rows of both models for the distinct pairs of a batch.

        RETURNS (tuple[WordRows, np.ndarray, np.ndarray]): The rows; each token's pair
            number and the place of its row, in the normal and in the unknown model.
            Shapes: (2, T).
        """
        pairs = np.full((2, len(words)), -1, dtype=np.int64)
        places = np.zeros((2, len(words)), dtype=np.int64)
        parts: list[WordRows] = []
        # The unknown model answers for few tokens, as outcome and as history.
        asked = either.copy()
        asked[previous[either]] = True
        for number, model in enumerate((self.normal, self.unknown)):
            its_words = as_unknown if number else words
            used = np.flatnonzero(asked) if number else np.arange(len(words))
            if number and self.normal is self.unknown:
                pairs[1], places[1] = pairs[0], places[0]
                continue
            keys, place = np.unique(
                its_words[used] * self._n_features + features[used],
                return_inverse=True,
            )
            distinct = np.divmod(keys, self._n_features)
            pairs[number, used] = model.pair_numbers(*distinct)[place]
            places[number, used] = place + sum(len(part.end) for part in parts)
            parts.append(model.word_rows(*distinct))
        stacked = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in WordRows.__dataclass_fields__
        }
        return WordRows(**stacked), pairs, places

    def _contexts(
        self, before: np.ndarray, beyond: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Family N for the distinct contexts of a batch, and each boundary's row."""
        beside = self._punctuation[before] & self.settings.punctuation_context
        unknown = (before == UNKNOWN_WORD) | (beside & (beyond == UNKNOWN_WORD))
        mapped = self._in_unknown
        before = np.where(unknown & ~mapped[before], UNKNOWN_WORD, before)
        beyond = np.where(unknown & ~mapped[beyond], UNKNOWN_WORD, beyond)
        n_words = len(self._in_unknown)
        keys = np.where(beside, beyond + 1, 0)
        keys += (n_words + 1) * (before + n_words * unknown)
        keys, place = np.unique(keys, return_inverse=True)
        rest, beyond = np.divmod(keys, n_words + 1)
        from_unknown, before = np.divmod(rest, n_words)
        split = int(np.searchsorted(from_unknown, 1))
        parts = [
            model.name_class(before[part], beyond[part] - 1)
            for model, part in (
                (self.normal, slice(0, split)),
                (self.unknown, slice(split, None)),
            )
        ]
        return np.concatenate(parts), place

    def log_joint(
        self, batch: TokenBatch, name_classes: np.ndarray, begins: np.ndarray
    ) -> np.ndarray:
        """log Pr(words, name classes) of labelled sentences, in nats.

        batch (TokenBatch): The sentences.
        name_classes, begins (np.ndarray): Class of each token, and whether it is the
            first of its segment. Shapes: (T,).
        RETURNS (np.ndarray): One value a sentence. Shape: (S,).

        Source: Bikel et al. 1999, section 3.2.1.
        """
        words, features = self.encode(batch)
        lattice = self.lattice(words, features, batch.lengths)
        classes = name_classes[lattice.positions].astype(np.int64)
        new = begins[lattice.positions].astype(bool)
        previous = previous_tokens(lattice.offsets)
        at, n = np.arange(len(classes)), len(batch.lengths)
        last = lattice.offsets[lattice.lengths - 1] + np.arange(n)
        with np.errstate(divide="ignore"):  # NOT-A-NAME after NOT-A-NAME
            factor = np.log(
                np.where(
                    new,
                    lattice.step[at, classes, classes[previous]],
                    lattice.go_on[at, classes],
                )
            )
        factor[:n] = np.log(lattice.start[at[:n], classes[:n]])
        rank = at - np.repeat(lattice.offsets[:-1], np.diff(lattice.offsets))
        total = np.bincount(rank, factor)
        total += np.log(lattice.stop[at[:n], classes[last]])
        result = np.empty(n)
        result[lattice.sentences] = total
        return result

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The model as JSON values and arrays; the tables are counted anew from them.

        RETURNS (tuple[dict[str, Any], dict[str, np.ndarray]]): Header and arrays.
        """
        encoded = [word.encode("utf8", "surrogatepass") for word in self.words]
        arrays: dict[str, np.ndarray] = {
            "words": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "word_sizes": np.array([len(word) for word in encoded], dtype=np.uint32),
            "word_features": self._word_features.astype(np.uint16),
        }
        for number, events in enumerate(self._events):
            arrays.update(events.to_arrays(f"events{number}_"))
        header: dict[str, Any] = {
            "settings": asdict(self.settings),
            "features": list(self.features.names),
            "lists": self.lists.to_dict() if self.lists else None,
        }
        return header, arrays

    @classmethod
    def from_arrays(
        cls,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        features: WordFeatures,
    ) -> "NameClassModel":
        """The model that `to_arrays` wrote.

        header (dict[str, Any]): Its header.
        arrays (dict[str, np.ndarray]): Its arrays.
        features (WordFeatures): The features it was counted with.
        RETURNS (NameClassModel): The model.
        RAISES (ValueError): If the features have other names.
        """
        if list(features.names) != header["features"]:
            raise ValueError(
                f"expected the word features {header['features']} that the model was "
                f"trained with, received {list(features.names)}"
            )
        blob, ends = arrays["words"].tobytes(), np.cumsum(arrays["word_sizes"]).tolist()
        words = [
            blob[start:end].decode("utf8", "surrogatepass")
            for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ]
        settings = Settings(**header["settings"])
        n_models = 2 if settings.unknown == "split" else 1
        lists = WordLists(header["lists"]) if header["lists"] else None
        events = [Events.from_arrays(arrays, f"events{n}_") for n in range(n_models)]
        word_features = arrays["word_features"].astype(np.int64)
        return cls(settings, words, word_features, events, features, lists)
