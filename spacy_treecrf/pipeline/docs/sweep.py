"""What a `treecrf` pipe predicts with several decoders and thresholds, in one pass."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from spacy.tokens import Doc

from ..base.settings import loss_settings
from .analyses import Analyses
from .predictions import analyses_of

if TYPE_CHECKING:
    from ..treecrf import TreeCRF


class Decoding(NamedTuple):
    """Settings that decide which spans are predicted; None where a pipe has it not."""

    decoder: str | None
    threshold: float | None


def sweep(
    pipe: "TreeCRF", docs: Sequence[Doc], decodings: Sequence[Decoding]
) -> list[Analyses]:
    """Predict a batch with each of several decoders and thresholds.

    pipe (TreeCRF): The pipe; its settings are left alone.
    docs (Sequence[Doc]): The batch. Encoder and scorer see it once.
    decodings (Sequence[Decoding]): The settings; the decoder is "cky" or "mbr".
    RETURNS (list[Analyses]): What is found with each of the settings.
    RAISES (ValueError): As `TreeCRF.predict`.
    """
    from spacy_treecrf.ml.decoding import decode

    docs = list(docs)
    segments, potentials = pipe.span_potentials(docs)
    chunks, labels = list(potentials), pipe.label_set
    settings = loss_settings(pipe.cfg, len(labels))
    trees: dict[Decoding, Analyses] = {}

    def predict(decoding: Decoding) -> Analyses:
        if decoding not in trees:
            found = decode(
                pipe.model,
                chunks,
                settings,
                labels.membership(),
                str(decoding.decoder),
                decoding.threshold,
            )
            trees[decoding] = analyses_of(
                ((entities, None) for entities in found), segments, labels
            )
        return trees[decoding]

    results = []
    for decoding in decodings:
        if decoding.decoder == "cky" and pipe.cfg["objective"] == "treecrf":
            # The threshold only drops entities of the best tree.
            best = predict(Decoding("cky", None))
            least = -np.inf if decoding.threshold is None else decoding.threshold
            results.append(best.select(best.scores > least))
        else:
            results.append(predict(decoding))
    return results
