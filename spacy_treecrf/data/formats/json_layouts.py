"""How annotation tools lay a text and its spans out in JSON; see `jsonl` for the list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from spacy_treecrf.problems import Problems

from ..offsets import Annotation
from .json_records import show

# Where tools put the spans, in the order in which we look.
SPAN_FIELDS = ("spans", "label", "labels", "entities")
UNANNOTATED = "texts without a field for spans (" + ", ".join(SPAN_FIELDS) + "): kept"
BAD_SPAN = "spans that are not understood: left out"
NO_SPAN = "results of Label Studio that are no spans of text: left out"
NO_LABEL = "spans without a label: left out"
OTHER_ANNOTATORS = (
    "texts with further annotations: read the one that is ground truth, or the first"
)
PREDICTED = "texts that have predictions alone, which nobody corrected: read"
SKIPPED = "texts without annotation, or with cancelled ones alone: left out"


class LayoutError(ValueError):
    """A record that is of none of the layouts; the message says what is missing."""


class SkippedRecord(ValueError):
    """A record that is none to convert; the message is the kind of problem."""


@dataclass
class Annotated:
    """A text and its spans, or tokens and theirs.

    text (str | None): The text; None if `words` are all there is.
    annotations (list[Annotation]): Its spans, in the file's offsets.
    tokens (Any): Prodigy's tokens with offsets, if given.
    """

    text: str
    annotations: list[Annotation]
    tokens: Any = None


def is_words(tokens: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of strings."""
    return isinstance(tokens, list) and all(isinstance(t, str) for t in tokens)


def is_triple(span: Any) -> TypeGuard[list[Any]]:
    """Whether a value is `[start, end, label]`."""
    return (
        isinstance(span, list)
        and len(span) == 3
        and _is_int(span[0])
        and _is_int(span[1])
        and isinstance(span[2], str)
    )


def _is_int(value: Any) -> bool:
    # JSON's true is an int to Python.
    return isinstance(value, int) and not isinstance(value, bool)


def is_task(record: dict[str, Any]) -> bool:
    """Whether a record is one of Label Studio's JSON (not of JSON-MIN)."""
    return isinstance(record.get("data"), dict) and any(
        isinstance(record.get(name), list)
        for name in ("annotations", "completions", "predictions")
    )


def read_task(record: dict[str, Any], where: str, problems: Problems) -> Annotated:
    """Read a record of Label Studio's JSON.

    record (dict[str, Any]): The record.
    where (str): File and line, for messages.
    problems (Problems): Takes further annotators, results that are no spans, and spans
        without a label.
    RETURNS (Annotated): The text and the spans of one annotator.
    RAISES (SkippedRecord): If nobody annotated it.
    """
    made = record.get("annotations") or record.get("completions") or []
    kept = [a for a in made if isinstance(a, dict) and not a.get("was_cancelled")]
    if not kept:
        kept = [p for p in record.get("predictions") or [] if isinstance(p, dict)]
        if made or not kept:
            raise SkippedRecord(SKIPPED)
        problems.add(PREDICTED, where)
    elif len(kept) > 1:
        problems.add(OTHER_ANNOTATORS, where)
    chosen = next((a for a in kept if a.get("ground_truth")), kept[0])
    results = chosen.get("result")
    values = [
        result.get("value") if isinstance(result, dict) else result
        for result in (results if isinstance(results, list) else [])
        # Relations stand between spans, and have no value.
        if not (isinstance(result, dict) and result.get("type") == "relation")
    ]
    annotations = read_spans(values, where, problems)
    return Annotated(find_text(record["data"], annotations, where), annotations)


def read_text_record(
    record: dict[str, Any], where: str, problems: Problems
) -> Annotated:
    """Read a record of Prodigy, doccano, Label Studio's JSON-MIN, or GLiNER's output.

    record (dict[str, Any]): The record.
    where (str): File and line, for messages.
    problems (Problems): Takes spans that are not understood, and texts without any.
    RETURNS (Annotated): The text and its spans.
    RAISES (LayoutError): If there is no text, or the spans are no list.
    """
    field = next((f for f in SPAN_FIELDS if f in record), None)
    if field is None:
        # In JSON-MIN the field has the name of the labelling tag.
        field = next((f for f, value in record.items() if _is_regions(value)), None)
    if field is None:
        annotated: Any = []
        # JSON-MIN leaves the field out where an annotator found nothing.
        if not is_json_min(record):
            problems.add(UNANNOTATED, where)
    else:
        annotated = record[field] or []
    if not isinstance(annotated, list):
        raise LayoutError(f"expected {field!r}, a list, not {show(annotated)}")
    annotations = read_spans(annotated, where, problems)
    text = record.get("text")
    if not isinstance(text, str):
        if not annotations:
            raise LayoutError(
                f"expected 'tokens', a list of strings, or 'text', a string; there are "
                f"{', '.join(map(repr, record)) or 'no fields'}"
            )
        text = find_text(record, annotations, where)
    return Annotated(text, annotations, record.get("tokens"))


