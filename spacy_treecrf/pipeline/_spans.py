"""What every pipe of the package writes to a Doc, and how."""

from collections.abc import Collection, Sequence

import numpy as np
from spacy.attrs import ENT_IOB, ENT_TYPE
from spacy.tokens import Doc, Span, SpanGroup

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]

_ENT_ATTRIBUTES = [ENT_IOB, ENT_TYPE]
_BEGIN = 3


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
        spans=_spans_of(doc, spans),
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


def write_entities(
    doc: Doc,
    key: str,
    spans: Sequence[LabelledSpan],
    scores: Sequence[float] | np.ndarray,
    *,
    ents: bool,
    replaced: str | None = None,
    **attrs: np.ndarray,
) -> None:
    """Write what a pipe has found to `doc.spans[key]` and, if asked, to `doc.ents`.

    doc (Doc): The document.
    key (str): The spans key.
    spans, scores, attrs: As `write_span_group` takes them.
    ents (bool): Whether to write the outermost spans to `doc.ents` too.
    replaced (str | None): Another key, of the pipe whose entities these replace.
    """
    before = [doc.spans[k] for k in (key, replaced) if k in doc.spans] if ents else []
    old = {(span.start, span.end, span.label_) for group in before for span in group}
    write_span_group(doc, key, spans, scores, **attrs)
    if ents:
        write_ents(doc, spans, old)


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


def drop_candidates(doc: Doc, key: str, first: int) -> None:
    """Remove groups `key:r` of an earlier run that had more candidates.

    doc (Doc): The document. key (str): The spans key. first (int): The first r to go.
    """
    start = f"{key}:"
    for name in list(doc.spans):
        rank = name[len(start) :] if name.startswith(start) else ""
        if rank.isdecimal() and int(rank) >= first:
            del doc.spans[name]
