"""From entities in segments to labelled spans in Docs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from spacy_treecrf.labels import LabelSet

from ._segments import DocSegments
from ._spans import LabelledSpan

if TYPE_CHECKING:
    from spacy_treecrf.ml.decoding import Entities

# Spans of a Doc in text order, outer before inner, and the probability of each.
Prediction = tuple[list[LabelledSpan], list[float]]


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
    names, parts = labels.plain, labels.parts()
    scored: list[list[tuple[LabelledSpan, float]]] = [[] for _ in range(n_docs)]
    for entities in found:
        offset = cut.start[entities.segment]
        columns = (
            cut.doc[entities.segment],
            entities.start + offset,
            entities.end + offset,
            entities.label,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for (doc, start, end, label), chances in zip(
            rows, entities.scores, strict=True
        ):
            for part in parts[label]:
                chance = float(chances[names.index(part)])
                scored[doc].append(((start, end, part), chance))
    predictions: list[Prediction] = []
    for items in scored:
        items.sort(key=lambda item: (item[0][0], -item[0][1], item[0][2]))
        predictions.append(([span for span, _ in items], [score for _, score in items]))
    return predictions
