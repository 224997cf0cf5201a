"""Docs as annotation tools read them, so that people can correct their spans.

`jsonl` reads what is written here, with the same offsets.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

from spacy.tokens import Doc

from .offsets import OffsetUnit, length_in

# Start, end, label and score of a span, in characters.
ScoredSpan = tuple[int, int, str, float | None]


class Tool(str, Enum):
    """An annotation tool."""

    prodigy = "prodigy"
    doccano = "doccano"
    label_studio = "label-studio"


def make_record(
    doc: Doc,
    spans_key: str,
    tool: Tool,
    unit: OffsetUnit = OffsetUnit.code_points,
    model: str | None = None,
) -> dict[str, Any]:
    """Lay out a Doc and its spans.

    doc (Doc): The Doc.
    spans_key (str): Key of the span group; a Doc without it has no spans.
    tool (Tool): The tool.
    unit (OffsetUnit): What the tool's offsets count.
    model (str | None): Name of what predicted the spans; None if they are gold.
    RETURNS (dict[str, Any]): A record for JSON. Scores are in it where the tool has a
        place for them: Prodigy and Label Studio.
    """
    text = text_of(doc)
    place = _place_in(text, unit)
    spans = scored_spans(doc, spans_key)
    names: dict[str, Any] = {
        name: doc.user_data[name] for name in ("id", "doc") if name in doc.user_data
    }
    if tool is Tool.prodigy:
        record: dict[str, Any] = {
            "text": text,
            "tokens": _prodigy_tokens(doc, place),
            "spans": _prodigy_spans(doc, spans, place),
        }
        return {**record, "meta": names} if names else record
    if tool is Tool.doccano:
        # One of each: doccano takes a second for another annotation.
        labels = dict.fromkeys((place(s), place(e), label) for s, e, label, _ in spans)
        return {**names, "text": text, "label": [list(span) for span in labels]}
    results = [_region(i, text, span, place) for i, span in enumerate(spans)]
    data = {"text": text, **names}
    if model is None:
        return {"data": data, "annotations": [{"result": results}]}
    prediction: dict[str, Any] = {"model_version": model, "result": results}
    scores = [span[3] for span in spans if span[3] is not None]
    if scores:
        # The tool sorts texts by it: the least sure ones come first.
        prediction["score"] = min(scores)
    return {"data": data, "predictions": [prediction]}


def text_of(doc: Doc) -> str:
    """The text of a Doc, without a space behind the last token.

    doc (Doc): The Doc.
    RETURNS (str): The text.
    """
    return doc.text.removesuffix(doc[-1].whitespace_) if len(doc) else ""


def scored_spans(doc: Doc, spans_key: str) -> list[ScoredSpan]:
    """The spans of a group with their scores, outer before inner.

    doc (Doc): The Doc.
    spans_key (str): Key of the span group.
    RETURNS (list[ScoredSpan]): The spans; empty ones, which have no text, are left out.
        The score is None where the group has none.
    """
    if spans_key not in doc.spans:
        return []
    group = doc.spans[spans_key]
    scores = group.attrs.get("scores", ())
    known = len(scores) == len(group)
    spans: list[ScoredSpan] = [
        (
            span.start_char,
            span.end_char,
            span.label_,
            float(scores[i]) if known else None,
        )
        for i, span in enumerate(group)
        if len(span)
    ]
    return sorted(spans, key=lambda span: (span[0], -span[1], span[2]))


def _place_in(text: str, unit: OffsetUnit) -> Callable[[int], int]:
    if unit is OffsetUnit.code_points or text.isascii():
        return int
    places = [0]
    for char in text:
        places.append(places[-1] + length_in(char, unit))
    return places.__getitem__


def _prodigy_tokens(doc: Doc, place: Callable[[int], int]) -> list[dict[str, Any]]:
    return [
        {
            "text": token.text,
            "start": place(token.idx),
            "end": place(token.idx + len(token.text)),
            "id": token.i,
            "ws": bool(token.whitespace_) and token.i + 1 < len(doc),
        }
        for token in doc
    ]


def _prodigy_spans(
    doc: Doc, spans: list[ScoredSpan], place: Callable[[int], int]
) -> list[dict[str, Any]]:
    starts = {token.idx: token.i for token in doc}
    ends = {token.idx + len(token.text): token.i for token in doc}
    records = []
    for start, end, label, score in spans:
        record = {
            "start": place(start),
            "end": place(end),
            # Prodigy's last token is the last one in it.
            "token_start": starts[start],
            "token_end": ends[end],
            "label": label,
        }
        records.append(record if score is None else {**record, "score": score})
    return records


def _region(
    number: int, text: str, span: ScoredSpan, place: Callable[[int], int]
) -> dict[str, Any]:
    start, end, label, score = span
    region = {
        "id": str(number),
        "from_name": "label",
        "to_name": "text",
        "type": "labels",
        "value": {
            "start": place(start),
            "end": place(end),
            "text": text[start:end],
            "labels": [label],
        },
    }
    return region if score is None else {**region, "score": score}
