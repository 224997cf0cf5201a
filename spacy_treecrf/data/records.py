"""The record that every reader yields."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]


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


def _bad(where: str, reason: str) -> ConversionError:
    return ConversionError(Errors.T042.format(where=where, reason=reason))
