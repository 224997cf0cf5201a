"""Gold of a whole corpus as disjoint names, and a count of what had to be left out."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import logger

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan, aligned_gold
from spacy_treecrf.problems import Problems

from .entities import outermost_spans
from .segments import DocSegments, Words, join_words, starts_of

# Documents read at a time, and between two lines of progress: some seconds.
CHUNK = 10_000

# What gold cannot be used as it stands, and what to do about it.
NESTED = (
    "lie in, cross or repeat another gold span, of which only the outermost is learnt. "
    "Train `treecrf` for nested entities, or ignore this"
)
MISALIGNED = (
    "do not fit the tokens of the pipeline's tokenizer and are not learnt. Convert the "
    "corpus so that it keeps its own tokens (`python -m spacy treecrf convert` without "
    "`--keep-spaces`), or mend the offsets"
)
CUT = (
    "cross a sentence start and are not learnt. Remove the sentence start, or cut the "
    "span in two"
)
EMPTY = "hold nothing but white space and are not learnt. Remove them"


@dataclass(frozen=True)
class FlatCorpus:
    """A corpus whose names are disjoint and lie within sentences.

    sentences (Words): Its words, sentence by sentence.
    start, end (np.ndarray): Half-open word offsets of the names. Shape: (M,).
    labels (np.ndarray): Number of each name's label. Shape: (M,).
    label_names (tuple[str, ...]): The labels, sorted.
    known (np.ndarray): Whether anybody has annotated each word. Shape: (T,), bool.
    """

    sentences: Words
    start: np.ndarray
    end: np.ndarray
    labels: np.ndarray
    label_names: tuple[str, ...]
    known: np.ndarray


class FlatReport:
    """Counts gold that cannot be used; warns once a kind.

    name (str): Name of the pipe.
    keys (GoldKeys): Where its gold is.
    n_named (int): Of each kind so many cases are described.
    """

    def __init__(self, name: str, keys: GoldKeys, n_named: int = 1) -> None:
        self.name, self.keys = name, keys
        self.problems = Problems(n_named)
        self.total = self.n_docs = self.n_without = self.n_empty_regions = 0
        self.first_empty_region = ""
        self.group_keys: Counter[str] = Counter()

    def add(self, kind: str, number: int, doc: Doc, span: LabelledSpan) -> None:
        """Count one span of the Doc of a number."""
        self.problems.add_span(kind, doc, span, f"document {number}, ")

    def add_gold(self, number: int, doc: Doc, gold: Gold) -> None:
        """Count what a Doc has, and what of it fits no tokens."""
        self.group_keys.update(doc.spans.keys())
        self.n_docs += 1
        self.n_without += gold.source is None and len(doc) > 0
        self.total += len(gold.spans) + len(gold.lost)
        for span in gold.lost:
            self.add(MISALIGNED, number, doc, span)
        for span in gold.lost_missing:
            self.n_empty_regions += 1
            self.first_empty_region = (
                self.first_empty_region or f"{span} in document {number}"
            )

    def message(self, kind: str) -> str:
        """The warning of a kind, with its count and the first case."""
        count = self.problems.counts[kind]
        return Warnings.T080.format(
            name=self.name,
            count=count,
            total=self.total,
            share=count / max(1, self.total),
            key=self.keys.spans,
            problem=kind,
            first=self.problems.first(kind),
        )

    def regions_message(self) -> str:
        """The warning of regions without a token."""
        return Warnings.T149.format(
            name=self.name,
            count=self.n_empty_regions,
            key=self.keys.missing,
            first=self.first_empty_region,
        )

    def warn(self) -> None:
        """Give one warning for each kind, and one of Docs that are not annotated."""
        for kind in self.problems.unwarned():
            warnings.warn(self.message(kind), stacklevel=6)
        if self.n_empty_regions:
            warnings.warn(self.regions_message(), stacklevel=5)
        if self.n_without:
            warnings.warn(
                Warnings.T081.format(
                    name=self.name,
                    count=self.n_without,
                    total=self.n_docs,
                    key=self.keys.spans,
                    keys=sorted(self.group_keys),
                ),
                stacklevel=5,
            )


def read_flat_corpus(
    get_examples: Callable[[], Iterable[Example]],
    name: str,
    spans_key: str,
    missing_spans_key: str | None = None,
    report: FlatReport | None = None,
) -> FlatCorpus:
    """Read a whole corpus, once.

    get_examples (Callable[[], Iterable[Example]]): The corpus. Gold is
        `doc.spans[spans_key]` of the reference where the key exists, else `doc.ents`.
    name (str): Name of the pipe, for messages.
    spans_key (str): Key of the gold spans.
    missing_spans_key (Optional[str]): Key of the regions that are not annotated.
    report (Optional[FlatReport]): Gets what cannot be used; by default one is made, and
        warns of it.
    RETURNS (FlatCorpus): Words of the predicted Docs and gold that fits them.
    RAISES (ValueError): If there is no usable name in the whole corpus.

    Sentence starts are those of `starts_of`.
    """
    keys = GoldKeys(spans_key, missing_spans_key)
    found = report or FlatReport(name, keys)
    chunks: list[Words] = []
    rows: list[np.ndarray] = []
    labels: list[str] = []
    known: list[np.ndarray] = []
    n_words = 0
    examples = iter(get_examples())
    # In chunks, so that no more than one chunk of Docs is held in memory.
    while chunk := list(islice(examples, CHUNK)):
        docs, gold, n_docs = [], [], found.n_docs
        for number, example in enumerate(chunk):
            docs.append(example.predicted)
            its_gold = aligned_gold(example, keys)
            found.add_gold(n_docs + number, example.reference, its_gold)
            if its_gold.spans or its_gold.regions:
                gold.append((number, its_gold))
        segments = DocSegments(docs, starts_of=[starts_of(e) for e in chunk])
        table, names, is_known = _place(segments, docs, gold, n_docs, found)
        words = segments.words()
        chunks.append(replace(words, docs=words.docs + n_docs))
        rows.append(table + n_words)
        labels.extend(names)
        known.append(is_known)
        n_words += len(words)
        logger.info("%s: read %d documents, %d words", name, found.n_docs, n_words)
    if not labels:
        raise ValueError(
            Errors.T070.format(
                name=name,
                key=spans_key,
                n_docs=found.n_docs,
                keys=sorted(found.group_keys) or "none",
            )
        )
    if report is None:
        found.warn()
    is_known = np.concatenate(known)
    if not is_known.all():
        n_open = n_words - int(is_known.sum())
        logger.info("%s: %d words are not annotated: not learnt from", name, n_open)
    label_names = tuple(sorted(set(labels)))
    position = {label: number for number, label in enumerate(label_names)}
    edges = np.concatenate(rows)
    sentences = join_words(chunks)
    if not is_known.all():
        # A sentence that nobody has annotated is as if it were not there.
        sentence = np.repeat(np.arange(len(sentences.lengths)), sentences.lengths)
        kept = np.bincount(sentence[is_known], minlength=len(sentences.lengths)) > 0
        is_kept = kept[sentence]
        words_before = np.concatenate(([0], np.cumsum(is_kept)))
        edges, is_known = words_before[edges], is_known[is_kept]
        sentences = sentences.select(kept)
    return FlatCorpus(
        sentences,
        edges[:, 0],
        edges[:, 1],
        np.array([position[label] for label in labels], dtype=np.int64),
        label_names,
        is_known,
    )


def label_words(corpus: FlatCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Name class of each word of a corpus, and whether a segment begins at it.

    corpus (FlatCorpus): The corpus.
    RETURNS (tuple[np.ndarray, np.ndarray]): Shapes: (T,).
    """
    n_words = len(corpus.sentences)
    name_classes = np.zeros(n_words, dtype=np.int64)
    begins = np.zeros(n_words, dtype=bool)
    lengths = corpus.end - corpus.start
    offset = np.repeat(corpus.start - (np.cumsum(lengths) - lengths), lengths)
    name_classes[np.arange(len(offset)) + offset] = np.repeat(
        corpus.labels + 1, lengths
    )
    sentence_start = np.cumsum(corpus.sentences.lengths) - corpus.sentences.lengths
    # A run of NOT-A-NAME begins after a name's end and at a sentence start.
    begins[1:] = (name_classes[1:] == 0) & (name_classes[:-1] != 0)
    begins[sentence_start] = True
    begins[corpus.start] = True
    return name_classes, begins


