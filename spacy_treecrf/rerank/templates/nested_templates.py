"""Templates of spans within spans; a candidate without any has none of them.

A candidate's spans form a forest: the parent of a span is the smallest span that holds
it. Of several labels on one span, the first in the order of labels holds the others.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..candidates import LabelledSpan
from ..words import SegmentWords, escape_label
from .context_templates import MAX_WORDS_BETWEEN, binned
from .entity_templates import Relation, feature

# Lengths of spans that are told apart: up to 3 words, 4 to 5, 6 to 9, 10 and more.
_LENGTH_BINS = ((3, ""), (5, "4-5"), (9, "6-9"))
_LONGEST = "10+"


class Forest(NamedTuple):
    """The spans of a candidate, outer before inner and left before right.

    spans (list[LabelledSpan]): The spans.
    parents (list[int]): Position of the parent of each, -1 for an outermost span.
    depths (list[int]): 1 for an outermost span.
    """

    spans: list[LabelledSpan]
    parents: list[int]
    depths: list[int]


def is_nested(spans: Sequence[LabelledSpan]) -> bool:
    """Whether any spans overlap.

    spans (Sequence[LabelledSpan]): Sorted spans.
    RETURNS (bool): False if each starts where the one before has ended, or later.
    """
    reached = 0
    for start, end, _ in spans:
        if start < reached:
            return True
        reached = end
    return False


def make_forest(spans: Sequence[LabelledSpan]) -> Forest:
    """Find the parent of each span.

    spans (Sequence[LabelledSpan]): The spans. Crossing ones do no harm: a span's parent
        is one that holds it.
    RETURNS (Forest): The forest.
    """
    ordered = sorted(spans, key=lambda span: (span[0], -span[1], span[2]))
    parents: list[int] = []
    depths: list[int] = []
    for position, (_, end, _) in enumerate(ordered):
        # Back from the span before: it, or one of its parents, unless spans cross.
        parent = position - 1
        while parent >= 0 and ordered[parent][1] < end:
            parent = parents[parent]
        parents.append(parent)
        depths.append(depths[parent] + 1 if parent >= 0 else 1)
    return Forest(ordered, parents, depths)


def outermost(forest: Forest) -> list[LabelledSpan]:
    """The spans without a parent.

    forest (Forest): The forest.
    RETURNS (list[LabelledSpan]): Left to right.
    """
    return [
        s for s, parent in zip(forest.spans, forest.parents, strict=True) if parent < 0
    ]


def roles(forest: Forest) -> list[str]:
    """Where each span stands.

    forest (Forest): The forest.
    RETURNS (list[str]): "inner" for a span within another, else "outer" for one that
        holds another, else "".
    """
    with_children = set(forest.parents)
    return [
        "inner" if parent >= 0 else "outer" if position in with_children else ""
        for position, parent in enumerate(forest.parents)
    ]


def nested_relations(forest: Forest) -> list[Relation]:
    """All that nested templates are about in one candidate.

    forest (Forest): A forest with at least one span within another.
    RETURNS (list[Relation]): The relations.
    """
    spans, parents, depths = forest
    relations: list[Relation] = []
    children: dict[int, list[LabelledSpan]] = {}
    for span, parent, depth in zip(spans, parents, depths, strict=True):
        if parent >= 0:
            relations.append((parent_strings, spans[parent], span))
            relations.append((depth_strings, span[2], depth))
            children.setdefault(parent, []).append(span)
    for parent, inner in children.items():
        label = spans[parent][2]
        relations.append((children_strings, label, binned(len(inner))))
        relations += [(sibling_strings, label, *pair) for pair in pairwise(inner)]
    n_inner = binned(sum(map(len, children.values())))
    relations.append((candidate_strings, str(max(depths)), n_inner))
    labels = Counter(label for _, _, label in spans)
    relations += [(label_strings, label, binned(n)) for label, n in labels.items()]
    return relations


def _length_bin(n_words: int) -> str:
    for longest, name in _LENGTH_BINS:
        if n_words <= longest:
            return name or str(n_words)
    return _LONGEST


def _position(parent: LabelledSpan, child: LabelledSpan) -> str:
    first, last = child[0] == parent[0], child[1] == parent[1]
    if first and last:
        return "whole"
    return "prefix" if first else "suffix" if last else "middle"


def parent_strings(
    words: SegmentWords, parent: LabelledSpan, child: LabelledSpan
) -> list[str]:
    """Print the templates of a span and one right within it.

    words (SegmentWords): The segment.
    parent (LabelledSpan): The outer span.
    child (LabelledSpan): The inner span.
    RETURNS (list[str]): PC both labels; with them PCpos the place of the child, PCw the
        word of the parent before and after it, PCe the child's first and last word, PCh
        the last word of the parent outside the child (and of the child), PClen both
        lengths; PCf the types of the parent's words, the child as its label.
    """
    (p_start, p_end, p_label), (c_start, c_end, c_label) = parent, child
    outer, inner = escape_label(p_label), escape_label(c_label)
    labels = (outer, inner)
    place = _position(parent, child)
    strings = [
        feature("PC", *labels),
        feature("PCpos", *labels, place),
        feature("PCe", *labels, "first", words[c_start].w),
        feature("PCe", *labels, "last", words[c_end - 1].w),
        feature(
            "PClen", *labels, _length_bin(p_end - p_start), _length_bin(c_end - c_start)
        ),
    ]
    if c_start > p_start:
        strings.append(feature("PCw", *labels, "before", words[c_start - 1].w))
    if c_end < p_end:
        strings.append(feature("PCw", *labels, "after", words[c_end].w))
    if place != "whole":
        # In most languages of such corpora the head ends the span, or stands before a
        # child that ends it.
        head = words[p_end - 1 if c_end < p_end else c_start - 1].w
        strings.append(feature("PCh", *labels, head))
        strings.append(feature("PCh", *labels, head, words[c_end - 1].w))
    types = [
        *(words[i].f for i in range(p_start, c_start)),
        f"[{inner}]",
        *(words[i].f for i in range(c_end, p_end)),
    ]
    strings.append(feature("PCf", *types))
    strings.append(f"{outer}|{strings[-1]}")
    return strings


def depth_strings(words: SegmentWords, label: str, depth: int) -> list[str]:
    """Print the depth of an inner span: DEP, its label and depth.

    words (SegmentWords): The segment.
    label (str): The label of the span.
    depth (int): 2 or more.
    RETURNS (list[str]): The string.
    """
    return [feature("DEP", escape_label(label), str(depth))]


def children_strings(words: SegmentWords, label: str, count: str) -> list[str]:
    """Print how many spans a span holds: NC, without and with its label.

    words (SegmentWords): The segment.
    label (str): The label of the outer span.
    count (str): Spans right within it, binned.
    RETURNS (list[str]): The strings.
    """
    string = feature("NC", count)
    return [string, f"{escape_label(label)}|{string}"]


def sibling_strings(
    words: SegmentWords, label: str, left: LabelledSpan, right: LabelledSpan
) -> list[str]:
    """Print two spans that follow one another within one parent.

    words (SegmentWords): The segment.
    label (str): The label of the parent.
    left (LabelledSpan): The first.
    right (LabelledSpan): The next.
    RETURNS (list[str]): SIB2, both labels, without and with the parent's; SIB, both
        labels and the words between if they are few.
    """
    labels = escape_label(left[2]), escape_label(right[2])
    string = feature("SIB2", *labels)
    strings = [string, f"{escape_label(label)}|{string}"]
    if 0 <= right[0] - left[1] <= MAX_WORDS_BETWEEN:
        strings.append(feature("SIB", *labels, *words.between(left[1], right[0])))
    return strings


def candidate_strings(words: SegmentWords, depth: str, count: str) -> list[str]:
    """Print the shape of a whole candidate: D, its depth, and ND, its inner spans.

    words (SegmentWords): The segment.
    depth (str): The greatest depth.
    count (str): Spans within another, binned.
    RETURNS (list[str]): The strings.
    """
    return [feature("D", depth), feature("ND", count)]


def label_strings(words: SegmentWords, label: str, count: str) -> list[str]:
    """Print how often a label occurs in a nested candidate: LAB.

    words (SegmentWords): The segment.
    label (str): The label.
    count (str): Its spans, binned.
    RETURNS (list[str]): The string.
    """
    return [feature("LAB", escape_label(label), count)]
