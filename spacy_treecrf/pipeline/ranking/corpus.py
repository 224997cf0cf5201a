"""Segments with candidates and gold, as a reranker learns from them."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger, minibatch

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan, aligned_gold
from spacy_treecrf.problems import Problems, start_of
from spacy_treecrf.rerank.candidates import (
    Candidate,
    CandidateSegment,
    merge_duplicates,
)

from ..docs.analyses import END, RANK, SEGMENT, START, Analyses
from ..docs.reading import read
from ..docs.segments import DocSegments

# Docs read at a time; those that jackknife packs have some 100 segments each.
CHUNK = 32
MISSING, UNANNOTATED = "no candidates", "no gold"
LOST = (
    "lie in no segment of the candidates or fit no tokens, so that no candidate has "
    "them. They cross a segment's border or are white space: mend the sentence starts"
)


def ranking_segments(
    analyses: Analyses,
    gold: Sequence[Sequence[LabelledSpan]] | None = None,
    first_document: int = 0,
) -> list[CandidateSegment]:
    """The segments that hold words, in words.

    analyses (Analyses): The candidates.
    gold (Optional[Sequence[Sequence[LabelledSpan]]]): Of each segment, in its words.
    first_document (int): Number of the first document.
    RETURNS (list[CandidateSegment]): Distinct candidates, best first, spans trimmed to
        words; in the order of `analyses.segments.words().segments`.
    """
    segments = analyses.segments
    words = segments.words()
    strings, types = words.types()
    texts = [strings[number] for number in types.tolist()]
    ends = np.cumsum(words.lengths)
    borders = list(pairwise([0, *ends.tolist()]))
    start, end = segments.words_of(*analyses.entities[:, [SEGMENT, START, END]].T)
    labels = [analyses.labels[number] for number in analyses.entities[:, -1].tolist()]
    spans: dict[tuple[int, int], list[LabelledSpan]] = {}
    # The candidates of a segment share most spans: one object each saves much memory.
    shared: dict[tuple[int, LabelledSpan], LabelledSpan] = {}
    for segment, rank, *span in zip(
        analyses.entities[:, SEGMENT].tolist(),
        analyses.entities[:, RANK].tolist(),
        start.tolist(),
        end.tolist(),
        labels,
        strict=True,
    ):
        one: LabelledSpan = tuple(span)
        one = shared.setdefault((segment, one), one)
        spans.setdefault((segment, rank), []).append(one)
    documents = np.zeros(len(segments), dtype=np.int64)
    if analyses.documents is not None:
        documents = analyses.documents
    log_prob = analyses.log_prob.tolist()
    return [
        CandidateSegment(
            words=tuple(texts[first:last]),
            candidates=merge_duplicates(
                Candidate(value, tuple(spans.get((number, rank), ())))
                for rank, value in enumerate(log_prob[number])
                if value > -np.inf
            ),
            document=first_document + int(documents[number]),
            gold=None if gold is None else tuple(gold[number]),
        )
        for number, (first, last) in zip(words.segments.tolist(), borders, strict=True)
    ]


def without_open(analyses: Analyses, gold: Sequence[Gold]) -> Analyses:
    """Take out the spans that nobody can say to be right or wrong (`Gold.is_open`).

    Candidates are judged by their other spans; those that then are equal are one, with
    the sum of their probabilities.
    """
    doc = analyses.segments.doc[analyses.entities[:, SEGMENT]]
    has_regions = np.array([bool(own.regions) for own in gold], dtype=bool)
    kept = np.ones(len(doc), dtype=bool)
    for row in np.flatnonzero(has_regions[doc]).tolist():
        start, end, label = analyses.entities[row, 2:].tolist()
        span = (start, end, analyses.labels[label])
        kept[row] = not gold[int(doc[row])].is_open(span)
    return analyses.select(kept)


def place_gold(
    segments: DocSegments, gold: Sequence[Sequence[LabelledSpan]]
) -> tuple[list[list[LabelledSpan]], list[tuple[int, LabelledSpan]]]:
    """Gold of each segment in words of it.

    segments (DocSegments): The segments.
    gold (Sequence[Sequence[LabelledSpan]]): Distinct gold spans of each Doc, in tokens.
    RETURNS (tuple): Of each segment its spans; Docs and spans of gold that lies in no
        segment, so that no candidate can have it.
    """
    rows = [(n, span) for n, own in enumerate(gold) for span in sorted(set(own))]
    doc = np.array([number for number, _ in rows], dtype=np.int64)
    edges = np.array([span[:2] for _, span in rows], dtype=np.int64).reshape(-1, 2)
    segment, is_inside = segments.within(doc, *edges.T)
    placed: list[set[LabelledSpan]] = [set() for _ in range(len(segments))]
    inside = np.flatnonzero(is_inside)
    first, last = segments.words_of(segment[inside], *edges[inside].T)
    for row, start, end in zip(
        inside.tolist(), first.tolist(), last.tolist(), strict=True
    ):
        is_inside[row] = start < end
        if start < end:
            placed[segment[row]].add((start, end, rows[row][1][2]))
    lost = [rows[row] for row in np.flatnonzero(~is_inside).tolist()]
    return [sorted(spans) for spans in placed], lost


@dataclass
class RankingCorpus:
    """Segments with candidates and gold, and a count of what could not be read.

    name (str): Name of the pipe, for messages. cfg (dict[str, Any]): Its settings.
    what (str): "training" or "development".
    """

    name: str
    cfg: dict[str, Any]
    what: str
    segments: list[CandidateSegment] = field(default_factory=list)
    n_docs: int = 0
    n_documents: int = 0
    n_gold: int = 0
    problems: Problems = field(default_factory=Problems)

    def add(self, docs: Sequence[Doc], gold: Sequence[Gold]) -> None:
        """Read the candidates of some Docs, whose gold is given in their tokens."""
        analyses = without_open(read(docs, self.cfg["candidates_key"]), gold)
        segments = analyses.segments
        placed, lost = place_gold(segments, [own.spans for own in gold])
        has_segments = np.bincount(segments.doc, minlength=len(docs)) > 0
        for doc, own, has_any in zip(docs, gold, has_segments.tolist(), strict=True):
            self.n_gold += len(set(own.spans)) if has_any else 0
            if not has_any and any(not token.is_space for token in doc):
                self.problems.add(MISSING, start_of(doc))
            elif own.source is None and len(doc):
                self.problems.add(UNANNOTATED, start_of(doc))
        for number, span in lost:
            if has_segments[number]:
                self.problems.add_span(LOST, docs[number], span)
        self.segments += ranking_segments(analyses, placed, self.n_documents)
        self.n_docs += len(docs)
        if len(segments) and analyses.documents is not None:
            self.n_documents += int(analyses.documents[-1]) + 1

    def warn(self) -> None:
        """Warn, once each, of Docs without candidates and of gold that none has."""
        counts = self.problems.counts
        shared: dict[str, Any] = {"name": self.name, "what": self.what}
        for kind, message, key in (
            (MISSING, Warnings.T098, self.cfg["candidates_key"]),
            (UNANNOTATED, Warnings.T146, self.cfg["spans_key"]),
        ):
            if counts[kind]:
                first = self.problems.first(kind)
                text = message.format(
                    count=counts[kind], total=self.n_docs, key=key, doc=first, **shared
                )
                warnings.warn(text, stacklevel=4)
        if counts[LOST]:
            text = Warnings.T080.format(
                name=self.name,
                count=counts[LOST],
                total=self.n_gold,
                share=counts[LOST] / self.n_gold,
                key=self.cfg["spans_key"],
                problem=LOST,
                first=self.problems.first(LOST),
            )
            warnings.warn(text, stacklevel=4)


def read_training(
    examples: Iterable[Example], name: str, cfg: dict[str, Any]
) -> RankingCorpus:
    """Read the candidates and the gold of the reference Docs.

    examples (Iterable[Example]): The training examples.
    name (str): Name of the pipe. cfg (dict[str, Any]): Its settings.
    RETURNS (RankingCorpus): The segments.
    RAISES (ValueError): If no Doc has candidates.
    """
    corpus = RankingCorpus(name, cfg, "training")
    keys: set[str] = set()
    for chunk in minibatch(examples, CHUNK):
        docs = [example.reference for example in chunk]
        keys.update(*(doc.spans for doc in docs))
        corpus.add(docs, [ranking_gold(Example(doc, doc), cfg) for doc in docs])
        logger.info("%s: read %d training segments", name, len(corpus.segments))
    if not corpus.segments:
        raise ValueError(
            Errors.T091.format(
                name=name,
                key=cfg["candidates_key"],
                n_docs=corpus.n_docs,
                keys=sorted(keys) or "none",
            )
        )
    check_labels(corpus.segments, cfg["candidates_key"])
    corpus.warn()
    return corpus


def ranking_gold(example: Example, cfg: dict[str, Any]) -> Gold:
    """Gold of an example, in tokens of its predicted Doc.

    example (Example): The example. cfg (dict[str, Any]): Settings of the pipe.
    RETURNS (Gold): What is under the spans key of the reference, else under the
        candidates' key, else in `doc.ents`. A Doc that nobody has annotated is unknown as
        a whole.
    """
    keys = GoldKeys.of(cfg)
    if keys.spans not in example.reference.spans:
        keys = replace(keys, spans=cfg.get("candidates_key", keys.spans))
    found = aligned_gold(example, keys)
    if found.source is None:
        return replace(found, unknown=[(0, len(example.predicted))])
    return found


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
    corpus = RankingCorpus(name, cfg, "development")
    key = cfg["candidates_key"]
    for chunk in minibatch(examples, CHUNK):
        given = [e.reference for e in chunk if f"{key}:0" in e.reference.spans]
        corpus.add(given, [ranking_gold(Example(doc, doc), cfg) for doc in given])
        plain = [e for e in chunk if f"{key}:0" not in e.reference.spans]
        docs = run_pipes_before(name, nlp, [example.predicted for example in plain])
        gold = []
        for example in plain:
            gold.append(ranking_gold(example, cfg))
            corpus.n_gold += len(gold[-1].lost)
            for span in gold[-1].lost:
                corpus.problems.add_span(LOST, example.reference, span)
        corpus.add(docs, gold)
    if not corpus.segments:
        raise ValueError(Errors.T099.format(name=name, n_docs=corpus.n_docs, key=key))
    corpus.warn()
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


def check_labels(segments: Sequence[CandidateSegment], key: str) -> None:
    """Check that candidates and gold speak of the same labels.

    segments (Sequence[CandidateSegment]): Segments with gold.
    key (str): Key of the candidates, for the message.
    RAISES (ValueError): If both have spans but no label in common.
    """
    gold = {label for segment in segments for _, _, label in segment.gold or ()}
    found = {
        label
        for segment in segments
        for candidate in segment.candidates
        for _, _, label in candidate.spans
    }
    if gold and found and not gold & found:
        raise ValueError(
            Errors.T086.format(key=key, candidates=sorted(found), gold=sorted(gold))
        )
