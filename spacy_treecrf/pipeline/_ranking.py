"""What `ner_reranker` learns from, read from examples, and the learning itself."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger, minibatch
from tqdm import tqdm

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.gold import Gold, GoldKeys
from spacy_treecrf.rerank.candidates import (
    CandidateSegment,
)
from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.model import Ranker
from spacy_treecrf.rerank.ranking_data import RankingData

from .candidate_groups import aligned_annotation, check_labels, read_candidates

# Docs read at a time; those that jackknife packs have some 100 segments each.
CHUNK = 32
LOST = (
    "lie in no segment of the candidates or fit no tokens, so that no candidate has "
    "them. They cross a segment's border or are white space: mend the sentence starts"
)


@dataclass
class RankingCorpus:
    """Segments with candidates and gold, and a count of what could not be read.

    name (str): Name of the pipe, for messages. key (str): Key of the gold.
    """

    name: str
    key: str
    segments: list[CandidateSegment] = field(default_factory=list)
    n_docs: int = 0
    n_documents: int = 0
    n_missing: int = 0
    first_missing: str = ""
    n_gold: int = 0
    n_lost: int = 0
    first_lost: str = ""
    n_unannotated: int = 0
    first_unannotated: str = ""
    keys: Counter[str] = field(default_factory=Counter)

    def add(
        self, docs: Sequence[Doc], candidates_key: str, gold: Sequence[Gold]
    ) -> None:
        """Read the candidates of some Docs, whose gold is given in their tokens."""
        found = read_candidates(
            docs, candidates_key, None, self.n_documents, annotation=gold
        )
        left_out = set(found.missing)
        for number, (doc, own) in enumerate(zip(docs, gold, strict=True)):
            if own.source is None and len(doc) and number not in left_out:
                self.n_unannotated += 1
                self.first_unannotated = self.first_unannotated or start_of(doc)
        if found.missing and not self.n_missing:
            self.first_missing = start_of(docs[found.missing[0]])
        for number, (start, end, label) in found.lost_gold[:1]:
            doc = docs[number]
            self.first_lost = self.first_lost or (
                f"({start}, {end}, {label!r}) {doc[start:end].text[:80]!r} in the Doc "
                f"that starts {start_of(doc)!r}"
            )
        self.segments += found.segments
        self.n_docs += len(docs)
        self.n_documents = found.n_documents
        self.n_missing += len(found.missing)
        self.n_gold += found.n_gold
        self.n_lost += len(found.lost_gold)

    def warn(self, candidates_key: str, what: str) -> None:
        """Warn, once each, of Docs without candidates and of gold that none has.

        candidates_key (str): Key of the candidates.
        what (str): "training" or "development".
        """
        if self.n_missing:
            warnings.warn(
                Warnings.T098.format(
                    name=self.name,
                    count=self.n_missing,
                    total=self.n_docs,
                    what=what,
                    key=candidates_key,
                    doc=self.first_missing,
                ),
                stacklevel=4,
            )
        if self.n_unannotated:
            warnings.warn(
                Warnings.T146.format(
                    name=self.name,
                    count=self.n_unannotated,
                    total=self.n_docs,
                    what=what,
                    key=self.key,
                    doc=self.first_unannotated,
                ),
                stacklevel=4,
            )
        if self.n_lost:
            warnings.warn(
                Warnings.T080.format(
                    name=self.name,
                    count=self.n_lost,
                    total=self.n_gold,
                    share=self.n_lost / self.n_gold,
                    key=self.key,
                    problem=LOST,
                    first=self.first_lost,
                ),
                stacklevel=4,
            )


def start_of(doc: Doc) -> str:
    """RETURNS (str): How a Doc begins, for messages."""
    return doc[:12].text[:60]


def read_training(
    examples: Iterable[Example], name: str, cfg: dict[str, Any]
) -> RankingCorpus:
    """Read the candidates and the gold of the reference Docs.

    examples (Iterable[Example]): The training examples.
    name (str): Name of the pipe. cfg (dict[str, Any]): Its settings.
    RETURNS (RankingCorpus): The segments.
    RAISES (ValueError): If no Doc has candidates.
    """
    corpus = RankingCorpus(name, cfg["spans_key"])
    for chunk in minibatch(examples, CHUNK):
        docs = [example.reference for example in chunk]
        for doc in docs:
            corpus.keys.update(doc.spans.keys())
        corpus.add(docs, cfg["candidates_key"], [gold_of(doc, cfg) for doc in docs])
        logger.info("%s: read %d training segments", name, len(corpus.segments))
    if not corpus.segments:
        raise ValueError(
            Errors.T091.format(
                name=name,
                key=cfg["candidates_key"],
                n_docs=corpus.n_docs,
                keys=sorted(corpus.keys) or "none",
            )
        )
    check_labels(corpus.segments, cfg["candidates_key"])
    corpus.warn(cfg["candidates_key"], "training")
    return corpus


def gold_of(doc: Doc, cfg: dict[str, Any]) -> Gold:
    """Gold of a Doc: under the spans key, else the candidates' key, else `doc.ents`."""
    return aligned_annotation(Example(doc, doc), gold_keys(doc, cfg))


