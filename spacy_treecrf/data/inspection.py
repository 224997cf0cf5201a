"""What a corpus of Docs holds under a spans key, and what of it makes trouble."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from spacy.tokens import Doc

from spacy_treecrf.gold import GoldKeys, read_gold
from spacy_treecrf.problems import Problems

from .records import LabelledSpan
from .statistics import SpanCounts, crossing_pairs, labels_by_bounds

# Kinds of trouble, each with what becomes of it.
NO_GROUP = (
    "documents without the span group, and without entities in doc.ents: learnt from as "
    "if they had no spans"
)
CROSSING = "crossing pairs of spans: no tree holds both"
SEVERAL_LABELS = "spans with several labels: learnt as one combined label"
REPEATED = "repeated spans"
EMPTY = "spans without tokens: count as missed in evaluation"
WHITE_SPACE = "spans that start or end with white space: never predicted"
ACROSS_SENTENCES = "spans across sentence boundaries: never predicted"


@dataclass
class Inspection:
    """Counts over a corpus, filled Doc by Doc.

    counts (SpanCounts): Totals of the spans under the key.
    sentence_lengths (Counter[int]): Sentences by number of tokens; a Doc without
        sentence boundaries is one sentence.
    keys (Counter[str]): Docs by the span groups that they have.
    n_without_boundaries (int): Docs of several tokens without sentence boundaries.
    n_without_spans (int): Docs without spans under the key.
    entities (Counter[tuple[str, str]]): Spans by text and label.
    texts (Counter[str]): Docs by text.
    problems (Problems): What makes trouble, named by the Doc's index in the corpus.
    """

    counts: SpanCounts = field(default_factory=SpanCounts)
    sentence_lengths: Counter[int] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)
    n_without_boundaries: int = 0
    n_without_spans: int = 0
    entities: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    problems: Problems = field(default_factory=Problems)

    def add(self, doc: Doc, spans_key: str) -> None:
        """Count one Doc; without the group, what `doc.ents` holds is its gold.

        doc (Doc): The document.
        spans_key (str): Key of the span group to look at.
        """
        where = f"doc {self.counts.docs}"
        if "id" in doc.user_data:
            where += f" ({doc.user_data['id']})"
        self.keys.update(list(doc.spans))
        self.texts[doc.text.strip()] += 1
        gold = read_gold(doc, GoldKeys(spans_key))
        if gold.source is None:
            self.problems.add(NO_GROUP, f"{where}: {doc.text[:60]!r}")
        spans = self._check_spans(doc, gold.spans, where)
        self.n_without_spans += not spans
        self.entities.update((doc[s:e].text, label) for s, e, label in spans)
        self.counts.add(len(doc), spans)
        self.counts.docs += 1
        # The Doc as a whole was counted as one sentence.
        lengths = sentence_lengths(doc)
        self.counts.sentences += len(lengths) - 1
        self.sentence_lengths.update(lengths)
        self.n_without_boundaries += len(doc) > 1 and not doc.has_annotation(
            "SENT_START"
        )

    def _check_spans(
        self, doc: Doc, spans: list[LabelledSpan], where: str
    ) -> list[LabelledSpan]:
        """Report what makes trouble; return the distinct spans that have tokens."""

        def show(start: int, end: int) -> str:
            return repr(doc[start:end].text)

        problems = self.problems
        for (start, end, label), count in Counter(spans).items():
            detail = f"{where}: {label} {show(start, end)}"
            for _ in range(count - 1):
                problems.add(REPEATED, detail)
            if start == end:
                problems.add(EMPTY, f"{where}: {label} at token {start}")
            elif doc[start].is_space or doc[end - 1].is_space:
                problems.add(WHITE_SPACE, detail)
            # The first token may begin a sentence, the others must not.
            if any(token.is_sent_start for token in doc[start + 1 : end]):
                problems.add(ACROSS_SENTENCES, detail)
        distinct = sorted({span for span in spans if span[0] < span[1]})
        by_bounds = labels_by_bounds(distinct)
        for bounds, labels in by_bounds.items():
            if len(labels) > 1:
                problems.add(
                    SEVERAL_LABELS, f"{where}: {' + '.join(labels)} {show(*bounds)}"
                )
        for left, right in crossing_pairs(by_bounds):
            problems.add(CROSSING, f"{where}: {show(*left)} and {show(*right)}")
        return distinct


def inspect_docs(docs: Iterable[Doc], spans_key: str, n_named: int) -> Inspection:
    """Look at all Docs of a corpus.

    docs (Iterable[Doc]): The Docs.
    spans_key (str): Key of the span group to look at.
    n_named (int): Of each kind of trouble so many cases are named.
    RETURNS (Inspection): The counts.
    """
    inspection = Inspection(problems=Problems(n_named=n_named))
    for doc in docs:
        inspection.add(doc, spans_key)
    return inspection


def sentence_lengths(doc: Doc) -> list[int]:
    """Tokens of each sentence; a Doc without boundaries is one, an empty Doc none.

    doc (Doc): The document.
    RETURNS (list[int]): Lengths in text order.
    """
    starts = [t.i for t in doc if t.i == 0 or t.is_sent_start]
    ends = [*starts[1:], len(doc)]
    return [
        end - start for start, end in zip(starts, ends, strict=False) if end > start
    ]
