"""Blocks of segments as arrays: the features of all their candidates at once.

Features of an entity depend on its segment, span, label and role alone, and those of a
relation on what it relates. So a block numbers the distinct *items* of its segments
(entities, and relations), finds the features of each once, and a candidate is a list of
items. No string is made for the entity templates, which are most of the features.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from .candidates import Candidate, CandidateSegment, LabelledSpan
from .context_templates import (
    StringLabels,
    best_strings,
    document_strings,
    neighbour_strings,
    neighbours,
    repeated_labels,
    repeated_strings,
)
from .entity_templates import PADDING, entity_hashes, entity_strings, feature
from .hashing import hash_string, hash_strings, mix, to_numbers
from .nested_templates import (
    Relation,
    is_nested,
    make_forest,
    nested_relations,
    outermost,
    roles,
)
from .quotes import quote_pairs, quote_strings, quoted_tags
from .words import SegmentWords, WordTable, escape_label

_ROLES = ("", "inner", "outer")
_ROLE_HASHES = hash_strings(f"{role}|" for role in _ROLES)
# An entity, and where it stands among the others.
Entity = tuple[int, int, str, str]


@dataclass(frozen=True)
class TemplateSettings:
    """Which templates there are.

    typed (bool): Whether labels count: copies of the entity's and the quotes' templates
        with the label, and labels in all others. If not, every label is the empty one.
    quote_limit (int): Q and Q2 are for quotations with e - s smaller than this.
    context (bool): Whether to add the templates that look at other entities.
    nested (bool): Whether to add the templates of spans within spans.
    """

    typed: bool = True
    quote_limit: int = 6
    context: bool = True
    nested: bool = True


class Ragged(NamedTuple):
    """Values of varying number: `values[borders[i] : borders[i + 1]]` are those of i."""

    values: np.ndarray
    borders: np.ndarray

    @classmethod
    def from_lengths(cls, values: np.ndarray, lengths: np.ndarray) -> "Ragged":
        """Make it from the number of values of each."""
        borders = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=borders[1:])
        return cls(values, borders)

    def owners(self) -> np.ndarray:
        """RETURNS (np.ndarray): Whose value each is."""
        return np.repeat(np.arange(len(self.borders) - 1), np.diff(self.borders))

    def keep(self, values: np.ndarray, kept: np.ndarray) -> "Ragged":
        """Other values in the same places, some of them dropped.

        values (np.ndarray): The other values.
        kept (np.ndarray): Which places stay, bool.
        RETURNS (Ragged): What is left.
        """
        n_before = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=n_before[1:])
        return Ragged(values[kept], n_before[self.borders])

    def gather(self, owners: "Ragged") -> tuple[np.ndarray, np.ndarray]:
        """The values of lists of owners.

        owners (Ragged): Lists of owners.
        RETURNS (tuple[np.ndarray, np.ndarray]): Each value, and the list it comes to.
        """
        counts = np.diff(self.borders)[owners.values]
        first = np.cumsum(counts) - counts
        places = np.repeat(self.borders[owners.values] - first, counts)
        places += np.arange(len(places))
        return self.values[places], np.repeat(owners.owners(), counts)


class Family(NamedTuple):
    """Features of some items, and which items each candidate has.

    features (Ragged): Numbers of features of each item, uint64.
    segments (np.ndarray): The segment of each item within the block.
    rows (Ragged): Items of each candidate.
    """

    features: Ragged
    segments: np.ndarray
    rows: Ragged


@dataclass
class _Items:
    """Items of one kind in a growing block, and the candidates' lists of them."""

    segments: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def row_lists(self) -> Ragged:
        return Ragged.from_lengths(
            np.array(self.rows, dtype=np.int64), np.array(self.lengths, dtype=np.int64)
        )