def gold_keys(doc: Doc, cfg: dict[str, Any]) -> GoldKeys:
    """RETURNS (GoldKeys): Where the annotation of a Doc is."""
    return replace(GoldKeys.of(cfg), spans=gold_key(doc, cfg))


def gold_key(doc: Doc, cfg: dict[str, Any]) -> str:
    """RETURNS (str): Key of the gold of a Doc, where it has any."""
    has_own = cfg["spans_key"] in doc.spans
    return str(cfg["spans_key"] if has_own else cfg["candidates_key"])


def read_development(
    examples: Iterable[Example], name: str, cfg: dict[str, Any], nlp: Language | None
) -> RankingCorpus:
    """Read development data, decoded by the pipes before this one where need be.

    examples (Iterable[Example]): Candidates are in the reference or, where it has none,
        written to the predicted Doc by the pipes before this one.
    name (str): Name of the pipe. cfg (dict[str, Any]): Its settings.
    nlp (Optional[Language]): The pipeline.
    RETURNS (RankingCorpus): The segments.
    RAISES (ValueError): If no Doc has candidates.
    """
    corpus = RankingCorpus(name, cfg["spans_key"])
    key = cfg["candidates_key"]
    for chunk in minibatch(examples, CHUNK):
        given = [e.reference for e in chunk if f"{key}:0" in e.reference.spans]
        corpus.add(given, key, [gold_of(doc, cfg) for doc in given])
        plain = [e for e in chunk if f"{key}:0" not in e.reference.spans]
        docs = run_pipes_before(name, nlp, [example.predicted for example in plain])
        gold = []
        for example in plain:
            own = aligned_annotation(example, gold_keys(example.reference, cfg))
            gold.append(own)
            corpus.n_gold += len(own.lost)
            corpus.n_lost += len(own.lost)
            if own.lost and not corpus.first_lost:
                corpus.first_lost = f"{own.lost[0]} in {start_of(example.reference)!r}"
        corpus.add(docs, key, gold)
    if not corpus.segments:
        raise ValueError(Errors.T099.format(name=name, n_docs=corpus.n_docs, key=key))
    corpus.warn(key, "development")
    return corpus


def run_pipes_before(
    name: str, nlp: Language | None, docs: Sequence[Doc]
) -> Sequence[Doc]:
    """Run the pipes before the one of a name, frozen ones too."""
    for other, pipe in nlp.components if nlp is not None and docs else ():
        if other == name:
            break
        docs = (
            [pipe(doc) for doc in docs]
            if not hasattr(pipe, "pipe")
            else list(pipe.pipe(docs))
        )
    return docs


