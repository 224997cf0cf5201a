"""Inline brackets: one sentence a line, entities in square brackets.

    [ORG Bank of [GPE China]] said its [DATE 2019] profit rose 4 % .

Tokens are separated by spaces or tabs; no other character separates, so that a token
may hold a no-break space. `[` opens a span and its label runs to the next separator;
`]` closes the span opened last and is attached to the token before it. In tokens and
labels `\\[`, `\\]` and `\\\\` stand for the characters themselves. In a file, empty
lines, `#` alone and lines that start with `# ` are comments; the escape `\\#` lets a
sentence start with that sign. Columns in messages count characters from 1.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

SEPARATORS = " \t"
LINE_BREAKS = "\r\n"
ESCAPED = "[]\\#"

TokenSpan = tuple[int, int, str]


def parse_line(line: str) -> tuple[list[str], list[TokenSpan]]:
    """Read one sentence in inline brackets.

    line (str): The sentence, without the line break.
    RETURNS (Tuple[List[str], List[Tuple[int, int, str]]]): The tokens and the spans as
        (start, end, label), half-open in tokens, sorted by start, longer first, and of
        two spans over the same tokens the outer one first.
    RAISES (ValueError): If the line is not well formed; the message names the column.
    """
    tokens: list[str] = []
    # In the order of their opening brackets, which is the order promised above.
    opened: list[tuple[int, str, int]] = []
    ends: list[int] = []
    stack: list[int] = []
    for match in re.finditer(f"[^{SEPARATORS}]+", line):
        piece, column = match.group(), match.start() + 1
        if piece[0] == "[":
            label = _read_label(piece, column)
            stack.append(len(opened))
            opened.append((len(tokens), label, column))
            ends.append(-1)
            continue
        token, length = _read_text(piece, 0, column)
        if not token:
            raise _detached_bracket(opened, stack, len(tokens), column)
        tokens.append(token)
        for offset in range(length, len(piece)):
            at = column + offset
            if piece[offset] == "[":
                raise ValueError(
                    f"column {at}: opening bracket inside the token {piece!r}: put a "
                    f"space before it, or write \\[ for the character"
                )
            if piece[offset] != "]":
                raise ValueError(
                    f"column {at}: {piece[offset:]!r} is glued to a closing bracket: "
                    f"put a space after the bracket, or write \\] for the character"
                )
            if not stack:
                raise ValueError(
                    f"column {at}: closing bracket without an opening one: remove it, "
                    f"or write \\] for the character"
                )
            ends[stack.pop()] = len(tokens)
    if stack:
        start, label, column = opened[stack[-1]]
        if start == len(tokens):
            raise _empty_span(label, column)
        raise ValueError(
            f"column {column}: bracket {label!r} is never closed: attach ] to the last "
            f"token of the span"
        )
    spans = [(o[0], end, o[1]) for o, end in zip(opened, ends, strict=True)]
    return tokens, spans


def format_line(tokens: Sequence[str], spans: Iterable[TokenSpan]) -> str:
    """Write one sentence in inline brackets; `parse_line` is its inverse.

    tokens (Sequence[str]): The tokens, without spaces, tabs and line breaks.
    spans (Iterable[Tuple[int, int, str]]): Spans as (start, end, label), half-open in
        tokens, in any order. Spans over the same tokens nest in the order given.
    RETURNS (str): The line, without a line break.
    RAISES (ValueError): If a token or label cannot be written, if a span is empty or
        out of range, or if two spans cross.
    """
    for i, token in enumerate(tokens):
        _check_writable(token, f"token {i}")
    opening: list[list[str]] = [[] for _ in tokens]
    n_closing = [0] * len(tokens)
    stack: list[TokenSpan] = []
    for span in sorted(spans, key=lambda s: (s[0], -s[1])):
        start, end, label = span
        if not 0 <= start < end <= len(tokens):
            raise ValueError(
                f"expected spans with 0 <= start < end <= {len(tokens)}, "
                f"received {span}"
            )
        _check_writable(label, f"the label of span {span}")
        while stack and stack[-1][1] <= start:
            stack.pop()
        if stack and stack[-1][1] < end:
            first, second = (
                f"{s} {' '.join(tokens[s[0] : s[1]])!r}" for s in (stack[-1], span)
            )
            raise ValueError(
                f"spans {first} and {second} cross: brackets can only hold nested "
                f"spans, drop one of the two"
            )
        stack.append(span)
        opening[start].append(f"[{_escape(label)}")
        n_closing[end - 1] += 1
    pieces: list[str] = []
    for i, token in enumerate(tokens):
        pieces.extend(opening[i])
        pieces.append(_escape(token) + "]" * n_closing[i])
    line = " ".join(pieces)
    return f"\\{line}" if line.startswith("#") else line


def read_bracketed(
    path: str | Path, on_error: Callable[[ValueError], None] | None = None
) -> Iterator[tuple[int, list[str], list[TokenSpan]]]:
    """Read a file of sentences in inline brackets (UTF-8).

    path (Union[str, Path]): The file.
    on_error (Optional[Callable[[ValueError], None]]): Takes the error of a line that is
        not well formed, which is passed over then.
    YIELDS (Tuple[int, List[str], List[Tuple[int, int, str]]]): Line number (from 1),
        tokens and spans of each sentence; comments and empty lines are skipped.
    RAISES (ValueError): If a line is not well formed and `on_error` is not given; the
        message starts with path:line.
    """
    # Bytes, because text mode decodes in blocks and loses the line of a bad character.
    with Path(path).open("rb") as file:
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                line = line.rstrip(LINE_BREAKS)
                if any(char in line for char in LINE_BREAKS):
                    raise ValueError(
                        f"column {line.index(chr(13)) + 1}: carriage return inside the "
                        f"line: end lines with a line feed"
                    )
                if not line.strip(SEPARATORS) or line == "#" or line.startswith("# "):
                    continue
                tokens, spans = parse_line(line)
            except ValueError as error:
                named = ValueError(f"{path}:{number}: {error}")
                if on_error is None:
                    raise named from error
                on_error(named)
                continue
            yield number, tokens, spans


def _read_label(piece: str, column: int) -> str:
    """Read the label of a piece that starts with an opening bracket."""
    label, end = _read_text(piece, 1, column)
    if not label:
        raise ValueError(
            f"column {column}: empty label: write the label straight after the "
            f"bracket, or \\[ for the character"
        )
    if end == len(piece):
        return label
    if piece[end] == "]":
        raise _empty_span(label, column)
    raise ValueError(
        f"column {column + end}: opening bracket inside the label {label!r}: put a "
        f"space before it, or write \\[ for the character"
    )


def _read_text(piece: str, offset: int, column: int) -> tuple[str, int]:
    """Read from `offset` to the next bracket; return the text and where it ends."""
    chars: list[str] = []
    while offset < len(piece) and piece[offset] not in "[]":
        if piece[offset] == "\\":
            escaped = piece[offset + 1 : offset + 2]
            if not escaped or escaped not in ESCAPED:
                raise ValueError(
                    f"column {column + offset}: stray backslash: write \\\\ for the "
                    f"character; the escapes are \\[ \\] \\\\ \\#"
                )
            offset += 1
        chars.append(piece[offset])
        offset += 1
    return "".join(chars), offset


def _detached_bracket(
    opened: list[tuple[int, str, int]], stack: list[int], n_tokens: int, column: int
) -> ValueError:
    """Explain a closing bracket that has no token in front of it."""
    if not stack:
        return ValueError(
            f"column {column}: closing bracket without an opening one: remove it, or "
            f"write \\] for the character"
        )
    start, label, opened_at = opened[stack[-1]]
    if start == n_tokens:
        return _empty_span(label, opened_at)
    return ValueError(
        f"column {column}: closing bracket with a space before it: attach it to the "
        f"last token of {label!r}, or write \\] for the character"
    )


def _empty_span(label: str, column: int) -> ValueError:
    return ValueError(
        f"column {column}: empty span {label!r}: put at least one token between the "
        f"label and the closing bracket"
    )


def _check_writable(text: str, what: str) -> None:
    """Raise if a token or label would not come back from `parse_line`."""
    if not text or any(char in SEPARATORS + LINE_BREAKS for char in text):
        raise ValueError(
            f"expected text without spaces, tabs and line breaks as {what}, received "
            f"{text!r}"
        )


def _escape(text: str) -> str:
    return re.sub(r"([\[\]\\])", r"\\\1", text)
