"""What `treecrf` cannot use of its gold: the counts, and the warnings that tell them."""

import warnings
from collections import Counter
from typing import Any

from spacy.tokens import Doc

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan
from spacy_treecrf.problems import Problems

# Spans of three sorts, with the words for them in the warning, and what else to know.
GOLD, INCORRECT, MISSING = "gold spans", "incorrect spans", "missing regions"
IN_EVALUATION = {GOLD: "In evaluation they still count as gold. "}
# What can be wrong, with the sort of span and the word for it in the warning.
KINDS = {
    "crossing": (
        GOLD,
        "cross another gold span (the largest set that fits one tree is kept)",
    ),
    "cut": (
        GOLD,
        "cross a segment border (sentence start, or a window of max_length tokens)",
    ),
    "misaligned": (GOLD, "do not fit the tokens of the predicted Doc"),
    "space": (GOLD, "start or end on white space (they were trimmed)"),
    "empty": (GOLD, "hold no token but white space"),
    "combination": (
        GOLD,
        "carry a set of labels not seen in initialisation (fewer were kept)",
    ),
    "wide": (
        GOLD,
        "are wider than max_width = {max_width} (they cannot be found; what they hold is "
        "learnt; max_width = {widest} would hold all)",
    ),
    "contradiction": (
        GOLD,
        "are marked incorrect with their own label (the mark was kept)",
    ),
    "incorrect_cut": (
        INCORRECT,
        "cross a segment border, so that no entity could be there (they were left out)",
    ),
    "incorrect_misaligned": (
        INCORRECT,
        "do not fit the tokens of the predicted Doc (they were left out)",
    ),
    "incorrect_space": (INCORRECT, "start or end on white space (they were trimmed)"),
    "incorrect_empty": (
        INCORRECT,
        "hold no token but white space (they were left out)",
    ),
    "missing_empty": (MISSING, "hold no token (they were left out)"),
}


class GoldReport:
    """Counts what could not be used as it stands; warns once a kind.

    name (str): Name of the pipe.
    cfg (dict[str, Any]): Its settings: where its gold is, and the width limit.
    n_named (int): Of each kind so many cases are described.
    """

    def __init__(self, name: str, cfg: dict[str, Any], n_named: int = 1) -> None:
        self.name, self.keys = name, GoldKeys.of(cfg)
        self.max_width: int | None = cfg["max_width"]
        self.widest = 0
        self.problems = Problems(n_named)
        # Spans of each sort, Docs, and Docs by the source of their gold.
        self.totals: Counter[str] = Counter()
        self.sources: Counter[str | None] = Counter()
        self.entities = 0
        self.other_keys: set[str] = set()
        # Which Doc is being read, where its number is known.
        self.where = ""
        self._warned_sources: set[str | None] = set()

    @property
    def counts(self) -> Counter[str]:
        """How often each kind was found."""
        return self.problems.counts

    def add(self, kind: str, doc: Doc, span: LabelledSpan) -> None:
        """Count one span, and keep the first of its kind as the example."""
        self.problems.add_span(kind, doc, span, self.where)

    def add_wide(self, doc: Doc, span: LabelledSpan) -> None:
        """Count one span that is wider than the width limit."""
        self.widest = max(self.widest, span[1] - span[0])
        self.add("wide", doc, span)

    def add_gold(self, doc: Doc, gold: Gold) -> None:
        """Count what a Doc has, and what of it fits no tokens.

        doc (Doc): The reference, whose tokens count what is lost.
        gold (Gold): Its annotation, in tokens of the predicted Doc.
        """
        # An empty Doc can lack nothing.
        self.sources[gold.source if len(doc) else "spans"] += 1
        self.entities += len(gold.spans) if gold.source == "ents" else 0
        self.other_keys |= set(doc.spans.keys()) - {self.keys.spans}
        self.totals[GOLD] += len(gold.spans) + len(gold.lost)
        self.totals[INCORRECT] += len(gold.incorrect) + len(gold.lost_incorrect)
        self.totals[MISSING] += len(gold.missing) + len(gold.lost_missing)
        for kind, spans in (
            ("misaligned", gold.lost),
            ("incorrect_misaligned", gold.lost_incorrect),
            ("missing_empty", gold.lost_missing),
        ):
            for span in spans:
                self.add(kind, doc, span)

    def restart(self) -> None:
        """Count anew; what was warned of stays known."""
        self.problems.clear()
        self.totals.clear()
        self.sources.clear()
        self.entities = self.widest = 0

    def no_labels(self) -> str:
        """Message for a corpus in which there is nothing to learn from."""
        return Errors.T001.format(
            name=self.name,
            key=self.keys.spans,
            n_docs=self.sources.total(),
            keys=sorted(self.other_keys) or "none",
        )

    def problem(self, kind: str) -> str:
        """What is wrong with the spans of a kind, in words."""
        return KINDS[kind][1].format(max_width=self.max_width, widest=self.widest)

    def message(self, kind: str) -> str:
        """The warning of a kind, with its count and an example."""
        sort, problem = KINDS[kind][0], self.problem(kind)
        keys = {INCORRECT: self.keys.incorrect, MISSING: self.keys.missing}
        total = self.totals[sort]
        return Warnings.T102.format(
            name=self.name,
            count=self.counts[kind],
            total=total,
            what=sort,
            share=self.counts[kind] / max(1, total),
            key=keys.get(sort, self.keys.spans),
            problem=problem,
            example=self.problems.first(kind),
            evaluation=IN_EVALUATION.get(sort, ""),
        )

    def source_messages(self) -> dict[str | None, str]:
        """What is to be said of Docs whose gold is not under the key."""
        shared = {
            "name": self.name,
            "key": self.keys.spans,
            "total": self.sources.total(),
            "keys": sorted(self.other_keys) or "none",
        }
        found: dict[str | None, str] = {}
        if self.sources["ents"]:
            found["ents"] = Warnings.T145.format(
                count=self.sources["ents"], entities=self.entities, **shared
            )
        if self.sources[None]:
            found[None] = Warnings.T105.format(count=self.sources[None], **shared)
        return found

    def warn(self, is_corpus: bool = False) -> None:
        """Give one warning for each kind that is new, with its count and an example.

        is_corpus (bool): Whether a whole corpus was read, which is to say how many of
            its Docs are not annotated at all.
        """
        for source, message in self.source_messages().items():
            if (source or is_corpus) and source not in self._warned_sources:
                self._warned_sources.add(source)
                warnings.warn(message, stacklevel=4)
        for kind in self.problems.unwarned():
            warnings.warn(self.message(kind), stacklevel=4)