class SegmentTemplates:
    """The templates of one segment."""

    def __init__(
        self,
        segment: CandidateSegment,
        document: StringLabels | None,
        table: WordTable,
        settings: TemplateSettings,
    ):
        """Look at a segment.

        segment (CandidateSegment): The segment.
        document (Optional[StringLabels]): Base-best entities of its whole document, if
            it has more than this segment.
        table (WordTable): Where words are looked up.
        settings (TemplateSettings): Which templates there are.
        """
        self.segment = segment
        self.words = SegmentWords(segment.words, table)
        self.settings = settings
        self.document = document if settings.context else None
        self._quotes = quote_pairs(segment.words)
        self._own = best_strings([segment], settings.typed) if self.document else {}

    def read(self, candidate: Candidate) -> tuple[Sequence[Entity], list[Relation]]:
        """The entities and relations of a candidate.

        candidate (Candidate): A candidate of the segment.
        RETURNS (tuple[Sequence[Entity], list[Relation]]): Both, distinct.
        """
        spans: Sequence[LabelledSpan] = candidate.spans
        if not self.settings.typed:
            spans = sorted({(start, end, "") for start, end, _ in spans})
        relations: list[Relation] = []
        top = spans
        entities: Sequence[Entity]
        if is_nested(spans):
            forest = make_forest(spans)
            top = outermost(forest)
            if self.settings.nested:
                relations += nested_relations(forest)
                places = zip(forest.spans, roles(forest), strict=True)
                entities = [(*span, role) for span, role in places]
            else:
                entities = [(*span, "") for span in spans]
        else:
            entities = [(*span, "") for span in spans]
        if self.settings.context and len(spans) > 1:
            relations += [(neighbour_strings, *pair) for pair in neighbours(top)]
            if self.settings.typed:
                repeated = repeated_labels(self.segment.words, spans)
                relations += [(repeated_strings, *pair) for pair in repeated]
        if self._quotes:
            typed, limit = self.settings.typed, self.settings.quote_limit
            quoted = quoted_tags(self.segment.words, self._quotes, top)
            relations += [(quote_strings, *pair, typed, limit) for pair in quoted]
        return entities, relations

    def relation_strings(self, relation: Relation) -> list[str]:
        """Print a relation.

        relation (Relation): The relation.
        RETURNS (list[str]): Its features.
        """
        function, *arguments = relation
        if function is repeated_strings:
            return repeated_strings(*arguments)
        return function(self.words, *arguments)

    def label_strings(self, entity: Entity) -> list[str]:
        """Print what is no template of the paper: T=LABEL, and equal strings elsewhere.

        entity (Entity): An entity.
        RETURNS (list[str]): The strings.
        """
        start, end, label, _ = entity
        typed = self.settings.typed
        strings = [feature("T", escape_label(label))] if typed else []
        if self.document:
            words = self.segment.words[start:end]
            strings += document_strings(words, label, self.document, self._own, typed)
        return strings

    def entity_strings(self, entity: Entity) -> list[str]:
        """Print the templates of an entity, without and with its label and role.

        entity (Entity): An entity.
        RETURNS (list[str]): The strings.
        """
        start, end, label, role = entity
        plain = entity_strings(self.words, start, end)
        strings = plain + self.label_strings(entity)
        prefix = ""
        if self.settings.typed:
            prefix = f"{escape_label(label)}|"
            strings += [prefix + string for string in plain]
        if role:
            strings += [f"{prefix}{role}|{string}" for string in plain]
        return strings


