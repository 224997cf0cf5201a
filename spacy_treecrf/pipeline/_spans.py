"""What every pipe of the package writes to a Doc, and how."""

from collections.abc import Sequence

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]


def write_span_group(
    doc: Doc,
    key: str,
    spans: Sequence[LabelledSpan],
    scores: Sequence[float] | np.ndarray,
    **attrs: np.ndarray,
) -> None:
    """Write spans and their scores as the group `doc.spans[key]`, replacing it.

    doc (Doc): The document.
    key (str): The key, also the group's name.
    spans (Sequence[LabelledSpan]): Half-open token offsets and labels.
    scores (Sequence[float]): One marginal probability a span, same order; kept as
        float32 NumPy array in `attrs["scores"]`.
    attrs (np.ndarray): Further attributes of the group.
    RAISES (ValueError): If there is not one score for each span.
    """
    if len(spans) != len(scores):
        raise ValueError(
            f"expected one score for each span, received {len(spans)} spans and "
            f"{len(scores)} scores"
        )
    group = SpanGroup(
        doc,
        name=key,
        attrs={"scores": np.asarray(scores, dtype=np.float32), **attrs},
        spans=[Span(doc, start, end, label=label) for start, end, label in spans],
    )
    doc.spans[key] = group


def outermost_spans(spans: Sequence[LabelledSpan]) -> list[LabelledSpan]:
    """Keep the spans that lie in no other, one label a span (the first).

    spans (Sequence[LabelledSpan]): Spans in any order; of two that cross, the one
        that starts first is kept.
    RETURNS (list[LabelledSpan]): Disjoint spans in text order.
    """
    kept: list[LabelledSpan] = []
    for span in sorted(spans, key=lambda s: (s[0], -s[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def write_ents(doc: Doc, spans: Sequence[LabelledSpan]) -> None:
    """Write the outermost of the spans as `doc.ents`, replacing what was there.

    doc (Doc): The document.
    spans (Sequence[LabelledSpan]): Spans in any order, nested ones too.
    """
    doc.set_ents(
        [
            Span(doc, start, end, label=label)
            for start, end, label in outermost_spans(spans)
        ]
    )
