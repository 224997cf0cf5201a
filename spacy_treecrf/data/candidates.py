"""Pack Docs with the candidates of a base pipe into few, larger Docs.

Reading a `.spacy` file costs some 0.5 ms for each span group of each Doc, whatever its
size: with 21 groups in each of 38,000 one-sentence Docs, one pass would take 7 minutes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from spacy.attrs import SENT_START
from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from spacy_treecrf.gold import Gold, GoldKeys

from .records import LabelledSpan

# Segments in a packed Doc: some 10 ms to read, of which the groups are the half.
SEGMENTS_A_DOC = 100


NOTHING_ELSE = Gold()


class DecodedDoc(NamedTuple):
    """A Doc that a base pipe has written its candidates to, and what is known of it.

    doc (Doc): The Doc, with groups `{key}:{r}`.
    gold (Sequence[LabelledSpan]): Gold spans, in its tokens.
    document (int): Number of the source document; neighbours may share one.
    is_spacing_known (bool): Whether the spaces between its tokens are the text's own.
    annotation (Gold): What else is annotated, in its tokens: regions, incorrect spans.
    """

    doc: Doc
    gold: Sequence[LabelledSpan]
    document: int
    is_spacing_known: bool = True
    annotation: Gold = NOTHING_ELSE


def candidate_groups(doc: Doc, key: str) -> list[SpanGroup]:
    """The candidate groups of a Doc.

    doc (Doc): The Doc.
    key (str): Key of the pipe that wrote them.
    RETURNS (list[SpanGroup]): `doc.spans["{key}:{r}"]` for r = 0, 1 and so on, up to
        the first r that is not there.
    """
    groups: list[SpanGroup] = []
    while (group := doc.spans.get(f"{key}:{len(groups)}")) is not None:
        groups.append(group)
    return groups


def pack_candidates(
    decoded: Iterable[DecodedDoc],
    vocab: Vocab,
    key: str,
    n_segments: int = SEGMENTS_A_DOC,
    keys: GoldKeys | None = None,
) -> Iterator[Doc]:
    """Join Docs with their candidates, until each has so many segments.

    decoded (Iterable[DecodedDoc]): The Docs. Those of one source document, which must
        be neighbours, stay together.
    vocab (Vocab): Vocabulary of the new Docs.
    key (str): Key of the candidates, and of gold in the new Docs.
    n_segments (int): Segments at which a Doc is full.
    keys (Optional[GoldKeys]): Keys of the regions and of the incorrect spans, which the
        new Docs have too.
    YIELDS (Doc): Docs with gold under `{key}`, candidates under `{key}:{r}`, whose
        attrs have "segments", "log_prob", "documents" (int32, one a segment) and
        "scores" if all had them, and a sentence start at each segment. Attrs of the
        gold group name the keys of the regions, and list the runs of tokens whose
        entity tag is unknown.
    """
    keys = keys or GoldKeys(key)
    waiting: list[DecodedDoc] = []
    count = 0
    for item in decoded:
        if count >= n_segments and item.document != waiting[-1].document:
            yield _join(waiting, vocab, key, keys)
            waiting, count = [], 0
        waiting.append(item)
        groups = candidate_groups(item.doc, key)
        count += len(groups[0].attrs["segments"]) if groups else 0
    if waiting:
        yield _join(waiting, vocab, key, keys)


def _join(items: Sequence[DecodedDoc], vocab: Vocab, key: str, keys: GoldKeys) -> Doc:
    offsets = np.cumsum([0, *(len(item.doc) for item in items)]).tolist()
    words = [token.text for item in items for token in item.doc]
    spaces = [bool(token.whitespace_) for item in items for token in item.doc]
    for end in offsets[1:]:
        # Keeps the last word of a Doc apart from the first one of the next.
        spaces[end - 1 : end] = [True] * len(spaces[end - 1 : end])
    is_spacing_known = all(item.is_spacing_known for item in items)
    groups = [candidate_groups(item.doc, key) for item in items]
    doc = Doc(
        vocab,
        words=words,
        spaces=spaces if is_spacing_known else None,
        sent_starts=_sentence_starts(items, groups) if words else None,
    )

    def moved(parts: Iterable[Iterable[LabelledSpan]]) -> list[Span]:
        pairs = zip(parts, offsets, strict=False)
        spans = ((s + at, e + at, label) for own, at in pairs for s, e, label in own)
        return _spans(doc, spans)

    attrs: dict[str, Any] = {}
    unknown = [
        (start + offset, end + offset)
        for item, offset in zip(items, offsets, strict=False)
        for start, end in item.annotation.unknown
    ]
    if unknown:
        attrs["unknown"] = np.array(unknown, dtype=np.int32)
    if keys.missing is not None:
        attrs["missing_spans_key"] = keys.missing
        spans = moved(item.annotation.missing for item in items)
        doc.spans[keys.missing] = SpanGroup(doc, name=keys.missing, spans=spans)
    if keys.incorrect is not None:
        attrs["incorrect_spans_key"] = keys.incorrect
        spans = moved(item.annotation.incorrect for item in items)
        doc.spans[keys.incorrect] = SpanGroup(doc, name=keys.incorrect, spans=spans)
    gold = moved(item.gold for item in items)
    doc.spans[key] = SpanGroup(doc, name=key, attrs=attrs, spans=gold)
    for rank in range(max(map(len, groups))):
        parts = [
            (group[rank], item.document, offset)
            for group, item, offset in zip(groups, items, offsets, strict=False)
            if len(group) > rank and len(group[rank].attrs["segments"])
        ]
        if parts:
            doc.spans[f"{key}:{rank}"] = _join_groups(doc, f"{key}:{rank}", parts)
    return doc


def _sentence_starts(
    items: Sequence[DecodedDoc], groups: Sequence[list[SpanGroup]]
) -> list[bool | int | None]:
    """Where sentences and segments start: a long sentence may be cut into several."""
    starts: list[bool | int | None] = []
    for item, ranks in zip(items, groups, strict=True):
        here = item.doc.to_array(SENT_START).reshape(-1) == 1
        here[:1] = True
        if ranks:
            here[np.asarray(ranks[0].attrs["segments"])[:, 0]] = True
        starts.extend(here.tolist())
    return starts


def _join_groups(
    doc: Doc, name: str, parts: Sequence[tuple[SpanGroup, int, int]]
) -> SpanGroup:
    segments, documents = [], []
    spans: list[LabelledSpan] = []
    for group, document, offset in parts:
        segments.append(np.asarray(group.attrs["segments"]) + offset)
        documents.append(np.full(len(segments[-1]), document))
        spans.extend((s.start + offset, s.end + offset, s.label_) for s in group)
    attrs = {
        "segments": np.concatenate(segments).astype(np.int32),
        "log_prob": np.concatenate([g.attrs["log_prob"] for g, _, _ in parts]),
        "documents": np.concatenate(documents).astype(np.int32),
    }
    if all("scores" in group.attrs for group, _, _ in parts):
        scores = np.concatenate([group.attrs["scores"] for group, _, _ in parts])
        attrs["scores"] = scores.astype(np.float32)
    return SpanGroup(doc, name=name, attrs=attrs, spans=_spans(doc, spans))


def _spans(doc: Doc, spans: Iterable[LabelledSpan]) -> list[Span]:
    return [Span(doc, start, end, label=label) for start, end, label in spans]
