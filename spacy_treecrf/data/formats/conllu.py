"""CoNLL-U with entities in the MISC column, as CorefUD and GUM write them.

    # global.Entity = GRP-etype-infstat
    1   Bank    ...   Entity=(4-organization-new
    2   of      ...   _
    3   China   ...   Entity=(5-place-giv)4)

See `corefud` for the brackets. Other corpora have IOB tags under a key of their own, as in
`name=B-PER`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from spacy_treecrf.problems import Problems

from ..records import LabelledSpan, Sentence, checked_records, default_id, stem
from ..text_files import read_lines
from .corefud import Entities, Node, parse_fields
from .iob_tags import Tag, decode_tags, find_scheme, parse_tag

N_COLUMNS = 10
FORM, MISC = 1, 9
ENTITY = "Entity"
# Fields where a file names none: those that GUM begins with, and any others.
DEFAULT_FIELDS = ("GRP", "etype", "")

HEADER = re.compile(r"#\s*(global\.Entity|newdoc id|newdoc|sent_id)\b\s*=?\s*(.*)")
WORD = re.compile(r"\d+")
# Words of a multiword token (10-11), and an empty node (8.1).
RANGE = re.compile(r"\d+-(\d+)")
EMPTY_NODE = re.compile(r"\d+\.\d+")

BAD_SENTENCE = "sentences with an ill-formed line: left out"
BAD_TAG = "words whose tag is no IOB tag: read as outside"
OTHER_KEYS = (
    "files without entities in Entity=..., as CorefUD writes them, but with keys of MISC "
    "that hold IOB tags: set --misc-key"
)


@dataclass
class _Block:
    """The words of one sentence, and what the comments before it say."""

    fields: tuple[str, ...]
    doc: str | None
    name: str | None = None
    numbers: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    spaces: list[bool] = field(default_factory=list)
    misc: list[list[str]] = field(default_factory=list)
    entities: list[Node] = field(default_factory=list)
    # Why the sentence can't be read.
    problem: str | None = None


def read_conllu(
    path: Path, problems: Problems, misc_keys: Sequence[str] = ()
) -> Iterator[Sentence]:
    """Read a CoNLL-U file.

    path (Path): The file.
    problems (Problems): Takes discontinuous entities, those that leave their sentence,
        and what is ill-formed.
    misc_keys (Sequence[str]): Keys of MISC with IOB tags, each a layer of entities, to
        read in place of `Entity`.
    YIELDS (Sentence): One record a sentence: its syntactic words, so that lines of
        multiword tokens and of empty nodes are no tokens. `SpaceAfter=No` gives spaces.
    RAISES (ConversionError): If `global.Entity` names no number or no label, or
        something is to repair and `problems` is strict.
    """
    blocks = list(_read_blocks(path))
    layers = _Layers(path, blocks, misc_keys, problems) if misc_keys else None
    if layers is None:
        _name_other_keys(path, blocks, problems)
    entities = Entities(problems)
    for i, block in enumerate(blocks):
        if block.problem is not None:
            problems.repair(BAD_SENTENCE, block.problem, lost_record=True)
            continue
        if layers is None:
            spans = entities.read(block.entities, block.words, block.fields, block.doc)
        else:
            spans = layers.read(block)
        sentence = Sentence(
            block.name or default_id(path, i),
            block.words,
            spans,
            doc=block.doc or stem(path),
            # What stands between two sentences belongs to neither.
            spaces=[*block.spaces[:-1], False],
        )
        yield from checked_records(sentence, f"{path}:{block.numbers[0]}", problems)


def _read_blocks(path: Path) -> Iterator[_Block]:
    fields: tuple[str, ...] = DEFAULT_FIELDS
    doc: str | None = None
    n_docs = 0
    block = _Block(fields, doc)
    # The last word of a multiword token, and whether a space follows the whole.
    last, space = "", True
    for number, line in read_lines(path, keep_bytes=True):
        if not line.strip():
            if block.words or block.problem:
                yield block
            block = _Block(fields, doc)
            last = ""
            continue
        where = f"{path}:{number}"
        if line.startswith("#"):
            match = HEADER.match(line)
            if match is None:
                continue
            key, value = match[1], match[2].strip()
            if key == "global.Entity":
                fields = block.fields = parse_fields(value, where)
            elif key.startswith("newdoc"):
                n_docs += 1
                doc = block.doc = value or f"{stem(path)}-{n_docs}"
            else:
                block.name = value or None
            continue
        row = line.split("\t")
        if len(row) != N_COLUMNS:
            block.problem = block.problem or (
                f"{where}: expected {N_COLUMNS} columns, received {len(row)}: "
                f"{line[:60]!r}"
            )
            continue
        misc = row[MISC].split("|")
        if match := RANGE.fullmatch(row[0]):
            last, space = match[1], "SpaceAfter=No" not in misc
            continue
        is_word = EMPTY_NODE.fullmatch(row[0]) is None
        block.entities.append(
            (where, len(block.words), is_word, _value_of(misc, ENTITY) or "")
        )
        if not is_word:
            continue
        if not WORD.fullmatch(row[0]):
            block.problem = (
                block.problem or f"{where}: expected a word's number, not {row[0]!r}"
            )
            continue
        block.numbers.append(number)
        block.words.append(row[FORM])
        block.misc.append(misc)
        block.spaces.append(
            (space and row[0] == last) if last else "SpaceAfter=No" not in misc
        )
        if row[0] == last:
            last = ""
    if block.words or block.problem:
        yield block


def _value_of(misc: Sequence[str], key: str) -> str | None:
    return next((m[len(key) + 1 :] for m in misc if m.startswith(f"{key}=")), None)


def _name_other_keys(path: Path, blocks: list[_Block], problems: Problems) -> None:
    """Say where the entities may be, in a file that has none where we look."""
    if any(value for block in blocks for *_, value in block.entities):
        return
    tags: Counter[str] = Counter()
    shown: dict[str, str] = {}
    for misc in (misc for block in blocks for misc in block.misc):
        for key, equals, value in (member.partition("=") for member in misc):
            tag = parse_tag(value) if equals else None
            tags[key] += tag is not None
            if tag is not None and tag[1]:
                shown.setdefault(key, value)
    named = [f"{key}={shown[key]}" for key, _ in tags.most_common() if key in shown]
    if named:
        problems.add(OTHER_KEYS, f"{path}: {', '.join(named)}")


class _Layers:
    """Reads the IOB tags under some keys of MISC."""

    def __init__(
        self, path: Path, blocks: list[_Block], keys: Sequence[str], problems: Problems
    ) -> None:
        self.path = path
        self.keys = keys
        self.problems = problems
        self.scheme = find_scheme(
            [self._tag(misc, key) or ("O", "") for misc in block.misc]
            for block in blocks
            for key in keys
        )

    def read(self, block: _Block) -> list[LabelledSpan]:
        """The entities of a sentence."""
        spans: list[LabelledSpan] = []
        for key in self.keys:
            where = partial(self._where, block, key)
            tags: list[Tag] = []
            for i, misc in enumerate(block.misc):
                tag = self._tag(misc, key)
                if tag is None:
                    value = _value_of(misc, key)
                    self.problems.repair(BAD_TAG, f"{where(i)}: {key}={value}")
                tags.append(tag or ("O", ""))
            spans += decode_tags(tags, where, self.scheme, self.problems)
        return spans

    @staticmethod
    def _tag(misc: Sequence[str], key: str) -> Tag | None:
        value = _value_of(misc, key)
        # A word without the key stands outside.
        return parse_tag("O" if value in (None, "", "_") else str(value))

    def _where(self, block: _Block, key: str, i: int) -> str:
        return f"{self.path}:{block.numbers[i]}, {key} of {block.words[i]!r}"
