"""The factory `ner_reranker`: chooses among the candidates of the pipe before it.

Source: Collins (2002), "Ranking Algorithms for Named-Entity Extraction: Boosting and the
Voted Perceptron"; over nested candidates too.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_get_examples
from spacy.util import minibatch
from spacy.vocab import Vocab

from spacy_treecrf.errors import Warnings
from spacy_treecrf.problems import Problems, start_of

from .base.learned_pipe import Arrays, Header, LearnedPipe
from .base.settings import check_reranker_settings, check_score_weights
from .docs.analyses import END, OWN, SEGMENT, START, Analyses, write
from .docs.reading import read
from .docs.segments import DocSegments

if TYPE_CHECKING:
    from spacy_treecrf.rerank.features import GlobalFeatures
    from spacy_treecrf.rerank.model import Ranker

Method = Literal["averaged_perceptron", "voted_perceptron", "boosting"]

DEFAULT_CONFIG = {
    "spans_key": "nested",
    "candidates_key": None,
    "method": "averaged_perceptron",
    "rounds": 10_000,
    "epsilon": 0.0025,
    "weighted": False,
    "beta": 0.2,
    "passes": 3,
    "runs": 1,
    "min_sentences": 5,
    "typed": True,
    "missing_spans_key": None,
    "incorrect_spans_key": None,
    "annotate_ents": False,
    "seed": 0,
    "scorer": {"@scorers": "spacy-treecrf.nested_scorer.v1"},
}


@Language.factory(
    "ner_reranker",
    requires=["doc.spans"],
    assigns=["doc.spans"],
    default_config=DEFAULT_CONFIG,
    default_score_weights={
        "spans_nested_f": 1.0,
        "spans_nested_p": 0.0,
        "spans_nested_r": 0.0,
        "spans_nested_inner_f": None,
        "spans_nested_outer_f": None,
        "spans_nested_unlabelled_f": None,
        "spans_nested_per_type": None,
    },
)
def make_ner_reranker(
    nlp: Language,
    name: str,
    spans_key: str,
    candidates_key: str | None,
    method: Method,
    rounds: int,
    epsilon: float,
    weighted: bool,
    beta: float,
    passes: int,
    runs: int,
    min_sentences: int,
    typed: bool,
    missing_spans_key: str | None,
    incorrect_spans_key: str | None,
    annotate_ents: bool,
    seed: int,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "NerReranker":
    """Build the pipe; see `NerReranker` for the settings."""
    return NerReranker(
        nlp.vocab,
        name,
        spans_key=spans_key,
        candidates_key=candidates_key,
        method=method,
        rounds=rounds,
        epsilon=epsilon,
        weighted=weighted,
        beta=beta,
        passes=passes,
        runs=runs,
        min_sentences=min_sentences,
        typed=typed,
        missing_spans_key=missing_spans_key,
        incorrect_spans_key=incorrect_spans_key,
        annotate_ents=annotate_ents,
        seed=seed,
        scorer=scorer,
    )


class NerReranker(LearnedPipe):
    """Chooses one candidate of each segment by global features."""

    # Of prediction, and those that steer a further training alone.
    free_settings = frozenset(
        {"candidates_key", "annotate_ents", "rounds", "epsilon", "weighted"}
        | {"passes", "runs", "min_sentences", "seed"}
    )

    def __init__(
        self,
        vocab: Vocab,
        name: str = "ner_reranker",
        *,
        spans_key: str = "nested",
        candidates_key: str | None = None,
        method: Method = "averaged_perceptron",
        rounds: int = 10_000,
        epsilon: float = 0.0025,
        weighted: bool = False,
        beta: float = 0.2,
        passes: int = 3,
        runs: int = 1,
        min_sentences: int = 5,
        typed: bool = True,
        missing_spans_key: str | None = None,
        incorrect_spans_key: str | None = None,
        annotate_ents: bool = False,
        seed: int = 0,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ):
        """Make an untrained pipe.

        vocab (Vocab): The shared vocabulary.
        name (str): Name of the pipe in its pipeline.
        spans_key (str): Key of gold, and of the span group to write.
        candidates_key (Optional[str]): The spans key of the base pipe, whose candidates
            are `{candidates_key}:{r}`; by default `spans_key`.
        method (str): "averaged_perceptron", "voted_perceptron" or "boosting".
        rounds (int): Most rounds of boosting.
        epsilon (float): Smoothing of boosting's steps.
        weighted (bool): Whether boosting weighs a pair of candidates by how much they
            differ in F.
        beta (float): Scale of the log probability for the perceptrons.
        passes (int): Passes of the perceptrons over the data.
        runs (int): Averaged perceptrons that are trained, in orders of their own, and
            averaged.
        min_sentences (int): Training segments that a feature must occur in.
        typed (bool): Whether features see labels.
        missing_spans_key (Optional[str]): Key of regions that are not annotated: a span
            inside one is neither right nor wrong, in learning and in evaluation. Data
            of `jackknife` says its own in learning.
        incorrect_spans_key (Optional[str]): Key of spans with labels known to be wrong,
            also in such a region.
        annotate_ents (bool): Whether to write `doc.ents` too.
        seed (int): Seed of the order of the perceptrons' passes.
        scorer (Optional[Callable]): Scores examples.
        RAISES (ValueError): If a setting is out of its range.
        """
        self.vocab = vocab
        self.name = name
        self.scorer = scorer
        self.cfg = {
            "spans_key": spans_key,
            "candidates_key": spans_key if candidates_key is None else candidates_key,
            "method": method,
            "rounds": rounds,
            "epsilon": epsilon,
            "weighted": weighted,
            "beta": beta,
            "passes": passes,
            "runs": runs,
            "min_sentences": min_sentences,
            "typed": typed,
            "missing_spans_key": missing_spans_key,
            "incorrect_spans_key": incorrect_spans_key,
            "annotate_ents": annotate_ents,
            "seed": seed,
        }
        self._start_settings()
        self._labels: tuple[str, ...] = ()
        self._features: GlobalFeatures | None = None
        self._ranker: Ranker | None = None
        self._rounds: int | None = None
        self._problems = Problems(n_named=1)

    @property
    def labels(self) -> tuple[str, ...]:
        """RETURNS (tuple[str, ...]): Labels of the training candidates, sorted."""
        return self._labels

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): Whether the ranker has been learnt or loaded."""
        return self._ranker is not None

    @property
    def rounds(self) -> int | None:
        """RETURNS (Optional[int]): Rounds of boosting that are used."""
        return self._rounds

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        development: Callable[[Language], Iterable[Example]] | None = None,
    ) -> None:
        """Learn from the whole corpus; what was learnt before is replaced.

        get_examples (Callable[[], Iterable[Example]]): What `treecrf jackknife` has
            written: candidates and gold are in the reference.
        nlp (Optional[Language]): The pipeline.
        development (Optional[Callable[[Language], Iterable[Example]]]): A reader of
            data on which boosting's rounds are chosen. The pipes before this one decode
            those that have no candidates in the reference.
        RAISES (ValueError): If there are no candidates, or they are malformed.
        """
        from .ranking.corpus import read_development, read_training
        from .ranking.learning import learn

        validate_get_examples(get_examples, "NerReranker.initialize")
        self._forget_settings()
        self._require_whole_corpus(nlp)
        check_score_weights(self.name, self.cfg["spans_key"], nlp)
        corpus = read_training(get_examples(), self.name, self.cfg)
        dev = None
        # Nothing but the rounds is chosen on it, so that other methods need not read it.
        if development is not None and self.cfg["method"] == "boosting":
            given = development(nlp if nlp is not None else Language(self.vocab))
            dev = read_development(given, self.name, self.cfg, nlp)
        self._features, self._ranker, self._rounds = learn(corpus, dev, self.cfg)
        labels = {
            span[2]
            for segment in corpus.segments
            for candidate in segment.candidates
            for span in candidate.spans
        }
        self._set_labels(sorted(labels))
        self._problems = Problems(n_named=1)
        self._fix_settings()

    def _check_ranges(self) -> None:
        check_reranker_settings(self.name, self.cfg)

    def _set_labels(self, labels: Iterable[str]) -> None:
        self._labels = tuple(labels)
        for label in self._labels:
            self.vocab.strings.add(label)

    def predict(self, docs: Sequence[Doc]) -> Analyses:
        """Choose a candidate of each segment, without changing the Docs.

        docs (Sequence[Doc]): The Docs, with candidates.
        RETURNS (Analyses): The entities of the chosen candidates, each with the value of
            its candidate. A Doc without candidates has no segments.
        RAISES (ValueError): If the candidates of a Doc are malformed.
        """
        from spacy_treecrf.rerank.ranking_data import first_maximum

        from .ranking.corpus import ranking_segments
        from .ranking.learning import ranking_data

        self._require_initialized()
        assert self._features is not None
        assert self._ranker is not None
        found = read(docs, self.cfg["candidates_key"])
        self._warn_labels(found)
        candidates = ranking_segments(found)
        data = ranking_data(candidates, self._features)
        values = self._ranker.values(data)
        rows = first_maximum(values, data.borders)
        chosen = (rows - data.borders[:-1]).tolist()
        words = found.segments.words()
        first = np.cumsum(words.lengths) - words.lengths
        number = {label: place for place, label in enumerate(found.labels)}
        spans = np.array(
            [
                (place, OWN, start, end, number[label])
                for place, (segment, choice) in enumerate(
                    zip(candidates, chosen, strict=True)
                )
                for start, end, label in segment.candidates[choice].spans
            ],
            dtype=np.int64,
        ).reshape(-1, 5)
        place = spans[:, SEGMENT].copy()
        spans[:, START] = words.tokens[first[place] + spans[:, START]]
        spans[:, END] = words.tokens[first[place] + spans[:, END] - 1] + 1
        spans[:, SEGMENT] = words.segments[place]
        none = np.zeros((len(found.segments), 0))
        return Analyses(
            found.segments, found.labels, spans, values[rows][place], log_prob=none
        )

    def set_annotations(self, docs: Sequence[Doc], predictions: Analyses) -> None:
        """Write `doc.spans[spans_key]`, and `doc.ents` if asked.

        docs (Sequence[Doc]): The Docs. One without candidates keeps its spans.
        predictions (Analyses): What `predict` returned.
        """
        key, segments = self.cfg["spans_key"], predictions.segments
        is_empty = np.diff(segments.by_doc()) == 0
        self._warn_missing(docs, segments, is_empty)
        kept = {n for n in np.flatnonzero(is_empty).tolist() if key in docs[n].spans}
        write(
            docs,
            key,
            predictions,
            ents=self.cfg["annotate_ents"],
            replaced=self.cfg["candidates_key"],
            keeps_candidates=True,
            left_alone=kept,
        )

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, batch by batch.

        stream (Iterable[Doc]): The Docs.
        batch_size (int): Docs a batch.
        YIELDS (Doc): The same Docs, in order. One that cannot be reranked is given to
            the error handler and, if that raises nothing, comes out as the pipes before
            have left it.
        """
        for docs in minibatch(stream, size=batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception:
                # One by one, so that the others of the batch are not lost with it.
                for doc in docs:
                    self(doc)
            yield from docs

    def _warn_missing(
        self, docs: Sequence[Doc], segments: DocSegments, is_empty: np.ndarray
    ) -> None:
        missing = np.flatnonzero(is_empty & (segments.doc_words > 0))
        for number in missing.tolist():
            self._problems.add("missing", start_of(docs[number]))
        if "missing" in self._problems.unwarned():
            warnings.warn(
                Warnings.T095.format(
                    name=self.name,
                    count=len(missing),
                    doc=self._problems.first("missing"),
                    key=self.cfg["candidates_key"],
                ),
                stacklevel=4,
            )

    def _warn_labels(self, found: Analyses) -> None:
        if unknown := sorted(set(found.labels).difference(self._labels)):
            self._problems.add("labels", repr(unknown))
        if "labels" in self._problems.unwarned():
            warnings.warn(
                Warnings.T096.format(name=self.name, labels=unknown), stacklevel=4
            )

    def _to_arrays(self) -> tuple[Header, Arrays]:
        assert self._features is not None
        assert self._ranker is not None
        parts = {
            "features": self._features.to_arrays(),
            "ranker": self._ranker.to_arrays(),
        }
        header = {name: header for name, (header, _) in parts.items()}
        arrays = {
            f"{name}.{key}": array
            for name, (_, own) in parts.items()
            for key, array in own.items()
        }
        return {**header, "labels": list(self._labels), "rounds": self._rounds}, arrays

    def _from_arrays(self, header: Header, arrays: Arrays) -> None:
        from spacy_treecrf.rerank.features import GlobalFeatures
        from spacy_treecrf.rerank.model import load_ranker

        def of(part: str) -> Arrays:
            start = f"{part}."
            return {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }

        ranker = load_ranker(header["ranker"], of("ranker"))
        features = GlobalFeatures.from_arrays(header["features"], of("features"))
        self._features, self._ranker = features, ranker
        self._rounds = header["rounds"]
        self._set_labels(header["labels"])
