"""JSON Lines: the uniform format, and character offsets as annotation tools write them.

A line is one of

- uniform: `{"id", "doc", "tokens": [str], "spaces": [bool] | null,
  "spans": [[start, end_exclusive, label], ...]}`, offsets counted in tokens;
- Prodigy (`spans_manual`): `{"text", "tokens": [{"text", "start", "end", "ws"}],
  "spans": [{"start", "end", "label"}], "answer"}`, offsets counted in characters;
- doccano: `{"text", "label": [[start, end, label], ...]}`, the list also named
  `labels` or `entities`, its members also `{"start_offset", "end_offset", "label"}`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from spacy_treecrf.errors import Errors

from .alignment import Aligner, AlignmentMode, Tokenize, token_bounds
from .records import (
    ConversionError,
    Problems,
    Sentence,
    checked_sentence,
    default_id,
)
from .text_files import read_lines

# Where tools put the spans, in the order in which we look.
SPAN_FIELDS = ("spans", "label", "labels", "entities")
UNANNOTATED = "texts without a field for spans (" + ", ".join(SPAN_FIELDS) + "): kept"


def read_jsonl(
    path: Path, problems: Problems, tokenize: Tokenize, mode: AlignmentMode = "strict"
) -> Iterator[Sentence]:
    """Read a JSON Lines file.

    path (Path): The file, `.jsonl` or `.jsonl.gz`.
    problems (Problems): Takes misaligned spans and examples not accepted.
    tokenize (Tokenize): Splits a text that comes without tokens.
    mode (AlignmentMode): What becomes of misaligned spans.
    YIELDS (Sentence): One record a line, but for those whose answer is not "accept".
    RAISES (ConversionError): If a line is no JSON or has not the fields above.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConversionError(
                Errors.T043.format(where=where, reason=str(error))
            ) from error
        if not isinstance(record, dict):
            raise _bad(where, f"expected an object, received {_show(record)}")
        answer = record.get("answer", "accept")
        if answer != "accept":
            problems.add(f"examples with the answer {answer!r}: left out", where)
            continue
        name = record.get("id")
        sentence = _read_record(record, where, problems, tokenize, mode)
        # Numbers are names too (doccano counts its texts).
        sentence.id = default_id(path, number - 1) if name is None else str(name)
        if record.get("doc") is not None:
            sentence.doc = str(record["doc"])
        yield checked_sentence(sentence, where, problems)


def _read_record(
    record: dict[str, Any],
    where: str,
    problems: Problems,
    tokenize: Tokenize,
    mode: AlignmentMode,
) -> Sentence:
    tokens, text = record.get("tokens"), record.get("text")
    if _is_words(tokens) and (tokens or not isinstance(text, str)):
        return _read_uniform(record, tokens, where)
    if not isinstance(text, str):
        raise _bad(where, "expected 'tokens', a list of strings, or 'text', a string")
    if tokens:
        words, spaces, bounds = _read_tokens(tokens, text, where)
    else:
        words, spaces = tokenize(text)
        bounds = token_bounds(words, spaces)
    field = next((f for f in SPAN_FIELDS if f in record), None)
    if field is None:
        problems.add(UNANNOTATED, where)
    annotated = (record[field] or []) if field else []
    if not isinstance(annotated, list):
        raise _bad(where, f"expected {field!r}, a list, not {_show(annotated)}")
    spans = [_character_span(span, where) for span in annotated]
    aligner = Aligner(text, bounds, problems, mode)
    aligned = [aligner.align(*span, where) for span in spans]
    return Sentence(
        "", words, [s for s in aligned if s], spaces=spaces, own_tokens=False
    )


def _read_uniform(record: dict[str, Any], tokens: list[str], where: str) -> Sentence:
    spaces, spans = record.get("spaces"), record.get("spans")
    if spaces is not None and not (
        isinstance(spaces, list) and all(isinstance(s, bool) for s in spaces)
    ):
        raise _bad(where, f"expected 'spaces', a list of booleans, not {_show(spaces)}")
    if not isinstance(spans, list):
        raise _bad(where, f"expected 'spans', a list, not {_show(spans)}")
    for span in spans:
        if not _is_triple(span):
            raise _bad(where, f"expected a span [start, end, label], not {_show(span)}")
    return Sentence("", tokens, [(s, e, label) for s, e, label in spans], spaces=spaces)


def _is_words(tokens: Any) -> TypeGuard[list[str]]:
    return isinstance(tokens, list) and all(isinstance(t, str) for t in tokens)


def _is_triple(span: Any) -> bool:
    # JSON's true is an int to Python.
    return (
        isinstance(span, list)
        and len(span) == 3
        and all(isinstance(i, int) and not isinstance(i, bool) for i in span[:2])
        and isinstance(span[2], str)
    )


def _character_span(span: Any, where: str) -> tuple[int, int, str]:
    if isinstance(span, dict):
        start = span.get("start", span.get("start_offset"))
        span = [start, span.get("end", span.get("end_offset")), span.get("label")]
    if not _is_triple(span):
        raise _bad(
            where, f"expected a span with start, end and label, not {_show(span)}"
        )
    return span[0], span[1], span[2]


def _read_tokens(
    tokens: Any, text: str, where: str
) -> tuple[list[str], list[bool], list[tuple[int, int]]]:
    """Tokens with character offsets; what lies between them becomes tokens as well."""
    words: list[str] = []
    spaces: list[bool] = []
    bounds: list[tuple[int, int]] = []

    def add(start: int, end: int) -> None:
        words.append(text[start:end])
        spaces.append(False)
        bounds.append((start, end))

    position = 0
    for token in [*tokens, {"start": len(text), "end": len(text)}]:
        start, end = (
            (token.get("start"), token.get("end"))
            if isinstance(token, dict)
            else (None, None)
        )
        if not (
            isinstance(start, int)
            and isinstance(end, int)
            and position <= start <= end <= len(text)
            and token.get("text", text[start:end]) == text[start:end]
        ):
            raise _bad(where, f"token {_show(token)} does not fit the text there")
        if words and text[position : position + 1] == " " and position < start:
            spaces[-1] = True
            position += 1
        if position < start:
            add(position, start)
        if start < end:
            add(start, end)
        position = end
    return words, spaces, bounds


def _show(value: Any) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T044.format(where=where, reason=reason))
