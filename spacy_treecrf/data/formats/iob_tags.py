"""Sequences of IOB tags, read as the evaluation script of CoNLL reads them.

An entity begins at any tag that does not continue an open entity of its label, whatever
the tag's prefix, and ends before any tag that does not continue it. So every sequence has
one reading; tags that do not follow the scheme of their file are repairs, and counted.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from spacy_treecrf.problems import Problems

from ..records import LabelledSpan

Scheme = Literal["IOB1", "IOB2", "BIOES", "BILUO", "BMES", "BMEWO"]
Tag = tuple[str, str]

# Prefixes of inner, last and only tokens of an entity, where a scheme has them.
PREFIXES: dict[Scheme, tuple[str, str, str]] = {
    "IOB1": ("I", "", ""),
    "IOB2": ("I", "", ""),
    "BIOES": ("I", "E", "S"),
    "BILUO": ("I", "L", "U"),
    "BMES": ("M", "E", "S"),
    "BMEWO": ("M", "E", "W"),
}
INSIDE, LAST, ONLY = "IM", "EL", "SUW"
KNOWN = frozenset("B" + INSIDE + LAST + ONLY)

BEGINS = "tags that continue no entity: read as its first, as conlleval does"
NOT_ENDED = "entities without the tag that ends them: read up to their last tag"
FOREIGN = "tags of another scheme than the file's: read by their meaning"


def parse_tag(string: str) -> Tag | None:
    """Take a tag apart.

    string (str): E.g. "B-PER" or "O".
    RETURNS (Tag | None): Prefix and label, ("O", "") outside; None if it is no tag.
    """
    if string == "O":
        return "O", ""
    prefix, dash, label = string.partition("-")
    return (prefix, label) if dash and label and prefix in KNOWN else None


def decode_tags(
    tags: Sequence[Tag],
    where: Callable[[int], str],
    scheme: Scheme,
    problems: Problems,
) -> list[LabelledSpan]:
    """Entities of one layer of one sentence.

    tags (Sequence[Tag]): Prefix and label of each token; ("O", "") outside.
    where (Callable[[int], str]): File, line and text of each, for messages.
    scheme (Scheme): How entities are marked.
    problems (Problems): Takes tags that do not follow the scheme.
    RETURNS (list[LabelledSpan]): The entities in text order.
    RAISES (ConversionError): If there is such a tag and `problems` is strict.
    """
    own = "BO" + "".join(PREFIXES[scheme])
    must_end = bool(PREFIXES[scheme][1])
    spans: list[LabelledSpan] = []
    start, open_label = 0, ""
    for i, (prefix, label) in enumerate([*tags, ("O", "")]):
        is_inner = prefix in INSIDE + LAST
        continues = is_inner and label == open_label
        if open_label and not continues:
            if must_end:
                problems.repair(NOT_ENDED, f"{where(i - 1)}: {_show(tags[i - 1])}")
            spans.append((start, i, open_label))
            open_label = ""
        if prefix not in own:
            problems.repair(FOREIGN, f"{where(i)}: {prefix}-{label} is not of {scheme}")
        elif is_inner and not continues and scheme != "IOB1":
            # What has to be ended and is its own end, is an only token.
            first = PREFIXES[scheme][2] if prefix in LAST else "B"
            problems.repair(BEGINS, f"{where(i)}: {prefix}-{label} as {first}-{label}")
        if prefix != "O" and not continues:
            start, open_label = i, label
        if prefix in LAST + ONLY:
            spans.append((start, i + 1, label))
            open_label = ""
    return spans


def find_scheme(layers: Iterable[Sequence[Tag]]) -> Scheme:
    """The scheme of a file: the one that its tags follow best.

    layers (Iterable[Sequence[Tag]]): The tags of all layers of all sentences.
    RETURNS (Scheme): The scheme; what does not follow it is found on decoding.
    """
    layers = list(layers)
    prefixes = {prefix for layer in layers for prefix, _ in layer}
    if not prefixes - set("BIO"):
        return _find_iob(layers)
    scheme: Scheme = "BIOES"
    if prefixes & set("LU"):
        scheme = "BILUO"
    elif prefixes & set("MW"):
        scheme = "BMEWO" if "W" in prefixes else "BMES"
    # One stray tag makes no scheme: nothing is ended in a file of IOB.
    candidates: list[Scheme] = [scheme, "BIOES", "IOB2"]
    return min(candidates, key=lambda candidate: _n_repairs(layers, candidate))


def _find_iob(layers: Sequence[Sequence[Tag]]) -> Scheme:
    i_begins, b_follows_other = False, False
    for layer in layers:
        for (_, left), (prefix, label) in zip([("O", ""), *layer], layer, strict=False):
            i_begins |= prefix == "I" and left != label
            b_follows_other |= prefix == "B" and left != label
    # Where both occur, the file is neither; as IOB2 the "I" is repaired.
    return "IOB1" if i_begins and not b_follows_other else "IOB2"


def _n_repairs(layers: Sequence[Sequence[Tag]], scheme: Scheme) -> int:
    problems = Problems(n_named=0)
    for layer in layers:
        decode_tags(layer, str, scheme, problems)
    return problems.n_repairs


def _show(tag: Tag) -> str:
    return "-".join(part for part in tag if part)
