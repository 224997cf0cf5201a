"""CoNLL-U with entities in the MISC column, as CorefUD and GUM write them.

    # global.Entity = GRP-etype-infstat
    1   Bank    ...   Entity=(4-organization-new
    2   of      ...   _
    3   China   ...   Entity=(5-place-giv)4)

`(` opens an entity and its fields follow, separated by hyphens and named by the line
`# global.Entity`; `)` closes one: at once, as entity 5 here, or after the number of one
that is open. Of the fields the label (`etype`) is read; the number (`GRP` or `eid`) names
whom or what the entity refers to, so that several mentions share it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spacy_treecrf.errors import Errors

from .records import (
    ConversionError,
    LabelledSpan,
    Problems,
    Sentence,
    checked_sentence,
    default_id,
    stem,
)
from .text_files import read_lines

N_COLUMNS = 10
FORM, MISC = 1, 9
# Fields where a file names none: those that GUM begins with, and any others.
DEFAULT_FIELDS = ("GRP", "etype", "")
NUMBER_FIELDS = ("GRP", "eid")
LABEL_FIELDS = ("etype", "entity")

HEADER = re.compile(r"#\s*(global\.Entity|newdoc id|sent_id)\s*=\s*(.*)")
WORD = re.compile(r"\d+")
# Words of a multiword token (10-11), and an empty node (8.1).
RANGE = re.compile(r"\d+-(\d+)")
EMPTY_NODE = re.compile(r"\d+\.\d+")
BRACKETS = re.compile(r"\((?P<opened>[^()]+)(?P<at_once>\)?)|(?P<closed>[^()]+)\)")
# One of several parts of a discontinuous entity, e.g. 5[1/2].
PART = re.compile(r"(.*)\[(\d+)/\d+\]")

DISCONTINUOUS = "discontinuous entities: left out"
CUT = "entities that are open at the end of their sentence: left out"


@dataclass
class _Block:
    """The words of one sentence, and what the comments before it say."""

    fields: tuple[str, ...]
    doc: str | None
    name: str | None = None
    numbers: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)


def read_conllu(path: Path, problems: Problems) -> Iterator[Sentence]:
    """Read a CoNLL-U file.

    path (Path): The file.
    problems (Problems): Takes discontinuous entities, and those that leave their
        sentence.
    YIELDS (Sentence): One record a sentence: its syntactic words, so that lines of
        multiword tokens and of empty nodes are skipped. `SpaceAfter=No` gives spaces.
    RAISES (ConversionError): If a line has not ten columns, brackets are ill-formed, or
        one closes that is not open.
    """
    # Numbers of entities that an earlier sentence of the document left open.
    pending: Counter[str] = Counter()
    document: str | None = None
    for i, block in enumerate(_read_blocks(path)):
        if block.doc != document:
            document = block.doc
            pending.clear()
        sentence = Sentence(
            block.name or default_id(path, i),
            block.words,
            _read_entities(path, block, pending, problems),
            doc=block.doc or stem(path),
            # What stands between two sentences belongs to neither.
            spaces=[*block.spaces[:-1], False],
        )
        yield checked_sentence(sentence, f"{path}:{block.numbers[0]}", problems)


def _read_blocks(path: Path) -> Iterator[_Block]:
    fields: tuple[str, ...] = DEFAULT_FIELDS
    doc: str | None = None
    block = _Block(fields, doc)
    # The last word of a multiword token, and whether a space follows the whole.
    last, space = "", True
    for number, line in read_lines(path):
        if not line.strip():
            if block.words:
                yield block
            block = _Block(fields, doc)
            last = ""
            continue
        if line.startswith("#"):
            match = HEADER.match(line)
            if match is None:
                continue
            key, value = match[1], match[2].strip()
            if key == "global.Entity":
                fields = block.fields = _parse_fields(value, f"{path}:{number}")
            elif key == "newdoc id":
                doc = block.doc = value
            else:
                block.name = value
            continue
        row = line.split("\t")
        if len(row) != N_COLUMNS:
            raise _bad(
                f"{path}:{number}",
                f"expected {N_COLUMNS} columns, received {len(row)}: {line[:60]!r}",
            )
        misc = row[MISC].split("|")
        if match := RANGE.fullmatch(row[0]):
            last, space = match[1], "SpaceAfter=No" not in misc
            continue
        if EMPTY_NODE.fullmatch(row[0]):
            continue
        if not WORD.fullmatch(row[0]):
            raise _bad(f"{path}:{number}", f"expected a word's number, not {row[0]!r}")
        block.numbers.append(number)
        block.words.append(row[FORM])
        block.spaces.append(
            (space and row[0] == last) if last else "SpaceAfter=No" not in misc
        )
        if row[0] == last:
            last = ""
        block.entities.append(
            next((m.removeprefix("Entity=") for m in misc if m[:7] == "Entity="), "")
        )
    if block.words:
        yield block


def _parse_fields(value: str, where: str) -> tuple[str, ...]:
    fields = tuple(value.split("-"))
    for names in (NUMBER_FIELDS, LABEL_FIELDS):
        if not set(names) & set(fields):
            raise _bad(where, f"no field {' or '.join(names)} in global.Entity {value}")
    return fields


def _read_entities(
    path: Path, block: _Block, pending: Counter[str], problems: Problems
) -> list[LabelledSpan]:
    """The entities of a sentence; `pending` gets the numbers of those left open."""
    spans: list[LabelledSpan] = []
    # Innermost last: a number closes the mention of it that was opened last.
    opened: list[tuple[str, int, str]] = []
    for i, (string, line) in enumerate(zip(block.entities, block.numbers, strict=True)):
        where = f"{path}:{line}"
        for match in _split_brackets(string, where):
            if match["closed"]:
                number, part = _split_part(match["closed"].split("-"), block.fields)
                if part:
                    continue
                place = _find_open(opened, number)
                if place is not None:
                    _, start, label = opened.pop(place)
                    spans.append((start, i + 1, label))
                elif pending[number]:
                    pending[number] -= 1
                else:
                    raise _bad(where, f"{match[0]!r} closes an entity that is not open")
                continue
            number, part = _split_part(match["opened"].split("-"), block.fields)
            label = _label(match["opened"], block.fields, where)
            if part:
                # Counted once, with its first part.
                if part == 1:
                    problems.add(DISCONTINUOUS, f"{where}: {label} {block.words[i]!r}")
            elif match["at_once"]:
                spans.append((i, i + 1, label))
            else:
                opened.append((number, i, label))
    for number, start, label in opened:
        pending[number] += 1
        problems.add(
            CUT, f"{path}:{block.numbers[start]}: {label} {block.words[start]!r} ..."
        )
    return spans


def _split_brackets(string: str, where: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(string):
        match = BRACKETS.match(string, position)
        if match is None:
            raise _bad(where, f"ill-formed brackets: Entity={string}")
        yield match
        position = match.end()


def _split_part(values: Sequence[str], fields: Sequence[str]) -> tuple[str, int]:
    """The number of an entity, and which part of it this is; 0 if it has no parts."""
    # What closes an entity has the leading fields up to its number alone.
    place = next(i for i, name in enumerate(fields) if name in NUMBER_FIELDS)
    number = values[place] if place < len(values) else values[-1]
    match = PART.fullmatch(number)
    return (match[1], int(match[2])) if match else (number, 0)


def _label(opened: str, fields: Sequence[str], where: str) -> str:
    # The last field may hold hyphens of its own.
    values = opened.split("-", len(fields) - 1)
    place = next(i for i, name in enumerate(fields) if name in LABEL_FIELDS)
    if place >= len(values) or not values[place]:
        raise _bad(
            where, f"({opened} has no {fields[place]}, as global.Entity names it"
        )
    return values[place]


def _find_open(opened: Sequence[tuple[str, int, str]], number: str) -> int | None:
    for place in reversed(range(len(opened))):
        if opened[place][0] == number:
            return place
    return None


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T044.format(where=where, reason=reason))
