"""What the pipes have in common that label disjoint names, sentence by sentence.

They write the entities of the best labelling of every sentence, and, if asked, those of
the next best ones as candidates.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from ..docs.analyses import OWN, RANK, Analyses, write
from ..docs.flat_gold import FlatCorpus, read_flat_corpus
from ..docs.segments import DocSegments, Words
from .learned_pipe import LearnedPipe, checked_examples
from .settings import check_score_weights, warn_of_shared_key

# Rank, start, end (in words of the batch), label and score of each entity, by rank and in
# text order, (M,) each; log probability of each sentence's labellings, (S, K).
Columns = tuple[np.ndarray, ...]


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
        RAISES (TypeError): If it is not a function that returns examples.
        """
        self._require_whole_corpus(nlp)
        method = f"{type(self).__name__}.initialize"
        return read_flat_corpus(
            lambda: checked_examples(get_examples, method),
            self.name,
            self.cfg["spans_key"],
            self.cfg.get("missing_spans_key"),
        )

    def _decode(self, words: Words) -> Columns:
        """The entities of the best labellings, `n_best` of them."""
        raise NotImplementedError

    def predict(self, docs: Sequence[Doc]) -> Analyses:
        """Decode Docs without changing them.

        docs (Sequence[Doc]): The Docs.
        RETURNS (Analyses): The entities of the best labelling of each sentence and, with
            `n_best` above 1, of each of so many.
        """
        self._require_initialized()
        segments = DocSegments(docs)
        words = segments.words()
        rank, start, end, label, scores, chances = self._decode(words)
        place = np.repeat(np.arange(len(words.lengths)), words.lengths)[start]
        columns = (
            words.segments[place],
            rank,
            words.tokens[start],
            words.tokens[end - 1] + 1,
            label,
        )
        entities = np.stack(columns, axis=1)
        best = entities[:, RANK] == 0
        own = entities[best].copy()
        own[:, RANK] = OWN
        n_ranks = self.cfg["n_best"] if self.cfg["n_best"] > 1 else 0
        log_prob = np.full((len(segments), n_ranks), -np.inf)
        if n_ranks:
            log_prob[words.segments] = chances
            own = np.concatenate([own, entities])
            scores = np.concatenate([scores[best], scores])
        return Analyses(segments, self._labels, own, scores, log_prob)

    def set_annotations(self, docs: Sequence[Doc], predictions: Analyses) -> None:
        """Write `doc.spans[spans_key]`, the candidates' groups and `doc.ents`.

        docs (Sequence[Doc]): The Docs.
        predictions (Analyses): What `predict` returned.
        """
        write(docs, self.cfg["spans_key"], predictions, ents=self.cfg["annotate_ents"])
