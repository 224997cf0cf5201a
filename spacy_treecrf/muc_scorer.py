"""MUC scoring, with half credit for a name that is right in part, beside exact scores.

Source: Bikel et al. 1999, section 4 (Eq. 1.1 and 1.2 for P, R and F); Chinchor & Dungca
(1995), "Four Scorers and Seven Years Ago", for the slots of the official scorer.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.errors import Warnings
from spacy_treecrf.gold import LabelledSpan
from spacy_treecrf.scorers import aligned_spans

MODES = ("halves", "slots")
ARTICLES = frozenset(("a", "an", "the"))
DESIGNATORS = frozenset(("co", "inc", "ltd", "corp", "plc", "llc"))
# The element of a label that a given map lacks.
DEFAULT_ELEMENT = "ENAMEX"


def make_muc_scorer(
    mode: str = "halves",
    elements: dict[str, str] | None = None,
    lenient_edges: bool = False,
) -> Callable[..., dict[str, Any]]:
    """Build the scorer of flat names, `spacy-treecrf.muc_scorer.v1`.

    mode (str): "halves": half credit for the full label and exactly one boundary, or
        for both boundaries and the element alone. "slots": the official scorer, which
        counts the label and the text of each name as right or wrong.
    elements (Optional[dict[str, str]]): The element of each label, e.g. ENAMEX of
        PERSON. Labels of the form TYPE/ATTRIBUTE have theirs before the slash.
    lenient_edges (bool): Whether an article before a name, and punctuation or a
        corporate designator behind it, are ignored, as the official scorer does.
    RETURNS (Callable): Takes examples and `spans_key`, returns scores.
    RAISES (ValueError): If there is no such mode.
    """
    if mode not in MODES:
        raise ValueError(f"expected mode to be one of {MODES}, received {mode!r}")

    # A partial of a module's function, since a closure can't be pickled.
    return partial(muc_score, mode=mode, elements=elements, lenient_edges=lenient_edges)


def muc_score(
    examples: Iterable[Example],
    *,
    spans_key: str = "nested",
    missing_spans_key: str | None = None,
    incorrect_spans_key: str | None = None,
    mode: str = "halves",
    elements: Mapping[str, str] | None = None,
    lenient_edges: bool = False,
    **_: Any,
) -> dict[str, Any]:
    """Score predicted names against gold.

    examples (Iterable[Example]): Predictions under the key; gold under the key where
        it exists, else `doc.ents`. Examples without any annotation are left out, and so
        are predictions over words that are not annotated.
    spans_key (str): Key of the span groups.
    missing_spans_key, incorrect_spans_key: See `nested_score`.
    mode, elements, lenient_edges: See `make_muc_scorer`.
    RETURNS (dict[str, Any]): With K the key: the exact `spans_K_p`, `_r`, `_f` and
        `_per_type`; MUC's `spans_K_muc_p`, `_muc_r`, `_muc_f`. All None where no
        example has gold.
    """
    exact = PRFScore()
    per_type: dict[str, PRFScore] = {}
    credit, n_keys, n_responses, n_scored, n_skipped = 0.0, 0, 0, 0, 0
    group_keys: set[str] = set()
    unmapped: set[str] = set()
    for example in examples:
        aligned = aligned_spans(
            example, spans_key, missing_spans_key, incorrect_spans_key
        )
        if aligned is None:
            n_skipped += 1
            group_keys.update(example.reference.spans.keys())
            continue
        n_scored += 1
        gold, predicted = aligned
        exact.score_set(predicted, gold)
        for label in {span[2] for span in gold | predicted}:
            per_type.setdefault(label, PRFScore()).score_set(
                {span for span in predicted if span[2] == label},
                {span for span in gold if span[2] == label},
            )
        if lenient_edges:
            gold = {trim_edges(example.reference, span) for span in gold}
            predicted = {trim_edges(example.reference, span) for span in predicted}
        element_of = {
            span[2]: element(span[2], elements, unmapped) for span in gold | predicted
        }
        give_credit = half_credit if mode == "halves" else slot_credit
        credit += give_credit(gold, predicted, element_of)
        n_keys += len(gold)
        n_responses += len(predicted)
    prefix = f"spans_{spans_key}"
    if not n_scored:
        if n_skipped:
            warnings.warn(
                Warnings.T101.format(
                    key=spans_key, n_docs=n_skipped, keys=sorted(group_keys) or "none"
                ),
                stacklevel=3,
            )
        names = ("p", "r", "f", "per_type", "muc_p", "muc_r", "muc_f")
        return {f"{prefix}_{name}": None for name in names}
    if unmapped:
        warnings.warn(
            Warnings.T082.format(labels=sorted(unmapped), element=DEFAULT_ELEMENT),
            stacklevel=3,
        )
    precision = credit / n_responses if n_responses else 0.0
    recall = credit / n_keys if n_keys else 0.0
    total = precision + recall
    return {
        f"{prefix}_p": exact.precision,
        f"{prefix}_r": exact.recall,
        f"{prefix}_f": exact.fscore,
        f"{prefix}_per_type": {
            label: per_type[label].to_dict() for label in sorted(per_type)
        },
        f"{prefix}_muc_p": precision,
        f"{prefix}_muc_r": recall,
        f"{prefix}_muc_f": 2 * precision * recall / total if total else 0.0,
    }


def element(
    label: str, elements: Mapping[str, str] | None, unmapped: set[str]
) -> str | None:
    """The element of a label: ENAMEX, TIMEX or NUMEX in MUC.

    label (str): The label.
    elements (Optional[Mapping[str, str]]): A map of labels.
    unmapped (set[str]): Gets the labels that a given map lacks.
    RETURNS (Optional[str]): The element, None if the label has none.
    """
    if elements is not None and label in elements:
        return elements[label]
    if "/" in label:
        return label.split("/", 1)[0]
    if elements is not None:
        unmapped.add(label)
        return DEFAULT_ELEMENT
    return None


def half_credit(
    keys: set[LabelledSpan],
    responses: set[LabelledSpan],
    element_of: Mapping[str, str | None],
) -> float:
    """Credit as Bikel et al. 1999 describe it.

    keys, responses (set[LabelledSpan]): Gold and predicted names.
    element_of (Mapping[str, Optional[str]]): Element of each label.
    RETURNS (float): 1 for each exact pair, 1/2 for each pair that is right in part; each
        name is in one pair at most, larger overlaps first.
    """
    exact = keys & responses

    def right_in_part(key: LabelledSpan, response: LabelledSpan) -> bool:
        boundaries = (key[0] == response[0]) + (key[1] == response[1])
        if key[2] == response[2]:
            return boundaries == 1
        same = element_of[key[2]] is not None and (
            element_of[key[2]] == element_of[response[2]]
        )
        return boundaries == 2 and same

    pairs = greedy_pairs(keys - exact, responses - exact, right_in_part)
    return len(exact) + len(pairs) / 2


def slot_credit(
    keys: set[LabelledSpan],
    responses: set[LabelledSpan],
    element_of: Mapping[str, str | None],
) -> float:
    """Credit of the official scorer, where a name is two slots, TYPE and TEXT.

    keys, responses (set[LabelledSpan]): Gold and predicted names.
    element_of (Mapping[str, Optional[str]]): Element of each label; labels without one
        are of one element.
    RETURNS (float): Half the number of right slots, over pairs that overlap.
    """

    def may_align(key: LabelledSpan, response: LabelledSpan) -> bool:
        return element_of[key[2]] == element_of[response[2]]

    exact = keys & responses
    slots = 2 * len(exact)
    for key, response in greedy_pairs(keys - exact, responses - exact, may_align):
        slots += (key[2] == response[2]) + (key[:2] == response[:2])
    return slots / 2


def greedy_pairs(
    keys: set[LabelledSpan],
    responses: set[LabelledSpan],
    may_pair: Callable[[LabelledSpan, LabelledSpan], bool],
) -> list[tuple[LabelledSpan, LabelledSpan]]:
    """Pair overlapping names one to one, by larger overlap, then by smaller start.

    keys, responses (set[LabelledSpan]): The names.
    may_pair (Callable): Whether two overlapping names may be a pair.
    RETURNS (list[tuple[LabelledSpan, LabelledSpan]]): The pairs.
    """
    possible = []
    for key in keys:
        for response in responses:
            overlap = min(key[1], response[1]) - max(key[0], response[0])
            if overlap > 0 and may_pair(key, response):
                possible.append((-overlap, min(key[0], response[0]), key, response))
    pairs = []
    open_keys, open_responses = set(keys), set(responses)
    for _, _, key, response in sorted(possible):
        if key in open_keys and response in open_responses:
            open_keys.remove(key)
            open_responses.remove(response)
            pairs.append((key, response))
    return pairs


def trim_edges(doc: Doc, span: LabelledSpan) -> LabelledSpan:
    """A name without articles before it and punctuation or designators behind it.

    doc (Doc): The Doc whose tokens the offsets count.
    span (LabelledSpan): The name.
    RETURNS (LabelledSpan): The name; it keeps one token at least.
    """
    start, end, label = span
    if start < 0:  # fits no tokens of this Doc
        return span
    while end - start > 1 and doc[start].lower_ in ARTICLES:
        start += 1
    while end - start > 1 and _is_edge(doc[end - 1].lower_):
        end -= 1
    return start, end, label


def _is_edge(text: str) -> bool:
    return text.rstrip(".") in DESIGNATORS or not any(map(str.isalnum, text))
