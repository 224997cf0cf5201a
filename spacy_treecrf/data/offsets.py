"""Offsets as tools count them: characters, UTF-16 units or bytes, and what they fit.

Python and spaCy count code points; JavaScript counts UTF-16 units, so that an emoji is
two; C and Go count bytes. A wrong guess shifts all spans behind such a character. So the
unit is the user's to name, and a reader counts how many spans would fit in each.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from spacy_treecrf.errors import Warnings
from spacy_treecrf.problems import N_NAMED, Problems

from .alignment import LEFT_OUT

T = TypeVar("T")
Bounds = tuple[int, int]
# What a text is split into, and the bounds of all tokens in it.
Split = Callable[[str], tuple[T, Sequence[Bounds]]]
# Start, end, label, and where in the file it stands.
CharSpan = tuple[int, int, str, str]

LINE_ENDS = (
    "texts with line ends \\r\\n that their offsets count as one character: read so"
)
BYTE_ORDER_MARK = "texts whose offsets count the byte order mark: read so"
DISCONTINUOUS = "discontinuous annotations: left out"
JOINED = "annotations in pieces with only white space between them: read as one span"


class OffsetUnit(str, Enum):
    """What an offset counts."""

    code_points = "code-points"
    utf_16 = "utf-16"
    bytes = "bytes"


@dataclass(frozen=True)
class Annotation:
    """A labelled span as a file gives it.

    fragments (tuple[Bounds, ...]): Start and end of each piece, in the file's unit.
    label (str): Its label.
    where (str): File and line, for messages.
    covered (str | None): The text that the file says stands there.
    """

    fragments: tuple[Bounds, ...]
    label: str
    where: str
    covered: str | None = None


@dataclass(frozen=True)
class _Variant:
    """One way to read the offsets of a text."""

    text: str
    kind: str | None = None
    skipped: str = ""


class OffsetMap:
    """From offsets in some unit to those in code points."""

    def __init__(self, text: str, unit: OffsetUnit, skipped: str = "") -> None:
        """Prepare a text.

        text (str): The text, without lone surrogates.
        unit (OffsetUnit): What the offsets count.
        skipped (str): What stands before the text, and is counted.
        """
        self.skipped = length_in(skipped, unit)
        self.places: dict[int, int] | None = None
        if unit is not OffsetUnit.code_points and not text.isascii():
            self.places = {}
            position = 0
            for i, char in enumerate(text):
                self.places[position] = i
                position += length_in(char, unit)
            self.places[position] = len(text)

    def __call__(self, offset: int) -> int | None:
        """The offset in code points, which may lie outside of the text; None if it
        stands inside a character."""
        offset -= self.skipped
        return offset if self.places is None else self.places.get(offset)


def length_in(text: str, unit: OffsetUnit) -> int:
    """The length of a text in some unit."""
    if unit is OffsetUnit.utf_16:
        return len(text) + sum(char > "\uffff" for char in text)
    if unit is OffsetUnit.bytes:
        return len(text.encode("utf8", errors="surrogatepass"))
    return len(text)


@dataclass
class Offsets:
    """Reads the offsets of all texts of a run.

    unit (OffsetUnit): What the files count.
    fits (Counter[OffsetUnit]): How many spans would fit, by unit.
    """

    unit: OffsetUnit = OffsetUnit.code_points
    fits: Counter[OffsetUnit] = field(default_factory=Counter)
    n_spans: int = 0
    n_unclear: int = 0
    unclear: list[str] = field(default_factory=list)

    def clear(self) -> None:
        """Forget what was counted."""
        self.fits.clear()
        self.unclear.clear()
        self.n_spans = self.n_unclear = 0

    def read(
        self,
        text: str,
        annotations: Sequence[Annotation],
        split: Split[T],
        problems: Problems,
        where: str | Path,
        has_mark: bool = False,
    ) -> tuple[str, T, list[CharSpan]]:
        """Find the annotations of a text in it.

        text (str): The text, without lone surrogates.
        annotations (Sequence[Annotation]): Its annotations.
        split (Split[T]): Splits a text into whatever the caller wants of it, and gives
            the bounds of the tokens.
        problems (Problems): Takes annotations that are discontinuous, or whose text is
            another one, and texts whose line ends were counted as one character.
        where (str | Path): The text, for messages.
        has_mark (bool): Whether a byte order mark stood before the text.
        RETURNS (tuple[str, T, list[CharSpan]]): The text, with the line ends that the
            offsets count; what `split` made of it; and the annotations in code points.
        """
        variants = [_Variant(text)]
        if has_mark:
            variants.append(_Variant(text, BYTE_ORDER_MARK, "\ufeff"))
        if "\r\n" in text:
            variants.append(_Variant(text.replace("\r\n", "\n"), LINE_ENDS))
        chosen, parts, bounds = variants[0], *split(text)
        best = self._count_fits(chosen, bounds, annotations)
        for variant in variants[1:]:
            if best[self.unit] == len(annotations):
                break
            other_parts, other_bounds = split(variant.text)
            fits = self._count_fits(variant, other_bounds, annotations)
            if fits[self.unit] > best[self.unit]:
                chosen, parts, bounds, best = variant, other_parts, other_bounds, fits
        if chosen.kind is not None:
            problems.repair(chosen.kind, str(where))
        self.n_spans += len(annotations)
        self.fits.update(best)
        self._note_unclear(chosen, bounds, annotations)
        place = OffsetMap(chosen.text, self.unit, chosen.skipped)
        found = [
            self._locate(annotation, chosen.text, place, problems)
            for annotation in annotations
        ]
        return chosen.text, parts, [span for span in found if span is not None]

    def messages(self) -> list[tuple[str, str]]:
        """What to say of the unit: whether another one fits better, or as well.

        RETURNS (list[tuple[str, str]]): Headlines with details.
        """
        better = max(OffsetUnit, key=lambda unit: self.fits[unit])
        if self.fits[better] > self.fits[self.unit]:
            return [
                (
                    Warnings.T130.format(
                        n_fit=self.fits[better],
                        total=self.n_spans,
                        unit=better.value,
                        n_read=self.fits[self.unit],
                        read=self.unit.value,
                    ),
                    "",
                )
            ]
        as_well = self.fits[OffsetUnit.utf_16] == self.fits[self.unit]
        if self.n_unclear and as_well:
            headline = Warnings.T131.format(count=self.n_unclear)
            return [(headline, "\n".join(self.unclear))]
        return []

    def _count_fits(
        self,
        variant: _Variant,
        bounds: Sequence[Bounds],
        annotations: Sequence[Annotation],
    ) -> Counter[OffsetUnit]:
        edges = {start for start, _ in bounds}, {end for _, end in bounds}
        # In ASCII all units are one.
        units = list(OffsetUnit)
        if variant.text.isascii() and not variant.skipped:
            n_fit = self._n_fit(variant, self.unit, edges, annotations)
            return Counter(dict.fromkeys(units, n_fit))
        return Counter(
            {unit: self._n_fit(variant, unit, edges, annotations) for unit in units}
        )

    def _n_fit(
        self,
        variant: _Variant,
        unit: OffsetUnit,
        edges: tuple[set[int], set[int]],
        annotations: Sequence[Annotation],
    ) -> int:
        place = OffsetMap(variant.text, unit, variant.skipped)
        return sum(
            _fits(annotation, variant.text, place, edges) for annotation in annotations
        )

    def _note_unclear(
        self,
        variant: _Variant,
        bounds: Sequence[Bounds],
        annotations: Sequence[Annotation],
    ) -> None:
        """Note spans that fit as UTF-16 as well, but stand elsewhere then."""
        text = variant.text
        if self.unit is not OffsetUnit.code_points or max(text, default="") <= "\uffff":
            return
        edges = {start for start, _ in bounds}, {end for _, end in bounds}
        place = OffsetMap(text, OffsetUnit.utf_16, variant.skipped)
        for annotation in annotations:
            (start, end), *_ = annotation.fragments
            other = place(start), place(end)
            if (
                annotation.covered is None
                and (start, end) != other
                and _fits(annotation, text, place, edges)
            ):
                self.n_unclear += 1
                if len(self.unclear) < N_NAMED:
                    self.unclear.append(
                        f"{annotation.where}: {annotation.label} ({start}, {end}) is "
                        f"{text[start:end]!r}, or {text[other[0] : other[1]]!r}"
                    )

    def _locate(
        self,
        annotation: Annotation,
        text: str,
        place: OffsetMap,
        problems: Problems,
    ) -> CharSpan | None:
        """The place of an annotation in a text; None if it was counted as a problem."""
        detail = f"{annotation.where}: {annotation.label}"
        pieces: list[Bounds] = []
        for fragment in annotation.fragments:
            start, end = place(fragment[0]), place(fragment[1])
            if start is None or end is None:
                problems.repair(
                    LEFT_OUT,
                    f"{detail} {fragment} counted in {self.unit.value} ends inside a "
                    f"character or behind the text",
                )
                return None
            pieces.append((start, end))
        covered = annotation.covered
        if covered is not None and not _is_covered(covered, text, pieces):
            found = " ".join(text[max(0, s) : max(0, e)] for s, e in pieces)
            problems.repair(
                LEFT_OUT, f"{detail} {covered!r}, but the text has {found!r} there"
            )
            return None
        joined = _join(pieces, text)
        if joined is None:
            shown = " ... ".join(text[s:e] for s, e in pieces)
            problems.repair(DISCONTINUOUS, f"{detail} {covered or shown!r}")
            return None
        if len(pieces) > 1:
            problems.add(JOINED, f"{detail} {text[slice(*joined)]!r}")
        return (*joined, annotation.label, annotation.where)


def _fits(
    annotation: Annotation,
    text: str,
    place: OffsetMap,
    edges: tuple[set[int], set[int]],
) -> bool:
    """Whether it stands where its text is, or if that is unknown, at token borders."""
    pieces = []
    for fragment in annotation.fragments:
        start, end = place(fragment[0]), place(fragment[1])
        if start is None or end is None or not 0 <= start < end <= len(text):
            return False
        pieces.append((start, end))
    if annotation.covered is not None:
        return _is_covered(annotation.covered, text, pieces)
    start, end = min(s for s, _ in pieces), max(e for _, e in pieces)
    return start in edges[0] and end in edges[1]


def _is_covered(covered: str, text: str, pieces: Sequence[Bounds]) -> bool:
    # Tools write a space between pieces, and for line breaks.
    wanted = covered.split()
    if wanted == " ".join(text[max(0, s) : max(0, e)] for s, e in pieces).split():
        return True
    joined = _join(pieces, text)
    return joined is not None and wanted == text[slice(*joined)].split()


def _join(pieces: Sequence[Bounds], text: str) -> Bounds | None:
    """The bounds of pieces with nothing but white space between them, else None."""
    ordered = sorted(pieces)
    start, end = ordered[0]
    for left, right in ordered[1:]:
        if text[end:left].strip():
            return None
        end = max(end, right)
    return start, end
