"""The record that every reader yields, and the list of what it could not convert."""

from collections import Counter
from collections.abc import Iterator
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
    given_tokens (bool): Whether they came with a text that spaCy will split anew, as
        Prodigy's do, so that spans may not fit the tokens of training.
    """

    id: str
    tokens: list[str]
    spans: list[LabelledSpan]
    doc: str | None = None
    spaces: list[bool] | None = None
    own_tokens: bool = True
    given_tokens: bool = False

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
    misaligned spans gives one message with a count. A *repair* is what was read
    otherwise than it stands in the file, or left out although the file means it.

    n_named (int): Of each kind so many are put into words; the rest are counted.
    strict (bool): Refuse at the first repair.
    """

    counts: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)
    n_named: int = N_NAMED
    strict: bool = False
    # Kinds that are repairs, and how many records could not be read at all.
    repairs: set[str] = field(default_factory=set)
    lost_records: int = 0

    def add(self, kind: str, detail: str) -> None:
        """Count one problem that is no repair.

        kind (str): What it is, e.g. "misaligned spans: left out".
        detail (str): Where it is: file, line, text.
        """
        self.counts[kind] += 1
        named = self.named.setdefault(kind, [])
        if len(named) < self.n_named:
            named.append(_printable(detail))

    def repair(self, kind: str, detail: str, lost_record: bool = False) -> None:
        """Count one repair.

        kind (str): What was done, e.g. "lines that are no JSON: left out".
        detail (str): Where: file, line, text.
        lost_record (bool): Whether a whole sentence or text was left out.
        RAISES (ConversionError): If `strict`.
        """
        if self.strict:
            raise ConversionError(
                Errors.T120.format(kind=kind, detail=_printable(detail).rstrip("."))
            )
        self.repairs.add(kind)
        self.lost_records += lost_record
        self.add(kind, detail)

    @property
    def n_repairs(self) -> int:
        """The number of repairs of all kinds."""
        return sum(self.counts[kind] for kind in self.repairs)

    def messages(self, repairs_only: bool = False) -> list[tuple[str, str]]:
        """One message for each kind of problem.

        repairs_only (bool): Leave out what is no repair.
        RETURNS (list[tuple[str, str]]): The headline with the count, and the first
            few cases, one a line.
        """
        result = []
        for kind, count in self.counts.items():
            if repairs_only and kind not in self.repairs:
                continue
            named = self.named[kind]
            more = [f"... and {count - len(named)} more"] if count > len(named) else []
            result.append((f"{count} {kind}", "\n".join(named + more)))
        return result


UNHOLDABLE = "sentences with tokens that no Doc can hold: left out"
ILL_FORMED = "spans out of their sentence or without label: left out"


def checked_records(
    sentence: Sentence, where: str, problems: Problems
) -> Iterator[Sentence]:
    """Check a record, and repair what can be: one bad span costs nothing but itself.

    sentence (Sentence): The record as read.
    where (str): File and line, for messages.
    problems (Problems): Takes what was repaired.
    YIELDS (Sentence): The record, as `checked_sentence` gives it; nothing if a token is
        empty or no text.
    RAISES (ConversionError): If something is to repair and `problems` is strict.
    """
    try:
        checked = checked_sentence(sentence, where, problems)
    except ConversionError:
        # Nothing was reported yet: look at the tokens, then at each span by itself.
        try:
            checked_sentence(replace(sentence, spans=[]), where, Problems())
        except ConversionError as error:
            problems.repair(UNHOLDABLE, str(error), lost_record=True)
            return
        spans = []
        for span in sentence.spans:
            try:
                checked_sentence(replace(sentence, spans=[span]), where, Problems())
            except ConversionError as error:
                problems.repair(ILL_FORMED, str(error))
            else:
                spans.append(span)
        checked = checked_sentence(replace(sentence, spans=spans), where, problems)
    yield checked


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
        if not token or not is_encodable(token):
            reason = f"token {i} is {token!r}, which no Doc can hold"
            if token and is_undecoded(token):
                reason = f"token {i} is {token!r}: not UTF-8, convert it with iconv"
            raise _bad(where, reason)
    if spaces is not None and len(spaces) != len(tokens):
        raise _bad(where, f"{len(spaces)} spaces for {len(tokens)} tokens")
    for start, end, label in sentence.spans:
        if not 0 <= start < end <= len(tokens):
            raise _bad(
                where,
                f"span ({start}, {end}, {label!r}) of {len(tokens)} tokens",
            )
        if not label or not is_encodable(label):
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


def is_encodable(string: str) -> bool:
    """Whether a Doc can hold a string.

    string (str): A token, label or text.
    RETURNS (bool): False if it has lone surrogates.
    """
    # JSON can spell lone surrogates, which neither a Doc nor UTF-8 can hold.
    try:
        string.encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


def is_undecoded(string: str) -> bool:
    """Whether a string holds bytes that are not UTF-8, as `read_lines` keeps them."""
    return any("\udc80" <= char <= "\udcff" for char in string)


def _printable(detail: str) -> str:
    # Lone surrogates can't be printed.
    return detail.encode("utf8", errors="backslashreplace").decode("utf8")


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T042.format(where=where, reason=reason))
