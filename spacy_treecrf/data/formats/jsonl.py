"""JSON Lines and JSON: the uniform format, and what annotation tools write.

A record is one of

- uniform: `{"id", "doc", "tokens": [str], "spaces": [bool] | null,
  "spans": [[start, end_exclusive, label], ...]}`, offsets counted in tokens;
- GLiNER: `{"tokenized_text": [str], "ner": [[start, end_inclusive, label], ...]}`;
- Prodigy (`spans_manual`): `{"text", "tokens": [{"text", "start", "end", "ws"}],
  "spans": [{"start", "end", "label"}], "answer"}`, offsets counted in characters;
- doccano: `{"text", "label": [[start, end, label], ...]}`, the list also named
  `labels` or `entities`, its members also `{"start_offset", "end_offset", "label"}`;
- Label Studio: JSON `{"data": {"text"}, "annotations": [{"result": [{"value": {"start",
  "end", "text", "labels": [str]}}]}]}`, and JSON-MIN `{"text", "label": [{"start",
  "end", "text", "labels"}]}`;
- spaCy's training data of old: `[text, {"entities": [[start, end, label], ...]}]`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spacy_treecrf.problems import Problems

from ..alignment import Aligner, AlignmentMode, Tokenize, token_bounds
from ..offsets import Bounds, OffsetMap, Offsets
from ..records import Sentence, checked_records, default_id, is_encodable
from .json_layouts import (
    BAD_SPAN,
    OTHER_ANNOTATORS,
    UNANNOTATED,
    Annotated,
    LayoutError,
    SkippedRecord,
    is_json_min,
    is_task,
    is_triple,
    is_words,
    read_task,
    read_text_record,
)
from .json_records import is_record, read_records, show

__all__ = ["BAD_SPAN", "LAYOUTS", "UNANNOTATED", "read_jsonl"]

LAYOUTS = (
    '{"tokens", "spans": [[start, end, label]]}; {"text", "spans", "label", "labels" or '
    '"entities": [[start, end, label]] or [{"start", "end", "label"}]} (Prodigy, '
    'doccano); {"data": {"text"}, "annotations": [{"result"}]} and {"text", "label": '
    '[{"start", "end", "labels"}]} (Label Studio); {"tokenized_text", "ner": [[start, '
    'end, label]]} with inclusive ends (GLiNER); [text, {"entities": [[start, end, '
    "label]]}] (spaCy 2)"
)
BAD_RECORD = "records of no known layout: left out"
BAD_TOKENS = "texts whose tokens do not fit them: split anew"
BAD_TEXT = "texts that no Doc can hold: left out"

# Words, whether a space follows each, their bounds, and whether the record gives them.
Tokens = tuple[list[str], list[bool], list[Bounds], bool]


def read_jsonl(
    path: Path,
    problems: Problems,
    tokenize: Tokenize,
    mode: AlignmentMode = "strict",
    offsets: Offsets | None = None,
) -> Iterator[Sentence]:
    """Read a file of JSON Lines, or of JSON with an array of records.

    path (Path): The file; unpacked if it ends in `.gz`.
    problems (Problems): Takes misaligned spans, examples not accepted, and what is not
        understood.
    tokenize (Tokenize): Splits a text that comes without tokens.
    mode (AlignmentMode): What becomes of misaligned spans.
    offsets (Offsets | None): What offsets in characters count; None: code points.
    YIELDS (Sentence): One sentence a record, but for those whose answer is not "accept".
    RAISES (ConversionError): If the file can't be read, or something is to repair and
        `problems` is strict.
    """
    reader = _Reader(problems, tokenize, mode, offsets or Offsets())
    for line, number, record in read_records(path, problems):
        where = f"{path}:{line}"
        try:
            sentence = reader.read(record, where)
        except SkippedRecord as skipped:
            problems.add(str(skipped), where)
            continue
        except LayoutError as error:
            problems.repair(BAD_RECORD, f"{where}: {error}", lost_record=True)
            continue
        if sentence is not None:
            sentence.id = sentence.id or default_id(path, number)
            yield from checked_records(sentence, where, problems)


class _Reader:
    """Reads the records of one file."""

    def __init__(
        self,
        problems: Problems,
        tokenize: Tokenize,
        mode: AlignmentMode,
        offsets: Offsets,
    ) -> None:
        self.problems = problems
        self.tokenize = tokenize
        self.mode = mode
        self.offsets = offsets
        # Texts of JSON-MIN, which has a record for each annotator.
        self.seen: set[tuple[str, str]] = set()

    def read(self, record: Any, where: str) -> Sentence | None:
        """Read a record; None if it was counted as a problem."""
        if isinstance(record, list) and is_record(record):
            record = {"text": record[0], **record[1]}
        if not isinstance(record, dict):
            raise LayoutError(f"expected an object, received {show(record)}")
        answer = record.get("answer", "accept")
        if answer != "accept":
            raise SkippedRecord(f"examples with the answer {answer!r}: left out")
        sentence = self._read_spans(record, where)
        if sentence is None:
            return None
        # Numbers are names too (doccano counts its texts).
        name, doc = _find_name(record, "id"), _find_name(record, "doc")
        sentence.id = "" if name is None else str(name)
        sentence.doc = None if doc is None else str(doc)
        return sentence

    def _read_spans(self, record: dict[str, Any], where: str) -> Sentence | None:
        if "tokenized_text" in record:
            return _read_gliner(record, where, self.problems)
        tokens, text = record.get("tokens"), record.get("text")
        if is_words(tokens) and (tokens or not isinstance(text, str)):
            return _read_uniform(record, tokens, where, self.problems)
        if is_task(record):
            return self._align(read_task(record, where, self.problems), where)
        if is_json_min(record) and self._is_seen(record):
            self.problems.add(OTHER_ANNOTATORS, where)
            return None
        return self._align(read_text_record(record, where, self.problems), where)

    def _is_seen(self, record: dict[str, Any]) -> bool:
        key = str(record.get("id")), str(record.get("text"))
        is_seen = key in self.seen
        self.seen.add(key)
        return is_seen and record.get("id") is not None

    def _align(self, annotated: Annotated, where: str) -> Sentence | None:
        if not is_encodable(annotated.text):
            shown = show(annotated.text)
            self.problems.repair(BAD_TEXT, f"{where}: {shown}", lost_record=True)
            return None

        def split(text: str) -> tuple[Tokens, list[Bounds]]:
            if annotated.tokens:
                place = OffsetMap(text, self.offsets.unit)
                found = _read_tokens(annotated.tokens, text, place)
                if found is not None:
                    return (*found, True), found[2]
            words, spaces = self.tokenize(text)
            bounds = token_bounds(words, spaces)
            return (words, spaces, bounds, False), bounds

        text, (words, spaces, bounds, given), spans = self.offsets.read(
            annotated.text, annotated.annotations, split, self.problems, where
        )
        if annotated.tokens and not given:
            reason = "tokens of which one does not fit the text there"
            detail = f"{where}: {reason}: {show(annotated.tokens)}"
            self.problems.repair(BAD_TOKENS, detail)
        aligner = Aligner(text, bounds, self.problems, self.mode)
        aligned = [aligner.align(*span) for span in spans]
        return Sentence(
            "",
            words,
            [span for span in aligned if span is not None],
            spaces=spaces,
            own_tokens=False,
            given_tokens=given,
        )


def _find_name(record: dict[str, Any], name: str) -> Any:
    """A name of the record, or of the tool's own data about it."""
    for fields in (record, record.get("meta"), record.get("data")):
        if isinstance(fields, dict) and fields.get(name) is not None:
            return fields[name]
    return None


