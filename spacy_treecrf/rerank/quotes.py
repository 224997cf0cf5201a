"""The quote templates of the paper: does an entity fill a pair of quotation marks?

Source: Collins (2002), section 3: Q, Q2, QF and QF2.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .candidates import LabelledSpan
from .templates.entity_templates import Relation, feature
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


class Quotation(NamedTuple):
    """A pair of quotation marks.

    start (int): Position of the opening mark, s.
    end (int): Position of the closing mark, e.
    last (int): Position of the last word between them that begins with a letter or a
        digit, e'; -1 if there is none.
    n_upper (int): Words between them that begin with an upper-case letter.
    n_lower (int): Words between them that begin with a lower-case letter.
    """

    start: int
    end: int
    last: int
    n_upper: int
    n_lower: int


def find_quotations(words: Sequence[str]) -> list[Quotation]:
    """Find the quotations of a segment.

    words (Sequence[str]): The words of the segment.
    RETURNS (list[Quotation]): One a pair of marks.
    """
    quotations = []
    for start, end in quote_pairs(words):
        inside = words[start + 1 : end]
        spelt = [i for i, word in enumerate(inside, start + 1) if word[:1].isalnum()]
        n_upper, n_lower = (
            sum(map(begins_upper, inside)),
            sum(map(begins_lower, inside)),
        )
        last = spelt[-1] if spelt else -1
        quotations.append(Quotation(start, end, last, n_upper, n_lower))
    return quotations


def quote_relations(
    n_words: int,
    quotations: Iterable[Quotation],
    spans: Iterable[LabelledSpan],
    typed: bool,
    limit: int,
) -> list[Relation]:
    """What the quote templates are about in one candidate.

    n_words (int): Words of the segment.
    quotations (Iterable[Quotation]): Its quotations.
    spans (Iterable[LabelledSpan]): The outermost entities of the candidate.
    typed (bool): Whether to add a second copy with the labels of the tags.
    limit (int): Q and Q2 are for quotations with e - s smaller than this.
    RETURNS (list[Relation]): The relations.

    Source: Collins (2002), section 3; the limit has one digit there, which is lost.
    """
    escaped = [(start, end, escape_label(label)) for start, end, label in spans]
    found = tags(n_words, escaped)
    relations: list[Relation] = []
    for quotation in quotations:
        start, end, last, *_ = quotation
        if end - start < limit:
            around = tuple(found[i] for i in range(start - 1, end + 2))
            relations.append((near_strings, start, tuple(t and t[0] for t in around)))
            if typed:
                relations.append((near_strings, start, around))
        if last > 0:
            first, rest = found[start + 1] or "", found[start + 2 : last + 1]
            is_entity = first[0] == "S" and all(tag == "C" + first[1:] for tag in rest)
            relations.append((filled_strings, quotation, "1" if is_entity else "0"))
            if typed and is_entity:
                relations.append((filled_strings, quotation, "1" + first[1:]))
    return relations


def near_strings(
    words: SegmentWords, start: int, around: tuple[str | None, ...]
) -> list[str]:
    """Print Q and Q2: all that stands in a short quotation.

    words (SegmentWords): The segment.
    start (int): Position of the opening mark, s.
    around (tuple[Optional[str], ...]): Tags of positions s - 1 to e + 1.
    RETURNS (list[str]): The strings.
    """
    parts = [
        text
        for position, tag in enumerate(around, start - 1)
        for text in (words[position].g, NULL if tag is None else tag)
    ]
    return [feature("Q", *parts[2:-2]), feature("Q2", *parts)]


def filled_strings(words: SegmentWords, quotation: Quotation, filled: str) -> list[str]:
    """Print QF and QF2: is what stands between the marks one entity?

    words (SegmentWords): The segment.
    quotation (Quotation): The quotation; it holds a word.
    filled (str): "1", or "1-LABEL", if an entity reaches from its first word to e'.
    RETURNS (list[str]): The strings.
    """
    start, _, last, n_upper, n_lower = quotation
    edges = words[start + 1].g, words[last].g
    more_upper = "1" if n_upper >= n_lower else "0"
    return [
        feature("QF", filled, str(n_upper), str(n_lower), *edges),
        feature("QF2", filled, more_upper, *edges),
    ]
