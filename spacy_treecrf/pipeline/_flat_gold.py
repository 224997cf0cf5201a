"""Gold of a whole corpus as disjoint names, and a count of what had to be left out."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from spacy.attrs import SENT_START
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import logger

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.scorers import same_tokens

from ._sentences import DocSentences, join_sentences, read_sentences
from ._spans import LabelledSpan, outermost_spans

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

    sentences (DocSentences): Its words; types are hashes of the pipe's string store.
    start, end (np.ndarray): Half-open word offsets of the names. Shape: (M,).
    labels (np.ndarray): Number of each name's label. Shape: (M,).
    label_names (tuple[str, ...]): The labels, sorted.
    """

    sentences: DocSentences
    start: np.ndarray
    end: np.ndarray
    labels: np.ndarray
    label_names: tuple[str, ...]


class _Problems:
    """Counts gold that cannot be used; warns once a kind."""

    def __init__(self, name: str, key: str):
        self.name, self.key = name, key
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self.total = 0

    def add(self, kind: str, number: int, doc: Doc, span: LabelledSpan) -> None:
        self.counts[kind] += 1
        if kind not in self.first:
            start, end, label = span
            self.first[kind] = (
                f"({start}, {end}, {label!r}) {doc[start:end].text[:80]!r} in document "
                f"{number}, {doc[:12].text[:80]!r}"
            )

    def warn(self) -> None:
        for kind, count in self.counts.items():
            warnings.warn(
                Warnings.T080.format(
                    name=self.name,
                    count=count,
                    total=self.total,
                    share=count / self.total,
                    key=self.key,
                    problem=kind,
                    first=self.first[kind],
                ),
                stacklevel=6,
            )


def read_flat_corpus(
    get_examples: Callable[[], Iterable[Example]], name: str, spans_key: str
) -> FlatCorpus:
    """Read a whole corpus, once.

    get_examples (Callable[[], Iterable[Example]]): The corpus. Gold is
        `doc.spans[spans_key]` of the reference where the key exists, else `doc.ents`.
    name (str): Name of the pipe, for messages.
    spans_key (str): Key of the gold spans.
    RETURNS (FlatCorpus): Words of the predicted Docs and gold that fits them.
    RAISES (ValueError): If there is no usable name in the whole corpus.

    Deviates: sentence starts come from the predicted Doc, and where it has none, as is
    always the case in `spacy train`, from the reference with the same tokens.
    """
    problems = _Problems(name, spans_key)
    keys: Counter[str] = Counter()
    chunks: list[DocSentences] = []
    rows: list[np.ndarray] = []
    labels: list[str] = []
    n_docs = n_words = n_without = 0
    examples = iter(get_examples())
    # In chunks, so that no more than one chunk of Docs is held in memory.
    while chunk := list(islice(examples, CHUNK)):
        docs, sentences_of, gold = [], [], []
        for number, example in enumerate(chunk):
            reference = example.reference
            keys.update(reference.spans.keys())
            if spans_key not in reference.spans:
                n_without += not reference.has_annotation("ENT_IOB")
            same = same_tokens(example)
            own = not same or _has_sentence_starts(example.predicted)
            docs.append(example.predicted)
            sentences_of.append(example.predicted if own else reference)
            spans = _aligned_gold(example, spans_key, same, n_docs + number, problems)
            if spans:
                gold.append((number, spans))
        sentences = read_sentences(docs, sentences_of)
        table, names = _place(sentences, docs, gold, n_docs, problems)
        chunks.append(replace(sentences, docs=sentences.docs + n_docs))
        rows.append(table + n_words)
        labels.extend(names)
        n_docs += len(docs)
        n_words += sentences.n_words
        logger.info("%s: read %d documents, %d words", name, n_docs, n_words)
    if not labels:
        raise ValueError(
            Errors.T070.format(
                name=name, key=spans_key, n_docs=n_docs, keys=sorted(keys) or "none"
            )
        )
    problems.warn()
    if n_without:
        warnings.warn(
            Warnings.T081.format(
                name=name,
                count=n_without,
                total=n_docs,
                key=spans_key,
                keys=sorted(keys),
            ),
            stacklevel=5,
        )
    label_names = tuple(sorted(set(labels)))
    position = {label: number for number, label in enumerate(label_names)}
    edges = np.concatenate(rows)
    return FlatCorpus(
        join_sentences(chunks),
        edges[:, 0],
        edges[:, 1],
        np.array([position[label] for label in labels], dtype=np.int64),
        label_names,
    )


def label_words(corpus: FlatCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Name class of each word of a corpus, and whether a segment begins at it.

    corpus (FlatCorpus): The corpus.
    RETURNS (tuple[np.ndarray, np.ndarray]): Shapes: (T,).
    """
    n_words = corpus.sentences.n_words
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


def _has_sentence_starts(doc: Doc) -> bool:
    return bool((doc.to_array(SENT_START)[1:] == 1).any())


def _aligned_gold(
    example: Example, key: str, same: bool, number: int, problems: _Problems
) -> list[LabelledSpan]:
    """Gold spans in tokens of the predicted Doc."""
    reference = example.reference
    group: Iterable[Span] = reference.spans.get(key, reference.ents)
    found = []
    for span in group:
        problems.total += 1
        plain = (span.start, span.end, span.label_)
        if not same:
            aligned = example.get_aligned_spans_y2x([span], allow_overlap=True)
            if not aligned:
                problems.add(MISALIGNED, number, reference, plain)
                continue
            plain = (aligned[0].start, aligned[0].end, span.label_)
        found.append(plain)
    return found


def _place(
    sentences: DocSentences,
    docs: list[Doc],
    gold: list[tuple[int, list[LabelledSpan]]],
    n_before: int,
    problems: _Problems,
) -> tuple[np.ndarray, list[str]]:
    """Disjoint names within sentences, in word offsets of a chunk.

    RETURNS (tuple[np.ndarray, list[str]]): (start, end) and label of each.
    """
    doc_end = np.cumsum(sentences.doc_words)
    sentence_end = np.repeat(np.cumsum(sentences.lengths), sentences.lengths)
    rows: list[tuple[int, int]] = []
    labels: list[str] = []
    for number, spans in gold:
        doc = docs[number]
        kept = outermost_spans(spans) if len(spans) > 1 else spans
        if len(kept) < len(spans):
            for span in _left_out(spans, kept):
                problems.add(NESTED, n_before + number, doc, span)
        base = int(doc_end[number] - sentences.doc_words[number])
        words = sentences.tokens[base : doc_end[number]]
        # The words before each offset: the names' edges without white space.
        edges = np.searchsorted(words, [span[:2] for span in kept]) + base
        for span, (start, end) in zip(kept, edges.tolist(), strict=True):
            if start >= end:
                problems.add(EMPTY, n_before + number, doc, span)
            elif end > sentence_end[start]:
                problems.add(CUT, n_before + number, doc, span)
            else:
                rows.append((start, end))
                labels.append(span[2])
    return np.array(rows, dtype=np.int64).reshape(-1, 2), labels


def _left_out(
    spans: list[LabelledSpan], kept: list[LabelledSpan]
) -> Iterable[LabelledSpan]:
    """The spans that are not kept, repeated ones too."""
    remaining = Counter(spans)
    remaining.subtract(kept)
    return remaining.elements()
