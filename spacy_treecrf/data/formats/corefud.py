"""Entities in brackets, as CorefUD and GUM write them into the MISC column of CoNLL-U.

`(` opens an entity and its fields follow, separated by hyphens and named by the line
`# global.Entity`; `)` closes one: at once, as in `(5-place-giv)`, or after the number of
one that is open. Of the fields the label (`etype`) is read; the number (`GRP` or `eid`)
names whom or what the entity refers to, so that several mentions share it. A mention
without a label has that of an earlier one of its number. Empty nodes, which stand for
words left out, may begin or end a mention: what is left of it are the words between.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems

from ..records import LabelledSpan

NUMBER_FIELDS = ("GRP", "eid")
LABEL_FIELDS = ("etype", "entity")
BRACKETS = re.compile(r"\((?P<opened>[^()]+)(?P<at_once>\)?)|(?P<closed>[^()]+)\)")
# One of several parts of a discontinuous entity, e.g. 5[1/2].
PART = re.compile(r"(.*)\[(\d+)/\d+\]")

DISCONTINUOUS = "discontinuous entities: left out"
CUT = "entities that are open at the end of their sentence: left out"
ZEROS = "entities of empty nodes alone, which have no words: left out"
UNTYPED = "entities without a type, of which no mention before has one: left out"
NOT_OPEN = "brackets that close no open entity: passed over"
BAD_BRACKETS = "words with ill-formed brackets: passed over"

# File and line, number of words before, whether it is a word, and the value of `Entity`.
Node = tuple[str, int, bool, str]


def parse_fields(value: str, where: str) -> tuple[str, ...]:
    """Read what `# global.Entity` says.

    value (str): The names of the fields, between hyphens.
    where (str): File and line, for messages.
    RETURNS (tuple[str, ...]): The names.
    RAISES (ConversionError): If none is the number of the entity, or its label.
    """
    fields = tuple(value.split("-"))
    for names in (NUMBER_FIELDS, LABEL_FIELDS):
        if not set(names) & set(fields):
            reason = f"no field {' or '.join(names)} in global.Entity {value}"
            raise ConversionError(Errors.T044.format(where=where, reason=reason))
    return fields


class Entities:
    """Reads the entities of a file, sentence by sentence."""

    def __init__(self, problems: Problems) -> None:
        """Begin a file.

        problems (Problems): Takes what is left out, and what is ill-formed.
        """
        self.problems = problems
        self.document: str | None = None
        # Numbers of entities that an earlier sentence of the document left open.
        self.pending: Counter[str] = Counter()
        # The labels of the document's entities, by number.
        self.labels: dict[str, str] = {}

    def read(
        self,
        nodes: Sequence[Node],
        words: Sequence[str],
        fields: tuple[str, ...],
        document: str | None,
    ) -> list[LabelledSpan]:
        """The entities of a sentence.

        nodes (Sequence[Node]): Its words and empty nodes, in order.
        words (Sequence[str]): The words.
        fields (tuple[str, ...]): The names of the fields.
        document (str | None): Its document; numbers are of one document.
        RETURNS (list[LabelledSpan]): The entities.
        RAISES (ConversionError): If something is to repair and `problems` is strict.
        """
        if document != self.document:
            self.document = document
            self.pending.clear()
            self.labels.clear()
        sentence = _Sentence(self, words, fields)
        for where, n_words, is_word, string in nodes:
            for match in self._split_brackets(string, where):
                if match["closed"]:
                    sentence.close(match, where, n_words + is_word)
                else:
                    sentence.open(match, where, n_words, n_words + is_word)
        return sentence.end()

    def _split_brackets(self, string: str, where: str) -> Iterator[re.Match[str]]:
        matches, position = [], 0
        while position < len(string):
            match = BRACKETS.match(string, position)
            if match is None:
                detail = f"{where}: ill-formed brackets: Entity={string}"
                self.problems.repair(BAD_BRACKETS, detail)
                return
            matches.append(match)
            position = match.end()
        yield from matches


class _Sentence:
    """The entities of one sentence, and those that are open."""

    def __init__(
        self, entities: Entities, words: Sequence[str], fields: tuple[str, ...]
    ) -> None:
        self.entities = entities
        self.problems = entities.problems
        self.words = words
        self.fields = fields
        self.spans: list[LabelledSpan] = []
        # Number, start, label (None: without one), and where. Innermost last: a number
        # closes the mention of it that was opened last.
        self.opened: list[tuple[str, int, str | None, str]] = []

    def open(self, match: re.Match[str], where: str, start: int, end: int) -> None:
        """Open an entity, and close it if that is all of it."""
        number, part = _split_part(match["opened"].split("-"), self.fields)
        label = self._label(match["opened"], number)
        if part:
            # Counted once, with its first part.
            if part == 1:
                shown = self.words[start : start + 1]
                detail = f"{where}: {label or number} {' '.join(shown)!r}"
                self.problems.repair(DISCONTINUOUS, detail)
        elif match["at_once"]:
            self._add(number, start, end, label, where)
        else:
            self.opened.append((number, start, label, where))

    def close(self, match: re.Match[str], where: str, end: int) -> None:
        """Close an entity of this sentence or an earlier one."""
        number, part = _split_part(match["closed"].split("-"), self.fields)
        if part:
            return
        for place in reversed(range(len(self.opened))):
            if self.opened[place][0] == number:
                _, start, label, opened_where = self.opened.pop(place)
                self._add(number, start, end, label, opened_where)
                return
        pending = self.entities.pending
        if pending[number]:
            pending[number] -= 1
            return
        detail = f"{where}: {match[0]!r} closes an entity that is not open"
        self.problems.repair(NOT_OPEN, detail)

    def end(self) -> list[LabelledSpan]:
        """Leave what is open to the sentences that follow; return the entities."""
        for number, start, label, where in self.opened:
            self.entities.pending[number] += 1
            word = self.words[start] if start < len(self.words) else ""
            self.problems.repair(CUT, f"{where}: {label or number} {word!r} ...")
        return self.spans

    def _add(
        self, number: str, start: int, end: int, label: str | None, where: str
    ) -> None:
        if start >= end:
            self.problems.add(ZEROS, f"{where}: {label or number}")
        elif label is None:
            shown = " ".join(self.words[start:end])
            name = self.fields[_place_of(LABEL_FIELDS, self.fields)]
            detail = f"{where}: ({number} {shown!r} has no {name}"
            self.problems.repair(UNTYPED, detail)
        else:
            self.spans.append((start, end, label))

    def _label(self, opened: str, number: str) -> str | None:
        # The last field may hold hyphens of its own.
        values = opened.split("-", len(self.fields) - 1)
        place = _place_of(LABEL_FIELDS, self.fields)
        if place < len(values) and values[place]:
            self.entities.labels[number] = values[place]
        return self.entities.labels.get(number)


def _place_of(names: Sequence[str], fields: Sequence[str]) -> int:
    return next(i for i, name in enumerate(fields) if name in names)


def _split_part(values: Sequence[str], fields: Sequence[str]) -> tuple[str, int]:
    """The number of an entity, and which part of it this is; 0 if it has no parts."""
    # What closes an entity has the leading fields up to its number alone.
    place = _place_of(NUMBER_FIELDS, fields)
    number = values[place] if place < len(values) else values[-1]
    match = PART.fullmatch(number)
    return (match[1], int(match[2])) if match else (number, 0)