def learn(
    corpus: RankingCorpus, development: RankingCorpus | None, cfg: dict[str, Any]
) -> tuple[GlobalFeatures, Ranker, int | None]:
    """Learn the features and the ranker.

    corpus (RankingCorpus): Training segments.
    development (Optional[RankingCorpus]): What boosting's rounds are chosen on.
    cfg (dict[str, Any]): Settings of the pipe.
    RETURNS (tuple[GlobalFeatures, Ranker, Optional[int]]): The features, the ranker, and
        the number of rounds of boosting.
    """
    features = GlobalFeatures(typed=cfg["typed"], min_sentences=cfg["min_sentences"])
    # Candidates of a single one teach no ranker, but their words and features count.
    with _bar("Features", len(corpus.segments)) as bar:
        features.fit(corpus.segments, progress=bar.update)
    with _bar("Candidates", len(corpus.segments)) as bar:
        data = ranking_data(corpus.segments, features, gold=True, progress=bar.update)
    logger.info("%d features, %d candidates", data.n_features, data.n_candidates)
    if cfg["method"] != "boosting":
        from spacy_treecrf.rerank.linear_ranker import LinearRanker
        from spacy_treecrf.rerank.voted_perceptron import Perceptron, train_perceptron

        def train(run: int) -> Perceptron:
            return train_perceptron(
                data,
                beta=cfg["beta"],
                passes=cfg["passes"],
                seed=cfg["seed"] + run,
                progress=_wrap(f"Segments, run {run + 1} of {cfg['runs']}"),
            )

        learnt: Ranker
        if cfg["method"] == "voted_perceptron":
            learnt = train(0).voted()
        else:
            runs = (train(run).averaged() for run in range(cfg["runs"]))
            learnt = LinearRanker.mean(list(runs))
        return features, _drop_unused(features, learnt), None
    from spacy_treecrf.rerank.boosting import choose_rounds, train_boosting

    boosting = train_boosting(
        data,
        cfg["rounds"],
        epsilon=cfg["epsilon"],
        weighted=cfg["weighted"],
        progress=_wrap("Rounds"),
    )
    rounds = boosting.n_rounds
    if development is not None:
        dev = ranking_data(development.segments, features, gold=True)
        if dev.counts is not None:
            # Gold that no candidate has is missed, whatever is chosen.
            dev.counts[: dev.borders[1], 2] += development.n_lost
        rounds = choose_rounds(boosting, dev)
        logger.info("%d of %d rounds", rounds, boosting.n_rounds)
    return features, _drop_unused(features, boosting.ranker(rounds)), rounds


def _drop_unused(features: GlobalFeatures, ranker: Ranker) -> Ranker:
    """Forget the features that change no value: a smaller and faster model."""
    used = ranker.used_features()
    features.select(used)
    logger.info("%d of %d features are used", features.n_features, len(used))
    return ranker.select(used)


def ranking_data(
    segments: Sequence[CandidateSegment],
    features: GlobalFeatures,
    gold: bool = False,
    progress: Callable[[int], object] | None = None,
) -> RankingData:
    """Segments as a ranker sees them.

    segments (Sequence[CandidateSegment]): The segments.
    features (GlobalFeatures): The features.
    gold (bool): Whether to learn or score: adds oracles and span counts, and leaves out
        features that all candidates of a segment share, as they change no choice.
    progress (Optional[Callable[[int], object]]): As in `GlobalFeatures.transform`.
    RETURNS (RankingData): The data.
    """
    rows = features.transform(segments, drop_shared=gold, progress=progress)
    return RankingData.from_segments(
        segments, rows.indptr, rows.indices, features.n_features
    )


def _bar(name: str, total: int) -> "tqdm[Any]":
    # Only in a terminal: nobody reads bars in a log.
    return tqdm(desc=name, total=total, leave=False, disable=None)


def _wrap(name: str) -> Callable[[Iterable[int]], Iterable[int]]:
    return lambda items: tqdm(items, desc=name, leave=False, disable=None)
