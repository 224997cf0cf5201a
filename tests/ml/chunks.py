"""Potentials of a batch as the model hands them over, without an encoder."""

import numpy as np
import torch
from strategies import random_batch
from thinc.api import Model

from spacy_treecrf.ml.loss import Annotation, LossSettings
from spacy_treecrf.ml.types import SpanPotentials
from spacy_treecrf.structure.spans import SpanIndex

DEFAULTS = {
    "n_entity_labels": 2,
    "objective": "treecrf",
    "potential_normalization": False,
    "temperature": None,
    "structure_smoothing": 0.0,
    "smoothing_scope": "all",
    "softmax_margin": 0.0,
}


def settings_of(**changes):
    return LossSettings(**{**DEFAULTS, **changes})


def temperature_model(log_temperature=0.0, dtype="float64"):
    """All that losses and decoding ask of a model: its temperature."""
    model = Model("temperature", lambda *_: None, params={"log_temperature": None})
    model.set_param("log_temperature", np.array([log_temperature], dtype=dtype))
    return model


def chunk_of(
    lengths,
    numbers=None,
    n_labels=3,
    seed=0,
    scale=2.0,
    dtype="float64",
    max_width=None,
):
    """One chunk; segments have the numbers 0, 1, ... unless others are given."""
    index = SpanIndex.build(lengths, max_width=max_width)
    batch = random_batch(lengths, n_labels, seed, scale)
    usable = torch.ones(index.n_spans, dtype=torch.bool)
    numbers = range(len(lengths)) if numbers is None else numbers
    data = index.pack(batch.potentials).numpy().astype(dtype)
    return SpanPotentials(np.array(list(numbers)), index, data, usable)


def part_of(chunk, numbers):
    """The segments of the given numbers as a chunk of their own."""
    lengths = [chunk.index.lengths[number] for number in numbers]
    index = SpanIndex.build(lengths)
    rows = chunk.index.row_of(
        torch.tensor(numbers)[index.segment], index.start, index.end
    )
    return SpanPotentials(
        np.array(numbers), index, chunk.data[:, rows.numpy()], chunk.usable[rows]
    )


def annotation_of(observed=(), missing=(), incorrect=()):
    """Rows of (segment, start, end, label number)."""
    return Annotation(
        *(
            np.array(rows, dtype=np.int64).reshape(-1, 4)
            for rows in (observed, missing, incorrect)
        )
    )


def block(chunk, word, segment=0):
    """Make a token of a segment white space."""
    index = chunk.index
    borders = (index.start == word) | (index.end == word + 1)
    chunk.usable[(index.segment == segment) & borders] = False
    return chunk