def _place(
    segments: DocSegments,
    docs: list[Doc],
    gold: list[tuple[int, Gold]],
    n_before: int,
    report: FlatReport,
) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Disjoint names within sentences, in word offsets of a chunk.

    RETURNS (tuple[np.ndarray, list[str], np.ndarray]): (start, end) and label of each;
        whether each word of the chunk is annotated.
    """
    before = segments.words_before
    n_words = segments.n_words
    sentence_end = np.repeat(np.cumsum(n_words), n_words)
    rows: list[tuple[int, int]] = []
    labels: list[str] = []
    known = np.ones(len(sentence_end), dtype=bool)
    for number, its_gold in gold:
        doc, spans = docs[number], its_gold.spans
        kept = outermost_spans(spans) if len(spans) > 1 else spans
        if len(kept) < len(spans):
            for span in _left_out(spans, kept):
                report.add(NESTED, n_before + number, doc, span)
        words = before[segments.offsets[number] :]
        for start, end, _ in its_gold.regions:
            known[words[start] : words[end]] = False
        for span in kept:
            # The words before each edge: the span without white space at its edges.
            start, end = int(words[span[0]]), int(words[span[1]])
            if start >= end:
                report.add(EMPTY, n_before + number, doc, span)
            elif end > sentence_end[start]:
                report.add(CUT, n_before + number, doc, span)
            else:
                rows.append((start, end))
                labels.append(span[2])
                known[start:end] = True
    return np.array(rows, dtype=np.int64).reshape(-1, 2), labels, known


def _left_out(
    spans: list[LabelledSpan], kept: list[LabelledSpan]
) -> Iterable[LabelledSpan]:
    """The spans that are not kept, repeated ones too."""
    remaining = Counter(spans)
    remaining.subtract(kept)
    return remaining.elements()
