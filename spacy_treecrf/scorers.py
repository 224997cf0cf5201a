"""Scores of nested entities: exact spans, by depth, by label, and without labels."""

import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from spacy.attrs import ORTH
from spacy.scorer import PRFScore
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.errors import Warnings

# (start, end, label) in tokens of the reference.
LabelledSpan = tuple[int, int, str]


def make_nested_scorer(
    missing_spans_key: str | None = None,
) -> Callable[..., dict[str, Any]]:
    """Build the scorer of nested entities, `spacy-treecrf.nested_scorer.v1`.

    missing_spans_key (str): Where gold marks regions that are not annotated; a
        prediction inside one that is no gold span counts for nothing. Default: the
        pipe's own setting.
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
    **_: Any,
) -> dict[str, Any]:
    """Score predicted spans against gold, exactly: start, end and label.

    examples (Iterable[Example]): Predictions and gold.
    spans_key (str): Key of the span groups.
    missing_spans_key (str): Key of the regions that are not annotated.
    RETURNS (dict[str, Any]): With K the key: `spans_K_p`, `_r`, `_f`, `_per_type`;
        `_inner_f` of spans strictly inside another gold span and `_outer_f` of the rest,
        by the same rule for gold and predictions; `_unlabelled_f` of bare spans. All
        None where no Doc has gold under the key.
    """
    total, inner, outer, bare = PRFScore(), PRFScore(), PRFScore(), PRFScore()
    per_type: dict[str, PRFScore] = {}
    annotated, skipped = 0, 0
    keys: set[str] = set()
    for example in examples:
        if spans_key not in example.reference.spans:
            skipped += 1
            keys.update(example.reference.spans.keys())
            continue
        annotated += 1
        gold, predicted = aligned_spans(example, spans_key, missing_spans_key)
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
        f"{prefix}_inner_f": inner.fscore,
        f"{prefix}_outer_f": outer.fscore,
        f"{prefix}_unlabelled_f": bare.fscore,
    }


def aligned_spans(
    example: Example, spans_key: str, missing_spans_key: str | None = None
) -> tuple[set[LabelledSpan], set[LabelledSpan]]:
    """Gold and predicted spans of an example, both in tokens of the reference.

    RETURNS (tuple[set, set]): Gold; predictions, without those inside a region that is
        not annotated, unless they are gold. A prediction that fits no tokens of the
        reference stays, at offsets that no gold span has, and so counts as wrong.
    """
    reference: Doc = example.reference
    gold = {(s.start, s.end, s.label_) for s in reference.spans[spans_key]}
    predicted = aligned_predictions(example, spans_key)
    if missing_spans_key is not None and missing_spans_key in reference.spans:
        regions = [
            (s.start, s.end, s.label_) for s in reference.spans[missing_spans_key]
        ]
        predicted = {
            span
            for span in predicted
            if span in gold
            or not any(
                start <= span[0] and span[1] <= end and label in ("", span[2])
                for start, end, label in regions
            )
        }
    return gold, predicted


def aligned_predictions(example: Example, spans_key: str) -> set[LabelledSpan]:
    """Predicted spans of an example, in tokens of the reference.

    RETURNS (set[LabelledSpan]): The spans; one that fits no tokens of the reference is
        at offsets that no gold span has, and so counts as wrong.
    """
    predicted: set[LabelledSpan] = set()
    aligned = same_tokens(example)
    for span in example.predicted.spans.get(spans_key, []):
        if aligned:
            predicted.add((span.start, span.end, span.label_))
            continue
        found = example.get_aligned_spans_x2y([span], allow_overlap=True)
        if found:
            predicted.add((found[0].start, found[0].end, span.label_))
        else:
            predicted.add((-1 - span.start, -1 - span.end, span.label_))
    return predicted


def same_tokens(example: Example) -> bool:
    """Whether predicted and reference Doc have the same tokens."""
    # By the hashes of their texts: token by token took a tenth of an update.
    x, y = (doc.to_array(ORTH) for doc in (example.predicted, example.reference))
    return bool(np.array_equal(x, y))


def _is_inside(span: LabelledSpan, edges: set[tuple[int, int]]) -> bool:
    return any(
        start <= span[0] and span[1] <= end and (start, end) != span[:2]
        for start, end in edges
    )
