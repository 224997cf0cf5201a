"""Docs cut into segments, and the words of these."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.strings import StringStore
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.gold import same_tokens

if TYPE_CHECKING:
    from spacy_treecrf.ml.types import Segments

_ATTRIBUTES = [ORTH, SENT_START, IS_SPACE]


@dataclass(frozen=True)
class Words:
    """The words of the segments of a batch; white-space tokens are none.

    A name may stretch over white space, and none begins or ends with it. Segments of
    nothing but white space are left out.

    orths (np.ndarray): Hash of each word's string. Shape: (T,), uint64.
    tokens (np.ndarray): Its place in its Doc. Shape: (T,).
    lengths (np.ndarray): Words of each segment, at least 1. Shape: (S,).
    segments (np.ndarray): Number of each segment in the batch. Shape: (S,).
    docs (np.ndarray): The Doc that each segment is of. Shape: (S,).
    stores (tuple[StringStore, ...]): Where the hashes are resolved.
    """

    orths: np.ndarray
    tokens: np.ndarray
    lengths: np.ndarray
    segments: np.ndarray
    docs: np.ndarray
    stores: tuple[StringStore, ...]

    def __len__(self) -> int:
        """RETURNS (int): Words in the batch, T."""
        return len(self.orths)

    def types(self) -> tuple[list[str], np.ndarray]:
        """The distinct words.

        RETURNS (tuple[list[str], np.ndarray]): Their strings, and the number of each
            word's type. Lengths: U and T.
        """
        distinct, inverse = np.unique(self.orths, return_inverse=True)
        if len(self.stores) == 1:
            store = self.stores[0]
            return [store[orth] for orth in distinct.tolist()], inverse
        return [self._resolve(orth) for orth in distinct.tolist()], inverse

    def select(self, kept: np.ndarray) -> "Words":
        """The words of some segments.

        kept (np.ndarray): Which segments to keep. Shape: (S,), bool.
        RETURNS (Words): Those; the numbers of Docs and segments as they are.
        """
        is_kept = np.repeat(kept, self.lengths)
        return Words(
            orths=self.orths[is_kept],
            tokens=self.tokens[is_kept],
            lengths=self.lengths[kept],
            segments=self.segments[kept],
            docs=self.docs[kept],
            stores=self.stores,
        )

    def _resolve(self, orth: int) -> str:
        return next(
            store[orth]
            for store in self.stores
            if orth in store  # type: ignore[operator]
        )


def join_words(parts: Sequence[Words]) -> Words:
    """Put the words of several batches together.

    parts (Sequence[Words]): At least one; the numbers of Docs and segments as they are.
    RETURNS (Words): All words.
    """
    arrays = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Words)
        if field.name != "stores"
    }
    stores = _distinct_stores(store for part in parts for store in part.stores)
    return Words(**arrays, stores=stores)


class DocSegments:
    """Segments of a batch of Docs, and where they lie in them.

    A Doc is cut at its sentence starts; one without any is a single segment. Segments
    beyond `max_length` are cut into windows of equal length, as nearly as can be.

    doc (np.ndarray): Which Doc each segment is of, ascending. Shape: (B,), int64.
    start, end (np.ndarray): Half-open token offsets in that Doc, white space included.
        Shape: (B,), int64.
    sizes (np.ndarray): Tokens of each Doc. Shape: (D,), int64.
    is_word (np.ndarray): Whether each token of the batch is no white space. Shape: (N,),
        bool.
    windowed (list[int]): Docs in which `max_length` had to cut.
    """

    def __init__(
        self,
        docs: Sequence[Doc],
        max_length: int | None = None,
        starts_of: Sequence[Doc] | None = None,
    ) -> None:
        """docs (Sequence[Doc]): The batch.
        max_length (Optional[int]): Longest segment, in tokens.
        starts_of (Optional[Sequence[Doc]]): Docs of the same tokens that give the
            sentence starts, one for each.
        """
        self.sizes = np.array([len(doc) for doc in docs], dtype=np.int64)
        tables = [doc.to_array(_ATTRIBUTES).reshape(-1, 3) for doc in docs]
        table = np.concatenate([np.zeros((0, 3), dtype=np.uint64), *tables])
        self._orths, self.is_word = table[:, 0], table[:, 2] == 0
        self._stores = _distinct_stores(doc.vocab.strings for doc in docs)
        is_start = table[:, 1] == 1
        if starts_of is not None:
            given = [doc.to_array([SENT_START]).reshape(-1) for doc in starts_of]
            is_start = np.concatenate([np.zeros(0, dtype=np.uint64), *given]) == 1
        is_start[self.offsets[self.sizes > 0]] = True
        begin = np.flatnonzero(is_start)
        stop = np.append(begin[1:], len(table))[: len(begin)]
        of_doc = np.repeat(np.arange(len(docs)), self.sizes)
        self.windowed: list[int] = []
        if max_length is not None and (stop - begin > max_length).any():
            lengths = stop - begin
            windows = -(-lengths // max_length)
            self.windowed = np.unique(of_doc[begin[windows > 1]]).tolist()
            number = np.arange(windows.sum()) - np.repeat(
                windows.cumsum() - windows, windows
            )
            first, lengths, windows = (
                np.repeat(column, windows) for column in (begin, lengths, windows)
            )
            begin = first + number * lengths // windows
            stop = first + (number + 1) * lengths // windows
        self.doc = of_doc[begin]
        self.start = begin - self.offsets[self.doc]
        self.end = stop - self.offsets[self.doc]

    @classmethod
    def given(
        cls, docs: Sequence[Doc], doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> "DocSegments":
        """Segments that a pipe has written to Docs; the fields are those of the class."""
        segments = cls(docs)
        segments.doc, segments.start, segments.end = doc, start, end
        return segments

    def __len__(self) -> int:
        """RETURNS (int): Segments in the batch, B."""
        return len(self.doc)

    @cached_property
    def offsets(self) -> np.ndarray:
        """First token of each Doc in the batch. Shape: (D,), int64."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def first(self) -> np.ndarray:
        """First token of each segment in the batch. Shape: (B,), int64."""
        return self.start + self.offsets[self.doc]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each segment. Shape: (B,), int64."""
        return self.end - self.start

    @cached_property
    def words_before(self) -> np.ndarray:
        """Words of the batch before each token. Shape: (N + 1,), int64."""
        return np.concatenate(([0], np.cumsum(self.is_word)))

    @property
    def doc_words(self) -> np.ndarray:
        """Words of each Doc, in segments or not. Shape: (D,), int64."""
        edges = np.append(self.offsets, len(self.is_word))
        return np.diff(self.words_before[edges])

    @cached_property
    def n_words(self) -> np.ndarray:
        """Words of each segment. Shape: (B,), int64."""
        first = self.first
        return self.words_before[first + self.lengths] - self.words_before[first]

    def words(self) -> Words:
        """The words of the segments, which hold every word of their Docs."""
        has_words = self.n_words > 0
        position = np.arange(len(self.is_word))
        place = position - np.repeat(self.offsets, self.sizes)
        return Words(
            orths=self._orths[self.is_word],
            tokens=place[self.is_word],
            lengths=self.n_words[has_words],
            segments=np.flatnonzero(has_words),
            docs=self.doc[has_words],
            stores=self._stores,
        )

    def for_model(self, max_width: int | None = None) -> "Segments":
        """The segments as the model of `treecrf` takes them, under a width limit."""
        from spacy_treecrf.ml.types import Segments

        return Segments(self.first, self.lengths, self.is_word, max_width)

    def within(
        self, doc: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the segments that some spans lie in.

        doc, start, end (np.ndarray): Spans in tokens of Docs. Shape: (M,) each.
        RETURNS (tuple[np.ndarray, np.ndarray]): Number of each span's segment; whether
            it lies in that at all. Shape: (M,) each.
        """
        if not len(self):
            return np.zeros(len(doc), dtype=np.int64), np.zeros(len(doc), dtype=bool)
        first = self.offsets[doc] + start
        place = np.searchsorted(self.first, first, side="right") - 1
        place = place.clip(min=0)
        is_inside = (self.doc[place] == doc) & (start >= self.start[place])
        return place, is_inside & (end <= self.end[place])

    def words_of(
        self, segment: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offsets of spans in words of their segment, from those in tokens of their Doc.

        segment, start, end (np.ndarray): The spans. Shape: (M,) each.
        RETURNS (tuple[np.ndarray, np.ndarray]): Half-open offsets, without white space
            at the edges; equal for nothing but white space. Shape: (M,) each.
        """
        before, offset = self.words_before, self.offsets[self.doc[segment]]
        base = before[self.first[segment]]
        return before[offset + start] - base, before[offset + end] - base

    def by_doc(self) -> np.ndarray:
        """Borders between the segments of Docs: those of Doc d are borders[d]:borders[d +
        1]. Shape: (D + 1,).
        """
        return np.searchsorted(self.doc, np.arange(len(self.sizes) + 1))


def starts_of(example: Example) -> Doc:
    """The Doc that gives an example's sentence starts before any pipe has run.

    example (Example): The example.
    RETURNS (Doc): The predicted Doc, as in prediction. Pipes that learn in `initialize`,
        when no other pipe has set any, take the reference's, if it has the same tokens.
    """
    predicted = example.predicted
    has_starts = (predicted.to_array(SENT_START)[1:] == 1).any()
    return predicted if has_starts or not same_tokens(example) else example.reference


def doc_texts(
    docs: Sequence[Doc], segments: DocSegments, numbers: np.ndarray
) -> list[str]:
    """How the Docs begin that some segments are of, for messages.

    docs (Sequence[Doc]): The batch. segments (DocSegments): Its segments.
    numbers (np.ndarray): Numbers of segments.
    RETURNS (list[str]): The first characters of each Doc.
    """
    return [docs[number].text[:60] for number in np.unique(segments.doc[numbers])]


def _distinct_stores(stores: Iterable[StringStore]) -> tuple[StringStore, ...]:
    return tuple({id(store): store for store in stores}.values())