def _read_uniform(
    record: dict[str, Any], tokens: list[str], where: str, problems: Problems
) -> Sentence:
    spaces, spans = record.get("spaces"), record.get("spans")
    if spaces is not None and not (
        isinstance(spaces, list) and all(isinstance(s, bool) for s in spaces)
    ):
        raise LayoutError(f"expected 'spaces', a list of booleans, not {show(spaces)}")
    if not isinstance(spans, list):
        raise LayoutError(
            f"expected 'spans', a list, not {show(spans)}; there are "
            f"{', '.join(map(repr, record))}"
        )
    triples = _triples(spans, where, problems)
    return Sentence(
        "", tokens, [(s, e, label) for s, e, label in triples], spaces=spaces
    )


def _read_gliner(record: dict[str, Any], where: str, problems: Problems) -> Sentence:
    tokens, spans = record["tokenized_text"], record.get("ner")
    if not is_words(tokens):
        raise LayoutError(
            f"expected 'tokenized_text', a list of strings, not {show(tokens)}"
        )
    if not isinstance(spans, list):
        raise LayoutError(
            f"expected 'ner', a list, not {show(spans)}; there are "
            f"{', '.join(map(repr, record))}"
        )
    # Its ends are the last tokens themselves.
    triples = _triples(spans, where, problems)
    return Sentence("", tokens, [(s, e + 1, label) for s, e, label in triples])


def _triples(spans: list[Any], where: str, problems: Problems) -> Iterator[list[Any]]:
    for span in spans:
        if is_triple(span):
            yield span
        else:
            problems.repair(
                BAD_SPAN,
                f"{where}: expected a span [start, end, label], not {show(span)}",
            )


def _read_tokens(
    tokens: Any, text: str, place: OffsetMap
) -> tuple[list[str], list[bool], list[Bounds]] | None:
    """Tokens with character offsets; what lies between them becomes tokens as well.

    None if one of them does not fit the text.
    """
    words: list[str] = []
    spaces: list[bool] = []
    bounds: list[Bounds] = []

    def add(start: int, end: int) -> None:
        words.append(text[start:end])
        spaces.append(False)
        bounds.append((start, end))

    if not isinstance(tokens, list):
        return None
    position = 0
    for token in [*tokens, None]:
        start, end = len(text), len(text)
        if token is not None:
            found = _token_bounds(token, text, place)
            if found is None or found[0] < position:
                return None
            start, end = found
        if words and text[position : position + 1] == " " and position < start:
            spaces[-1] = True
            position += 1
        if position < start:
            add(position, start)
        if start < end:
            add(start, end)
        position = end
    return words, spaces, bounds


def _token_bounds(token: Any, text: str, place: OffsetMap) -> Bounds | None:
    if not isinstance(token, dict):
        return None
    start, end = token.get("start"), token.get("end")
    if not (isinstance(start, int) and isinstance(end, int)):
        return None
    first, last = place(start), place(end)
    if first is None or last is None or not 0 <= first <= last <= len(text):
        return None
    return (
        (first, last)
        if token.get("text", text[first:last]) == text[first:last]
        else None
    )
