"""Columns: a token, then one column of IOB tags for each nesting layer.

LitBank and GermEval 2014 come like this, and with columns between that hold no entities
CoNLL-2003. Blank lines end sentences. Columns are separated by tabs, or in files without
tabs by spaces. Read are IOB2 ("B-X" begins each entity), IOB1 ("B-X" only between
neighbours of one label), BIOES, BILUO, BMES and BMEWO; see `iob_tags` for the rest.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems

from ..records import LabelledSpan, Sentence, checked_records, default_id, stem
from ..text_files import read_lines
from .iob_tags import Tag, decode_tags, find_scheme, parse_tag

# A line of CoNLL-2003 that begins a document.
DOCUMENT = "-DOCSTART-"
# Phrases that CoNLL-2000 and CoNLL-2003 mark with IOB tags, too.
CHUNKS = frozenset(
    (
        *("NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "CONJP"),
        *("INTJ", "LST", "UCP", "NAC", "NX", "PC"),
    )
)
N_SHOWN = 3  # Values of a column in messages.

BAD_SENTENCE = "sentences with an ill-formed line: left out"
SPACES = "lines with spaces for tabs between their columns: read"
LIKE_CHUNKS = (
    "columns of tags that look like phrases, not entities: read all the same; name the "
    "others with --tag-columns"
)


@dataclass
class _Block:
    """The rows of one sentence, with their line numbers."""

    numbers: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    source: str | None = None
    document: str | None = None


def read_iob_layers(
    path: Path,
    problems: Problems,
    token_column: int | None = None,
    tag_columns: Sequence[int] = (),
) -> Iterator[Sentence]:
    """Read a file of columns.

    path (Path): The file.
    problems (Problems): Takes entities that two layers repeat, tags that do not follow
        the scheme of the file, and sentences with lines that are ill-formed.
    token_column (int | None): Column of the tokens, from 1. None: the second if the
        first counts the tokens, else the first.
    tag_columns (Sequence[int]): Columns of the tags, from 1; none: all columns behind
        the tokens.
    YIELDS (Sentence): One record for each sentence. Its document is what the comment
        line before it says, in files that number the tokens; or a number, in files with
        lines "-DOCSTART-"; else the file.
    RAISES (ConversionError): If a column holds something else than IOB tags, or
        something is to repair and `problems` is strict.
    """
    blocks = list(_read_blocks(path, problems))
    is_numbered = _is_numbered(blocks)
    column = token_column - 1 if token_column else int(is_numbered)
    chosen = tuple(number - 1 for number in tag_columns)
    _check_columns(path, blocks, column, chosen)
    tags = [_parse_block(path, block, column, chosen, problems) for block in blocks]
    scheme = find_scheme(layer for layers in tags for _, layer in layers or ())
    if not chosen:
        _name_chunks(path, tags, problems)
    for i, (block, layers) in enumerate(zip(blocks, tags, strict=True)):
        if layers is None:
            continue
        spans: list[LabelledSpan] = []
        for layer_column, layer in layers:
            where = partial(_where, path, block, column, layer_column)
            spans.extend(decode_tags(layer, where, scheme, problems))
        sentence = Sentence(
            default_id(path, i),
            [row[column] for row in block.rows],
            spans,
            doc=(block.source if is_numbered else None) or block.document or stem(path),
        )
        yield from checked_records(sentence, f"{path}:{block.numbers[0]}", problems)


def _where(path: Path, block: _Block, column: int, layer: int, i: int) -> str:
    place = f"{path}:{block.numbers[i]}, column {layer + 1}"
    return f"{place}, {block.rows[i][column]!r}"


def _read_blocks(path: Path, problems: Problems) -> Iterator[_Block]:
    lines = list(read_lines(path, keep_bytes=True))
    has_tabs = any("\t" in line.rstrip("\t") for _, line in lines)
    block = _Block()
    n_documents = 0
    document: str | None = None
    for number, line in lines:
        is_document = line.startswith(DOCUMENT)
        # A token may be white space, so a line is blank only if it has no tag.
        if is_document or not line.strip():
            if block.rows:
                yield block
                block = _Block(document=document)
            if is_document:
                n_documents += 1
                block.document = document = f"{stem(path)}-{n_documents}"
            continue
        row = line.rstrip("\t").split("\t") if has_tabs else _split_at_spaces(line)
        # "#" is also a token; what follows a token is a tag.
        if line.startswith("#") and (len(row) == 1 or parse_tag(row[-1]) is None):
            block.source = line.lstrip("#").strip() or None
            continue
        if has_tabs and len(row) == 1 and parse_tag(_split_at_spaces(line)[-1]):
            row = _split_at_spaces(line)
            problems.repair(SPACES, f"{path}:{number}: {line[:60]!r}")
        block.numbers.append(number)
        block.rows.append(row)
    if block.rows:
        yield block


def _split_at_spaces(line: str) -> list[str]:
    # Not `str.split()`: no-break and other spaces stand within tokens.
    return [value for value in re.split("[ \t]+", line) if value]


def _is_numbered(blocks: list[_Block]) -> bool:
    """Whether the first column counts the tokens, which are in the second."""
    rows = [
        (str(i), row) for block in blocks for i, row in enumerate(block.rows, start=1)
    ]
    counts = all(row[0] == number and len(row) > 2 for number, row in rows)
    # Tokens that happen to count stand before tags alone; but "O" is a token, too.
    return counts and any(parse_tag(row[1]) is None for _, row in rows)


def _check_columns(
    path: Path, blocks: list[_Block], column: int, chosen: tuple[int, ...]
) -> None:
    """Raise if a column of tags holds, for the most part, something else."""
    rows = [row for block in blocks for row in block.rows]
    if not rows:
        return
    width = Counter(len(row) for row in rows).most_common(1)[0][0]
    columns = chosen or range(column + 1, width)
    if column in chosen or column >= width or any(c >= width for c in chosen):
        named = ", ".join(str(c + 1) for c in (column, *chosen))
        raise ConversionError(
            Errors.T044.format(
                where=path,
                reason=f"the columns {named}, of tokens and tags, are not apart from each "
                f"other among the {width} columns of the file",
            )
        )

    def is_of_tags(c: int) -> bool:
        values = [row[c] for row in rows if c < len(row)]
        return 2 * sum(parse_tag(value) is not None for value in values) >= len(values)

    for c in columns:
        if not is_of_tags(c):
            tagged = [i for i in range(width) if i != column and is_of_tags(i)]
            first = next(
                number
                for block in blocks
                for number, row in zip(block.numbers, block.rows, strict=True)
                if c < len(row) and parse_tag(row[c]) is None
            )
            raise ConversionError(
                Errors.T122.format(
                    path=f"{path}:{first}",
                    column=c + 1,
                    values=_show_values(rows, c),
                    advice=_advise(rows, tagged),
                )
            )


def _advise(rows: list[list[str]], tagged: list[int]) -> str:
    if not tagged:
        return "but no column of the file holds any, so that it is of another format"
    shown = "; ".join(f"column {c + 1}: {_show_values(rows, c)}" for c in tagged)
    columns = ",".join(str(c + 1) for c in tagged)
    if len(tagged) == 1:
        return f"--tag-columns {columns} ({shown})"
    return f"--tag-columns {tagged[-1] + 1}, or those of entities among {columns} ({shown})"


def _show_values(rows: list[list[str]], column: int) -> str:
    values = dict.fromkeys(row[column] for row in rows if column < len(row))
    # Tags with a label say more than the frequent "O".
    told = [value for value in values if value != "O"] or list(values)
    more = ", ..." if len(told) > N_SHOWN else ""
    return ", ".join(told[:N_SHOWN]) + more


Layers = list[tuple[int, list[Tag]]]


def _parse_block(
    path: Path,
    block: _Block,
    column: int,
    chosen: tuple[int, ...],
    problems: Problems,
) -> Layers | None:
    """The tags of a sentence by column; None if a line is ill-formed."""
    width = len(block.rows[0])
    columns = chosen or tuple(range(column + 1, width))
    layers: Layers = [(c, []) for c in columns]
    for number, row in zip(block.numbers, block.rows, strict=True):
        where = f"{path}:{number}"
        reason = None
        if len(row) <= max((column, *columns)) or not columns:
            reason = f"expected a token and its tags, received {row}"
        if len(row) != width:
            reason = f"{len(row)} columns, but {width} at the sentence's begin"
        for c, layer in layers if reason is None else ():
            tag = parse_tag(row[c])
            if tag is None:
                reason = f"{row[c]!r} of {row[column]!r} is no IOB tag"
                where += f", column {c + 1}"
                break
            layer.append(tag)
        if reason is not None:
            problems.repair(BAD_SENTENCE, f"{where}: {reason}", lost_record=True)
            return None
    return layers


def _name_chunks(path: Path, tags: list[Layers | None], problems: Problems) -> None:
    labels: dict[int, set[str]] = {}
    for column, layer in (pair for layers in tags for pair in layers or ()):
        labels.setdefault(column, set()).update(label for _, label in layer if label)
    for column, found in labels.items():
        if found and found <= CHUNKS:
            shown = ", ".join(sorted(found))
            problems.add(LIKE_CHUNKS, f"{path}: column {column + 1}: {shown}")
