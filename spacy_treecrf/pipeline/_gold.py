"""Read a batch's gold into rows of numbers; count, and name, what cannot be used."""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.labels import LabelSet
from spacy_treecrf.ml.loss import Annotation
from spacy_treecrf.scorers import same_tokens
from spacy_treecrf.structure.masks import ANY_LABEL, largest_compatible

from ._segments import DocSegments
from ._spans import LabelledSpan

# What can be wrong with gold, with the word for it in the warning.
KINDS = {
    "crossing": "cross another gold span (the largest set that fits one tree is kept)",
    "cut": "cross a segment border (sentence start, or a window of max_length tokens)",
    "misaligned": "do not fit the tokens of the predicted Doc",
    "space": "start or end on white space (they were trimmed)",
    "empty": "hold no token but white space",
    "combination": "carry a set of labels not seen in initialisation (fewer were kept)",
    "contradiction": "are marked incorrect with their own label (the mark was kept)",
}


class GoldReport:
    """Counts what could not be used as it stands; warns once a kind.

    name (str): Name of the pipe.
    key (str): Key of the gold spans.
    """

    def __init__(self, name: str, key: str) -> None:
        self.name, self.key = name, key
        self.counts: Counter[str] = Counter()
        self.spans = self.docs = self.docs_without_group = 0
        self.other_keys: set[str] = set()
        self.examples: dict[str, str] = {}
        self.warned: set[str] = set()

    def add(self, kind: str, doc: Doc, span: LabelledSpan) -> None:
        """Count one span, and keep the first of its kind as the example."""
        self.counts[kind] += 1
        if kind not in self.examples:
            start, end, label = span
            self.examples[kind] = (
                f"({start}, {end}, {label!r}) {doc[start:end].text!r} in "
                f"{doc[: min(len(doc), 12)].text!r}..."
            )

    def add_groups(self, examples: Sequence[Example]) -> None:
        """Count examples, and those without a group under the key."""
        for example in examples:
            keys = set(example.reference.spans.keys())
            self.docs += 1
            self.docs_without_group += self.key not in keys
            self.other_keys |= keys - {self.key}

    def restart(self) -> None:
        """Count anew; what was warned of stays known."""
        self.counts.clear()
        self.examples.clear()
        self.spans = 0

    def no_labels(self) -> str:
        """Message for a corpus in which there is nothing to learn from."""
        return Errors.T001.format(
            name=self.name,
            key=self.key,
            n_docs=self.docs,
            keys=sorted(self.other_keys) or "none",
        )

    def warn(self) -> None:
        """Give one warning for each kind that is new, with its count and an example."""
        if self.docs_without_group and "group" not in self.warned:
            self.warned.add("group")
            warnings.warn(
                Warnings.T105.format(
                    name=self.name,
                    count=self.docs_without_group,
                    total=self.docs,
                    key=self.key,
                    keys=sorted(self.other_keys) or "none",
                ),
                stacklevel=4,
            )
        for kind in sorted(set(self.counts) - self.warned):
            self.warned.add(kind)
            warnings.warn(
                Warnings.T102.format(
                    name=self.name,
                    count=self.counts[kind],
                    total=self.spans,
                    share=self.counts[kind] / max(1, self.spans),
                    key=self.key,
                    problem=KINDS[kind],
                    example=self.examples[kind],
                ),
                stacklevel=4,
            )


def aligned_group(
    example: Example, key: str
) -> tuple[list[LabelledSpan], list[LabelledSpan]]:
    """Spans of a group of the reference, in tokens of the predicted Doc.

    RETURNS (tuple[list, list]): Spans that align; spans of the reference that do not.
    """
    group = example.reference.spans.get(key)
    if not group:
        return [], []
    spans = [(span.start, span.end, span.label_) for span in group]
    if same_tokens(example):
        return spans, []
    aligned, lost = [], []
    for span, plain in zip(group, spans, strict=True):
        found = example.get_aligned_spans_y2x([span], allow_overlap=True)
        if found:
            aligned.append((found[0].start, found[0].end, plain[2]))
        else:
            lost.append(plain)
    return aligned, lost


