"""What a `treecrf` pipe predicts with several decoders and thresholds, in one pass."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from spacy.tokens import Doc

from ._predictions import Prediction, predictions_by_doc
from ._settings import loss_settings

if TYPE_CHECKING:
    from .treecrf import TreeCRF


class Decoding(NamedTuple):
    """Settings that decide which spans are predicted; None where a pipe has it not."""

    decoder: str | None
    threshold: float | None


def sweep(
    pipe: "TreeCRF", docs: Sequence[Doc], decodings: Sequence[Decoding]
) -> list[list[Prediction]]:
    """Predict a batch with each of several decoders and thresholds.

    pipe (TreeCRF): The pipe; its settings are left alone.
    docs (Sequence[Doc]): The batch. Encoder and scorer see it once.
    decodings (Sequence[Decoding]): The settings; the decoder is "cky" or "mbr".
    RETURNS (list[list[Prediction]]): For each of the settings a prediction for each Doc.
    RAISES (ValueError): As `TreeCRF.predict`.
    """
    from spacy_treecrf.ml.decoding import decode

    docs = list(docs)
    cut, potentials = pipe.span_potentials(docs)
    chunks, labels = list(potentials), pipe.label_set
    settings = loss_settings(pipe.cfg, len(labels))
    trees: dict[Decoding, list[Prediction]] = {}

    def predict(decoding: Decoding) -> list[Prediction]:
        if decoding not in trees:
            found = decode(
                pipe.model,
                chunks,
                settings,
                labels.membership(),
                str(decoding.decoder),
                decoding.threshold,
            )
            trees[decoding] = predictions_by_doc(found, cut, labels, len(docs))
        return trees[decoding]

    results = []
    for decoding in decodings:
        if decoding.decoder == "cky" and pipe.cfg["objective"] == "treecrf":
            # The threshold only drops entities of the best tree.
            best = predict(Decoding("cky", None))
            results.append([surer(one, decoding.threshold) for one in best])
        else:
            results.append(predict(decoding))
    return results


def surer(prediction: Prediction, threshold: float | None) -> Prediction:
    """A prediction without the spans whose probability is at most the threshold."""
    if threshold is None:
        return prediction
    kept = [
        (span, score)
        for span, score in zip(prediction.spans, prediction.scores, strict=True)
        if score > threshold
    ]
    return Prediction([span for span, _ in kept], [score for _, score in kept])