class Block:
    """Segments that are turned into arrays together."""

    def __init__(self, table: WordTable, settings: TemplateSettings):
        """Make an empty block.

        table (WordTable): Where words are looked up.
        settings (TemplateSettings): Which templates there are.
        """
        self._table = table
        self._settings = settings
        self._positions = [0] * PADDING
        self._entities, self._relations = _Items(), _Items()
        # Of each entity: first word, end, label and role, and hashes of `label_strings`.
        self._spans: list[tuple[int, int, int, int]] = []
        self._labels: dict[str, int] = {}
        self._label_features: list[list[int]] = []
        self._relation_features: list[list[int]] = []
        self._row_borders = [0]

    @property
    def n_segments(self) -> int:
        """RETURNS (int): Segments so far."""
        return len(self._row_borders) - 1

    def row_borders(self) -> np.ndarray:
        """RETURNS (np.ndarray): First candidate of each segment, and their number."""
        return np.array(self._row_borders, dtype=np.int64)

    def add(self, segment: CandidateSegment, document: StringLabels | None) -> None:
        """Add a segment.

        segment (CandidateSegment): The segment.
        document (Optional[StringLabels]): As in `SegmentTemplates`.
        """
        number = self.n_segments
        offset = len(self._positions)
        find = self._table.number
        self._positions += [find(word) for word in segment.words]
        self._positions += [0] * PADDING
        templates = SegmentTemplates(segment, document, self._table, self._settings)
        entities: dict[Entity, int] = {}
        relations: dict[Relation, int] = {}
        for candidate in segment.candidates:
            found, related = templates.read(candidate)
            for entity in found:
                item = entities.get(entity)
                if item is None:
                    item = entities[entity] = len(self._spans)
                    self._add_entity(entity, offset)
                    self._label_features.append(
                        [hash_string(s) for s in templates.label_strings(entity)]
                    )
                self._entities.rows.append(item)
            self._entities.lengths.append(len(found))
            for relation in related:
                item = relations.get(relation)
                if item is None:
                    item = relations[relation] = len(self._relation_features)
                    strings = templates.relation_strings(relation)
                    self._relation_features.append([hash_string(s) for s in strings])
                self._relations.rows.append(item)
            self._relations.lengths.append(len(related))
        self._entities.segments += [number] * len(entities)
        self._relations.segments += [number] * len(relations)
        self._row_borders.append(self._row_borders[-1] + len(segment.candidates))

    def _add_entity(self, entity: Entity, offset: int) -> None:
        start, end, label, role = entity
        label_number = self._labels.setdefault(label, len(self._labels))
        self._spans.append(
            (offset + start, offset + end, label_number, _ROLES.index(role))
        )

    def families(self) -> Iterator[Family]:
        """The features of all items.

        YIELDS (Family): Entities' templates, those with roles, labels, and relations.
        """
        rows = self._entities.row_lists()
        segments = np.array(self._entities.segments, dtype=np.int64)
        table = np.array(self._spans, dtype=np.int64).reshape(-1, 4)
        start, end, label, role = table.T
        views = self._table.hashes[:, self._positions]
        plain = Ragged(*entity_hashes(views, start, end))
        owners = plain.owners()
        typed = plain.values
        if self._settings.typed:
            label_hashes = hash_strings(f"{escape_label(s)}|" for s in self._labels)
            typed = mix(plain.values, label_hashes[label][owners])
            both = np.stack([plain.values, typed], axis=1).ravel()
            features = Ragged(to_numbers(both), 2 * plain.borders)
        else:
            features = Ragged(to_numbers(plain.values), plain.borders)
        yield Family(features, segments, rows)
        if role.any():
            with_role = mix(typed, _ROLE_HASHES[role][owners])
            features = plain.keep(to_numbers(with_role), (role > 0)[owners])
            yield Family(features, segments, rows)
        yield Family(_ragged_hashes(self._label_features), segments, rows)
        yield Family(
            _ragged_hashes(self._relation_features),
            np.array(self._relations.segments, dtype=np.int64),
            self._relations.row_lists(),
        )


def _ragged_hashes(lists: list[list[int]]) -> Ragged:
    flat = np.array([value for values in lists for value in values], dtype=np.uint64)
    lengths = np.array([len(values) for values in lists], dtype=np.int64)
    return Ragged.from_lengths(to_numbers(flat), lengths)


def make_blocks(
    segments: Iterable[CandidateSegment],
    table: WordTable,
    settings: TemplateSettings,
    size: int,
    progress: Callable[[int], object] | None = None,
) -> Iterator[Block]:
    """Read segments in blocks.

    segments (Iterable[CandidateSegment]): Segments; those of one document follow one
        another.
    table (WordTable): Where words are looked up.
    settings (TemplateSettings): Which templates there are.
    size (int): Segments a block.
    progress (Optional[Callable[[int], object]]): Called with the number of segments of
        each block that is done.
    YIELDS (Block): Full blocks, and the rest.
    """
    block = Block(table, settings)
    for _, group in groupby(segments, key=lambda segment: segment.document):
        document = list(group)
        strings = None
        if settings.context and len(document) > 1:
            strings = best_strings(document, settings.typed)
        for segment in document:
            block.add(segment, strings)
            if block.n_segments == size:
                yield block
                if progress is not None:
                    progress(size)
                table.make_room()
                block = Block(table, settings)
    if block.n_segments:
        yield block
        if progress is not None:
            progress(block.n_segments)
