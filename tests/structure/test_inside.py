"""log Z and masked log-sums equal enumeration over all, and over the allowed, trees."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import (
    bracketings,
    log_sum,
    tree_cells,
    tree_scores,
    with_entity_set,
)
from strategies import (
    annotated_batches,
    batches,
    few,
    is_span,
    masks_of,
    random_batch,
)

from spacy_treecrf.structure import (
    log_partition,
    log_probability,
    masked_log_partition,
)
from spacy_treecrf.structure.chart import BITS, LabelSums
from spacy_treecrf.structure.inside import (
    LOG_ZERO,
    check_possible,
    masked_potentials,
)

DTYPES = [torch.float32, torch.float64]


def tolerance(batch):
    """Rounding that a sum of 2n - 1 potentials may show in float32."""
    largest = batch.potentials[is_span(batch.lengths, batch.potentials.shape[1])]
    nodes = 2 * max(batch.lengths) - 1
    return 1e-6 * nodes * max(1.0, largest.abs().max().item())


def log_catalan(n):
    return math.log(math.comb(2 * n, n) // (n + 1))


def allowed_scores(batch, allowed, number, epsilon=0.0):
    """Scores of all trees of a segment, with log epsilon for each zero of the mask."""
    length = batch.lengths[number]
    trees = tree_cells(length, batch.n_labels)
    free = allowed[number][trees.unbind(-1)]
    scores = tree_scores(batch.potentials[number], trees)
    if epsilon:
        return scores + math.log(epsilon) * (~free).sum(1)
    return scores[free.all(1)]


@few
@given(batches(dtypes=DTYPES))
def test_inside_log_partition_equals_enumeration(batch):
    result = log_partition(batch.potentials, batch.lengths)
    for number, (length, potentials) in enumerate(batch):
        trees = tree_cells(length, batch.n_labels)
        expected = log_sum(tree_scores(potentials, trees))
        assert result[number].item() == pytest.approx(expected, abs=tolerance(batch))


@pytest.mark.parametrize("n_labels", [1, 3, 20])
def test_inside_log_partition_of_zeros_counts_the_labelled_trees(n_labels):
    lengths = list(range(1, 31))
    zeros = torch.zeros(30, 31, 31, n_labels, dtype=torch.float64)
    expected = [log_catalan(n - 1) + (2 * n - 1) * math.log(n_labels) for n in lengths]
    assert log_partition(zeros, lengths).tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inside_log_partition_of_longer_segments_sums_labels_then_bracketings(dtype):
    batch = random_batch([6, 5, 6], 4, scale=2.0, dtype=dtype)
    result = log_partition(batch.potentials, batch.lengths)
    for number, (length, potentials) in enumerate(batch):
        sums = potentials.double().logsumexp(-1, keepdim=True)
        trees = [[(*span, 0) for span in spans] for spans in bracketings(0, length)]
        expected = log_sum(tree_scores(sums, trees))
        assert result[number].item() == pytest.approx(expected, abs=tolerance(batch))


@few
@given(annotated_batches(dtypes=DTYPES))
def test_inside_masked_sum_is_over_the_trees_with_these_entities(annotated):
    batch, n_entity_labels, entities = annotated
    allowed = masks_of(batch, n_entity_labels, entities)
    result = masked_log_partition(batch.potentials, allowed, batch.lengths)
    for number, (length, potentials) in enumerate(batch):
        trees = with_entity_set(
            tree_cells(length, batch.n_labels), entities[number], n_entity_labels
        )
        expected = log_sum(tree_scores(potentials, trees))
        assert result[number].item() == pytest.approx(expected, abs=tolerance(batch))


@few
@given(batches(dtypes=DTYPES), st.floats(0.5, 1.0), st.integers(0, 1000))
def test_inside_masked_sum_of_any_mask_equals_enumeration(batch, share, seed):
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(batch.potentials.shape, generator=generator) < share
    # One right-branching tree is always allowed.
    allowed[..., 0] |= is_span(batch.lengths, allowed.shape[1])
    result = masked_log_partition(batch.potentials, allowed, batch.lengths)
    for number in range(len(batch.lengths)):
        expected = log_sum(allowed_scores(batch, allowed, number))
        assert result[number].item() == pytest.approx(expected, abs=tolerance(batch))


@few
@given(batches(dtypes=DTYPES), st.sampled_from([0.5, 0.02, 1e-6]), st.integers(0, 99))
def test_inside_epsilon_is_the_weight_of_each_zero_of_the_mask(batch, epsilon, seed):
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.rand(batch.potentials.shape, generator=generator) < 0.6
    result = masked_log_partition(batch.potentials, allowed, batch.lengths, epsilon)
    for number in range(len(batch.lengths)):
        expected = log_sum(allowed_scores(batch, allowed, number, epsilon))
        bound = tolerance(batch) * max(1.0, -math.log(epsilon))
        assert result[number].item() == pytest.approx(expected, abs=bound)


@few
@given(annotated_batches(dtypes=DTYPES), st.sampled_from([0.0, 0.01, 0.9]))
def test_inside_masked_sum_is_at_most_the_full_one(annotated, epsilon):
    batch, n_entity_labels, entities = annotated
    allowed = masks_of(batch, n_entity_labels, entities)
    masked = masked_log_partition(batch.potentials, allowed, batch.lengths, epsilon)
    full = log_partition(batch.potentials, batch.lengths)
    assert (masked <= full + tolerance(batch)).all()


@few
@given(annotated_batches(dtypes=DTYPES), st.sampled_from([0.0, 0.02]))
def test_inside_log_probability_is_the_difference_of_both_sums(annotated, epsilon):
    batch, n_entity_labels, entities = annotated
    allowed = masks_of(batch, n_entity_labels, entities)
    masked = masked_log_partition(batch.potentials, allowed, batch.lengths, epsilon)
    full = log_partition(batch.potentials, batch.lengths)
    result = log_probability(batch.potentials, allowed, batch.lengths, epsilon)
    torch.testing.assert_close(result, masked - full, rtol=0, atol=tolerance(batch))


def test_inside_log_probabilities_of_all_entity_sets_sum_to_one():
    # 3 tokens, 1 entity label: sets of spans that do not cross.
    batch = random_batch([3], 2)
    spans = [(s, e, 0) for s in range(3) for e in range(s + 1, 4)]
    total = 0.0
    for code in range(2 ** len(spans)):
        chosen = [span for bit, span in enumerate(spans) if code >> bit & 1]
        if (0, 2, 0) in chosen and (1, 3, 0) in chosen:
            continue
        allowed = masks_of(batch, 1, [chosen])
        total += log_probability(batch.potentials, allowed, [3]).exp().item()
    assert total == pytest.approx(1.0)


def test_inside_everything_allowed_is_the_full_sum():
    batch = random_batch([4, 2], 3)
    allowed = torch.ones_like(batch.potentials, dtype=torch.bool)
    masked = masked_log_partition(batch.potentials, allowed, batch.lengths)
    assert torch.equal(masked, log_partition(batch.potentials, batch.lengths))


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e4])
def test_inside_float32_is_close_to_float64(scale):
    batch = random_batch([9, 40, 25], 5, scale=scale)
    exact = log_partition(batch.potentials, batch.lengths)
    single = log_partition(batch.potentials.float(), batch.lengths)
    torch.testing.assert_close(single.double(), exact, rtol=0, atol=tolerance(batch))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("score", [1e4, -1e4])
def test_inside_scores_may_be_large(score, dtype):
    charts = torch.full((1, 6, 6, 2), score, dtype=dtype)
    expected = 9 * score + log_catalan(4) + 9 * math.log(2)
    result = log_partition(charts, [5]).item()
    assert result == pytest.approx(expected, rel=1e-6 if dtype.itemsize == 4 else 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e2, 1e4])
def test_inside_masked_sum_of_large_scores_is_over_the_allowed_trees(scale, dtype):
    batch = random_batch([4, 3], 3, scale=scale, dtype=dtype)
    # The gold trees are among the least probable.
    entities = [[(0, 3, 1), (1, 2, 0)], [(1, 3, 0)]]
    for number, own in enumerate(entities):
        for entity in own:
            batch.potentials[number][entity] = -3 * scale
    allowed = masks_of(batch, 2, entities)
    result = masked_log_partition(batch.potentials, allowed, batch.lengths)
    expected = [log_sum(allowed_scores(batch, allowed, number)) for number in range(2)]
    assert result.tolist() == pytest.approx(expected, abs=tolerance(batch))


@few
@given(batches(labels=(2, 3), dtypes=DTYPES), st.integers(0, 99))
def test_inside_scores_of_minus_infinity_are_trees_that_cannot_be(batch, seed):
    generator = torch.Generator().manual_seed(seed)
    blocked = torch.rand(batch.potentials.shape, generator=generator) < 0.3
    blocked[..., 0] = False
    batch.potentials[blocked] = -math.inf
    result = log_partition(batch.potentials, batch.lengths)
    for number in range(len(batch.lengths)):
        expected = log_sum(allowed_scores(batch, ~blocked, number))
        assert result[number].item() == pytest.approx(expected, abs=1e-4)


def gradient_case(seed=3):
    """Ragged potentials, and the hard masks of nested entities."""
    batch = random_batch([4, 2, 5], 3, seed=seed)
    entities = [[(0, 2, 1), (1, 2, 0)], [], [(1, 4, 0), (1, 3, 0), (0, 5, 1)]]
    return batch, masks_of(batch, 2, entities)


def test_inside_log_partition_gradient_equals_finite_differences():
    batch, _ = gradient_case()
    potentials = batch.potentials.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda chart: log_partition(chart, batch.lengths), (potentials,)
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.02])
def test_inside_gradient_with_hard_masks_equals_finite_differences(epsilon):
    batch, allowed = gradient_case()
    potentials = batch.potentials.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda chart: masked_log_partition(chart, allowed, batch.lengths, epsilon),
        (potentials,),
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, *DTYPES])
def test_inside_gradient_has_the_precision_of_the_input(dtype):
    batch, allowed = gradient_case()
    potentials = batch.potentials.to(dtype).requires_grad_()
    masked_log_partition(potentials, allowed, batch.lengths).sum().backward()
    assert potentials.grad.dtype == dtype


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_inside_gradients_are_finite_with_hard_masks(dtype, scale):
    batch, allowed = gradient_case()
    potentials = (batch.potentials * scale).to(dtype)
    potentials[0, 0, 1] = torch.tensor([-math.inf, -math.inf, 0.0])
    potentials.requires_grad_()
    masked = masked_log_partition(potentials, allowed, batch.lengths)
    (log_partition(potentials, batch.lengths) - masked).sum().backward()
    assert potentials.grad.isfinite().all()


def test_inside_gradients_of_padding_are_zero():
    batch = random_batch([4, 2, 3], 2, padding=math.nan)
    potentials = batch.potentials.requires_grad_()
    log_partition(potentials, batch.lengths).sum().backward()
    assert not potentials.grad[~is_span(batch.lengths)].any()


def test_inside_gradient_is_scaled_by_each_segments_own_factor():
    batch = random_batch([4, 2], 2)
    potentials = batch.potentials.requires_grad_()
    factors = torch.tensor([2.0, -3.0], dtype=torch.float64)
    (log_partition(potentials, batch.lengths) * factors).sum().backward()
    sums = potentials.grad.sum((1, 2, 3))
    torch.testing.assert_close(sums, factors * torch.tensor([7.0, 3.0]).double())


@pytest.mark.parametrize("function", [masked_log_partition, log_probability])
def test_inside_refuses_masks_that_allow_no_tree_and_names_the_segments(function):
    batch = random_batch([3, 2, 4], 2)
    allowed = torch.ones_like(batch.potentials, dtype=torch.bool)
    allowed[0, 0, 3] = allowed[2, 1, 2] = False
    with pytest.raises(ValueError, match=r"none for segments \[0, 2\]"):
        function(batch.potentials, allowed, batch.lengths)


@pytest.mark.parametrize("epsilon", [0.01, 0.5])
def test_inside_smoothing_makes_every_mask_possible(epsilon):
    batch = random_batch([3], 2)
    allowed = torch.zeros_like(batch.potentials, dtype=torch.bool)
    masked = masked_log_partition(batch.potentials, allowed, [3], epsilon)
    expected = log_partition(batch.potentials, [3]) + 5 * math.log(epsilon)
    torch.testing.assert_close(masked, expected)


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, 2.0, math.nan])
def test_inside_refuses_an_epsilon_outside_its_range(epsilon):
    allowed = torch.ones(2, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"epsilon in \[0, 1\), received"):
        masked_potentials(torch.zeros(2, 1), allowed, epsilon)


@pytest.mark.parametrize(
    "shape", [(1, 4, 4, 3), (1, 4, 4, 1), (2, 4, 4, 2), (1, 3, 3, 2)]
)
def test_inside_refuses_masks_of_another_shape(shape):
    with pytest.raises(ValueError, match="expected"):
        masked_log_partition(
            torch.zeros(1, 4, 4, 2), torch.ones(shape, dtype=torch.bool), [3]
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_inside_refuses_masks_that_are_not_boolean(dtype):
    with pytest.raises(ValueError, match=r"expected .*bool.*received torch\."):
        masked_log_partition(
            torch.zeros(1, 4, 4, 2), torch.ones(1, 4, 4, 2, dtype=dtype), [3]
        )


def test_inside_sum_labels_has_log_zero_as_floor():
    nothing = torch.full((3, 2), -math.inf)
    bits = LabelSums.of(nothing).bits()
    assert (bits / BITS).tolist() == pytest.approx([LOG_ZERO] * 2)


def test_inside_check_possible_lets_very_improbable_trees_pass():
    check_possible(torch.tensor([-1e9, 0.0]))
