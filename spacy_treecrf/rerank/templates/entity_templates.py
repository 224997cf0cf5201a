"""The entity templates of the paper, as one table that is read twice.

`entity_strings` prints them for one entity: what a feature means. `entity_hashes` hashes
them for all entities of a batch at once, without making a string: what is fast. Two
features have the same hash exactly if they have the same string (but for collisions of
64 bits); the tests hold the two against each other.

Source: Collins (2002), section 3 and Figure 1: 45 + 4m strings for m words.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ..hashing import hash_string, hash_strings, mix
from ..words import SEPARATOR, F, G, L, SegmentWords, W

START, LAST = 0, 1  # what an offset counts from: first or last word of the entity
# Words before and after a segment that templates look at.
PADDING = 3
# What any other template is about, hashable: the function that prints it, called with
# the words of the segment, and the rest of its arguments. A relation that many candidates
# of a segment share is printed once.
Relation = tuple[Any, ...]


class Part(NamedTuple):
    """One part of a template: row of the word's texts, where from, how far."""

    view: int
    anchor: int
    offset: int


def _window(
    name: str, anchor: int, offsets: tuple[int, ...]
) -> dict[str, tuple[Part, ...]]:
    """Every choice of word (0) or types with flag (1) at each of some positions."""
    return {
        name + "".join(map(str, choice)): tuple(
            Part((W, G)[digit], anchor, offset)
            for digit, offset in zip(choice, offsets, strict=True)
        )
        for choice in product((0, 1), repeat=len(offsets))
    }


def feature(name: str, *parts: str) -> str:
    """Print a feature.

    name (str): The template.
    parts (str): Its parts, escaped.
    RETURNS (str): "NAME=part SEPARATOR part ...".
    """
    return f"{name}={SEPARATOR.join(parts)}"


class FixedTemplates:
    """Templates with a fixed number of parts: one string an entity each."""

    def __init__(self, templates: Mapping[str, tuple[Part, ...]]):
        """Compile a table: distinct parts and, by length of template, their positions.

        templates (Mapping[str, tuple[Part, ...]]): The parts of each template by name.
        """
        self.templates = templates
        self._parts = sorted({part for parts in templates.values() for part in parts})
        assert all(abs(part.offset) <= PADDING for part in self._parts)
        position = {part: number for number, part in enumerate(self._parts)}
        self._groups = []
        for length in sorted({len(parts) for parts in templates.values()}):
            names = [name for name, parts in templates.items() if len(parts) == length]
            self._groups.append(
                (
                    hash_strings(f"{name}=" for name in names)[:, None],
                    np.array([[position[p] for p in templates[n]] for n in names]),
                )
            )

    def __len__(self) -> int:
        return len(self.templates)

    def strings(self, words: SegmentWords, start: int, end: int) -> list[str]:
        """Print the templates of one entity.

        words (SegmentWords): The segment.
        start (int): First word of the entity.
        end (int): One past its last word.
        RETURNS (list[str]): A string for each template.
        """
        anchors = (start, end - 1)
        return [
            feature(name, *(words[anchors[a] + offset][v] for v, a, offset in parts))
            for name, parts in self.templates.items()
        ]

    def hashes(
        self, views: np.ndarray, start: np.ndarray, end: np.ndarray
    ) -> np.ndarray:
        """Hash the templates of many entities.

        views (np.ndarray): As in `entity_hashes`.
        start (np.ndarray): First word of each entity. Shape: (D,).
        end (np.ndarray): One past its last word. Shape: (D,).
        RETURNS (np.ndarray): Hashes, in no order of note. Shape: (templates, D).
        """
        anchors = (start, end - 1)
        hashes = np.empty((len(self), len(start)), dtype=np.uint64)
        parts = [views[v, anchors[a] + offset] for v, a, offset in self._parts]
        stacked = np.stack(parts)
        filled = 0
        for seeds, positions in self._groups:
            state = np.broadcast_to(seeds, (len(seeds), len(start)))
            for column in positions.T:
                state = mix(state, stacked[column])
            hashes[filled : filled + len(seeds)] = state
            filled += len(seeds)
        return hashes


