"""Blocks of segments as arrays: the features of all their candidates at once.

Features of an entity depend on its segment, span, label and role alone, and those of a
relation on what it relates. So a block numbers the distinct *items* of its segments
(entities, and relations), finds the features of each once, and a candidate is a list of
items. No string is made for the entity templates, which are most of the features.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from .candidates import CandidateSegment
from .hashing import hash_string, hash_strings, mix, to_numbers
from .templates.context_templates import DocumentNames, document_names
from .templates.entity_templates import PADDING, Relation, entity_hashes
from .templates.segment_templates import Entity, SegmentTemplates, TemplateSettings
from .templates.word_templates import WORD_TEMPLATES
from .words import WordTable, escape_label

_ROLES = ("", "inner", "outer")
_ROLE_HASHES = hash_strings(f"{role}|" for role in _ROLES)


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


class _Numbering(dict[Any, int]):
    """Numbers keys in the order of their first look-up."""

    def __init__(self, first: int, create: Callable[[Any], object]):
        """Count on from a number.

        first (int): The number of the first key.
        create (Callable[[Any], object]): Called with each new key.
        """
        self._next, self._create = first, create

    def __missing__(self, key: Any) -> int:
        self._create(key)
        number = self[key] = self._next
        self._next += 1
        return number


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
        # Of each entity: first word, end, label and role.
        self._spans: list[tuple[int, int, int, int]] = []
        self._labels: dict[str, int] = {}
        # Hashes of the strings of each entity's label, and of each relation.
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

    def add(self, segment: CandidateSegment, document: DocumentNames | None) -> None:
        """Add a segment.

        segment (CandidateSegment): The segment.
        document (Optional[DocumentNames]): As in `SegmentTemplates`.
        """
        offset = len(self._positions)
        find = self._table.number
        self._positions += [find(word) for word in segment.words]
        self._positions += [0] * PADDING
        templates = SegmentTemplates(segment, document, self._table, self._settings)

        def create_entity(entity: Entity) -> None:
            start, end, label, *role = entity
            number = self._labels.setdefault(label, len(self._labels))
            role_number = _ROLES.index(role[0]) if role else 0
            self._spans.append((offset + start, offset + end, number, role_number))
            strings = templates.label_strings(entity)
            self._label_features.append([hash_string(string) for string in strings])

        def create_relation(relation: Relation) -> None:
            strings = templates.relation_strings(relation)
            self._relation_features.append([hash_string(string) for string in strings])

        entities = _Numbering(len(self._spans), create_entity)
        relations = _Numbering(len(self._relation_features), create_relation)
        for candidate in segment.candidates:
            found, related = templates.read(candidate)
            self._entities.rows += [entities[entity] for entity in found]
            self._entities.lengths.append(len(found))
            self._relations.rows += [relations[relation] for relation in related]
            self._relations.lengths.append(len(related))
        self._entities.segments += [self.n_segments] * len(entities)
        self._relations.segments += [self.n_segments] * len(relations)
        self._row_borders.append(self._row_borders[-1] + len(segment.candidates))

    def families(self) -> Iterator[Family]:
        """The features of all items.

        YIELDS (Family): Entities' templates, those with roles, the templates of
            `word_templates`, labels, and relations.
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
        if self._settings.context:
            around = WORD_TEMPLATES.hashes(views, start, end).T
            if self._settings.typed:
                around = mix(around, label_hashes[label][:, None])
            borders = np.arange(len(start) + 1) * len(WORD_TEMPLATES)
            yield Family(Ragged(to_numbers(around.ravel()), borders), segments, rows)
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
    table.make_room()
    block = Block(table, settings)
    for _, group in groupby(segments, key=lambda segment: segment.document):
        document = list(group)
        strings = None
        if settings.context and len(document) > 1:
            strings = document_names(document, settings.typed)
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
