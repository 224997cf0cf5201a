"""Brat's standoff files: a text in `NAME.txt` and its annotations in `NAME.ann`."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

from spacy_treecrf.errors import Errors

from .alignment import LEFT_OUT, Aligner, AlignmentMode, Tokenize, token_bounds
from .records import (
    ConversionError,
    Problems,
    Sentence,
    checked_sentence,
    default_id,
    stem,
)
from .text_files import read_lines, read_text

# A text-bound annotation: label, one or more "start end", the text.
# Offsets are bounded, since Python refuses to read numbers of thousands of digits.
ENTITY = re.compile(
    r"T\S*\t(\S+) (\d{1,12} \d{1,12}(?:;\d{1,12} \d{1,12})*)(?:\t(.*))?"
)
ACROSS_LINES = "annotations across lines: left out"
OTHER_LINES = {
    "R": "relation",
    "E": "event",
    "A": "attribute",
    "M": "modification",
    "N": "normalisation",
    "#": "note",
    "*": "equivalence",
}

Bounds = tuple[int, int]
# Start, end, label, and the annotation's file and line.
Entity = tuple[int, int, str, str]


def read_brat(
    path: Path,
    problems: Problems,
    tokenize: Tokenize,
    tokenized: bool = False,
    mode: AlignmentMode = "strict",
) -> Iterator[Sentence]:
    """Read one document.

    path (Path): The `.ann` or the `.txt` file; the other stands beside it.
    problems (Problems): Takes discontinuous and misaligned annotations, and lines that
        are no entities.
    tokenize (Tokenize): Splits the text.
    tokenized (bool): The text is tokens between white space, a sentence a line:
        `tokenize` is not used.
    mode (AlignmentMode): What becomes of misaligned annotations.
    YIELDS (Sentence): One record a line if `tokenized`, else the text as a whole.
    RAISES (ConversionError): If one of the two files is missing or a line is ill-formed.
    """
    text = read_text(path.with_suffix(".txt"))
    annotations = path.with_suffix(".ann")
    entities = list(_read_entities(annotations, text, problems))
    if tokenized:
        lines = _split_lines(path, text)
    else:
        words, spaces = tokenize(text)
        sentence = Sentence(stem(path), words, [], stem(path), spaces, own_tokens=False)
        lines = [(sentence, token_bounds(words, spaces))]
    # An entity belongs to the last line that begins before its end.
    starts = [bounds[0][0] if bounds else 0 for _, bounds in lines]
    entities_by_line: list[list[Entity]] = [[] for _ in lines]
    for entity in entities if lines else []:
        i = bisect_left(starts, entity[1]) - 1
        entities_by_line[max(i, 0)].append(entity)
    for (sentence, bounds), own in zip(lines, entities_by_line, strict=True):
        aligner = Aligner(text, bounds, problems, mode)
        for start, end, label, where in own:
            if bounds and start < bounds[0][0] and "\n" in text[start:end].rstrip():
                problems.add(ACROSS_LINES, f"{where}: {label} {text[start:end]!r}")
                continue
            span = aligner.align(start, end, label, where)
            if span is not None:
                sentence.spans.append(span)
        yield checked_sentence(sentence, str(annotations), problems)


def _split_lines(path: Path, text: str) -> list[tuple[Sentence, list[Bounds]]]:
    """The lines with tokens, and the tokens' offsets in the whole text."""
    lines: list[tuple[Sentence, list[Bounds]]] = []
    for line in re.finditer("[^\n]+", text):
        # Not `str.split()`: no-break and other spaces stand within tokens.
        tokens = list(re.compile("[^ \t\r]+").finditer(text, *line.span()))
        if tokens:
            words = [token.group() for token in tokens]
            name = default_id(path, len(lines))
            sentence = Sentence(name, words, [], doc=stem(path))
            lines.append((sentence, [token.span() for token in tokens]))
    return lines


def _read_entities(path: Path, text: str, problems: Problems) -> Iterator[Entity]:
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        if line[0] in OTHER_LINES:
            problems.add(f"{OTHER_LINES[line[0]]} lines: left out", where)
            continue
        match = ENTITY.fullmatch(line)
        if match is None:
            raise ConversionError(Errors.T053.format(where=where, line=line[:60]))
        label, offsets, covered = match.groups()
        if ";" in offsets:
            problems.add(
                "discontinuous annotations: left out", f"{where}: {label} {covered!r}"
            )
            continue
        start, end = (int(offset) for offset in offsets.split())
        # Brat writes a space for a line break within an annotation.
        found = re.sub("[\r\n]", " ", text[start:end])
        if covered is not None and re.sub("[\r\n]", " ", covered) != found:
            problems.add(
                LEFT_OUT,
                f"{where}: {label} {covered!r}, but the text has {found!r} there",
            )
            continue
        yield start, end, label, where
