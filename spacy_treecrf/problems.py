"""What cannot be used as it stands: how often, and the first few cases in words."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from spacy.tokens import Doc

from spacy_treecrf.errors import Errors
from spacy_treecrf.gold import LabelledSpan

# Enough to see a pattern, few enough to read.
N_NAMED = 5
# Of a span, and of the Doc it is in, a message shows so many characters.
QUOTED = 80
START_TOKENS, START_QUOTED = 12, 60


class ConversionError(ValueError):
    """Input that cannot be converted; the message names file and line."""


@dataclass
class Problems:
    """Problems by kind: how often each, and the first few in words.

    Whoever reads a corpus collects here instead of warning at once, so that one with a
    thousand misaligned spans gives one message with a count. A *repair* is what was read
    otherwise than it stands in a file, or left out although the file means it.

    n_named (int): Of each kind so many are put into words; the rest are counted.
    strict (bool): Refuse at the first repair.
    """

    n_named: int = N_NAMED
    strict: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)
    # Kinds that are repairs, and how many records could not be read at all.
    repairs: set[str] = field(default_factory=set)
    lost_records: int = 0
    _warned: set[str] = field(default_factory=set)

    def add(self, kind: str, detail: str) -> None:
        """Count one problem that is no repair.

        kind (str): What it is, e.g. "misaligned spans: left out".
        detail (str): Where it is: file, line, text.
        """
        self.counts[kind] += 1
        named = self.named.setdefault(kind, [])
        if len(named) < self.n_named:
            named.append(_printable(detail))

    def add_span(
        self, kind: str, doc: Doc, span: LabelledSpan, where: str = ""
    ) -> None:
        """Count one span.

        kind (str): What is wrong with it.
        doc (Doc): The Doc whose tokens the span counts. span (LabelledSpan): The span.
        where (str): Which Doc that is, where more than its text is known.
        """
        # Put into words only where it is shown: a corpus may have many.
        is_shown = len(self.named.get(kind, ())) < self.n_named
        self.add(kind, describe(doc, span, where) if is_shown else "")

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

    def first(self, kind: str) -> str:
        """The first of a kind, in words."""
        return self.named[kind][0]

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

    def unwarned(self) -> Iterator[str]:
        """The kinds that were found and not given before, in alphabetical order."""
        for kind in sorted(set(self.counts) - self._warned):
            self._warned.add(kind)
            yield kind

    def clear(self) -> None:
        """Count anew; what was warned of stays known."""
        self.counts.clear()
        self.named.clear()


def describe(doc: Doc, span: LabelledSpan, where: str = "") -> str:
    """A span of a Doc, in words. where (str): Which Doc that is, if it is known."""
    start, end, label = span
    return (
        f"({start}, {end}, {label!r}) {doc[start:end].text[:QUOTED]!r} in "
        f"{where}{doc[: min(len(doc), START_TOKENS)].text[:QUOTED]!r}..."
    )


def start_of(doc: Doc) -> str:
    """How a Doc begins, for messages."""
    return doc[:START_TOKENS].text[:START_QUOTED]


def _printable(detail: str) -> str:
    # Lone surrogates can't be printed.
    return detail.encode("utf8", errors="backslashreplace").decode("utf8")
