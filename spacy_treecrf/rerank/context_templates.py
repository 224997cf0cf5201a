"""Templates that look from an entity to others: its neighbours, and equal strings.

They go beyond Collins (2002), whose entities see only words.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

from .candidates import CandidateSegment, LabelledSpan
from .entity_templates import feature
from .words import NULL, SegmentWords, escape_label

# Words between two entities up to which they are neighbours.
MAX_WORDS_BETWEEN = 3
# Counts from here on are one.
_MANY = 3

# How often the words of an entity have each label in a set of base-best candidates.
StringLabels = dict[tuple[str, ...], Counter[str]]


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


def best_strings(segments: Iterable[CandidateSegment], typed: bool) -> StringLabels:
    """Count the strings and labels of base-best candidates: the first pass.

    segments (Iterable[CandidateSegment]): Segments of one document.
    typed (bool): Whether labels are told apart.
    RETURNS (StringLabels): Counts of labels by words of the entity.
    """
    counts: StringLabels = defaultdict(Counter)
    for segment in segments:
        for start, end, label in segment.candidates[0].spans:
            counts[segment.words[start:end]][label if typed else ""] += 1
    return dict(counts)


def document_strings(
    words: tuple[str, ...],
    label: str,
    document: StringLabels,
    own: StringLabels,
    typed: bool,
) -> list[str]:
    """Print the templates of an entity's string elsewhere in the document.

    words (tuple[str, ...]): The words of the entity.
    label (str): Its label; "" if untyped.
    document (StringLabels): Base-best entities of all segments of the document.
    own (StringLabels): Those of the entity's own segment, which do not count.
    typed (bool): Whether to print copies with the labels.
    RETURNS (list[str]): DS, the string has the same label elsewhere, with how often;
        DO, it has another label.
    """
    found = document.get(words)
    if found is None:
        return []
    mine = own.get(words, Counter())
    elsewhere = {
        other: n - mine[other] for other, n in found.items() if n > mine[other]
    }
    prefix = f"{escape_label(label)}|"
    strings = []
    same = elsewhere.pop(label, 0)
    if same:
        strings.append(feature("DS", binned(same)))
    if elsewhere:
        strings.append(feature("DO", binned(sum(elsewhere.values()))))
    if typed:
        strings += [prefix + string for string in strings]
        strings += [
            prefix + feature("DO", NULL, escape_label(other)) for other in elsewhere
        ]
    return strings
