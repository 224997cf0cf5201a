"""Hypothesis strategies: ragged batches, potentials, sets of entities in one tree."""

import math
from dataclasses import dataclass

import torch
from hypothesis import settings
from hypothesis import strategies as st

# Enumeration is slow, and a machine may be busy: few examples, no deadline.
few = settings(deadline=None, max_examples=20)

# Longest segment whose trees are enumerated, by number of labels.
LONGEST = {1: 6, 2: 4, 3: 4}
PADDING = [0.0, math.nan, math.inf, -math.inf]
seeds = st.integers(0, 2**31)


@dataclass
class Batch:
    """Potentials of some segments. `potentials`: (B, P, P, L); `lengths`: (B,)."""

    potentials: torch.Tensor
    lengths: list[int]

    @property
    def n_labels(self):
        return self.potentials.shape[-1]

    def __iter__(self):
        """The segments, one by one: length and (P, P, L) potentials of each."""
        return iter(zip(self.lengths, self.potentials, strict=True))


def is_span(lengths, size=None):
    """Which cells of a chart hold a span. Shape: (B, P, P), bool."""
    posts = torch.arange(max(lengths) + 1 if size is None else size)
    ends = posts[None, None, :]
    within = ends <= torch.tensor(lengths)[:, None, None]
    return (posts[None, :, None] < ends) & within


def random_batch(
    lengths, n_labels, seed=0, scale=1.0, padding=0.0, dtype=torch.float64, extra=0
):
    """A batch of normally distributed potentials; padding cells hold one value."""
    size = max(lengths) + 1 + extra
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), size, size, n_labels)
    values = torch.randn(shape, generator=generator, dtype=torch.float64) * scale
    values[~is_span(lengths, size)] = padding
    return Batch(values.to(dtype), list(lengths))


@st.composite
def batches(draw, dtypes=(torch.float64,), labels=(1, 2, 3), scales=(0.0, 1.0, 8.0)):
    """Ragged batches that are small enough for enumeration."""
    n_labels = draw(st.sampled_from(labels))
    lengths = st.lists(st.integers(1, LONGEST[n_labels]), min_size=1, max_size=3)
    return random_batch(
        draw(lengths),
        n_labels,
        seed=draw(seeds),
        scale=draw(st.sampled_from(scales)),
        padding=draw(st.sampled_from(PADDING)),
        dtype=draw(st.sampled_from(dtypes)),
        extra=draw(st.sampled_from([0, 2])),
    )


@st.composite
def bracketing(draw, length):
    """Spans of a random full binary tree."""
    spans, waiting = [], [(0, length)]
    while waiting:
        start, end = waiting.pop()
        spans.append((start, end))
        if end - start > 1:
            split = draw(st.integers(start + 1, end - 1))
            waiting += [(start, split), (split, end)]
    return spans


@st.composite
def entity_sets(draw, length, n_entity_labels):
    """Entities (start, end, label) that do not cross, in any order."""
    spans = draw(bracketing(length))
    chosen = draw(st.lists(st.sampled_from(spans), unique=True))
    label = st.integers(0, n_entity_labels - 1)
    return [(start, end, draw(label)) for start, end in chosen]


@st.composite
def annotated_batches(draw, **settings):
    """A batch of at least two labels, its number of entity labels, and its entities."""
    batch = draw(batches(labels=(2, 3), **settings))
    n_entity_labels = draw(st.integers(1, batch.n_labels - 1))
    return (
        batch,
        n_entity_labels,
        [draw(entity_sets(length, n_entity_labels)) for length in batch.lengths],
    )


def masks_of(batch, n_entity_labels, entities):
    """The masks of a batch by `observed_mask`, padded. Shape: (B, P, P, L), bool."""
    from spacy_treecrf.structure import observed_mask

    allowed = torch.zeros(batch.potentials.shape, dtype=torch.bool)
    for number, length in enumerate(batch.lengths):
        mask = observed_mask(entities[number], length, n_entity_labels, batch.n_labels)
        allowed[number, : length + 1, : length + 1] = mask
    return allowed
