"""Character offsets to token offsets, with a count of those that match no tokens."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

from spacy_treecrf.problems import Problems

from .records import LabelledSpan

# As `alignment_mode` of spaCy's `Doc.char_span`.
AlignmentMode = Literal["strict", "contract", "expand"]

# Splits a text into tokens and says whether a space follows each.
Tokenize = Callable[[str], tuple[list[str], list[bool]]]

# The kinds of problem that `--max-misaligned` looks at.
LEFT_OUT = "misaligned spans, which do not begin and end at token borders: left out"
ADJUSTED = "misaligned spans, which do not begin and end at token borders: {mode}ed"

CONTEXT = 12  # Characters shown on either side of a misaligned span.


class Aligner:
    """Aligns the spans of one text."""

    def __init__(
        self,
        text: str,
        bounds: Sequence[tuple[int, int]],
        problems: Problems,
        mode: AlignmentMode = "strict",
    ) -> None:
        """Prepare a text.

        text (str): The text.
        bounds (Sequence[tuple[int, int]]): Start and end of each token in it, in order.
        problems (Problems): Takes the spans that begin or end within a token.
        mode (AlignmentMode): What becomes of those: left out ("strict"), cut to the
            tokens wholly inside ("contract") or widened to all they touch ("expand").
        """
        self.text = text
        self.problems = problems
        self.mode = mode
        self.starts = [start for start, _ in bounds]
        self.ends = [end for _, end in bounds]

    def align(
        self, start: int, end: int, label: str, where: str
    ) -> LabelledSpan | None:
        """Align one span.

        start (int): First character.
        end (int): End, exclusive.
        label (str): Label, for messages and the result.
        where (str): File and line, for messages.
        RETURNS (LabelledSpan | None): Token offsets and label; None if there are no
            tokens to align with.
        RAISES (ConversionError): If it is left out and `problems` is strict.
        """
        # The first token that begins at or after `start`, and the end of those that
        # end at or before `end`.
        first, last = bisect_left(self.starts, start), bisect_right(self.ends, end)
        in_text = 0 <= start < end <= len(self.text)
        if (
            in_text
            and first < last
            and self.starts[first] == start
            and self.ends[last - 1] == end
        ):
            return first, last, label
        kind = LEFT_OUT
        if in_text and self.mode != "strict":
            if self.mode == "expand":
                # The first token that ends after `start`; the end of those that begin
                # before `end`.
                first = bisect_right(self.ends, start)
                last = bisect_left(self.starts, end)
            if first < last:
                kind = ADJUSTED.format(mode=self.mode)
        report = self.problems.repair if kind == LEFT_OUT else self.problems.add
        report(kind, f"{where}: {label} {self.show(start, end)}")
        return (first, last, label) if kind != LEFT_OUT else None

    def show(self, start: int, end: int) -> str:
        """A span with its offsets and some text around it, for messages.

        start (int): First character.
        end (int): End, exclusive.
        RETURNS (str): On one line.
        """
        if not 0 <= start < end <= len(self.text):
            return f"({start}, {end}) of a text of {len(self.text)} characters"
        left = self.text[max(0, start - CONTEXT) : start]
        right = self.text[end : end + CONTEXT]
        return f"({start}, {end}) {left!r} >{self.text[start:end]!r}< {right!r}"


def n_misaligned(problems: Problems) -> int:
    """How many spans did not begin and end at token borders, left out or adjusted.

    problems (Problems): What the aligners collected.
    RETURNS (int): The number of spans.
    """
    kinds = (LEFT_OUT, ADJUSTED.format(mode="contract"), ADJUSTED.format(mode="expand"))
    return sum(problems.counts[kind] for kind in kinds)


def token_bounds(words: Sequence[str], spaces: Sequence[bool]) -> list[tuple[int, int]]:
    """Start and end of each token in the text that the tokens spell.

    words (Sequence[str]): The tokens.
    spaces (Sequence[bool]): Whether a space follows each.
    RETURNS (list[tuple[int, int]]): Half-open character offsets.
    """
    bounds = []
    position = 0
    for word, space in zip(words, spaces, strict=True):
        bounds.append((position, position + len(word)))
        position += len(word) + space
    return bounds
