"""The quote templates of the paper: does an entity fill a pair of quotation marks?

Source: Collins (2002), section 3: Q, Q2, QF and QF2.
"""

from collections.abc import Iterable, Sequence

from .candidates import LabelledSpan
from .entity_templates import feature
from .words import NULL, SegmentWords, begins_lower, begins_upper, escape_label

# Double quotation marks. A straight mark opens and closes in turn; the others do so by
# their shape. U+201C closes what the low mark U+201E opened.
_STRAIGHT = '"'
_CLOSING = {
    "``": ("''",),
    "\u201c": ("\u201d",),
    "\u201e": ("\u201c", "\u201d"),
    "\u00ab": ("\u00bb",),
}
_MARKS = {
    _STRAIGHT,
    *_CLOSING,
    *(mark for marks in _CLOSING.values() for mark in marks),
}


def quote_pairs(words: Sequence[str]) -> list[tuple[int, int]]:
    """Find the pairs of double quotation marks.

    words (Sequence[str]): The words of a segment.
    RETURNS (list[tuple[int, int]]): Positions of an opening mark and of the next
        matching one, by the latter. Marks without a partner are left out, and each kind
        of mark is paired by itself.
    """
    if _MARKS.isdisjoint(words):
        return []
    pairs = []
    pending: dict[str, int] = {}
    for position, word in enumerate(words):
        if word not in _MARKS:
            continue
        openers = [mark for mark in pending if word in _CLOSING.get(mark, (_STRAIGHT,))]
        if openers:
            # The innermost of those that this mark may close.
            opener = max(openers, key=pending.__getitem__)
            pairs.append((pending.pop(opener), position))
        elif word == _STRAIGHT or word in _CLOSING:
            pending[word] = position
    return pairs


def tags(n_words: int, spans: Iterable[LabelledSpan]) -> list[str | None]:
    """Where outermost entities start and continue.

    n_words (int): Words of the segment.
    spans (Iterable[LabelledSpan]): The outermost entities, labels escaped.
    RETURNS (list[Optional[str]]): "S-LABEL" at the first word of an entity, "C-LABEL"
        at its others, "N" outside; at positions -1 and `n_words`, None.
    """
    found: list[str | None] = ["N"] * n_words
    for start, end, label in spans:
        found[start] = f"S-{label}"
        found[start + 1 : end] = [f"C-{label}"] * (end - start - 1)
    # One None serves both ends: Python reads position -1 as the last.
    return [*found, None]


def quote_strings(
    words: SegmentWords,
    start: int,
    end: int,
    around: tuple[str | None, ...],
    typed: bool,
    limit: int,
) -> list[str]:
    """Print the templates of one pair of quotation marks.

    words (SegmentWords): The segment.
    start (int): Position of the opening mark, s.
    end (int): Position of the closing mark, e.
    around (tuple[Optional[str], ...]): Tags of positions s - 1 to e + 1.
    typed (bool): Whether to print a second copy with the labels of the tags.
    limit (int): Q and Q2 are printed if e - s is smaller.
    RETURNS (list[str]): The strings.

    Source: Collins (2002), section 3; the bound has one digit there, which is lost.
    """
    strings = []
    copies = {tuple(tag and tag[0] for tag in around): None}
    if typed:
        copies[around] = None
    for copy in copies:
        if end - start < limit:
            shapes = [
                text
                for position, tag in zip(range(start - 1, end + 2), copy, strict=True)
                for text in (words[position].g, NULL if tag is None else tag)
            ]
            strings.append(feature("Q", *shapes[2:-2]))
            strings.append(feature("Q2", *shapes))
        strings += _filled_strings(words, start, end, copy)
    return strings


def _filled_strings(
    words: SegmentWords, start: int, end: int, around: tuple[str | None, ...]
) -> list[str]:
    """QF and QF2: is what stands between the marks one entity?"""
    inside = words.words[start + 1 : end]
    spelt = [position for position, word in enumerate(inside) if word[:1].isalnum()]
    if not spelt:
        return []
    last = start + 1 + spelt[-1]
    # Tags of s + 1 to e'; the first two of `around` belong to s - 1 and s.
    first, *rest = (tag or "" for tag in around[2 : last - start + 2])
    is_entity = first[0] == "S" and all(tag == "C" + first[1:] for tag in rest)
    filled = "1" + first[1:] if is_entity else "0"
    n_upper = sum(map(begins_upper, inside))
    n_lower = sum(map(begins_lower, inside))
    edges = words[start + 1].g, words[last].g
    more_upper = "1" if n_upper >= n_lower else "0"
    return [
        feature("QF", filled, str(n_upper), str(n_lower), *edges),
        feature("QF2", filled, more_upper, *edges),
    ]


def quoted_tags(
    words: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    spans: Iterable[LabelledSpan],
) -> list[tuple[int, int, tuple[str | None, ...]]]:
    """The tags of one candidate in and next to each pair of quotation marks.

    words (Sequence[str]): The words of the segment.
    pairs (Sequence[tuple[int, int]]): What `quote_pairs` found in them.
    spans (Iterable[LabelledSpan]): The outermost entities of the candidate.
    RETURNS (list[tuple[int, int, tuple[Optional[str], ...]]]): Positions of the marks,
        and tags as `quote_strings` takes them.
    """
    escaped = [(start, end, escape_label(label)) for start, end, label in spans]
    found = tags(len(words), escaped)
    return [
        (s, e, tuple(found[position] for position in range(s - 1, e + 2)))
        for s, e in pairs
    ]
