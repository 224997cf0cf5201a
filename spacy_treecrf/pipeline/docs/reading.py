"""Candidate groups of Docs, read back and checked."""

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, SpanGroup

from spacy_treecrf.errors import Errors

from .analyses import Analyses
from .segments import DocSegments

# Characters of a Doc that a message quotes.
QUOTED = 60


def read(docs: Sequence[Doc], key: str) -> Analyses:
    """Read the candidates that a pipe has written to a batch of Docs.

    docs (Sequence[Doc]): The Docs, with groups `{key}:{r}` for r = 0, 1 and so on. A Doc
        is one document, unless the groups have attrs["documents"].
    key (str): Key of the pipe.
    RETURNS (Analyses): The candidates; a Doc without groups has no segments.
    RAISES (ValueError): If the groups of a Doc are not of the form that pipes write; the
        message names the Doc, the group and what is wrong.
    """
    groups = _Groups(docs, key)
    segments = groups.segments()
    log_prob = groups.log_prob(segments)
    entities, labels = groups.entities(segments, log_prob)
    documents = groups.documents(segments)
    return Analyses(
        segments, labels, entities, groups.scores(), log_prob, None, documents
    )


class _Groups:
    """The groups of a batch of Docs, side by side; each by itself has the right form."""

    def __init__(self, docs: Sequence[Doc], key: str) -> None:
        self.docs, self.key = docs, key
        # Of each group, and of its segments: Doc and rank.
        doc, rank, sizes, n_spans = [], [], [], []
        columns: dict[str, list[np.ndarray]] = {"segments": [], "log_prob": []}
        columns |= {"documents": [], "scores": []}
        spans: list[tuple[int, int, int]] = []
        for number, here in enumerate(docs):
            n = 0
            while (group := here.spans.get(f"{key}:{n}")) is not None:
                own = self._columns(number, n, group)
                for name, values in own.items():
                    columns[name].append(values)
                spans += [(span.start, span.end, span.label) for span in group]
                doc.append(number)
                rank.append(n)
                sizes.append(len(own["log_prob"]))
                n_spans.append(len(own["scores"]))
                n += 1
        self.n_ranks = max(rank, default=-1) + 1
        self.doc = np.repeat(np.array(doc, dtype=np.int64), sizes)
        self.rank = np.repeat(np.array(rank, dtype=np.int64), sizes)
        self.span_doc = np.repeat(np.array(doc, dtype=np.int64), n_spans)
        self.span_rank = np.repeat(np.array(rank, dtype=np.int64), n_spans)
        self.spans = np.array(spans, dtype=np.uint64).reshape(-1, 3)
        empty = {"segments": np.zeros((0, 2), dtype=np.int64)}
        self.columns = {
            name: np.concatenate([empty.get(name, np.zeros(0)), *parts])
            for name, parts in columns.items()
        }

    def _columns(
        self, number: int, rank: int, group: SpanGroup
    ) -> dict[str, np.ndarray]:
        attrs = group.attrs
        for name in ("segments", "log_prob"):
            if name not in attrs:
                raise self.malformed(number, rank, f"there is no attrs[{name!r}]")
        segments = np.asarray(attrs["segments"])
        if not segments.size:
            segments = np.zeros((0, 2), dtype=np.int64)
        elif (
            segments.ndim != 2
            or segments.shape[1] != 2
            or segments.dtype.kind not in "iu"
        ):
            raise self.malformed(
                number,
                rank,
                f"attrs['segments'] is {segments.dtype} of shape {segments.shape}",
            )
        n = len(segments)
        found = {"segments": segments.astype(np.int64)}
        for name in ("log_prob", "documents"):
            values = np.asarray(attrs.get(name, np.zeros(n)))
            if values.shape != (n,) and (values.size or n):
                raise self.malformed(
                    number,
                    rank,
                    f"attrs[{name!r}] is of shape {values.shape}, for {n} segments",
                )
            found[name] = values.reshape(n)
        if found["log_prob"].dtype.kind not in "fiu" or not (
            np.isfinite(found["log_prob"]).all()
        ):
            raise self.malformed(
                number, rank, "attrs['log_prob'] has values that are not finite"
            )
        scores = np.asarray(attrs.get("scores", ()))
        is_known = scores.shape == (len(group),) and scores.dtype.kind == "f"
        found["scores"] = scores if is_known else np.full(len(group), np.nan)
        return found

    def segments(self) -> DocSegments:
        """Those of rank 0: disjoint, in order, and they hold every word of their Docs."""
        first = self.rank == 0
        doc, (start, end) = self.doc[first], self.columns["segments"][first].T
        sizes = np.array([len(one) for one in self.docs], dtype=np.int64)
        follows = np.append([False], doc[1:] == doc[:-1])[: len(doc)]
        least = np.where(follows, np.append([0], end)[: len(end)], 0)
        bad = (start < least) | (end <= start) | (end > sizes[doc])
        if bad.any():
            number = int(doc[bad][0])
            raise self.malformed(
                number,
                0,
                "attrs['segments'] do not follow one another within "
                f"{sizes[number]} tokens",
            )
        segments = DocSegments.given(self.docs, doc, start, end)
        held = np.bincount(doc, weights=segments.n_words, minlength=len(sizes))
        words = segments.doc_words
        has_groups = np.zeros(len(sizes), dtype=bool)
        has_groups[self.doc] = True
        for number in np.flatnonzero(has_groups & (held != words))[:1].tolist():
            raise self.malformed(
                number,
                0,
                f"attrs['segments'] hold {int(held[number])} of {words[number]} words",
            )
        return segments

    def log_prob(self, segments: DocSegments) -> np.ndarray:
        """log p of each candidate. Shape: (B, K), float64."""
        start, end = self.columns["segments"].T
        place, is_known = segments.within(self.doc, start, end)
        if is_known.all():
            is_known = segments.lengths[place] == end - start
        for row in np.flatnonzero(~is_known)[:1].tolist():
            raise self.malformed(
                int(self.doc[row]),
                int(self.rank[row]),
                f"segment {(int(start[row]), int(end[row]))} is not in '{self.key}:0'",
            )
        cell = place * self.n_ranks + self.rank
        counts = np.bincount(cell, minlength=len(segments) * self.n_ranks)
        for row in np.flatnonzero(counts[cell] > 1)[:1].tolist():
            raise self.malformed(
                int(self.doc[row]), int(self.rank[row]), "it has a segment twice"
            )
        log_prob = np.full(len(segments) * self.n_ranks, -np.inf)
        log_prob[cell] = self.columns["log_prob"]
        return log_prob.reshape(len(segments), self.n_ranks)

    def entities(
        self, segments: DocSegments, log_prob: np.ndarray
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """The table of the entities, in the order of the groups, and the labels."""
        hashes, label = np.unique(self.spans[:, 2], return_inverse=True)
        strings = [doc.vocab.strings for doc in self.docs[:1]]
        if any(doc.vocab.strings is not strings[0] for doc in self.docs):
            strings = list({id(d.vocab): d.vocab.strings for d in self.docs}.values())
        labels = tuple(
            next(store[name] for store in strings if not name or name in store)
            for name in hashes.tolist()
        )
        start, end = self.spans[:, :2].astype(np.int64).T
        place, is_inside = segments.within(self.span_doc, start, end)
        if is_inside.all():
            is_inside = np.isfinite(log_prob[place, self.span_rank])
        for row in np.flatnonzero(~is_inside)[:1].tolist():
            span = (int(start[row]), int(end[row]), labels[label[row]])
            raise self.malformed(
                int(self.span_doc[row]),
                int(self.span_rank[row]),
                f"span {span} lies in no segment",
            )
        first, last = segments.words_of(place, start, end)
        for row in np.flatnonzero(first == last)[:1].tolist():
            raise self.malformed(
                int(self.span_doc[row]),
                int(self.span_rank[row]),
                "a span holds no word",
            )
        return np.stack([place, self.span_rank, start, end, label], axis=1), labels

    def scores(self) -> np.ndarray:
        """Those of the entities, NaN where a group has none. Shape: (M,)."""
        return self.columns["scores"]

    def documents(self, segments: DocSegments) -> np.ndarray:
        """Source documents of the segments, numbered from 0. Shape: (B,), int64."""
        given = self.columns["documents"][self.rank == 0]
        is_new = (np.diff(given) != 0) | (np.diff(segments.doc) != 0)
        return np.append([0], np.cumsum(is_new))[: len(segments)]

    def malformed(self, number: int, rank: int, problem: str) -> ValueError:
        """The error of a group."""
        quoted = self.docs[number][:12].text[:QUOTED]
        return ValueError(
            Errors.T090.format(key=f"{self.key}:{rank}", doc=quoted, problem=problem)
        )
