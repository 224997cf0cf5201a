"""Marginals equal counting over trees, and the gradient of log Z."""

import pytest
import torch
from hypothesis import given
from oracles import tree_cells, tree_marginals, with_entity_set
from strategies import (
    annotated_batches,
    batches,
    few,
    is_span,
    masks_of,
    random_batch,
)

from spacy_treecrf.structure import log_partition, marginals, masked_log_partition

DTYPES = [torch.float32, torch.float64]


def atol(dtype):
    """Rounding of a probability; potentials of some tens cost float32 two digits."""
    return 3e-5 if dtype == torch.float32 else 1e-11


@few
@given(batches(dtypes=DTYPES))
def test_marginals_equal_enumeration(batch):
    result = marginals(batch.potentials, batch.lengths)
    for number, (length, potentials) in enumerate(batch):
        expected = tree_marginals(
            potentials.nan_to_num(0.0), tree_cells(length, batch.n_labels)
        )
        torch.testing.assert_close(
            result[number].double(), expected, rtol=0, atol=atol(result.dtype)
        )


@few
@given(batches(dtypes=DTYPES))
def test_marginals_sum_to_the_number_of_nodes(batch):
    sums = marginals(batch.potentials, batch.lengths).sum((1, 2, 3))
    expected = [2 * length - 1 for length in batch.lengths]
    assert sums.tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 2, 30, 80])
def test_marginals_of_long_segments_sum_to_the_number_of_nodes(length, dtype):
    batch = random_batch([length, 7], 4, scale=3.0, dtype=dtype)
    sums = marginals(batch.potentials, batch.lengths).sum((1, 2, 3))
    assert sums.tolist() == pytest.approx([2 * length - 1, 13], rel=1e-5)


@few
@given(batches(dtypes=DTYPES))
def test_marginals_are_the_gradient_of_log_partition(batch):
    potentials = batch.potentials.clone().requires_grad_()
    log_partition(potentials, batch.lengths).sum().backward()
    torch.testing.assert_close(
        marginals(batch.potentials, batch.lengths),
        potentials.grad,
        rtol=0,
        atol=atol(potentials.dtype),
    )


def test_marginals_equal_finite_differences():
    batch, step = random_batch([3, 2], 2), 1e-5
    result = marginals(batch.potentials, batch.lengths)
    for cell in is_span(batch.lengths).nonzero().tolist():
        for label in range(2):
            sums = []
            for sign in (1, -1):
                moved = batch.potentials.clone()
                moved[(*cell, label)] += sign * step
                sums.append(log_partition(moved, batch.lengths).sum().item())
            slope = (sums[0] - sums[1]) / (2 * step)
            assert result[(*cell, label)].item() == pytest.approx(slope, abs=1e-8)


@few
@given(batches())
def test_marginals_of_leaves_and_of_the_whole_segment_are_one(batch):
    spans = marginals(batch.potentials, batch.lengths).sum(-1)
    for number, length in enumerate(batch.lengths):
        sure = [spans[number, at, at + 1].item() for at in range(length)]
        sure.append(spans[number, 0, length].item())
        assert sure == pytest.approx([1.0] * (length + 1))


def test_marginals_are_zero_where_there_is_no_span():
    result = marginals(random_batch([4, 2, 3], 2).potentials, [4, 2, 3])
    assert not result[~is_span([4, 2, 3])].any()


def masked_marginals(batch, allowed, epsilon=0.0):
    potentials = batch.potentials.clone().requires_grad_()
    masked_log_partition(potentials, allowed, batch.lengths, epsilon).sum().backward()
    return potentials.grad


@few
@given(annotated_batches())
def test_marginals_under_a_mask_equal_enumeration(annotated):
    batch, n_entity_labels, entities = annotated
    result = masked_marginals(batch, masks_of(batch, n_entity_labels, entities))
    for number, (length, potentials) in enumerate(batch):
        trees = with_entity_set(
            tree_cells(length, batch.n_labels), entities[number], n_entity_labels
        )
        expected = tree_marginals(potentials.nan_to_num(0.0), trees)
        torch.testing.assert_close(result[number], expected, rtol=0, atol=1e-9)


@few
@given(annotated_batches(dtypes=DTYPES))
def test_marginals_under_a_mask_are_one_for_observed_entities(annotated):
    batch, n_entity_labels, entities = annotated
    result = masked_marginals(batch, masks_of(batch, n_entity_labels, entities))
    for number, own in enumerate(entities):
        for entity in own:
            assert result[number][entity].item() == pytest.approx(1.0, abs=1e-5)


def test_marginals_under_a_smoothed_mask_are_below_one_for_observed_entities():
    batch = random_batch([4], 3)
    entities = [(0, 2, 1), (1, 2, 0)]
    result = masked_marginals(batch, masks_of(batch, 2, [entities]), epsilon=0.05)
    for entity in entities:
        assert 0.5 < result[0][entity].item() < 1.0 - 1e-4


def test_marginals_carry_no_gradient():
    potentials = random_batch([3], 2).potentials.requires_grad_()
    assert not marginals(potentials, [3]).requires_grad
