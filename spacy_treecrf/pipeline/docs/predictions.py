"""From what the model finds in chunks to the analyses of a batch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Doc
from thinc.api import to_numpy

from spacy_treecrf.errors import Errors
from spacy_treecrf.labels import LabelSet

from .analyses import END, OWN, SEGMENT, START, Analyses
from .segments import DocSegments, doc_texts

if TYPE_CHECKING:
    from spacy_treecrf.ml.decoding import Candidates, Entities
    from spacy_treecrf.ml.types import SpanPotentials


def finite_potentials(
    potentials: "Iterable[SpanPotentials]",
    docs: Sequence[Doc],
    segments: DocSegments,
    name: str,
    n_labels: int,
) -> "Iterator[SpanPotentials]":
    """Pass potentials on, unless no tree could be told from another by them.

    potentials (Iterable[SpanPotentials]): Chunks of a batch.
    docs (Sequence[Doc]): The batch. segments (DocSegments): Its segments.
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
            numbers = chunk.numbers[chunk.index.segment.cpu().numpy()[bad]]
            texts = doc_texts(docs, segments, numbers)
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


def analyses_of(
    found: "Iterable[tuple[Entities, Candidates | None]]",
    segments: DocSegments,
    labels: LabelSet,
    n_best: int = 1,
    with_entropy: bool = False,
) -> Analyses:
    """Put the findings of all chunks together, composite labels taken apart.

    found (Iterable): Entities and candidates, chunk by chunk.
    segments (DocSegments): Segments of the batch.
    labels (LabelSet): The labels and their numbers.
    n_best (int): Candidates of each segment; 1 for none.
    with_entropy (bool): Whether the entropy of every segment was computed.
    RETURNS (Analyses): What is to be written.
    """
    tables = [np.zeros((0, 5), dtype=np.int64)]
    scores = [np.zeros(0, dtype=np.float32)]
    log_prob = np.full((len(segments), n_best if n_best > 1 else 0), -np.inf)
    entropy = np.zeros(len(segments)) if with_entropy else None
    parts = labels.parts()
    number = {name: place for place, name in enumerate(labels.plain)}
    for entities, candidates in found:
        row, label = entities.parts.nonzero()
        edges = (entities.segment[row], entities.start[row], entities.end[row])
        tables.append(_table(edges[0], np.full(len(row), OWN), *edges[1:], label))
        scores.append(entities.scores[row, label])
        if candidates is None:
            continue
        if entropy is not None:
            entropy[candidates.numbers] = candidates.entropy
        rows = []
        for segment, sets in zip(
            candidates.numbers.tolist(), candidates.sets or (), strict=False
        ):
            for rank, (chance, nodes) in enumerate(sets):
                log_prob[segment, rank] = chance
                rows += [
                    (segment, rank, start, end, number[part])
                    for start, end, composite in nodes
                    for part in parts[composite]
                ]
        tables.append(np.array(rows, dtype=np.int64).reshape(-1, 5))
        scores.append(np.full(len(rows), np.nan, dtype=np.float32))
    table = np.concatenate(tables)
    table[:, [START, END]] += segments.start[table[:, SEGMENT], None]
    return Analyses(
        segments, tuple(labels.plain), table, np.concatenate(scores), log_prob, entropy
    )


def _table(*columns: np.ndarray) -> np.ndarray:
    return np.stack(columns, axis=1).astype(np.int64)
