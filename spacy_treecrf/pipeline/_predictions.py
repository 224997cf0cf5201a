"""From entities in segments to labelled spans in Docs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup
from thinc.api import to_numpy

from spacy_treecrf.errors import Errors
from spacy_treecrf.labels import LabelSet

from ._segments import DocSegments, doc_texts
from ._spans import LabelledSpan, drop_candidates, write_entities

if TYPE_CHECKING:
    from spacy_treecrf.ml.decoding import Candidates, Entities
    from spacy_treecrf.ml.types import SpanPotentials


class Rank(NamedTuple):
    """The candidates of one rank: the entity sets of all segments that have so many.

    spans (list[LabelledSpan]): Their entities, in text order.
    segments (np.ndarray): Half-open token offsets of these segments. Shape: (m, 2), int32.
    log_prob (np.ndarray): Log-probability of each set, in nats. Shape: (m,), float64.
    """

    spans: list[LabelledSpan]
    segments: np.ndarray
    log_prob: np.ndarray


class Prediction(NamedTuple):
    """What is written to a Doc.

    spans (list[LabelledSpan]): Entities in text order, outer before inner.
    scores (list[float]): Probability of each.
    ranks (list[Rank]): Candidates, best first; empty unless asked for.
    segments (np.ndarray | None): Segments of the Doc, where `entropy` is given.
    entropy (np.ndarray | None): Entropy of each segment's trees. Shape: (m,), float64.
    """

    spans: list[LabelledSpan]
    scores: list[float]
    ranks: Sequence[Rank] = ()
    segments: np.ndarray | None = None
    entropy: np.ndarray | None = None


def write_prediction(doc: Doc, key: str, prediction: Prediction, ents: bool) -> None:
    """Write the entities of a Doc as `doc.spans[key]`, and rank r as `doc.spans["key:r"]`.

    doc (Doc): The document.
    key (str): The spans key.
    prediction (Prediction): What is written.
    ents (bool): Whether to write `doc.ents` too.
    """
    attrs: dict[str, Any] = {}
    if prediction.entropy is not None and prediction.segments is not None:
        attrs = {"segments": prediction.segments, "entropy": prediction.entropy}
    write_entities(doc, key, prediction.spans, prediction.scores, ents=ents, **attrs)
    drop_candidates(doc, key, len(prediction.ranks))
    for number, rank in enumerate(prediction.ranks):
        doc.spans[f"{key}:{number}"] = SpanGroup(
            doc,
            name=f"{key}:{number}",
            attrs={"segments": rank.segments, "log_prob": rank.log_prob},
            spans=[
                Span(doc, start, end, label=label) for start, end, label in rank.spans
            ],
        )


def finite_potentials(
    potentials: "Iterable[SpanPotentials]",
    docs: Sequence[Doc],
    cut: DocSegments,
    name: str,
    n_labels: int,
) -> "Iterator[SpanPotentials]":
    """Pass potentials on, unless no tree could be told from another by them.

    potentials (Iterable[SpanPotentials]): Chunks of a batch.
    docs (Sequence[Doc]): The batch. cut (DocSegments): Its segments.
    name (str): Name of the pipe. n_labels (int): Labels that it has.
    YIELDS (SpanPotentials): The same chunks.
    RAISES (ValueError): If one is not finite, or of another number of labels: spans and
        scores would be arbitrary.
    """
    for chunk in potentials:
        check_labels(name, chunk, n_labels)
        # One sum tells: it is finite only if all potentials are.
        if not np.isfinite(float(chunk.data.sum(axis=(0, 1)))):
            bad = ~np.isfinite(to_numpy(chunk.data)).all(axis=0)
            segments = chunk.numbers[chunk.index.segment.cpu().numpy()[bad]]
            texts = doc_texts(docs, cut, segments)
            if texts:
                raise ValueError(Errors.T007.format(name=name, docs=texts))
        yield chunk


def check_labels(name: str, chunk: "SpanPotentials", n_labels: int) -> None:
    """Refuse weights of another number of labels than the pipe has.

    name (str): Name of the pipe. chunk (SpanPotentials): What the weights give.
    n_labels (int): Labels of the pipe, latent ones included.
    RAISES (ValueError): If the numbers differ.
    """
    if chunk.data.shape[0] != n_labels:
        raise ValueError(
            Errors.T011.format(name=name, labels=n_labels, width=chunk.data.shape[0])
        )


def predictions_by_doc(
    found: "Iterable[Entities]", cut: DocSegments, labels: LabelSet, n_docs: int
) -> list[Prediction]:
    """Put entities back into their Docs, composite labels taken apart.

    found (Iterable[Entities]): Entities, chunk by chunk.
    cut (DocSegments): Segments of the batch.
    labels (LabelSet): The labels and their numbers.
    n_docs (int): Docs of the batch.
    RETURNS (list[Prediction]): One for each Doc.
    """
    names = labels.plain
    scored: list[list[tuple[LabelledSpan, float]]] = [[] for _ in range(n_docs)]
    for entities in found:
        offset = cut.start[entities.segment]
        columns = (
            cut.doc[entities.segment],
            entities.start + offset,
            entities.end + offset,
            entities.parts,
            entities.scores,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for doc, start, end, parts, chances in rows:
            for name, written, chance in zip(names, parts, chances, strict=True):
                if written:
                    scored[doc].append(((start, end, name), chance))
    predictions: list[Prediction] = []
    for items in scored:
        items.sort(key=lambda item: (item[0][0], -item[0][1], item[0][2]))
        spans, scores = [span for span, _ in items], [score for _, score in items]
        predictions.append(Prediction(spans, scores))
    return predictions


def add_candidates(
    predictions: list[Prediction],
    found: "Iterable[Candidates]",
    cut: DocSegments,
    labels: LabelSet,
    n_best: int,
    with_entropy: bool,
) -> list[Prediction]:
    """Add candidates and entropies to the predictions of a batch.

    predictions (list[Prediction]): One for each Doc.
    found (Iterable[Candidates]): Candidates, chunk by chunk.
    cut (DocSegments): Segments of the batch.
    labels (LabelSet): The labels and their numbers.
    n_best (int): Candidates of each segment; 1 for none.
    with_entropy (bool): Whether every Doc gets the entropies of its segments.
    RETURNS (list[Prediction]): One for each Doc.
    """
    parts = labels.parts()
    sets: list[list[tuple[float, list[LabelledSpan]]]] = [[] for _ in cut.doc]
    entropy = np.zeros(len(cut.doc), dtype=np.float64)
    for chunk in found:
        for place, number in enumerate(chunk.numbers.tolist()):
            offset = int(cut.start[number])
            for log_prob, nodes in chunk.sets[place] if chunk.sets is not None else ():
                spans = [
                    (start + offset, end + offset, part)
                    for start, end, label in nodes
                    for part in parts[label]
                ]
                sets[number].append((log_prob, spans))
        if chunk.entropy is not None:
            entropy[chunk.numbers] = chunk.entropy
    segments = np.stack([cut.start, cut.end], axis=1).astype(np.int32)
    borders = np.searchsorted(cut.doc, np.arange(len(predictions) + 1))
    result = []
    for doc, prediction in enumerate(predictions):
        own = range(int(borders[doc]), int(borders[doc + 1]))
        ranks = []
        for rank in range(n_best if n_best > 1 else 0):
            present = [number for number in own if len(sets[number]) > rank]
            chosen = [sets[number][rank] for number in present]
            ranks.append(
                Rank(
                    [span for _, spans in chosen for span in spans],
                    segments[present].reshape(-1, 2),
                    np.array([log_prob for log_prob, _ in chosen], dtype=np.float64),
                )
            )
        prediction = prediction._replace(ranks=ranks)
        if with_entropy:
            prediction = prediction._replace(
                segments=segments[list(own)], entropy=entropy[list(own)]
            )
        result.append(prediction)
    return result