def gold_labels(example: Example, cfg: dict[str, Any]) -> list[list[str]]:
    """The labels of each gold span of an example together, and of partial annotation.

    example (Example): The example.
    cfg (dict[str, Any]): Settings of the pipe, for the keys of the groups.
    RETURNS (list[list[str]]): One or more labels each, in text order.
    """
    cells: dict[tuple[int, int], set[str]] = {}
    groups = example.reference.spans
    for span in groups.get(cfg["spans_key"], []):
        cells.setdefault((span.start, span.end), set()).add(span.label_)
    found = [
        [span.label_]
        for key in (cfg["missing_spans_key"], cfg["incorrect_spans_key"])
        if key is not None
        for span in groups.get(key, [])
        if span.label_
    ]
    return [*(sorted(cells[cell]) for cell in sorted(cells)), *found]


class GoldReader:
    """Reads examples into annotation rows, segment by segment.

    name (str): Name of the pipe, for messages.
    labels (LabelSet): The labels and their numbers.
    cfg (dict[str, Any]): Settings of the pipe: keys of the groups, and `crossing`.
    """

    def __init__(self, name: str, labels: LabelSet, cfg: dict[str, Any]) -> None:
        self.name = name
        self.numbers = labels.numbers()
        self.parts = labels.parts()
        self.spans_key: str = cfg["spans_key"]
        self.missing_spans_key: str | None = cfg["missing_spans_key"]
        self.incorrect_spans_key: str | None = cfg["incorrect_spans_key"]
        self.crossing: str = cfg["crossing"]

    def read(
        self, examples: Sequence[Example], cut: DocSegments, report: GoldReport
    ) -> Annotation:
        """Read a batch.

        examples (Sequence[Example]): The batch.
        cut (DocSegments): Segments of the predicted Docs.
        report (GoldReport): Gets what cannot be used.
        RETURNS (Annotation): Rows of (segment, start, end, label number).
        RAISES (ValueError): If gold spans cross and `crossing` is "error", or a label is
            unknown.
        """
        observed: list[tuple[int, int, int, int]] = []
        missing: list[tuple[int, int, int, int]] = []
        incorrect: list[tuple[int, int, int, int]] = []
        # Segments are in Doc order: those of Doc d are borders[d]:borders[d + 1].
        borders = np.searchsorted(cut.doc, np.arange(len(examples) + 1))
        for number, example in enumerate(examples):
            first, last = int(borders[number]), int(borders[number + 1])
            ends = cut.end[first:last]
            starts = cut.start[first:last]
            wrong = self._rows(example, self.incorrect_spans_key, first, starts, ends)
            incorrect += wrong
            missing += self._regions(example, first, starts, ends)
            by_segment = self._observed(
                example, first, starts, ends, set(wrong), report
            )
            for segment, spans in by_segment.items():
                length = int(cut.segments.lengths[segment])
                offset = int(cut.start[segment])
                for start, end, label in self._without_crossing(
                    example, spans, length, offset, report
                ):
                    observed.append((segment, start, end, label))
        return Annotation(_table(observed), _table(missing), _table(incorrect))

    def _observed(
        self,
        example: Example,
        first: int,
        starts: np.ndarray,
        ends: np.ndarray,
        wrong: set[tuple[int, int, int, int]],
        report: GoldReport,
    ) -> dict[int, list[tuple[int, int, tuple[str, ...]]]]:
        """Gold spans by segment, labels of one span together."""
        doc = example.predicted
        spans, lost = aligned_group(example, self.spans_key)
        report.spans += len(spans) + len(lost)
        for span in lost:
            report.add("misaligned", example.reference, span)
        labels: dict[tuple[int, int, int], set[str]] = {}
        for span in spans:
            start, end = trim_space(doc, span[0], span[1])
            if start >= end:
                report.add("empty", doc, span)
                continue
            if (start, end) != span[:2]:
                report.add("space", doc, span)
            place = int(np.searchsorted(ends, start, side="right"))
            if end > ends[place]:
                report.add("cut", doc, span)
                continue
            offset = int(starts[place])
            cell = (first + place, start - offset, end - offset)
            self._known(doc, span)
            number = self.numbers[(span[2],)]
            if (*cell, number) in wrong or (*cell, ANY_LABEL) in wrong:
                report.add("contradiction", doc, span)
                continue
            labels.setdefault(cell, set()).add(span[2])
        found: dict[int, list[tuple[int, int, tuple[str, ...]]]] = {}
        for (segment, start, end), names in labels.items():
            combination = tuple(sorted(names))
            if combination not in self.numbers:
                offset = int(starts[segment - first])
                span = (start + offset, end + offset, " + ".join(combination))
                report.add("combination", doc, span)
                combination = max(
                    (parts for parts in self.parts if names.issuperset(parts)), key=len
                )
            found.setdefault(segment, []).append((start, end, combination))
        return found

    def _without_crossing(
        self,
        example: Example,
        spans: list[tuple[int, int, tuple[str, ...]]],
        length: int,
        offset: int,
        report: GoldReport,
    ) -> list[tuple[int, int, int]]:
        spans = sorted(spans, key=lambda span: (span[0], -span[1]))
        if not has_crossing([span[:2] for span in spans]):
            return [(s, e, self.numbers[parts]) for s, e, parts in spans]
        doc = example.predicted
        kept = largest_compatible([(s, e, len(parts)) for s, e, parts in spans], length)
        result = []
        for (start, end, parts), keep in zip(spans, kept, strict=True):
            if keep:
                result.append((start, end, self.numbers[parts]))
                continue
            span = (start + offset, end + offset, " + ".join(parts))
            if self.crossing == "error":
                raise ValueError(
                    Errors.T003.format(
                        span=span,
                        text=doc[span[0] : span[1]].text,
                        doc=doc[: min(len(doc), 12)].text,
                        key=self.spans_key,
                    )
                )
            report.add("crossing", doc, span)
        return result

    def _rows(
        self,
        example: Example,
        key: str | None,
        first: int,
        starts: np.ndarray,
        ends: np.ndarray,
    ) -> list[tuple[int, int, int, int]]:
        """Incorrect spans; one label means every combination with it."""
        if key is None:
            return []
        rows = []
        for start, end, label in aligned_group(example, key)[0]:
            place = int(np.searchsorted(ends, start, side="right"))
            if start >= end or end > ends[place]:
                continue
            cell = (first + place, start - int(starts[place]), end - int(starts[place]))
            rows += [(*cell, number) for number in self._label_numbers(example, label)]
        return rows

    def _regions(
        self, example: Example, first: int, starts: np.ndarray, ends: np.ndarray
    ) -> list[tuple[int, int, int, int]]:
        """Regions that are not annotated, cut at segment borders."""
        if self.missing_spans_key is None:
            return []
        rows = []
        for start, end, label in aligned_group(example, self.missing_spans_key)[0]:
            for place in range(len(starts)):
                s, e = max(start, int(starts[place])), min(end, int(ends[place]))
                if s < e:
                    offset = int(starts[place])
                    rows += [
                        (first + place, s - offset, e - offset, number)
                        for number in self._label_numbers(example, label)
                    ]
        return rows

    def _label_numbers(self, example: Example, label: str) -> list[int]:
        if not label:
            return [ANY_LABEL]
        self._known(example.reference, (0, 0, label))
        return [number for number, parts in enumerate(self.parts) if label in parts]

    def _known(self, doc: Doc, span: LabelledSpan) -> None:
        if (span[2],) not in self.numbers:
            raise ValueError(
                Errors.T004.format(
                    name=self.name,
                    label=span[2],
                    labels=[parts[0] for parts in self.parts if len(parts) == 1],
                    doc=doc[: min(len(doc), 12)].text,
                )
            )


def trim_space(doc: Doc, start: int, end: int) -> tuple[int, int]:
    """Move a span's ends off white space. RETURNS (tuple[int, int]): May be empty."""
    while start < end and doc[start].is_space:
        start += 1
    while start < end and doc[end - 1].is_space:
        end -= 1
    return start, end


def has_crossing(spans: Sequence[tuple[int, int]]) -> bool:
    """Whether two of the spans cross; they come sorted by start, longest first."""
    open_ends: list[int] = []
    for start, end in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            return True
        open_ends.append(end)
    return False


def _table(rows: list[tuple[int, int, int, int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 4)
