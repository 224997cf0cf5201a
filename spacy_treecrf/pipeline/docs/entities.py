"""The outermost of nested entities, and how they are written to `doc.ents`."""

from collections.abc import Collection, Sequence

import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span

from spacy_treecrf.gold import LabelledSpan

_ENT_ATTRIBUTES = [ENT_IOB, ENT_TYPE]
_BEGIN = 3


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


def write_ents(
    doc: Doc, spans: Sequence[LabelledSpan], old: Collection[LabelledSpan] = ()
) -> None:
    """Write the outermost of the spans as `doc.ents`, around what is there.

    As spaCy's `ner` does, entities that another pipe has set (a ruler, say), and tokens
    that are blocked, are kept; spans that touch them stay out.

    doc (Doc): The document.
    spans (Sequence[LabelledSpan]): Spans in any order, nested ones too.
    old (Collection[LabelledSpan]): Entities that these replace.
    """
    table = doc.to_array(_ENT_ATTRIBUTES).reshape(-1, 2)
    # 0 is missing, 2 outside; 1 and 3 are the entities' words and the blocked ones.
    if not (table[:, 0] % 2).any():
        doc.set_ents(_spans_of(doc, outermost_spans(spans)))
        return
    kept = [e for e in doc.ents if (e.start, e.end, e.label_) not in old]
    blocked = (table[:, 0] == _BEGIN) & (table[:, 1] == 0)
    taken = blocked.copy()
    for entity in kept:
        taken[entity.start : entity.end] = True
    free = [span for span in spans if not taken[span[0] : span[1]].any()]
    doc.set_ents(
        [*kept, *_spans_of(doc, outermost_spans(free))],
        blocked=[doc[i : i + 1] for i in np.flatnonzero(blocked).tolist()],
    )


def _spans_of(doc: Doc, spans: Sequence[LabelledSpan]) -> list[Span]:
    return [Span(doc, start, end, label=label) for start, end, label in spans]
