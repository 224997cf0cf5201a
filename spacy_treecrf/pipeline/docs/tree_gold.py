"""Read a batch's gold into rows of numbers; count, and name, what cannot be used."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.errors import Errors
from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan, aligned_gold, read_gold
from spacy_treecrf.labels import LabelSet
from spacy_treecrf.ml.loss import Annotation
from spacy_treecrf.structure.masks import ANY_LABEL, largest_compatible

from .segments import DocSegments
from .tree_gold_report import GoldReport


def gold_labels(example: Example, cfg: dict[str, Any]) -> list[list[str]]:
    """The labels of each gold span of an example together, and of partial annotation.

    example (Example): The example.
    cfg (dict[str, Any]): Settings of the pipe, for the keys of the groups.
    RETURNS (list[list[str]]): One or more labels each, in text order.
    """
    gold = read_gold(example.reference, GoldKeys.of(cfg))
    cells: dict[tuple[int, int], set[str]] = {}
    for start, end, label in gold.spans:
        cells.setdefault((start, end), set()).add(label)
    marked = [[label] for _, _, label in (*gold.missing, *gold.incorrect) if label]
    return [*(sorted(cells[cell]) for cell in sorted(cells)), *marked]


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
        self.keys = GoldKeys.of(cfg)
        self.crossing: str = cfg["crossing"]
        self.max_width: int | None = cfg["max_width"]

    def read(
        self, examples: Sequence[Example], segments: DocSegments, report: GoldReport
    ) -> Annotation:
        """Read a batch.

        examples (Sequence[Example]): The batch.
        segments (DocSegments): Segments of the predicted Docs.
        report (GoldReport): Gets what cannot be used.
        RETURNS (Annotation): Rows of (segment, start, end, label number).
        RAISES (ValueError): If gold spans cross and `crossing` is "error", or a label is
            unknown.
        """
        observed: list[tuple[int, int, int, int]] = []
        missing: list[tuple[int, int, int, int]] = []
        incorrect: list[tuple[int, int, int, int]] = []
        # Segments are in Doc order: those of Doc d are borders[d]:borders[d + 1].
        borders = segments.by_doc()
        for number, example in enumerate(examples):
            first, last = int(borders[number]), int(borders[number + 1])
            ends = segments.end[first:last]
            starts = segments.start[first:last]
            gold = aligned_gold(example, self.keys)
            report.add_gold(example.reference, gold)
            wrong = self._incorrect(example, gold, first, starts, ends, report)
            incorrect += wrong
            missing += self._regions(example, gold, first, starts, ends)
            by_segment = self._observed(
                example, gold, first, starts, ends, set(wrong), report
            )
            for segment, spans in by_segment.items():
                length = int(segments.lengths[segment])
                offset = int(segments.start[segment])
                for start, end, label in self._without_crossing(
                    example, spans, length, offset, report
                ):
                    # Too wide to be a node; what crosses it is rejected all the same.
                    if self.max_width is not None and end - start > self.max_width:
                        names = " + ".join(self.parts[label])
                        span = (start + offset, end + offset, names)
                        report.add_wide(example.predicted, span)
                    observed.append((segment, start, end, label))
        return Annotation(_table(observed), _table(missing), _table(incorrect))

    def _observed(
        self,
        example: Example,
        gold: Gold,
        first: int,
        starts: np.ndarray,
        ends: np.ndarray,
        wrong: set[tuple[int, int, int, int]],
        report: GoldReport,
    ) -> dict[int, list[tuple[int, int, tuple[str, ...]]]]:
        """Gold spans by segment, labels of one span together."""
        doc = example.predicted
        labels: dict[tuple[int, int, int], set[str]] = {}
        for span in gold.spans:
            cell = _cell(doc, span, first, starts, ends, report, "")
            if cell is None:
                continue
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
        weighted = [(s, e, len(parts)) for s, e, parts in spans]
        if self.max_width is not None and length > self.max_width:
            weighted, length = compressed(weighted)
        kept = largest_compatible(weighted, length)
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
                        key=self.keys.spans,
                    )
                )
            report.add("crossing", doc, span)
        return result

    def _incorrect(
        self,
        example: Example,
        gold: Gold,
        first: int,
        starts: np.ndarray,
        ends: np.ndarray,
        report: GoldReport,
    ) -> list[tuple[int, int, int, int]]:
        """Incorrect spans; one label means every combination with it."""
        rows = []
        for span in gold.incorrect:
            doc = example.predicted
            cell = _cell(doc, span, first, starts, ends, report, "incorrect_")
            if cell is not None:
                numbers = self._label_numbers(example, span[2])
                rows += [(*cell, number) for number in numbers]
        return rows

    def _regions(
        self,
        example: Example,
        gold: Gold,
        first: int,
        starts: np.ndarray,
        ends: np.ndarray,
    ) -> list[tuple[int, int, int, int]]:
        """Regions that are not annotated, cut at segment borders."""
        rows = []
        for start, end, label in gold.regions:
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


def _cell(
    doc: Doc,
    span: LabelledSpan,
    first: int,
    starts: np.ndarray,
    ends: np.ndarray,
    report: GoldReport,
    sort: str,
) -> tuple[int, int, int] | None:
    """A span in its segment, without white space at its ends; None if it is in none.

    sort (str): What the kinds of problem with such spans begin with.
    """
    start, end = trim_space(doc, span[0], span[1])
    if start >= end:
        report.add(f"{sort}empty", doc, span)
        return None
    if (start, end) != span[:2]:
        report.add(f"{sort}space", doc, span)
    place = int(np.searchsorted(ends, start, side="right"))
    if end > ends[place]:
        report.add(f"{sort}cut", doc, span)
        return None
    offset = int(starts[place])
    return first + place, start - offset, end - offset


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


def compressed(
    spans: Sequence[tuple[int, int, int]],
) -> tuple[list[tuple[int, int, int]], int]:
    """The same spans over the tokens that a span begins at or ends before.

    The cost of resolving what crosses grows with the cube of the length.
    RETURNS (tuple[list[tuple[int, int, int]], int]): Spans, and tokens that are left.
    """
    edges = sorted({edge for start, end, _ in spans for edge in (start, end)})
    place = {edge: number for number, edge in enumerate(edges)}
    shorter = [(place[start], place[end], weight) for start, end, weight in spans]
    return shorter, len(edges) - 1


def _table(rows: list[tuple[int, int, int, int]]) -> np.ndarray:
    return np.array(rows, dtype=np.int64).reshape(-1, 4)
