"""Blocks of lines as GENIA is passed around for nested NER (Lu and Roth, 2015).

A block is four lines: tokens, part-of-speech tags, spans, and a blank line. The spans
are `start,end label|start,end label|...` with exclusive ends; their line is empty where
a sentence has none, so blocks are told by their number of lines, not by blank lines.
Files without part-of-speech tags have blocks of three lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import Problems

from ..records import LabelledSpan, Sentence, checked_records, default_id
from ..text_files import read_lines

# Python refuses to read numbers of thousands of digits.
SPAN = re.compile(r"(\d{1,9}),(\d{1,9}) (\S.*)")
# Marks gold annotation in this format and is no part of the label.
GOLD = "G#"


BAD_BLOCK = "blocks of which a line is missing or ill-formed: left out"
NO_TAGS = "blocks without part-of-speech tags in a file with them: read"
WITH_TAGS = "blocks with part-of-speech tags in a file without them: read"
NO_BLANK = "blocks without a blank line behind them: read"


@dataclass(frozen=True)
class _Block:
    """A block that was read, and what is wrong with it, if anything."""

    number: int  # Of its first line, from 0.
    n_lines: int
    tokens: list[str]
    spans: list[LabelledSpan]
    kind: str | None = None


def read_genia(path: Path, problems: Problems) -> Iterator[Sentence]:
    """Read a file of blocks of four lines, or of three if it has no tags.

    path (Path): The file.
    problems (Problems): Takes repeated spans, and blocks that are ill-formed.
    YIELDS (Sentence): One record a block. Offsets count the tokens between any number
        of spaces.
    RAISES (ConversionError): If the file can't be read, or a block is ill-formed and
        `problems` is strict; the message names the line up to which the file fits.
    """
    lines = [line for _, line in read_lines(path, keep_bytes=True)]
    while lines and not lines[-1].strip():
        lines.pop()
    misfits = {stride: _first_misfit(lines, stride) for stride in (4, 3)}
    stride = next((s for s, misfit in misfits.items() if misfit is None), None)
    if stride is not None:
        blocks = _read_blocks(lines, stride)
    else:
        blocks = _repair_blocks(path, lines, problems)
    for i, block in enumerate(blocks):
        sentence = Sentence(default_id(path, i), block.tokens, block.spans)
        where = f"{path}:{block.number + block.n_lines - 1}"
        if block.kind is not None:
            place = 3 if block.kind == NO_BLANK else 1
            shown = "".join(lines[block.number + place : block.number + place + 1])
            expected = "no" if block.kind == WITH_TAGS else "expected"
            problems.repair(
                block.kind,
                f"{path}:{block.number + place + 1}: {expected} {_expected(place, 4)}, "
                f"received {shown[:60]!r} after {sentence.text()[:60]!r}",
            )
        yield from checked_records(sentence, where, problems)


def _read_blocks(lines: list[str], stride: int) -> Iterator[_Block]:
    """The blocks of a file that is well-formed."""
    # The last block may lack its span line, if that is empty, and its blank line.
    lines = lines + [""] * (-len(lines) % stride)
    for i in range(0, len(lines), stride):
        spans = _parse_spans(lines[i + stride - 2])
        assert spans is not None
        yield _Block(i, stride, _split(lines[i]), spans)


def _repair_blocks(
    path: Path, lines: list[str], problems: Problems
) -> Iterator[_Block]:
    """The blocks of a file of which some are ill-formed."""
    lines = [*lines, "", "", ""]
    n_blocks = {4: 0, 3: 0}
    # Part-of-speech tags of the file, that no line of them is taken for tokens.
    tags: set[str] = set()
    for i in range(len(lines) - 3):
        if lines[i].strip() and (i == 0 or not lines[i - 1].strip()):
            for s in n_blocks:
                block = _read_block(lines, i, s, set())
                if block is not None and block.kind is None:
                    n_blocks[s] += 1
                    if s == 4:
                        tags.update(_split(lines[i + 1]))
    stride = max(n_blocks, key=lambda s: n_blocks[s])
    i = 0
    while i < len(lines):
        if not lines[i].strip():
            i += 1
            continue
        found = (_read_block(lines, i, s, tags) for s in (stride, 7 - stride))
        block = next((b for b in found if b is not None), None)
        if block is not None:
            if block.n_lines != stride and block.kind is None:
                block = replace(block, kind=NO_TAGS if stride == 4 else WITH_TAGS)
            yield block
            # A blank line that is missing does not belong to the next block.
            i += block.n_lines - (block.kind == NO_BLANK)
            continue
        place = min(_misfit_of(lines, i, stride), stride - 1)
        detail = Errors.T052.format(
            where=f"{path}:{i + place + 1}",
            stride=stride,
            expected=_expected(place, stride),
            line=lines[i + place][:60],
        )
        problems.repair(BAD_BLOCK, detail, lost_record=True)
        # On behind the next blank line.
        while lines[i].strip():
            i += 1


def _read_block(lines: list[str], i: int, stride: int, tags: set[str]) -> _Block | None:
    """The block of some kind that begins in a line; None if none does."""
    place = _misfit_of(lines, i, stride)
    if place < stride - 1:
        return None
    tokens = _split(lines[i])
    spans = _parse_spans(lines[i + stride - 2])
    if spans is None or (tags and stride == 3 and tags.issuperset(tokens)):
        return None
    kind = None
    if place < stride:
        # Without its line of spans, an empty one is not told from one that is lost.
        if not spans:
            return None
        kind = NO_BLANK
    return _Block(i, stride, tokens, spans, kind)


def _misfit_of(lines: list[str], i: int, stride: int) -> int:
    """The place of the first line that does not fit a block; `stride` if all do."""
    misfit = _first_misfit(lines[i : i + stride], stride)
    return stride if misfit is None else misfit


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