FIXED = FixedTemplates(
    {
        "LW": (Part(W, LAST, 0),),
        "LWLC": (Part(L, LAST, 0),),
        **_window("BO", START, (-1, 0)),
        **_window("BE", LAST, (0, 1)),
        **_window("TO", START, (-2, -1, 0)),
        **_window("TO2", START, (-1, 0, 1)),
        **_window("TE", LAST, (-1, 0, 1)),
        **_window("TE2", LAST, (-2, -1, 0)),
    }
)
# All words of the entity, left to right: one string an entity each.
WHOLE = {"WE": W, "FF": F, "GF": G}
# One string for each word at which a reading from the first (last) word stops.
PREFIXES = {"PF": F, "PF2": G}
SUFFIXES = {"SF": F, "SF2": G}

N_FIXED = len(FIXED) + len(WHOLE)
N_PER_WORD = len(PREFIXES) + len(SUFFIXES)


def entity_strings(words: SegmentWords, start: int, end: int) -> list[str]:
    """Print the entity templates of one entity.

    words (SegmentWords): The segment.
    start (int): First word of the entity.
    end (int): One past its last word.
    RETURNS (list[str]): 45 + 4 (end - start) strings.

    Source: Collins (2002), section 3.
    """
    strings = FIXED.strings(words, start, end)
    texts = [words[i] for i in range(start, end)]
    for name, view in WHOLE.items():
        strings.append(feature(name, *(text[view] for text in texts)))
    for templates, reading in ((PREFIXES, texts), (SUFFIXES, texts[::-1])):
        for name, view in templates.items():
            parts = [text[view] for text in reading]
            strings += [feature(name, *parts[: j + 1]) for j in range(len(parts))]
    return strings


_WHOLE_SEEDS = hash_strings(f"{name}=" for name in WHOLE)[:, None]
_PREFIX_SEEDS = hash_strings(f"{name}=" for name in PREFIXES)[:, None]
_SUFFIX_SEEDS = hash_strings(f"{name}=" for name in SUFFIXES)[:, None]
_EMPTY = np.uint64(hash_string(""))
_FORWARD = np.array(list(WHOLE.values()))
_FORWARD_PREFIX = np.array([_FORWARD.tolist().index(v) for v in PREFIXES.values()])
_BACKWARD = np.array(list(SUFFIXES.values()))


def entity_hashes(
    views: np.ndarray, start: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Hash the entity templates of many entities.

    views (np.ndarray): Hashes of the texts of all words, with NULL at least `PADDING`
        times before, between and after segments. Shape: (texts of a word, T).
    start (np.ndarray): First word of each entity. Shape: (D,).
    end (np.ndarray): One past its last word. Shape: (D,).
    RETURNS (tuple[np.ndarray, np.ndarray]): Hashes, entity by entity, and where each
        entity's begin. Shapes: (sum of 45 + 4m,) and (D + 1,).
    """
    n_entities = len(start)
    lengths = end - start
    borders = np.zeros(n_entities + 1, dtype=np.int64)
    np.cumsum(N_FIXED + N_PER_WORD * lengths, out=borders[1:])
    hashes = np.empty(borders[-1], dtype=np.uint64)
    if not n_entities:
        return hashes, borders
    fixed = np.empty((N_FIXED, n_entities), dtype=np.uint64)
    fixed[: len(FIXED)] = FIXED.hashes(views, start, end)
    # Longest first: those with a j-th word are then the first so many.
    order = np.argsort(-lengths, kind="stable")
    first, last, place = start[order], end[order] - 1, borders[:-1][order] + N_FIXED
    longer_than = n_entities - np.cumsum(np.bincount(lengths))
    forward = np.full((len(_FORWARD), n_entities), _EMPTY)
    backward = np.full((len(_BACKWARD), n_entities), _EMPTY)
    for j, n in enumerate(longer_than[:-1].tolist()):
        forward[:, :n] = mix(forward[:, :n], views[_FORWARD[:, None], first[:n] + j])
        backward[:, :n] = mix(backward[:, :n], views[_BACKWARD[:, None], last[:n] - j])
        here = place[:n] + N_PER_WORD * j
        prefixes = mix(forward[_FORWARD_PREFIX, :n], _PREFIX_SEEDS)
        suffixes = mix(backward[:, :n], _SUFFIX_SEEDS)
        for column, values in enumerate((*prefixes, *suffixes)):
            hashes[here + column] = values
    fixed[len(FIXED) :, order] = mix(forward, _WHOLE_SEEDS)
    hashes[borders[:-1, None] + np.arange(N_FIXED)] = fixed.T
    return hashes, borders