def is_json_min(record: dict[str, Any]) -> bool:
    """Whether a record has what Label Studio adds to each in JSON-MIN."""
    return "annotation_id" in record or "annotator" in record


def _is_regions(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, dict) and "start" in v and "end" in v for v in value)
        and any(_labels_of(v) for v in value)
    )


def read_spans(
    spans: Iterable[Any], where: str, problems: Problems
) -> list[Annotation]:
    """Read spans with offsets, one annotation for each label.

    spans (Iterable[Any]): `[start, end, label]`, or objects with these.
    where (str): File and line, for messages.
    problems (Problems): Takes those that are not understood.
    RETURNS (list[Annotation]): The spans.
    RAISES (ConversionError): If one is not understood and `problems` is strict.
    """
    found = []
    for span in spans:
        if isinstance(span, dict) and _is_other_result(span):
            problems.add(NO_SPAN, f"{where}: {show(span)}")
            continue
        start, end, labels, covered = _take_apart(span)
        if _is_int(start) and _is_int(end) and labels:
            found += [
                Annotation(((start, end),), label, where, covered) for label in labels
            ]
            continue
        kind = NO_LABEL if _is_int(start) and labels == [] else BAD_SPAN
        problems.repair(
            kind,
            f"{where}: expected a span with start, end and label, not {show(span)}",
        )
    return found


def _take_apart(span: Any) -> tuple[Any, Any, list[str] | None, str | None]:
    """Start, end, labels (None if they are no strings), and text of a span."""
    if not isinstance(span, dict):
        is_list = isinstance(span, list) and len(span) == 3
        start, end, labels = span if is_list else (None, None, None)
        return start, end, [labels] if isinstance(labels, str) else None, None
    start = span.get("start", span.get("start_offset"))
    end = span.get("end", span.get("end_offset"))
    places = span.get("globalOffsets")
    if isinstance(start, str) and isinstance(places, dict):
        # HyperText has XPaths in `start` and `end`.
        start, end = places.get("start"), places.get("end")
    labels = _labels_of(span)
    if isinstance(labels, str):
        labels = [labels]
    elif labels is None:
        labels = []
    covered = span["text"] if isinstance(span.get("text"), str) else None
    return start, end, labels if is_words(labels) else None, covered


def _labels_of(span: dict[str, Any]) -> Any:
    if span.get("label") is not None:
        return span["label"]
    # Label Studio: `labels`, and `hypertextlabels` of other tags.
    return next((v for k, v in span.items() if k.endswith("labels")), None)


def _is_other_result(span: dict[str, Any]) -> bool:
    """Choices, ratings and the like, which stand among the spans of Label Studio."""
    if "start" in span or "start_offset" in span:
        return False
    return any(
        key in span
        for key in ("choices", "taxonomy", "rating", "number", "datetime", "pairwise")
    ) or ("text" in span and "label" not in span and "labels" not in span)


def find_text(
    fields: dict[str, Any], annotations: Sequence[Annotation], where: str
) -> str:
    """The text that spans are of, among the fields of a record.

    fields (dict[str, Any]): The fields.
    annotations (Sequence[Annotation]): The spans; some tools give their texts.
    where (str): File and line, for messages.
    RETURNS (str): What is named `text`; else the one that holds the spans' texts best,
        of several the longest.
    RAISES (LayoutError): If no field holds a string.
    """
    if isinstance(fields.get("text"), str):
        return str(fields["text"])
    texts = [value for value in fields.values() if isinstance(value, str)]
    if not texts:
        raise LayoutError(
            f"expected 'text', a string; there are "
            f"{', '.join(map(repr, fields)) or 'no fields'}"
        )
    covered = [a.covered for a in annotations if a.covered]
    return max(texts, key=lambda t: (sum(c in t for c in covered), len(t)))
