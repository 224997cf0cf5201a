"""From the candidate groups of Docs to the segments that a reranker chooses in."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import IS_SPACE, ORTH
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

from spacy_treecrf.errors import Errors
from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan
from spacy_treecrf.gold import aligned_gold as read_aligned
from spacy_treecrf.rerank.candidates import (
    Candidate,
    CandidateSegment,
    merge_duplicates,
)

# Characters of a Doc that a message quotes.
QUOTED = 60


@dataclass
class DocCandidates:
    """The segments of a batch of Docs, with their candidates.

    segments (list[CandidateSegment]): In the order of the Docs; words are tokens
        without white space.
    docs (list[int]): Which Doc each segment is of.
    tokens (list[list[int]]): For each segment, the token of each word in its Doc.
    missing (list[int]): Docs with words but without any candidates.
    n_documents (int): Documents that the segments are of, or one past the last number.
    n_gold (int): Gold spans that were read.
    lost_gold (list[tuple[int, LabelledSpan]]): Docs and spans of gold that lies in no
        segment, so that no candidate can have it; it counts as missed.
    """

    segments: list[CandidateSegment] = field(default_factory=list)
    docs: list[int] = field(default_factory=list)
    tokens: list[list[int]] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    n_documents: int = 0
    n_gold: int = 0
    lost_gold: list[tuple[int, LabelledSpan]] = field(default_factory=list)

    def token_spans(self, segment: int, candidate: int) -> list[LabelledSpan]:
        """The spans of one candidate in tokens of its Doc.

        segment (int): Number of the segment.
        candidate (int): Number of the candidate in it.
        RETURNS (list[LabelledSpan]): In text order, outer before inner.
        """
        tokens = self.tokens[segment]
        spans = self.segments[segment].candidates[candidate].spans
        return sorted(
            (
                (tokens[start], tokens[end - 1] + 1, label)
                for start, end, label in spans
            ),
            key=lambda span: (span[0], -span[1], span[2]),
        )


def read_candidates(
    docs: Sequence[Doc],
    key: str,
    gold: Sequence[Sequence[LabelledSpan]] | None = None,
    first_document: int = 0,
    annotation: Sequence[Gold] | None = None,
) -> DocCandidates:
    """Read the candidates of a batch of Docs.

    docs (Sequence[Doc]): The Docs, with groups `{key}:{r}`. A Doc is one document,
        unless the groups have attrs["documents"].
    key (str): Key of the pipe that wrote them.
    gold (Optional[Sequence[Sequence[LabelledSpan]]]): Gold spans of each Doc, in its
        tokens.
    first_document (int): Number of the first document.
    annotation (Optional[Sequence[Gold]]): All annotation of each Doc, in place of
        `gold`. A span that nobody can say to be right or wrong (`Gold.is_open`) is
        taken out of the candidates: they are judged by their other spans, and those
        that then are equal are one, with the sum of their probabilities.
    RETURNS (DocCandidates): Their segments, with distinct candidates, best first.
    RAISES (ValueError): If the groups of a Doc are not of the form that base pipes
        write; the message names the Doc, the group and what is wrong.
    """
    if annotation is not None:
        gold = [own.spans for own in annotation]
    found = DocCandidates(n_documents=first_document)
    texts: dict[int, str] = {}
    for number, doc in enumerate(docs):
        table = doc.to_array([ORTH, IS_SPACE]).reshape(-1, 2)
        is_word = table[:, 1] == 0
        words_before = np.concatenate(([0], np.cumsum(is_word)))
        ranks = _read_ranks(doc, key)
        if not ranks:
            if words_before[-1]:
                found.missing.append(number)
            continue
        if annotation is not None and annotation[number].regions:
            judge = annotation[number]
            ranks = [
                rank._replace(spans=[s for s in rank.spans if not judge.is_open(s)])
                for rank in ranks
            ]
        segments = np.array(ranks[0].segments, dtype=np.int64).reshape(-1, 2)
        _check_segments(doc, key, segments, words_before)
        edges = words_before[segments].tolist()
        candidates = _by_segment(doc, key, ranks, words_before)
        spans = None
        if gold is not None:
            spans = _place_gold(gold[number], number, segments, words_before, found)
        documents = _documents(ranks[0])
        words = _words(doc, table[is_word, 0].tolist(), texts)
        tokens = np.flatnonzero(is_word).tolist()
        for index, (start, end) in enumerate(edges):
            if start == end:  # nothing but white space: nothing to choose
                continue
            found.segments.append(
                CandidateSegment(
                    words=tuple(words[start:end]),
                    candidates=merge_duplicates(candidates[index]),
                    document=found.n_documents + documents[index],
                    gold=None if spans is None else spans[index],
                )
            )
            found.docs.append(number)
            found.tokens.append(tokens[start:end])
        found.n_documents += max(documents, default=-1) + 1
    return found


def aligned_gold(
    example: Example, key: str
) -> tuple[list[LabelledSpan], list[LabelledSpan]]:
    """Gold of an example in tokens of its predicted Doc.

    example (Example): The example; gold is `doc.spans[key]` of the reference where the
        key exists, else `doc.ents`.
    key (str): Key of the gold spans.
    RETURNS (tuple[list[LabelledSpan], list[LabelledSpan]]): Gold in tokens of the
        predicted Doc; gold that fits none of them, in tokens of the reference.
    """
    found = read_aligned(example, GoldKeys(key))
    return found.spans, found.lost


def aligned_annotation(example: Example, keys: GoldKeys) -> Gold:
    """All annotation of an example, in tokens of its predicted Doc.

    example (Example): The example. What `jackknife` has written says in the attrs of
        the gold group where its regions are.
    keys (GoldKeys): Where gold is; regions too, unless the attrs say it.
    RETURNS (Gold): The annotation. A Doc that nobody has annotated is unknown as a
        whole.
    """
    group = example.reference.spans.get(keys.spans)
    attrs = {} if group is None else group.attrs
    keys = GoldKeys(
        keys.spans,
        keys.missing or attrs.get("missing_spans_key"),
        keys.incorrect or attrs.get("incorrect_spans_key"),
    )
    found = read_aligned(example, keys)
    if found.source is None:
        return replace(found, unknown=[(0, len(example.predicted))])
    # Jackknife's runs count the tokens that the pipeline made, which the Doc has.
    runs = [(int(start), int(end)) for start, end in attrs.get("unknown", ())]
    return replace(found, unknown=[*found.unknown, *runs]) if runs else found


class _Rank(NamedTuple):
    """One candidate group: what is in it, checked by itself."""

    segments: list[tuple[int, int]]
    log_prob: list[float]
    spans: list[LabelledSpan]
    documents: list[int] | None


def _read_ranks(doc: Doc, key: str) -> list[_Rank]:
    ranks: list[_Rank] = []
    while (group := doc.spans.get(f"{key}:{len(ranks)}")) is not None:
        ranks.append(_read_rank(doc, group, f"{key}:{len(ranks)}"))
    return ranks


def _read_rank(doc: Doc, group: SpanGroup, key: str) -> _Rank:
    # Lists from here on: at run time a group has one row, for which arrays are slow.
    attrs = group.attrs
    for name in ("segments", "log_prob"):
        if name not in attrs:
            raise _malformed(doc, key, f"there is no attrs[{name!r}]")
    segments = np.asarray(attrs["segments"])
    if segments.size and (
        segments.ndim != 2 or segments.shape[1] != 2 or segments.dtype.kind not in "iu"
    ):
        raise _malformed(
            doc, key, f"attrs['segments'] is {segments.dtype} of shape {segments.shape}"
        )
    rows = [(start, end) for start, end in segments.tolist()] if segments.size else []
    log_prob = _column(doc, key, attrs, "log_prob", len(rows))
    if not all(isinstance(x, (float, int)) and isfinite(x) for x in log_prob):
        raise _malformed(doc, key, "attrs['log_prob'] has values that are not finite")
    documents = None
    if "documents" in attrs:
        documents = _column(doc, key, attrs, "documents", len(rows))
    spans = [(span.start, span.end, span.label_) for span in group]
    return _Rank(rows, log_prob, spans, documents)


def _column(
    doc: Doc, key: str, attrs: dict[str, Any], name: str, n_segments: int
) -> list[Any]:
    values = np.asarray(attrs[name])
    if values.shape != (n_segments,) and (values.size or n_segments):
        raise _malformed(
            doc,
            key,
            f"attrs[{name!r}] is of shape {values.shape}, for {n_segments} segments",
        )
    return values.tolist()


def _words(doc: Doc, orths: Sequence[int], texts: dict[int, str]) -> list[str]:
    """The strings of some words; `texts` keeps those that were looked up."""
    strings = doc.vocab.strings
    for orth in set(orths).difference(texts):
        texts[orth] = strings[orth]
    return [texts[orth] for orth in orths]


def _check_segments(
    doc: Doc, key: str, segments: np.ndarray, words_before: np.ndarray
) -> None:
    """The segments of rank 0 are disjoint, in order, and hold every word."""
    start, end = segments[:, 0], segments[:, 1]
    edges = segments.reshape(-1)
    if len(edges) and (
        edges[0] < 0
        or edges[-1] > len(doc)
        or (edges[1:] < edges[:-1]).any()
        or (start == end).any()
    ):
        raise _malformed(
            doc,
            f"{key}:0",
            f"attrs['segments'] do not follow one another within {len(doc)} tokens",
        )
    n_words = int((words_before[end] - words_before[start]).sum())
    if n_words != words_before[-1]:
        raise _malformed(
            doc,
            f"{key}:0",
            f"attrs['segments'] hold {n_words} of {words_before[-1]} words",
        )


def _by_segment(
    doc: Doc, key: str, ranks: Sequence[_Rank], words_before: np.ndarray
) -> list[list[Candidate]]:
    """The candidates of each segment of rank 0, with spans in words of the segment."""
    segments = ranks[0].segments
    known = {segment: index for index, segment in enumerate(segments)}
    starts = [start for start, _ in segments]
    before = words_before.tolist()
    found: list[list[Candidate]] = [[] for _ in segments]
    # The candidates of a segment share most spans: one object each saves much memory.
    shared: list[dict[LabelledSpan, LabelledSpan]] = [{} for _ in segments]
    for number, rank in enumerate(ranks):
        own: dict[int, list[LabelledSpan]] = {}
        for segment in rank.segments:
            if segment not in known:
                raise _malformed(
                    doc, f"{key}:{number}", f"segment {segment} is not in '{key}:0'"
                )
            own[known[segment]] = []
        if len(own) < len(rank.segments):
            raise _malformed(doc, f"{key}:{number}", "it has a segment twice")
        for start, end, label in rank.spans:
            index = bisect_right(starts, start) - 1
            if index not in own or end > segments[index][1]:
                raise _malformed(
                    doc,
                    f"{key}:{number}",
                    f"span {(start, end, label)} lies in no segment",
                )
            base = before[starts[index]]
            span = (before[start] - base, before[end] - base, label)
            if span[0] == span[1]:
                raise _malformed(doc, f"{key}:{number}", "a span holds no word")
            own[index].append(shared[index].setdefault(span, span))
        for (index, spans), log_prob in zip(own.items(), rank.log_prob, strict=True):
            found[index].append(Candidate(log_prob, tuple(spans)))
    return found


def _place_gold(
    gold: Sequence[LabelledSpan],
    number: int,
    segments: np.ndarray,
    words_before: np.ndarray,
    found: DocCandidates,
) -> list[tuple[LabelledSpan, ...]]:
    """Gold of each segment in words of it; counts what lies in none."""
    starts, ends = segments[:, 0], segments[:, 1].tolist()
    first_word = words_before[starts].tolist()
    before = words_before.tolist()
    placed: list[set[LabelledSpan]] = [set() for _ in ends]
    distinct = sorted(set(gold))
    found.n_gold += len(distinct)
    places = np.searchsorted(starts, [s for s, _, _ in distinct], side="right") - 1
    for place, (start, end, label) in zip(places.tolist(), distinct, strict=True):
        if place < 0 or end > ends[place] or before[start] == before[end]:
            found.lost_gold.append((number, (start, end, label)))
            continue
        base = first_word[place]
        placed[place].add((before[start] - base, before[end] - base, label))
    return [tuple(sorted(spans)) for spans in placed]


def _documents(rank: _Rank) -> list[int]:
    """Numbers from 0 of the documents that the segments are of."""
    if rank.documents is None:
        return [0] * len(rank.segments)
    numbers = [0]
    for before, here in pairwise(rank.documents):
        numbers.append(numbers[-1] + (here != before))
    return numbers[: len(rank.documents)]


def _malformed(doc: Doc, key: str, problem: str) -> ValueError:
    return ValueError(
        Errors.T090.format(key=key, doc=doc[:12].text[:QUOTED], problem=problem)
    )


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
