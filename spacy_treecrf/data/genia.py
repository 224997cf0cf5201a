"""Blocks of lines as GENIA is passed around for nested NER (Lu and Roth, 2015).

A block is four lines: tokens, part-of-speech tags, spans, and a blank line. The spans
are `start,end label|start,end label|...` with exclusive ends; their line is empty where
a sentence has none, so blocks are told by their number of lines, not by blank lines.
Files without part-of-speech tags have blocks of three lines.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from spacy_treecrf.errors import Errors

from .records import (
    ConversionError,
    LabelledSpan,
    Problems,
    Sentence,
    checked_sentence,
    default_id,
)
from .text_files import read_lines

# Python refuses to read numbers of thousands of digits.
SPAN = re.compile(r"(\d{1,9}),(\d{1,9}) (\S.*)")
# Marks gold annotation in this format and is no part of the label.
GOLD = "G#"


def read_genia(path: Path, problems: Problems) -> Iterator[Sentence]:
    """Read a file of blocks of four lines, or of three if it has no tags.

    path (Path): The file.
    problems (Problems): Takes repeated spans.
    YIELDS (Sentence): One record a block. Offsets count the tokens between any number
        of spaces.
    RAISES (ConversionError): If the lines fit neither kind of block; the message names
        the line up to which the better one fits.
    """
    lines = [line for _, line in read_lines(path)]
    while lines and not lines[-1].strip():
        lines.pop()
    misfits = {stride: _first_misfit(lines, stride) for stride in (4, 3)}
    if None not in misfits.values():
        stride = max(misfits, key=lambda s: misfits[s] or 0)
        number = misfits[stride] or 0
        raise ConversionError(
            Errors.T052.format(
                where=f"{path}:{number + 1}",
                stride=stride,
                expected=_expected(number % stride, stride),
                line=lines[number][:60],
            )
        )
    stride = next(s for s, misfit in misfits.items() if misfit is None)
    # The last block may lack its span line, if that is empty, and its blank line.
    lines += [""] * (-len(lines) % stride)
    for i in range(0, len(lines), stride):
        number = i + stride - 1
        spans = _parse_spans(lines[number - 1])
        assert spans is not None
        sentence = Sentence(default_id(path, i // stride), _split(lines[i]), spans)
        yield checked_sentence(sentence, f"{path}:{number}", problems)


def _first_misfit(lines: list[str], stride: int) -> int | None:
    for i, line in enumerate(lines):
        place = i % stride
        if place == stride - 1:
            fits = not line.strip()
        elif place == stride - 2:
            fits = _parse_spans(line) is not None
        elif place == 1:
            # What looks like spans is the span line of a three-line block.
            fits = bool(line.strip()) and _parse_spans(line) is None
        else:
            fits = bool(line.strip())
        if not fits:
            return i
    return None


def _expected(place: int, stride: int) -> str:
    names = ["tokens", "part-of-speech tags", "spans 'start,end label|...'", "nothing"]
    return (names if stride == 4 else [names[0], *names[2:]])[place]


def _parse_spans(line: str) -> list[LabelledSpan] | None:
    """The spans of a line, or None if it holds anything else."""
    spans = []
    for part in line.strip().split("|") if line.strip() else []:
        match = SPAN.fullmatch(part)
        if match is None:
            return None
        label = match[3].removeprefix(GOLD)
        spans.append((int(match[1]), int(match[2]), label))
    return spans


def _split(line: str) -> list[str]:
    # Not `str.split()`: no-break and other spaces stand within tokens.
    return [token for token in re.split("[ \t]+", line) if token]
