"""The record that every reader yields, and the list of what it could not convert."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from spacy_treecrf.errors import Errors

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]

# Enough to see a pattern, few enough to read.
N_NAMED = 5


class ConversionError(ValueError):
    """Input that cannot be converted; the message names file and line."""


@dataclass
class Sentence:
    """One line or block of a corpus: tokens and possibly nested, labelled spans.

    id (str): Unique name, for messages.
    tokens (list[str]): The tokens, none of them empty.
    spans (list[LabelledSpan]): Half-open token offsets and labels.
    doc (str | None): The document that the sentence belongs to.
    spaces (list[bool] | None): Whether a space follows each token; None if unknown.
    own_tokens (bool): Whether the tokens are the corpus's own, not a tokenizer's.
    """

    id: str
    tokens: list[str]
    spans: list[LabelledSpan]
    doc: str | None = None
    spaces: list[bool] | None = None
    own_tokens: bool = True

    def text(self, start: int = 0, end: int | None = None) -> str:
        """The text of some tokens, with single spaces where spacing is unknown.

        start (int): First token.
        end (int | None): End of the tokens, exclusive; None for all.
        RETURNS (str): The text, without what follows the last token.
        """
        tokens = self.tokens[start:end]
        if self.spaces is None:
            return " ".join(tokens)
        spaces = self.spaces[start:end]
        text = "".join(
            t + " " * s for t, s in zip(tokens[:-1], spaces[:-1], strict=True)
        )
        return text + "".join(tokens[-1:])


@dataclass
class Problems:
    """What could not be converted, by kind: how often, and the first few in words.

    Readers collect here instead of warning at once, so that a corpus with a thousand
    misaligned spans gives one message with a count.

    n_named (int): Of each kind so many are put into words; the rest are counted.
    """

    counts: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)
    n_named: int = N_NAMED

    def add(self, kind: str, detail: str) -> None:
        """Count one problem.

        kind (str): What it is, e.g. "misaligned spans: left out".
        detail (str): Where it is: file, line, text.
        """
        self.counts[kind] += 1
        named = self.named.setdefault(kind, [])
        if len(named) < self.n_named:
            named.append(detail)

    def messages(self) -> list[tuple[str, str]]:
        """One message for each kind of problem.

        RETURNS (list[tuple[str, str]]): The headline with the count, and the first
            few cases, one a line.
        """
        result = []
        for kind, count in self.counts.items():
            named = self.named[kind]
            more = [f"... and {count - len(named)} more"] if count > len(named) else []
            result.append((f"{count} {kind}", "\n".join(named + more)))
        return result


def checked_sentence(sentence: Sentence, where: str, problems: Problems) -> Sentence:
    """Check a record against what a Doc can hold, and drop repeated spans.

    sentence (Sentence): The record as read.
    where (str): File and line, for messages.
    problems (Problems): Takes repeated spans and spans with white space at an edge.
    RETURNS (Sentence): The record with its spans sorted by start, longest first.
    RAISES (ConversionError): If a token is empty or no text, spaces are not as many as
        tokens, or a span is empty, out of bounds or without label.
    """
    tokens, spaces = sentence.tokens, sentence.spaces
    for i, token in enumerate(tokens):
        if not token or not _is_encodable(token):
            raise _bad(where, f"token {i} is {token!r}, which no Doc can hold")
    if spaces is not None and len(spaces) != len(tokens):
        raise _bad(where, f"{len(spaces)} spaces for {len(tokens)} tokens")
    for start, end, label in sentence.spans:
        if not 0 <= start < end <= len(tokens):
            raise _bad(
                where,
                f"span ({start}, {end}, {label!r}) of {len(tokens)} tokens",
            )
        if not label or not _is_encodable(label):
            raise _bad(where, f"span ({start}, {end}) has the label {label!r}")
    counts = Counter(sentence.spans)
    spans = sorted(counts, key=lambda span: (span[0], -span[1], span[2]))
    for span in spans:
        start, end, label = span
        text = sentence.text(start, end)
        for _ in range(counts[span] - 1):
            problems.add("repeated spans: kept once", f"{where}: {label} {text!r}")
        if tokens[start].isspace() or tokens[end - 1].isspace():
            problems.add(
                "spans that start or end with white space: kept, but no pipe predicts "
                "them",
                f"{where}: {label} {text!r}",
            )
    return replace(sentence, spans=spans)


def default_id(path: Path, number: int) -> str:
    """Name a sentence that has no name: the file's stem and a number from 0."""
    return f"{stem(path)}-{number}"


def stem(path: Path) -> str:
    """The name of a file without folder, compression and format endings."""
    return path.name.removesuffix(".gz").rsplit(".", 1)[0]


def _is_encodable(string: str) -> bool:
    # JSON can spell lone surrogates, which neither a Doc nor UTF-8 can hold.
    try:
        string.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T042.format(where=where, reason=reason))
