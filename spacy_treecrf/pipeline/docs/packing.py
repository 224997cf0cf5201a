"""Docs with the candidates of a base pipe, packed into few, larger Docs.

Reading a `.spacy` file costs some 0.05 ms for each span group of each Doc, whatever its
size: with 21 groups in each of 38,000 one-sentence Docs, one pass takes 40 seconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import SENT_START
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_treecrf.gold import Gold, GoldKeys, LabelledSpan

from .analyses import END, SEGMENT, START, Analyses, write
from .reading import read
from .segments import DocSegments

# Segments in a packed Doc: some 10 ms to read, of which the groups are the half.
SEGMENTS_A_DOC = 100


class Source(NamedTuple):
    """A Doc that a base pipe has written its candidates to, and what is known of it.

    doc (Doc): The Doc, with groups `{key}:{r}`.
    gold (Gold): Its annotation, in its tokens.
    document (int): Number of the source document; neighbours may share one.
    is_spacing_known (bool): Whether the spaces between its tokens are the text's own.
    """

    doc: Doc
    gold: Gold
    document: int
    is_spacing_known: bool = True


def pack(
    sources: Iterable[Source],
    vocab: Vocab,
    keys: GoldKeys,
    n_segments: int = SEGMENTS_A_DOC,
) -> Iterator[Doc]:
    """Join Docs with their candidates, until each has so many segments.

    sources (Iterable[Source]): The Docs. Those of one source document, which must be
        neighbours, stay together.
    vocab (Vocab): Vocabulary of the new Docs.
    keys (GoldKeys): Keys of the candidates and of gold, of the regions and of the
        incorrect spans, which the new Docs have too.
    n_segments (int): Segments at which a Doc is full.
    YIELDS (Doc): Docs with gold under the key, candidates under `{key}:{r}`, whose attrs
        have "segments", "log_prob", "documents" (int32, one a segment) and "scores" if
        all had them, and a sentence start at each segment. Attrs of the gold group name
        the keys of the regions, and list the runs of tokens whose tag is unknown.
    RAISES (ValueError): If the groups of a Doc are malformed.
    """
    waiting: list[Source] = []
    count = 0
    for source in sources:
        if count >= n_segments and source.document != waiting[-1].document:
            yield _join(waiting, vocab, keys)
            waiting, count = [], 0
        waiting.append(source)
        group = source.doc.spans.get(f"{keys.spans}:0")
        count += 0 if group is None else len(group.attrs.get("segments", ()))
    if waiting:
        yield _join(waiting, vocab, keys)


def _join(sources: Sequence[Source], vocab: Vocab, keys: GoldKeys) -> Doc:
    docs = [source.doc for source in sources]
    found = read(docs, keys.spans)
    words = [token.text for doc in docs for token in doc]
    spaces = [bool(token.whitespace_) for doc in docs for token in doc]
    for end in np.cumsum([len(doc) for doc in docs if len(doc)]).tolist():
        # Keeps the last word of a Doc apart from the first one of the next.
        spaces[end - 1] = True
    is_start = np.array(
        [flag == 1 for doc in docs for flag in doc.to_array([SENT_START]).ravel()],
        dtype=bool,
    )
    # A sentence beyond the pipe's longest segment is cut into several.
    is_start[found.segments.first] = True
    offsets = found.segments.offsets
    is_start[offsets[found.segments.sizes > 0]] = True
    doc = Doc(
        vocab,
        words=words,
        spaces=spaces if all(s.is_spacing_known for s in sources) else None,
        sent_starts=is_start.tolist() if words else None,
    )
    if len(found.segments):
        _write_candidates(doc, keys.spans, found, [s.document for s in sources])

    def group(name: str, parts: Iterable[Sequence[LabelledSpan]], **attrs: Any) -> None:
        spans = [
            Span(doc, start + offset, end + offset, label=label)
            for own, offset in zip(parts, offsets.tolist(), strict=True)
            for start, end, label in own
        ]
        doc.spans[name] = SpanGroup(doc, name=name, attrs=attrs, spans=spans)

    attrs: dict[str, Any] = {}
    unknown = [
        (start + offset, end + offset)
        for source, offset in zip(sources, offsets.tolist(), strict=True)
        for start, end in source.gold.unknown
    ]
    if unknown:
        attrs["unknown"] = np.array(unknown, dtype=np.int32)
    if keys.missing is not None:
        attrs["missing_spans_key"] = keys.missing
        group(keys.missing, [source.gold.missing for source in sources])
    if keys.incorrect is not None:
        attrs["incorrect_spans_key"] = keys.incorrect
        group(keys.incorrect, [source.gold.incorrect for source in sources])
    group(keys.spans, [source.gold.spans for source in sources], **attrs)
    return doc


def _write_candidates(
    doc: Doc, key: str, found: Analyses, documents: Sequence[int]
) -> None:
    """Write the candidates of several Docs to the one that they are joined into."""
    segments = found.segments
    offset = segments.offsets[segments.doc]
    entities = found.entities.copy()
    entities[:, [START, END]] += offset[entities[:, SEGMENT], None]
    joined = DocSegments.given(
        [doc],
        np.zeros_like(segments.doc),
        segments.start + offset,
        segments.end + offset,
    )
    numbers = np.array(documents)[segments.doc]
    present = np.isfinite(found.log_prob).any(0)
    moved = replace(
        found,
        segments=joined,
        entities=entities,
        documents=numbers,
        log_prob=found.log_prob[:, present],
    )
    write([doc], key, moved, ents=False)
