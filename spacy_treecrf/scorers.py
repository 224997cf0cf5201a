"""Scores of nested entities: exact spans, by depth, by label, and without labels."""

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from spacy.scorer import PRFScore
from spacy.training import Example

from spacy_treecrf.errors import Warnings
from spacy_treecrf.gold import (
    GoldKeys,
    LabelledSpan,
    aligned_gold,
    read_gold,
    same_tokens,
)


def make_nested_scorer(
    missing_spans_key: str | None = None,
) -> Callable[..., dict[str, Any]]:
    """Build the scorer of nested entities, `spacy-treecrf.nested_scorer.v1`.

    missing_spans_key (str): Where gold marks regions that are not annotated; a
        prediction inside one that is neither gold nor marked as incorrect counts for
        nothing. Default: the pipe's own setting.
    RETURNS (Callable): Takes examples and `spans_key`, returns scores.
    """

    # A partial of a module's function, since a closure can't be pickled.
    return partial(_score_nested, default_missing_key=missing_spans_key)


def _score_nested(
    examples: Iterable[Example], *, default_missing_key: str | None, **kwargs: Any
) -> dict[str, Any]:
    settings = {"missing_spans_key": None, **kwargs}
    if settings["missing_spans_key"] is None:
        settings["missing_spans_key"] = default_missing_key
    return nested_score(examples, **settings)


def nested_score(
    examples: Iterable[Example],
    *,
    spans_key: str = "nested",
    missing_spans_key: str | None = None,
    incorrect_spans_key: str | None = None,
    **_: Any,
) -> dict[str, Any]:
    """Score predicted spans against gold, exactly: start, end and label.

    examples (Iterable[Example]): Predictions under the key; gold under the key where
        the reference has it, else in its `doc.ents`. Docs with neither are left out.
    spans_key (str): Key of the span groups.
    missing_spans_key (str): Key of the regions that are not annotated.
    incorrect_spans_key (str): Key of the spans with labels known to be wrong, which
        count as wrong in those regions too.
    RETURNS (dict[str, Any]): With K the key: `spans_K_p`, `_r`, `_f`, `_per_type`;
        `_inner_f` of spans strictly inside another gold span and `_outer_f` of the rest,
        by the same rule for gold and predictions, None where neither has any;
        `_unlabelled_f` of bare spans. All None where no Doc has gold.
    """
    total, inner, outer, bare = PRFScore(), PRFScore(), PRFScore(), PRFScore()
    per_type: dict[str, PRFScore] = {}
    annotated, skipped = 0, 0
    keys: set[str] = set()
    for example in examples:
        aligned = aligned_spans(
            example, spans_key, missing_spans_key, incorrect_spans_key
        )
        if aligned is None:
            skipped += 1
            keys.update(example.reference.spans.keys())
            continue
        annotated += 1
        gold, predicted = aligned
        total.score_set(predicted, gold)
        edges = {span[:2] for span in gold}
        deep = {span for span in gold | predicted if _is_inside(span, edges)}
        inner.score_set(predicted & deep, gold & deep)
        outer.score_set(predicted - deep, gold - deep)
        bare.score_set({span[:2] for span in predicted}, edges)
        for label in {span[2] for span in gold | predicted}:
            of_label = {span for span in predicted if span[2] == label}
            per_type.setdefault(label, PRFScore()).score_set(
                of_label, {span for span in gold if span[2] == label}
            )
    prefix = f"spans_{spans_key}"
    if not annotated:
        if skipped:
            warnings.warn(
                Warnings.T101.format(
                    key=spans_key, n_docs=skipped, keys=sorted(keys) or "none"
                ),
                stacklevel=2,
            )
        names = ("p", "r", "f", "per_type", "inner_f", "outer_f", "unlabelled_f")
        return {f"{prefix}_{name}": None for name in names}
    return {
        f"{prefix}_p": total.precision,
        f"{prefix}_r": total.recall,
        f"{prefix}_f": total.fscore,
        f"{prefix}_per_type": {
            label: per_type[label].to_dict() for label in sorted(per_type)
        },
        # As spaCy's scorer: no score where there was nothing to find and nothing found.
        f"{prefix}_inner_f": inner.fscore if len(inner) else None,
        f"{prefix}_outer_f": outer.fscore if len(outer) else None,
        f"{prefix}_unlabelled_f": bare.fscore,
    }


def aligned_spans(
    example: Example,
    spans_key: str,
    missing_spans_key: str | None = None,
    incorrect_spans_key: str | None = None,
) -> tuple[set[LabelledSpan], set[LabelledSpan]] | None:
    """Gold and predicted spans of an example, both in tokens of the reference.

    example (Example): The example.
    spans_key, missing_spans_key, incorrect_spans_key: See `nested_score`.
    RETURNS (Optional[tuple[set, set]]): Gold; predictions, without those of which
        nobody can say whether they are right (see `Gold.is_open`). A prediction that
        fits no tokens of the reference stays, at offsets that no gold span has, and so
        counts as wrong. None if the reference is not annotated.
    """
    keys = GoldKeys(spans_key, missing_spans_key, incorrect_spans_key)
    reference = read_gold(example.reference, keys)
    if reference.source is None:
        return None
    gold = set(reference.spans)
    same = same_tokens(example)
    if reference.missing or reference.unknown:
        # Regions are as wide as learning takes them, hence in the predicted tokens.
        regions = reference if same else aligned_gold(example, keys)
    else:
        regions = None
    predicted: set[LabelledSpan] = set()
    for span in example.predicted.spans.get(keys.spans, []):
        own = (span.start, span.end, span.label_)
        found = own
        if not same:
            aligned = example.get_aligned_spans_x2y([span], allow_overlap=True)
            ends = (aligned[0].start, aligned[0].end) if aligned else None
            found = (*(ends or (-1 - span.start, -1 - span.end)), span.label_)
        if found in gold or regions is None or not regions.is_open(own):
            predicted.add(found)
    return gold, predicted


def _is_inside(span: LabelledSpan, edges: set[tuple[int, int]]) -> bool:
    return any(
        start <= span[0] and span[1] <= end and (start, end) != span[:2]
        for start, end in edges
    )
