"""What of the gold cannot be used as it stands: how often, and the first few in words."""

from collections import Counter
from collections.abc import Iterator

from spacy.tokens import Doc

from spacy_treecrf.gold import LabelledSpan

# Of a span and of the Doc it is in, a message shows so many characters.
QUOTED = 80


class Problems:
    """Counts problems by kind; gives each kind once to be warned of.

    n_named (int): Of each kind so many are described; the rest are counted.
    """

    def __init__(self, n_named: int = 1) -> None:
        self.n_named = n_named
        self.counts: Counter[str] = Counter()
        self.named: dict[str, list[str]] = {}
        self._warned: set[str] = set()

    def add(self, kind: str, doc: Doc, span: LabelledSpan, where: str = "") -> None:
        """Count one span.

        kind (str): What is wrong with it.
        doc (Doc): The Doc whose tokens the span counts. span (LabelledSpan): The span.
        where (str): Which Doc that is, where more than its text is known.
        """
        self.counts[kind] += 1
        named = self.named.setdefault(kind, [])
        if len(named) < self.n_named:
            start, end, label = span
            named.append(
                f"({start}, {end}, {label!r}) {doc[start:end].text[:QUOTED]!r} in "
                f"{where}{doc[: min(len(doc), 12)].text[:QUOTED]!r}..."
            )

    def first(self, kind: str) -> str:
        """The first of a kind, in words."""
        return self.named[kind][0]

    def unwarned(self) -> Iterator[str]:
        """The kinds that were found and not given before, in alphabetical order."""
        for kind in sorted(set(self.counts) - self._warned):
            self._warned.add(kind)
            yield kind

    def clear(self) -> None:
        """Count anew; what was warned of stays known."""
        self.counts.clear()
        self.named.clear()
