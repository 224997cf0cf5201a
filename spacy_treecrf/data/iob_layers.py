"""Tab-separated columns: a token, then one column of IOB tags for each nesting layer.

LitBank and GermEval 2014 come like this. Blank lines end sentences. Read are IOB2
("B-X" begins each entity), IOB1 ("B-X" only between neighbours of one label), BIOES and
BILUO; a file in which the tags follow none of them is an error that names the line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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

Scheme = Literal["IOB1", "IOB2", "BIOES", "BILUO"]

# Prefixes of the last and of the only token of an entity, in schemes that have them.
LAST_AND_ONLY: dict[Scheme, str] = {"BIOES": "ES", "BILUO": "LU"}

Tag = tuple[str, str]


@dataclass
class _Block:
    """The rows of one sentence, with their line numbers."""

    numbers: list[int] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    source: str | None = None


def read_iob_layers(
    path: Path, problems: Problems, token_column: int | None = None
) -> Iterator[Sentence]:
    """Read a file of tab-separated columns.

    path (Path): The file.
    problems (Problems): Takes entities that two layers repeat.
    token_column (int | None): Column of the tokens, from 1; all columns behind it are
        layers. None: the second if the first counts the tokens, else the first.
    YIELDS (Sentence): One record for each sentence. Its document is what the comment
        line before it says, in files that number the tokens; else the file.
    RAISES (ConversionError): If a line has more or fewer columns than the first, a
        column holds no IOB tags, or the tags are ill-formed.
    """
    blocks = list(_read_blocks(path))
    is_numbered = _is_numbered(blocks)
    column = token_column - 1 if token_column else int(is_numbered)
    tags = [_parse_block(path, block, column) for block in blocks]
    scheme = _find_scheme(tags)
    for i, (block, layers) in enumerate(zip(blocks, tags, strict=True)):
        spans: list[LabelledSpan] = []
        for n, layer in enumerate(layers):
            where = [
                f"{path}:{line}, column {column + 2 + n}" for line in block.numbers
            ]
            spans.extend(decode_tags(layer, where, scheme))
        sentence = Sentence(
            default_id(path, i),
            [row[column] for row in block.rows],
            spans,
            doc=(block.source if is_numbered else None) or stem(path),
        )
        yield checked_sentence(sentence, f"{path}:{block.numbers[0]}", problems)


def decode_tags(
    tags: Sequence[Tag], where: Sequence[str], scheme: Scheme
) -> list[LabelledSpan]:
    """Entities of one layer of one sentence.

    tags (Sequence[Tag]): Prefix and label of each token; ("O", "") outside.
    where (Sequence[str]): File, line and column of each, for messages.
    scheme (Scheme): How entities are marked.
    RETURNS (list[LabelledSpan]): The entities in text order.
    RAISES (ConversionError): If a tag is not of the scheme, an entity begins with a
        tag that continues one, or one that has to be ended is not.
    """
    last_and_only = LAST_AND_ONLY.get(scheme, "")
    inside = "I" + last_and_only[:1]
    spans: list[LabelledSpan] = []
    start, open_label = 0, ""
    for i, (prefix, label) in enumerate([*tags, ("O", "")]):
        if prefix not in "BIO" + last_and_only:
            raise _ill_formed(where[i], (prefix, label), f"not of {scheme}")
        continues = prefix in inside and label == open_label
        if open_label and not continues:
            if last_and_only:
                raise _ill_formed(where[i - 1], tags[i - 1], "the entity is not ended")
            spans.append((start, i, open_label))
            open_label = ""
        if prefix in inside and not continues and scheme != "IOB1":
            raise _ill_formed(where[i], (prefix, label), "it begins no entity")
        if prefix != "O" and not continues:
            start, open_label = i, label
        if prefix in last_and_only:
            spans.append((start, i + 1, label))
            open_label = ""
    return spans


def _read_blocks(path: Path) -> Iterator[_Block]:
    block = _Block()
    for number, line in read_lines(path):
        # A token may be white space, so a line is blank only if it has no tag.
        if not line.strip():
            if block.rows:
                yield block
                block = _Block()
            continue
        row = line.rstrip("\t").split("\t")
        # "#" is also a token; what follows a token is a tag.
        if line.startswith("#") and (len(row) == 1 or _parse_tag(row[-1]) is None):
            block.source = line.lstrip("#").strip() or None
            continue
        block.numbers.append(number)
        block.rows.append(row)
    if block.rows:
        yield block


def _is_numbered(blocks: list[_Block]) -> bool:
    """Whether the first column counts the tokens, which are in the second."""
    rows = [
        (str(i), row) for block in blocks for i, row in enumerate(block.rows, start=1)
    ]
    counts = all(row[0] == number and len(row) > 2 for number, row in rows)
    # Tokens that happen to count stand before tags alone; but "O" is a token, too.
    return counts and any(_parse_tag(row[1]) is None for _, row in rows)


def _parse_block(path: Path, block: _Block, column: int) -> list[list[Tag]]:
    """The tags of a sentence by layer."""
    layers: list[list[Tag]] = [[] for _ in block.rows[0][column + 1 :]]
    for number, row in zip(block.numbers, block.rows, strict=True):
        where = f"{path}:{number}"
        if len(row) < column + 2:
            raise _bad(where, f"expected a token and its tags, received {row}")
        if len(row) != len(block.rows[0]):
            raise _bad(
                where,
                f"{len(row)} columns, but {len(block.rows[0])} at the sentence's begin",
            )
        for i, string in enumerate(row[column + 1 :]):
            tag = _parse_tag(string)
            if tag is None:
                raise _bad(
                    f"{where}, column {column + 2 + i}",
                    f"{string!r} is no IOB tag. Set --token-column if the token is not "
                    f"in column {column + 1}",
                )
            layers[i].append(tag)
    return layers


def _parse_tag(string: str) -> Tag | None:
    if string == "O":
        return "O", ""
    prefix, dash, label = string.partition("-")
    return (prefix, label) if dash and label and prefix in set("BIESLU") else None


def _find_scheme(sentences: list[list[list[Tag]]]) -> Scheme:
    """The scheme of a file. Tags that do not follow it are found on decoding."""
    i_begins, b_follows_other = False, False
    for layer in (layer for sentence in sentences for layer in sentence):
        for (_, left), (prefix, label) in zip([("O", ""), *layer], layer, strict=False):
            if prefix in "ES":
                return "BIOES"
            if prefix in "LU":
                return "BILUO"
            i_begins |= prefix == "I" and left != label
            b_follows_other |= prefix == "B" and left != label
    # Where both occur, the file is neither; as IOB2 the "I" is the error.
    return "IOB1" if i_begins and not b_follows_other else "IOB2"


def _ill_formed(where: str, tag: Tag, reason: str) -> ConversionError:
    return ConversionError(
        Errors.T051.format(
            where=where, tag="-".join(t for t in tag if t), reason=reason
        )
    )


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T044.format(where=where, reason=reason))
