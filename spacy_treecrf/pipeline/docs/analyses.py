"""What the pipes find: ranked entity sets of segments, and how they stand in a Doc."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup

from .entities import LabelledSpan, write_ents
from .segments import DocSegments

# Rank of a pipe's own output, which may differ from its best candidate.
OWN = -1
# Columns of `Analyses.entities`.
SEGMENT, RANK, START, END, LABEL = range(5)


@dataclass(frozen=True)
class Analyses:
    """Ranked entity sets of the segments of some Docs, as two tables.

    Rank -1 is the pipe's own output, rank r its r-th best candidate.

    segments (DocSegments): The segments, B.
    labels (tuple[str, ...]): Names of the labels.
    entities (np.ndarray): Segment, rank, start, end (half-open, in tokens of the Doc) and
        number of the label of each entity, in any order. Shape: (M, 5), int64.
    scores (np.ndarray): Probability of each, in [0, 1], or what else the pipe says of it;
        NaN if it says nothing. Shape: (M,).
    log_prob (np.ndarray): log p(entity set | words) of each candidate, in nats, -inf
        where a segment has none of this rank. K is 0 if none are asked for. Shape: (B, K),
        float64.
    entropy (Optional[np.ndarray]): Entropy of each segment's analyses, in nats.
        Shape: (B,), float64.
    documents (Optional[np.ndarray]): Number of the source document of each segment, if a
        Doc holds several. Shape: (B,).
    """

    segments: DocSegments
    labels: tuple[str, ...]
    entities: np.ndarray
    scores: np.ndarray
    log_prob: np.ndarray
    entropy: np.ndarray | None = None
    documents: np.ndarray | None = None

    @property
    def n_ranks(self) -> int:
        """Candidates of a segment at most, K."""
        return self.log_prob.shape[1]

    def select(self, kept: np.ndarray) -> "Analyses":
        """The same with some of the entities only. kept (np.ndarray): Shape: (M,), bool."""
        return replace(self, entities=self.entities[kept], scores=self.scores[kept])

    def in_text_order(self) -> "Analyses":
        """The same by Doc and rank, and there as they begin, outer before inner."""
        names = np.argsort(np.argsort(np.array(self.labels, dtype=object)))
        segment, rank, start, end, label = self.entities.T
        order = np.lexsort(
            (names[label], -end, start, rank, self.segments.doc[segment])
        )
        return replace(self, entities=self.entities[order], scores=self.scores[order])

    def by_doc(
        self, rank: int = OWN
    ) -> Iterator[tuple[list[LabelledSpan], np.ndarray]]:
        """Entities of one rank of each Doc, in text order, and their scores.

        rank (int): The rank.
        YIELDS (tuple[list[LabelledSpan], np.ndarray]): Of the next Doc.
        """
        ordered = self.in_text_order()
        borders = ordered.borders()
        for rows in zip(borders[:-1, rank + 1], borders[:-1, rank + 2], strict=True):
            here = slice(*rows)
            columns = ordered.entities[here, START:].tolist()
            yield (
                [(start, end, self.labels[label]) for start, end, label in columns],
                ordered.scores[here],
            )

    def borders(self) -> np.ndarray:
        """Of entities in text order, which are those of a Doc and rank.

        RETURNS (np.ndarray): Those of Doc d and rank r are the rows from [d, r + 1] to
            [d, r + 2]. Shape: (D + 1, K + 2).
        """
        n_docs, n_groups = len(self.segments.sizes), self.n_ranks + 1
        doc = self.segments.doc[self.entities[:, SEGMENT]]
        cells = np.arange(n_docs + 1)[:, None] * n_groups + np.arange(n_groups + 1)
        found = doc * n_groups + self.entities[:, RANK] + 1
        return np.searchsorted(found, cells.ravel()).reshape(cells.shape)


def write(
    docs: Sequence[Doc],
    key: str,
    analyses: Analyses,
    *,
    ents: bool,
    replaced: str | None = None,
    keeps_candidates: bool = False,
    left_alone: Collection[int] = (),
) -> None:
    """Write a pipe's own output as `doc.spans[key]`, and rank r as `doc.spans["key:r"]`.

    docs (Sequence[Doc]): The Docs of the segments.
    key (str): The spans key.
    analyses (Analyses): What is written. Groups have their name; attrs "scores" (float32,
        one a span, unless there are none), in candidates "segments" (int32 (m, 2), those
        that have so many) and "log_prob" (float64), and "segments" and "entropy" in the
        pipe's own where it is given. Candidates of an earlier run are removed.
    ents (bool): Whether to write the outermost entities to `doc.ents` too.
    replaced (Optional[str]): Another key, of the pipe whose entities these replace.
    keeps_candidates (bool): Whether another pipe's candidates under this key stay.
    left_alone (Collection[int]): Numbers of Docs that nothing is written to.
    """
    ordered = analyses.in_text_order()
    borders, segments = ordered.borders(), ordered.segments
    of_doc = segments.by_doc()
    offsets = np.stack([segments.start, segments.end], axis=1).astype(np.int32)
    rows = ordered.entities[:, START:].tolist()
    scores = ordered.scores.astype(np.float32)
    for number, doc in enumerate(docs):
        if number in left_alone:
            continue
        own = slice(of_doc[number], of_doc[number + 1])
        labels = [doc.vocab.strings.add(label) for label in analyses.labels]
        before = [doc.spans[k] for k in (key, replaced) if ents and k in doc.spans]
        old = {
            (span.start, span.end, span.label_) for group in before for span in group
        }
        if not keeps_candidates:
            drop_candidates(doc, key, ordered.n_ranks)
        for rank in range(OWN, ordered.n_ranks):
            here = slice(*borders[number, rank + 1 : rank + 3])
            attrs: dict[str, Any] = {}
            if not np.isnan(scores[here]).any():
                attrs["scores"] = scores[here]
            if rank == OWN:
                name = key
                if ordered.entropy is not None:
                    attrs["segments"] = offsets[own]
                    attrs["entropy"] = ordered.entropy[own]
            else:
                name = f"{key}:{rank}"
                log_prob = ordered.log_prob[own, rank]
                present = np.isfinite(log_prob)
                attrs["segments"] = offsets[own][present]
                attrs["log_prob"] = log_prob[present]
                if ordered.documents is not None:
                    documents = ordered.documents[own][present]
                    attrs["documents"] = documents.astype(np.int32)
            spans = [
                Span(doc, start, end, labels[label]) for start, end, label in rows[here]
            ]
            doc.spans[name] = SpanGroup(doc, name=name, attrs=attrs, spans=spans)
        if ents:
            here = slice(*borders[number, :2])
            named = [(start, end, analyses.labels[n]) for start, end, n in rows[here]]
            write_ents(doc, named, old)


def drop_candidates(doc: Doc, key: str, first: int) -> None:
    """Remove groups `key:r` of an earlier run that had more candidates.

    doc (Doc): The document. key (str): The spans key. first (int): The first r to go.
    """
    start = f"{key}:"
    for name in list(doc.spans):
        rank = name[len(start) :] if name.startswith(start) else ""
        if rank.isdecimal() and int(rank) >= first:
            del doc.spans[name]
