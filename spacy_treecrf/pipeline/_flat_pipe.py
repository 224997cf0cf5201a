"""What the pipes have in common that label disjoint names, sentence by sentence.

They write the entities of the best labelling of every sentence, and, if asked, those of
the next best ones as candidates.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ._flat_gold import FlatCorpus, read_flat_corpus
from ._learned_pipe import LearnedPipe
from ._sentences import DocSentences, read_sentences
from ._settings import check_score_weights, warn_of_shared_key
from ._spans import (
    LabelledSpan,
    drop_candidates,
    write_entities,
    write_span_group,
)


@dataclass(frozen=True)
class RankedEntities:
    """The entities of one labelling of each sentence of a batch, in text order.

    start, end (np.ndarray): Half-open word offsets in the batch. Shape: (M,).
    label (np.ndarray): Positions in the pipe's labels. Shape: (M,).
    score (np.ndarray): How sure the model is of each, in [0, 1]. Shape: (M,).
    log_prob (np.ndarray): Log probability of each sentence's labelling, in nats, -inf
        where a sentence has no labelling of this rank. Shape: (S,).
    """

    start: np.ndarray
    end: np.ndarray
    label: np.ndarray
    score: np.ndarray
    log_prob: np.ndarray


class FlatPipe(LearnedPipe):
    """A learned pipe of flat entities. Subclasses define `_decode`."""

    _labels: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): The labels that the pipe writes, sorted."""
        return self._labels

    def _set_labels(self, labels: Iterable[str]) -> None:
        self._labels = tuple(labels)
        for label in self._labels:
            self.vocab.strings.add(label)

    def _start_learning(self, nlp: Language | None) -> None:
        """Check the settings, before a corpus is read."""
        self._forget_settings()
        check_score_weights(self.name, self.cfg["spans_key"], nlp)
        if nlp is not None:
            warn_of_shared_key(nlp, self.name, self.cfg["spans_key"])

    def _read_corpus(
        self, get_examples: Callable[[], Iterable[Example]], nlp: Language | None
    ) -> FlatCorpus:
        """Read the whole corpus.

        RAISES (ValueError): If there is no entity in it, or only a sample of it.
        """
        self._require_whole_corpus(nlp)
        return read_flat_corpus(
            get_examples,
            self.name,
            self.cfg["spans_key"],
            self.cfg.get("missing_spans_key"),
        )

    def _decode(self, sentences: DocSentences) -> list[RankedEntities]:
        """The entities of the best labellings, `n_best` of them."""
        raise NotImplementedError

    def predict(self, docs: Sequence[Doc]) -> tuple[DocSentences, list[RankedEntities]]:
        """Decode Docs without changing them.

        docs (Sequence[Doc]): The Docs.
        RETURNS (tuple[DocSentences, list[RankedEntities]]): Their sentences, and the
            entities of the best labelling, or of each of the `n_best`.
        """
        self._require_initialized()
        sentences = read_sentences(docs)
        return sentences, self._decode(sentences)

    def set_annotations(
        self,
        docs: Sequence[Doc],
        predictions: tuple[DocSentences, list[RankedEntities]],
    ) -> None:
        """Write `doc.spans[spans_key]`, the candidates' groups and `doc.ents`.

        docs (Sequence[Doc]): The Docs.
        predictions (tuple[DocSentences, list[RankedEntities]]): What `predict` returned.
        """
        sentences, ranks = predictions
        key = self.cfg["spans_key"]
        for doc, (spans, scores) in zip(
            docs, self._by_doc(sentences, ranks[0]), strict=True
        ):
            write_entities(doc, key, spans, scores, ents=self.cfg["annotate_ents"])
            drop_candidates(doc, key, len(ranks) if self.cfg["n_best"] > 1 else 0)
        if self.cfg["n_best"] > 1:
            for rank, entities in enumerate(ranks):
                self._write_candidates(docs, sentences, entities, f"{key}:{rank}")

    def _write_candidates(
        self,
        docs: Sequence[Doc],
        sentences: DocSentences,
        entities: RankedEntities,
        key: str,
    ) -> None:
        """Write one candidate of every sentence that has so many."""
        present = np.isfinite(entities.log_prob)
        borders = np.searchsorted(sentences.docs, np.arange(len(docs) + 1))
        for doc, (spans, scores), start, end in zip(
            docs,
            self._by_doc(sentences, entities),
            borders[:-1].tolist(),
            borders[1:].tolist(),
            strict=True,
        ):
            here = present[start:end]
            write_span_group(
                doc,
                key,
                spans,
                scores,
                segments=sentences.segments[start:end][here].astype(np.int32),
                log_prob=entities.log_prob[start:end][here],
            )

    def _by_doc(
        self, sentences: DocSentences, entities: RankedEntities
    ) -> Iterable[tuple[list[LabelledSpan], np.ndarray]]:
        """Spans in tokens of each Doc, and their scores."""
        start = sentences.tokens[entities.start].tolist()
        end = (sentences.tokens[entities.end - 1] + 1).tolist()
        labels = [self._labels[number] for number in entities.label.tolist()]
        spans = list(zip(start, end, labels, strict=True))
        borders = np.searchsorted(
            entities.start, np.concatenate(([0], np.cumsum(sentences.doc_words)))
        ).tolist()
        for begin, stop in pairwise(borders):
            yield spans[begin:stop], entities.score[begin:stop]
