"""Losses and their regularisers, against the sentences that define them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    entity_set,
    labelled_trees,
    log_sum,
    tree_cells,
    tree_scores,
    with_entity_set,
)
from strategies import annotated_batches, few, is_span, masks_of, random_batch, seeds

from spacy_treecrf.structure import (
    best_tree,
    log_partition,
    marginals,
    masked_log_partition,
)
from spacy_treecrf.structure.inside import packed_log_partition
from spacy_treecrf.structure.losses import (
    cost_augmented,
    local_losses,
    normalize_potentials,
    smoothed_potentials,
    tree_crf_losses,
)
from spacy_treecrf.structure.masks import ANY_LABEL, packed_masks
from spacy_treecrf.structure.spans import SpanIndex

DTYPES = [torch.float32, torch.float64]


def table(entities):
    """Entities of each segment as rows of (segment, start, end, label)."""
    rows = [(b, *entity) for b, own in enumerate(entities) for entity in own]
    return torch.tensor(rows, dtype=torch.int64).reshape(-1, 4)


def packed_case(annotated):
    """Packed potentials, mask and rejected spans of an annotated batch."""
    batch, n_entity_labels, entities = annotated
    index = SpanIndex.build(batch.lengths)
    allowed, rejected = packed_masks(
        index, n_entity_labels, batch.n_labels, table(entities)
    )
    return index, index.pack(batch.potentials), allowed, rejected


def losses_of(annotated, epsilon=0.0, scope="all"):
    index, potentials, allowed, rejected = packed_case(annotated)
    masked = smoothed_potentials(
        potentials, allowed, epsilon, rejected if scope == "rejected" else None
    )
    return tree_crf_losses(potentials, masked, index)


# One segment of every kind: nothing, a leaf, the whole, nested.
CASE = (
    random_batch([4, 1, 3, 2], 3, seed=5),
    2,
    [[(0, 3, 1), (1, 2, 0)], [(0, 1, 0)], [(0, 3, 1)], []],
)


@few
@given(annotated_batches(dtypes=DTYPES))
def test_losses_tree_crf_is_minus_log_p_of_the_entity_set(annotated):
    batch, n_entity_labels, entities = annotated
    losses = losses_of(annotated)
    for number, (length, potentials) in enumerate(batch):
        trees = tree_cells(length, batch.n_labels)
        gold = with_entity_set(trees, entities[number], n_entity_labels)
        expected = log_sum(tree_scores(potentials, trees)) - log_sum(
            tree_scores(potentials, gold)
        )
        assert losses[number].item() == pytest.approx(expected, abs=3e-4)


def test_losses_tree_crf_gradient_is_marginals_minus_masked_marginals():
    batch, n_entity_labels, entities = CASE
    index, potentials, allowed, _ = packed_case(CASE)
    potentials.requires_grad_()
    masked = smoothed_potentials(potentials, allowed)
    tree_crf_losses(potentials, masked, index).sum().backward()
    chart = batch.potentials.clone().requires_grad_()
    masked_log_partition(
        chart, masks_of(batch, n_entity_labels, entities), batch.lengths
    ).sum().backward()
    expected = marginals(batch.potentials, batch.lengths) - chart.grad
    torch.testing.assert_close(index.unpack(potentials.grad), expected)


@few
@given(annotated_batches(dtypes=DTYPES), st.sampled_from([0.5, 3.0]))
def test_losses_with_cost_are_the_softmax_margin(annotated, cost):
    batch, n_entity_labels, entities = annotated
    index, potentials, allowed, _ = packed_case(annotated)
    raised = cost_augmented(potentials, allowed, n_entity_labels, cost)
    masked = smoothed_potentials(raised, allowed)
    losses = tree_crf_losses(raised, masked, index)
    for number, (length, own) in enumerate(batch):
        trees = labelled_trees(length, batch.n_labels)
        errors = [
            len(entity_set(tree, n_entity_labels) ^ set(entities[number]))
            for tree in trees
        ]
        scores = tree_scores(own, tree_cells(length, batch.n_labels))
        gold = with_entity_set(
            tree_cells(length, batch.n_labels), entities[number], n_entity_labels
        )
        augmented = log_sum(scores + cost * torch.tensor(errors))
        expected = augmented - log_sum(tree_scores(own, gold))
        assert losses[number].item() == pytest.approx(expected, abs=3e-4)


def test_losses_cost_of_what_the_gold_leaves_open_is_nothing():
    index = SpanIndex.build([3])
    potentials = index.pack(random_batch([3], 3, seed=1).potentials)
    missing = torch.tensor([[0, 0, 2, ANY_LABEL]])
    incorrect = torch.tensor([[0, 0, 1, 1]])
    gold = table([[(2, 3, 0)]])
    allowed, _ = packed_masks(index, 2, 3, gold, missing, incorrect)
    change = index.unpack(cost_augmented(potentials, allowed, 2, 1.0) - potentials)[0]
    expected = torch.zeros_like(change)
    for start, end in [(0, 3), (1, 3)]:
        expected[start, end, :2] = 1.0
    expected[0, 1, 1] = 1.0
    expected[2, 3] = torch.tensor([-1.0, 1.0, 0.0])
    torch.testing.assert_close(change, expected)


def test_losses_local_with_cost_are_the_softmax_margin_of_each_span():
    batch, n_entity_labels, entities = CASE
    index, potentials, allowed, _ = packed_case(CASE)
    raised = cost_augmented(potentials, allowed, n_entity_labels, 0.5)
    losses = local_losses(raised, allowed, index)
    for number, (length, own) in enumerate(batch):
        labels = {(start, end): label for start, end, label in entities[number]}
        expected = 0.0
        for start in range(length):
            for end in range(start + 1, length + 1):
                right = labels.get((start, end), 2)
                # An entity of another label is a spurious one and a missed one.
                errors = [(k != right) * ((k < 2) + (right < 2)) for k in range(3)]
                augmented = own[start, end] + 0.5 * torch.tensor(errors)
                expected += log_sum(augmented) - own[start, end, right].item()
        assert losses[number].item() == pytest.approx(expected)


@pytest.mark.parametrize("scope", ["all", "rejected"])
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_losses_tree_crf_gradient_equals_finite_differences(epsilon, scope):
    index, potentials, allowed, rejected = packed_case(CASE)

    def loss(values):
        masked = smoothed_potentials(
            values, allowed, epsilon, rejected if scope == "rejected" else None
        )
        return tree_crf_losses(values, masked, index)

    assert torch.autograd.gradcheck(loss, (potentials.requires_grad_(),))


@few
@given(
    annotated_batches(dtypes=DTYPES),
    st.sampled_from([0.3, 0.02, 1e-4]),
    st.sampled_from(["all", "rejected"]),
)
def test_losses_smoothing_weighs_trees_by_their_zeros(annotated, epsilon, scope):
    batch = annotated[0]
    index, _, allowed, rejected = packed_case(annotated)
    free, crossing = index.unpack(allowed), index.unpack(rejected[None])[..., 0]
    losses = losses_of(annotated, epsilon, scope)
    for number, (length, potentials) in enumerate(batch):
        trees = tree_cells(length, batch.n_labels)
        start, end, label = trees.unbind(-1)
        zeros = ~free[number][start, end, label]
        smoothed = crossing[number][start, end] if scope == "rejected" else True
        scores = tree_scores(potentials, trees)
        weighted = (scores + math.log(epsilon) * zeros.sum(1))[
            ~(zeros & ~torch.as_tensor(smoothed)).any(1)
        ]
        expected = log_sum(scores) - log_sum(weighted)
        assert losses[number].item() == pytest.approx(expected, abs=3e-4)


@few
@given(
    annotated_batches(dtypes=DTYPES),
    st.sampled_from([0.0, 0.01, 0.9]),
    st.sampled_from(["all", "rejected"]),
)
def test_losses_tree_crf_are_not_negative(annotated, epsilon, scope):
    assert (losses_of(annotated, epsilon, scope) >= -1e-4).all()


def test_losses_smoothing_scopes_differ():
    # Where "all" is smoothed, an entity of the tree may be another one than the gold.
    everything = losses_of(CASE, 0.02, "all")
    rejected = losses_of(CASE, 0.02, "rejected")
    hard = losses_of(CASE)
    assert (everything <= rejected + 1e-9).all()
    assert (rejected <= hard + 1e-9).all()
    assert everything[0] < rejected[0] - 1e-4
    assert rejected[0] < hard[0] - 1e-4


@pytest.mark.parametrize("scope", ["all", "rejected"])
def test_losses_smoothing_puts_masked_marginals_of_observed_below_one(scope):
    index, potentials, allowed, rejected = packed_case(CASE)
    potentials.requires_grad_()
    masked = smoothed_potentials(
        potentials, allowed, 0.05, rejected if scope == "rejected" else None
    )
    packed_log_partition(masked, index).sum().backward()
    inner = index.unpack(potentials.grad)[0, 0, 3, 1].item()
    assert 0.1 < inner < 1.0 - 1e-4


def test_losses_are_zero_where_everything_is_missing():
    lengths = [4, 1, 3]
    index = SpanIndex.build(lengths)
    potentials = index.pack(random_batch(lengths, 3).potentials).requires_grad_()
    missing = table([[(0, length, ANY_LABEL)] for length in lengths])
    allowed, _ = packed_masks(index, 2, 3, missing[:0], missing)
    losses = tree_crf_losses(
        potentials, smoothed_potentials(potentials, allowed), index
    )
    losses.sum().backward()
    assert losses.tolist() == [0.0] * 3
    assert not potentials.grad.any()
    assert local_losses(potentials, allowed, index).abs().max() < 1e-12


def test_losses_fall_where_a_label_is_missing_instead_of_absent():
    index = SpanIndex.build([3])
    potentials = index.pack(random_batch([3], 3).potentials)
    nothing = torch.zeros(0, 4, dtype=torch.int64)
    losses = []
    for missing in (nothing, table([[(0, 2, 1)]]), table([[(0, 2, ANY_LABEL)]])):
        allowed, _ = packed_masks(index, 2, 3, nothing, missing)
        masked = smoothed_potentials(potentials, allowed)
        losses.append(tree_crf_losses(potentials, masked, index).item())
    assert losses[0] > losses[1] > losses[2] > 0


def local_by_definition(batch, allowed, number):
    """Sum over spans of minus log of the softmax of what each may be."""
    total, null = 0.0, batch.n_labels - 1
    for start, end in is_span([batch.lengths[number]])[0].nonzero().tolist():
        chances = batch.potentials[number, start, end].double().softmax(0)
        free = allowed[number, start, end].nonzero()[:, 0].tolist() or [null]
        total -= math.log(sum(chances[label].item() for label in free))
    return total


@few
@given(annotated_batches(dtypes=DTYPES, scales=(0.0, 1.0, 4.0)))
def test_losses_local_is_the_cross_entropy_of_each_span(annotated):
    batch, _, entities = annotated
    annotated = (batch, batch.n_labels - 1, entities)
    index, potentials, allowed, _ = packed_case(annotated)
    losses = local_losses(potentials, allowed, index)
    for number in range(len(batch.lengths)):
        expected = local_by_definition(batch, index.unpack(allowed), number)
        assert losses[number].item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_losses_local_gold_of_rejected_spans_is_the_null_label():
    index = SpanIndex.build([3])
    allowed, rejected = packed_masks(index, 1, 2, table([[(0, 2, 0)]]))
    # All spans are sure of the null label but (0, 2), which is sure of the entity.
    potentials = torch.tensor([[-50.0], [50.0]]).repeat(1, index.n_spans)
    row = index.row_of(*torch.tensor([[0], [0], [2]]))
    potentials[:, row] *= -1
    assert rejected.sum() == 1
    assert local_losses(potentials, allowed, index).item() == pytest.approx(0.0)


def test_losses_local_gradient_equals_finite_differences():
    index, potentials, allowed, _ = packed_case(CASE)
    assert torch.autograd.gradcheck(
        lambda values: local_losses(values, allowed, index),
        (potentials.requires_grad_(),),
    )


# Normalisation of potentials.


def normalised(lengths, seed=0, scale=3.0, usable=None, temperature=0.0, n_labels=3):
    index = SpanIndex.build(lengths)
    raw = index.pack(random_batch(lengths, n_labels, seed, scale).potentials) + 1.5
    return index, raw, normalize_potentials(raw, index, usable, temperature)


@few
@given(st.lists(st.integers(2, 6), min_size=1, max_size=4), seeds, st.floats(-2, 2))
def test_losses_normalised_potentials_have_mean_0_and_the_deviation_asked(
    lengths, seed, log_temperature
):
    index, _, result = normalised(lengths, seed, temperature=log_temperature)
    for number in range(len(lengths)):
        own = result[:, index.segment == number]
        assert own.mean().item() == pytest.approx(0.0, abs=1e-9)
        assert own.std(unbiased=False).item() == pytest.approx(
            math.exp(log_temperature)
        )


@few
@given(st.lists(st.integers(2, 5), min_size=1, max_size=4), seeds)
def test_losses_normalisation_equals_its_definition(lengths, seed):
    index, raw, result = normalised(lengths, seed)
    for number in range(len(lengths)):
        own = raw[:, index.segment == number]
        expected = (own - own.mean()) / own.std(unbiased=False)
        torch.testing.assert_close(result[:, index.segment == number], expected)


def test_losses_normalisation_does_not_depend_on_batch_mates():
    batch = random_batch([5, 2, 60], 3, scale=4.0)
    results = []
    for lengths in ([5], [5, 2, 60]):
        index = SpanIndex.build(lengths)
        size = max(lengths) + 1
        chart = batch.potentials[: len(lengths), :size, :size]
        normal = normalize_potentials(index.pack(chart), index)
        results.append(index.unpack(normal)[0, :6, :6])
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0.0, 7.3, -1e4])
def test_losses_normalisation_of_equal_cells_keeps_their_scale(value, dtype):
    index = SpanIndex.build([1, 4])
    raw = torch.full((2, index.n_spans), value, dtype=dtype, requires_grad=True)
    result = normalize_potentials(raw, index)
    result.square().sum().backward()
    assert result.abs().max() <= 1e-12 * abs(value)
    assert raw.grad.isfinite().all()


def test_losses_normalisation_of_one_cell_is_finite():
    index = SpanIndex.build([1])
    raw = torch.tensor([[3.7]], requires_grad=True)
    result = normalize_potentials(raw, index, log_temperature=2.0)
    result.sum().backward()
    assert result.item() == 0.0
    assert raw.grad.isfinite().all()


def test_losses_normalisation_of_nearly_equal_cells_does_not_blow_up_rounding():
    index = SpanIndex.build([3])
    raw = torch.full((1, index.n_spans), 1e3)
    raw[0, 0] += 1e-3
    assert normalize_potentials(raw, index).abs().max() < 0.01


def test_losses_normalisation_counts_usable_spans_alone():
    index = SpanIndex.build([4, 3])
    usable = torch.rand(index.n_spans, generator=torch.Generator().manual_seed(1)) < 0.6
    _, raw, result = normalised([4, 3], usable=usable)
    for number in range(2):
        segment = index.segment == number
        own = raw[:, segment & usable]
        expected = (raw[:, segment] - own.mean()) / own.std(unbiased=False)
        torch.testing.assert_close(result[:, segment], expected)


def test_losses_normalisation_without_usable_spans_is_finite():
    usable = torch.zeros(6 + 3, dtype=torch.bool)
    _, raw, result = normalised([3, 2], usable=usable)
    torch.testing.assert_close(result, raw)


def test_losses_normalisation_gradient_goes_through_both_moments():
    index, raw, _ = normalised([3, 1, 2], n_labels=2)
    usable = torch.ones(index.n_spans, dtype=torch.bool)
    usable[[0, 4]] = False
    weights = torch.randn(
        raw.shape, generator=torch.Generator().manual_seed(2)
    ).double()

    def total(values, log_temperature):
        result = normalize_potentials(values, index, usable, log_temperature)
        return (result * weights).sum()

    temperature = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(total, (raw.requires_grad_(), temperature))


def test_losses_normalisation_keeps_the_best_tree():
    lengths = [5, 4]
    index, raw, result = normalised(lengths)
    before = best_tree(index.unpack(raw), lengths)
    assert best_tree(index.unpack(result), lengths) == before


def test_losses_mean_of_the_potentials_cancels():
    batch = random_batch([4, 2], 3)
    moved = batch.potentials + 3.0
    result = marginals(moved, batch.lengths)
    torch.testing.assert_close(result, marginals(batch.potentials, batch.lengths))
    shift = log_partition(moved, [4, 2]) - log_partition(batch.potentials, [4, 2])
    torch.testing.assert_close(shift, torch.tensor([21.0, 9.0]).double())
