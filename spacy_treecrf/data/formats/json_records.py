"""The records of a JSON file: one a line, or the members of one array, laid out freely."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import Problems

from ..text_files import read_lines

# Line from 1, number from 0, and the record.
Numbered = tuple[int, int, Any]

BAD_JSON = "records that are no JSON: left out"


def read_records(path: Path, problems: Problems) -> Iterator[Numbered]:
    """Read the records of a file.

    path (Path): JSON Lines; or JSON with an array of records, or with records one behind
        the other, over any number of lines.
    problems (Problems): Takes what is no JSON.
    YIELDS (Numbered): Line and number of each record. In JSON Lines the number counts
        the lines, empty ones too.
    RAISES (ConversionError): If the file can't be read, or something in it is no JSON
        and `problems` is strict.
    """
    lines = read_lines(path, keep_bytes=True)
    first = next(((n, line) for n, line in lines if line.strip()), None)
    if first is None:
        return
    number, line = first
    if not _is_json(line) and line.lstrip()[0] in "[{":
        text = "\n".join([line, *(rest for _, rest in lines)])
        if _starts_with_record(text):
            yield from _read_document(path, text, number, problems)
            return
        # No record over several lines: the first line is broken.
        lines = iter(list(enumerate(text.split("\n")[1:], start=number + 1)))
    yield from _read_line(path, number, line, problems)
    for number, line in lines:
        if line.strip():
            yield from _read_line(path, number, line, problems)


def is_record(value: Any) -> bool:
    """Whether a member of an array is one of a list of texts, not of a text's spans.

    value (Any): The member.
    RETURNS (bool): True for an object, and for spaCy's pair of text and annotations.
    """
    return isinstance(value, dict) or (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], dict)
    )


def show(value: Any) -> str:
    """A value as JSON, cut to some length, for messages."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _read_line(
    path: Path, number: int, line: str, problems: Problems
) -> Iterator[Numbered]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        detail = Errors.T043.format(where=f"{path}:{number}", reason=str(error))
        problems.repair(BAD_JSON, detail, lost_record=True)
        return
    if isinstance(value, list) and not is_record(value) and any(map(is_record, value)):
        for i, member in enumerate(value):
            yield number, i, member
    else:
        yield number, number - 1, value


def _read_document(
    path: Path, text: str, first_line: int, problems: Problems
) -> Iterator[Numbered]:
    decoder = json.JSONDecoder()
    position = _skip(text, 0)
    if text[position] == "[" and not _is_pair(text, position):
        position = _skip(text, position + 1)
    # Records stand below one another, what they hold further to the right.
    indent = text[text.rfind("\n", 0, position) + 1 : position]
    again = (
        re.compile(rf"\n{re.escape(indent)}(?=[\[{{])") if not indent.strip() else None
    )
    line, counted, i = first_line, 0, 0
    while position < len(text) and text[position] != "]":
        line += text.count("\n", counted, position)
        counted = position
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            detail = Errors.T043.format(where=f"{path}:{line}", reason=str(error))
            problems.repair(BAD_JSON, detail, lost_record=True)
            found = again.search(text, position) if again else None
            if found is None:
                return
            position = found.end()
        else:
            yield line, i, value
        i += 1
        position = _skip(text, position)


def _skip(text: str, position: int) -> int:
    """Behind white space and the commas between members."""
    match = re.compile(r"[\s,]*").match(text, position)
    assert match is not None
    return match.end()


def _starts_with_record(text: str) -> bool:
    position = _skip(text, 0)
    if text[position] == "[" and not _is_pair(text, position):
        position = _skip(text, position + 1)
    if text[position : position + 1] not in ("{", "["):
        return text[position : position + 1] == "]"
    try:
        value, _ = json.JSONDecoder().raw_decode(text, position)
    except (ValueError, RecursionError):
        # Over several lines all the same, if nothing but brackets stands on the first.
        return not text.split("\n", 1)[0].strip("[{ \t\r")
    return is_record(value)


def _is_pair(text: str, position: int) -> bool:
    """Whether an array is one pair of text and annotations, not an array of records."""
    following = _skip(text, position + 1)
    return text[following : following + 1] == '"'


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
