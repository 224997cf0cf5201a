"""Brat's standoff files: a text in `NAME.txt` and its annotations in `NAME.ann`."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import Problems

from ..alignment import Aligner, AlignmentMode, Tokenize, token_bounds
from ..offsets import (
    Annotation,
    Bounds,
    CharSpan,
    Offsets,
    OffsetUnit,
    length_in,
)
from ..records import Sentence, checked_records, default_id, stem
from ..text_files import has_byte_order_mark, read_lines, read_text

# A text-bound annotation: label, one or more "start end", the text.
# Offsets are bounded, since Python refuses to read numbers of thousands of digits.
ENTITY = re.compile(
    r"T\S*\t(\S+) (\d{1,12} \d{1,12}(?:;\d{1,12} \d{1,12})*)(?:\t(.*))?"
)
ACROSS_LINES = "annotations across lines: left out"
BAD_LINE = "lines that are no annotation: left out"
BAD_FILE = "texts whose .ann file is none of brat's, for the most part: left out"
BROKEN_LINE = "annotation texts with a line break in the .ann file: joined"
# The other kinds of line. A tab must follow their name, so that what an annotation's text
# goes on with on the next line is not taken for one.
OTHER_LINE = re.compile(r"(?:([REAMN])\d\S*|(#)\S*|(\*))\t.*")
OTHER_LINES = {
    "R": "relation lines: left out",
    "E": "event lines: left out",
    "A": "attribute lines: left out",
    "M": "modification lines: left out",
    "N": "normalisation lines: left out",
    "#": "note lines: left out",
    "*": "equivalence lines: left out",
}
OTHER_KINDS = tuple(OTHER_LINES.values())

Lines = list[tuple[Sentence, list[Bounds]]]


def read_brat(
    path: Path,
    problems: Problems,
    tokenize: Tokenize,
    tokenized: bool = False,
    mode: AlignmentMode = "strict",
    offsets: Offsets | None = None,
) -> Iterator[Sentence]:
    """Read one document.

    path (Path): The `.ann` or the `.txt` file; the other stands beside it.
    problems (Problems): Takes discontinuous and misaligned annotations, and lines that
        are no entities.
    tokenize (Tokenize): Splits the text.
    tokenized (bool): The text is tokens between white space, a sentence a line:
        `tokenize` is not used.
    mode (AlignmentMode): What becomes of misaligned annotations.
    offsets (Offsets | None): What offsets count; None: code points.
    YIELDS (Sentence): One record a line if `tokenized`, else the text as a whole.
    RAISES (ConversionError): If one of the two files is missing or not UTF-8, or
        something is to repair and `problems` is strict.
    """
    offsets = offsets or Offsets()
    source = path.with_suffix(".txt")
    text = read_text(source)
    annotations = path.with_suffix(".ann")
    n_bad = problems.counts[BAD_LINE]
    n_other = sum(problems.counts[kind] for kind in OTHER_KINDS)
    entities = list(_read_entities(annotations, problems, offsets.unit))
    n_bad = problems.counts[BAD_LINE] - n_bad
    n_other = sum(problems.counts[kind] for kind in OTHER_KINDS) - n_other
    if n_bad > len(entities) + n_other:
        # Not of the format; without its entities the text would teach that it has none.
        problems.repair(BAD_FILE, str(annotations), lost_record=True)
        return

    def split(text: str) -> tuple[Lines, list[Bounds]]:
        if tokenized:
            lines = _split_lines(path, text)
        else:
            words, spaces = tokenize(text)
            bounds = token_bounds(words, spaces)
            name = stem(path)
            lines = [
                (Sentence(name, words, [], name, spaces, own_tokens=False), bounds)
            ]
        return lines, [bound for _, bounds in lines for bound in bounds]

    has_mark = has_byte_order_mark(source)
    text, lines, spans = offsets.read(text, entities, split, problems, source, has_mark)
    # An entity belongs to the last line that begins before its end.
    starts = [bounds[0][0] if bounds else 0 for _, bounds in lines]
    spans_by_line: list[list[CharSpan]] = [[] for _ in lines]
    for span in spans if lines else []:
        i = bisect_left(starts, span[1]) - 1
        spans_by_line[max(i, 0)].append(span)
    for (sentence, bounds), own in zip(lines, spans_by_line, strict=True):
        aligner = Aligner(text, bounds, problems, mode)
        for start, end, label, where in own:
            if bounds and start < bounds[0][0] and "\n" in text[start:end].rstrip():
                problems.repair(ACROSS_LINES, f"{where}: {label} {text[start:end]!r}")
                continue
            aligned = aligner.align(start, end, label, where)
            if aligned is not None:
                sentence.spans.append(aligned)
        yield from checked_records(sentence, str(annotations), problems)


def _split_lines(path: Path, text: str) -> Lines:
    """The lines with tokens, and the tokens' offsets in the whole text."""
    lines: Lines = []
    for line in re.finditer("[^\n]+", text):
        # Not `str.split()`: no-break and other spaces stand within tokens.
        tokens = list(re.compile("[^ \t\r]+").finditer(text, *line.span()))
        if tokens:
            words = [token.group() for token in tokens]
            name = default_id(path, len(lines))
            sentence = Sentence(name, words, [], doc=stem(path))
            lines.append((sentence, [token.span() for token in tokens]))
    return lines


def _read_entities(
    path: Path, problems: Problems, unit: OffsetUnit
) -> Iterator[Annotation]:
    last: Annotation | None = None
    for number, line in read_lines(path, keep_bytes=True):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        entity, other = ENTITY.fullmatch(line), OTHER_LINE.fullmatch(line)
        if entity is None and other is None:
            # The text of an annotation may stand over several lines of the text, and
            # some tools write its line breaks as they are.
            if last is not None and _is_cut_short(last, unit):
                problems.repair(BROKEN_LINE, f"{where}: {last.label} ... {line[:60]!r}")
                covered = f"{last.covered}\n{line}"
                last = Annotation(last.fragments, last.label, last.where, covered)
            else:
                detail = Errors.T053.format(where=where, line=line[:60])
                problems.repair(BAD_LINE, detail)
            continue
        if last is not None:
            yield last
            last = None
        if other is not None:
            kind = next(filter(None, other.groups()))
            problems.add(OTHER_LINES[kind], where)
        elif entity is not None:
            label, fragments, covered = entity.groups()
            bounds = [fragment.split() for fragment in fragments.split(";")]
            last = Annotation(
                tuple((int(start), int(end)) for start, end in bounds),
                label,
                where,
                covered,
            )
    if last is not None:
        yield last


def _is_cut_short(annotation: Annotation, unit: OffsetUnit) -> bool:
    """Whether the text that is given is shorter than the offsets say."""
    if annotation.covered is None:
        return False
    length = sum(end - start for start, end in annotation.fragments)
    return length_in(annotation.covered, unit) < length
