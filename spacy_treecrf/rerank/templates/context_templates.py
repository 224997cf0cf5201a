"""Templates that look from an entity to others: its neighbours, and equal strings.

They go beyond Collins (2002), whose entities see only words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise
from typing import Any

from ..candidates import CandidateSegment, LabelledSpan
from ..words import NULL, SegmentWords, escape_label
from .entity_templates import feature

# Words between two entities up to which they are neighbours.
MAX_WORDS_BETWEEN = 3
# Counts from here on are one.
_MANY = 3

# What parts of an entity are looked for elsewhere in its document, and the names of the
# templates: all words, the first, the last; with its own label, or with another.
_PARTS_SOUGHT = (("DS", "DO"), ("DFS", "DFO"), ("DLS", "DLO"))

# How often each part of the base-best entities has each label, by `_PARTS_SOUGHT`.
DocumentNames = tuple[dict[Any, Counter[str]], ...]


def _parts_sought(words: tuple[str, ...]) -> tuple[Any, ...]:
    return words, words[0], words[-1]


def binned(count: int) -> str:
    """A count as a part of a feature.

    count (int): A count of 1 or more.
    RETURNS (str): "1", "2" or "3+".
    """
    return str(count) if count < _MANY else f"{_MANY}+"


def neighbours(
    spans: Iterable[LabelledSpan],
) -> list[tuple[LabelledSpan, LabelledSpan]]:
    """The pairs of entities that follow one another.

    spans (Iterable[LabelledSpan]): Entities that do not overlap, left to right.
    RETURNS (list[tuple[LabelledSpan, LabelledSpan]]): Pairs with few words between.
    """
    return [
        (left, right)
        for left, right in pairwise(spans)
        if right[0] - left[1] <= MAX_WORDS_BETWEEN
    ]


def neighbour_strings(
    words: SegmentWords, left: LabelledSpan, right: LabelledSpan
) -> list[str]:
    """Print the templates of two neighbours: PE, NE and the pair of both labels, PN.

    words (SegmentWords): The segment.
    left (LabelledSpan): The first entity.
    right (LabelledSpan): The next.
    RETURNS (list[str]): The strings; labels are the first parts, words between follow.
    """
    before, after = escape_label(left[2]), escape_label(right[2])
    between = words.between(left[1], right[0])
    return [
        feature("PE", before, *between),
        feature("NE", after, *between),
        feature("PN", before, after, *between),
    ]


def repeated_labels(
    words: Sequence[str], spans: Sequence[LabelledSpan]
) -> set[tuple[str, str]]:
    """The pairs of labels that equal strings have at different places of a candidate.

    words (Sequence[str]): The words of the segment.
    spans (Sequence[LabelledSpan]): All spans of the candidate.
    RETURNS (set[tuple[str, str]]): Two different labels, sorted.
    """
    # Equal strings begin with the same word, and few candidates have two such spans.
    if len({words[start] for start, _, _ in spans}) == len(spans):
        return set()
    pairs = set()
    for (start, end, label), (start_2, end_2, label_2) in combinations(spans, 2):
        if (
            label != label_2
            and start != start_2
            and words[start:end] == words[start_2:end_2]
        ):
            pairs.add((min(label, label_2), max(label, label_2)))
    return pairs


def repeated_strings(words: SegmentWords, label: str, label_2: str) -> list[str]:
    """Print the template of equal strings with two labels in a candidate, INC.

    words (SegmentWords): The segment.
    label (str): The lesser label.
    label_2 (str): The greater label.
    RETURNS (list[str]): The string.
    """
    return [feature("INC", escape_label(label), escape_label(label_2))]


def document_names(segments: Iterable[CandidateSegment], typed: bool) -> DocumentNames:
    """Count the entities of base-best candidates: the first pass over a document.

    segments (Iterable[CandidateSegment]): Segments of one document.
    typed (bool): Whether labels are told apart.
    RETURNS (DocumentNames): Counts of labels by words, first word and last word.
    """
    names: DocumentNames = tuple({} for _ in _PARTS_SOUGHT)
    for segment in segments:
        for start, end, label in segment.candidates[0].spans:
            parts = _parts_sought(segment.words[start:end])
            for counts, part in zip(names, parts, strict=True):
                counts.setdefault(part, Counter())[label if typed else ""] += 1
    return names


def document_strings(
    words: tuple[str, ...],
    label: str,
    document: DocumentNames,
    own: DocumentNames,
    typed: bool,
) -> list[str]:
    """Print the templates of an entity's words elsewhere in the document.

    words (tuple[str, ...]): The words of the entity.
    label (str): Its label; "" if untyped.
    document (DocumentNames): Base-best entities of all segments of the document.
    own (DocumentNames): Those of the entity's own segment, which do not count.
    typed (bool): Whether to print copies with the labels.
    RETURNS (list[str]): DS, the same words have the same label elsewhere, with how
        often; DO, they have another label; DFS, DFO, DLS and DLO, entities elsewhere
        begin (end) with the same word.
    """
    strings = []
    prefix = f"{escape_label(label)}|"
    parts = zip(_PARTS_SOUGHT, _parts_sought(words), document, own, strict=True)
    for (same, other), part, counts, own_counts in parts:
        found = counts.get(part)
        if found is None:
            continue
        mine = own_counts.get(part, Counter())
        left = {name: n - mine[name] for name, n in found.items() if n > mine[name]}
        n_same = left.pop(label, 0)
        plain = [feature(same, binned(n_same))] if n_same else []
        if left:
            plain.append(feature(other, binned(sum(left.values()))))
        strings += plain
        if typed:
            strings += [prefix + string for string in plain]
            strings += [
                prefix + feature(other, NULL, escape_label(name)) for name in left
            ]
    return strings
