"""Docs as runs of tokens, sentence by sentence, for the pipes that label flat names."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from spacy.attrs import IS_SPACE, ORTH, SENT_START
from spacy.strings import StringStore
from spacy.tokens import Doc

_ATTRIBUTES = [ORTH, SENT_START, IS_SPACE]


@dataclass(frozen=True)
class DocSentences:
    """The words of a batch of Docs, white space left out, and where they lie.

    White-space tokens are no words of a sentence: a name may stretch over one, and
    none begins or ends with one.

    orths (np.ndarray): Hash of each word's string. Shape: (T,), uint64.
    tokens (np.ndarray): Its place in its Doc. Shape: (T,).
    lengths (np.ndarray): Words of each sentence, at least 1. Shape: (S,).
    docs (np.ndarray): The Doc that each sentence is of. Shape: (S,).
    segments (np.ndarray): Half-open token offsets of each sentence in its Doc,
        white space included. Shape: (S, 2).
    doc_words (np.ndarray): Words of each Doc. Shape: (D,).
    stores (tuple[StringStore, ...]): Where the hashes are resolved.
    """

    orths: np.ndarray
    tokens: np.ndarray
    lengths: np.ndarray
    docs: np.ndarray
    segments: np.ndarray
    doc_words: np.ndarray
    stores: tuple[StringStore, ...]

    @property
    def n_words(self) -> int:
        """RETURNS (int): Words in the batch."""
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

    def _resolve(self, orth: int) -> str:
        return next(
            store[orth]
            for store in self.stores
            if orth in store  # type: ignore[operator]
        )


def read_sentences(
    docs: Sequence[Doc], sentences_of: Sequence[Doc] | None = None
) -> DocSentences:
    """Cut Docs at their sentence starts; a Doc without any is one sentence.

    docs (Sequence[Doc]): The Docs.
    sentences_of (Optional[Sequence[Doc]]): Docs of the same tokens that give the
        sentence starts, one for each.
    RETURNS (DocSentences): Their words.
    """
    sizes = np.array([len(doc) for doc in docs], dtype=np.int64)
    tables = [doc.to_array(_ATTRIBUTES).reshape(-1, 3) for doc in docs]
    table = np.concatenate([np.zeros((0, 3), dtype=np.uint64), *tables])
    starts = table[:, 1] == 1
    if sentences_of is not None:
        given = [doc.to_array([SENT_START]).reshape(-1) for doc in sentences_of]
        starts = np.concatenate([np.zeros(0, dtype=np.uint64), *given]) == 1
    first = (np.cumsum(sizes) - sizes)[sizes > 0]
    starts[first] = True
    sentence = np.cumsum(starts) - 1
    begin = np.flatnonzero(starts)
    is_word = table[:, 2] == 0
    lengths = np.bincount(sentence[is_word], minlength=len(begin))
    doc_of_token = np.repeat(np.arange(len(docs)), sizes)
    offset = np.repeat(np.cumsum(sizes) - sizes, sizes)
    place = np.arange(len(table)) - offset
    end = place[np.append(begin, len(table))[1:] - 1] + 1
    has_words = lengths > 0
    return DocSentences(
        orths=table[is_word, 0],
        tokens=place[is_word],
        lengths=lengths[has_words],
        docs=doc_of_token[begin][has_words],
        segments=np.stack((place[begin], end), axis=1)[has_words],
        doc_words=np.bincount(doc_of_token[is_word], minlength=len(docs)),
        stores=_distinct_stores(doc.vocab.strings for doc in docs),
    )


def join_sentences(parts: Sequence[DocSentences]) -> DocSentences:
    """Put the sentences of several batches together.

    parts (Sequence[DocSentences]): At least one; the numbers of their Docs as they are.
    RETURNS (DocSentences): All sentences.
    """
    arrays = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(DocSentences)
        if field.name != "stores"
    }
    stores = _distinct_stores(store for part in parts for store in part.stores)
    return DocSentences(**arrays, stores=stores)


def select_sentences(sentences: DocSentences, kept: np.ndarray) -> DocSentences:
    """Some of the sentences of a batch.

    sentences (DocSentences): The batch.
    kept (np.ndarray): Which to keep. Shape: (S,), bool.
    RETURNS (DocSentences): Those sentences; the numbers of their Docs as they are.
    """
    is_kept = np.repeat(kept, sentences.lengths)
    n_docs = len(sentences.doc_words)
    doc_of_word = np.repeat(np.arange(n_docs), sentences.doc_words)
    return DocSentences(
        orths=sentences.orths[is_kept],
        tokens=sentences.tokens[is_kept],
        lengths=sentences.lengths[kept],
        docs=sentences.docs[kept],
        segments=sentences.segments[kept],
        doc_words=np.bincount(doc_of_word[is_kept], minlength=n_docs),
        stores=sentences.stores,
    )


def _distinct_stores(stores: Iterable[StringStore]) -> tuple[StringStore, ...]:
    return tuple({id(store): store for store in stores}.values())
