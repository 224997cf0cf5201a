"""Float32 potentials of any size give what float64 gives, up to float32's rounding."""

import math
from collections import Counter

import pytest
import torch
from oracles import tree_cells, tree_scores
from strategies import random_batch

from spacy_treecrf.structure import (
    entropy,
    k_best_entity_sets,
    k_best_trees,
    log_partition,
    log_probability,
    marginals,
    masked_log_partition,
    sample,
)

SCALES = [1.0, 10.0, 100.0, 1e3, 1e4]
every_scale = pytest.mark.parametrize("scale", SCALES)
every_length = pytest.mark.parametrize("lengths", [[60], [60, 1, 17], [150]])


def single(lengths, scale, seed=0, n_labels=4):
    return random_batch(
        lengths, n_labels, seed=seed, scale=scale, dtype=torch.float32
    ).potentials


def trained(length, seed=0):
    """Potentials as a trained pipe has them: sure of some spans, split over others."""
    potentials = single([length], 3.0, seed)
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, length - 4, (length // 3,), generator=generator)
    potentials[..., :-1] -= 30.0
    potentials[0, starts, starts + 3, 0] += 60.0
    return potentials


@every_scale
@every_length
def test_precision_of_marginals(lengths, scale):
    potentials = single(lengths, scale)
    found = marginals(potentials, lengths)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    expected = marginals(potentials.double(), lengths)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("seed", range(3))
def test_precision_of_a_trained_pipe(seed):
    potentials = trained(330, seed)
    found, double = marginals(potentials, [330]), potentials.double()
    assert found.max() <= 1.0
    torch.testing.assert_close(
        found.double(), marginals(double, [330]), rtol=0, atol=5e-6
    )
    uncertainty = entropy(potentials, [330]).item()
    assert uncertainty == pytest.approx(entropy(double, [330]).item(), abs=5e-3)


@every_scale
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_of_marginals_equals_enumeration(scale, dtype):
    batch = random_batch([4], 3, scale=scale, dtype=dtype)
    cells = tree_cells(4, 3)
    chances = tree_scores(batch.potentials[0], cells).softmax(0)
    sure = marginals(batch.potentials, [4]).double()[0]
    for node in range(cells.shape[1]):
        start, end, label = cells[:, node].T
        sure.index_put_((start, end, label), -chances, accumulate=True)
    assert sure.abs().max() < 1e-6


@every_scale
@every_length
def test_precision_of_entropy(lengths, scale):
    potentials = single(lengths, scale)
    found = entropy(potentials, lengths)
    assert (found >= 0.0).all()
    expected = entropy(potentials.double(), lengths)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-3)


@every_scale
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(4))
def test_precision_of_entropy_equals_enumeration(scale, dtype, seed):
    batch = random_batch([4], 3, seed, scale, dtype=dtype)
    scores = tree_scores(batch.potentials[0], tree_cells(4, 3))
    expected = torch.special.entr(scores.softmax(0)).sum().item()
    found = entropy(batch.potentials, [4]).item()
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("barrier", [-1e4, -1e9, -1e20, -1e29, -math.inf])
def test_precision_of_entropy_under_hard_barriers(barrier):
    potentials = single([30], 1.0)
    barred = potentials.clone()
    barred[0, 3, 9], barred[..., 0] = barrier, barrier
    reference = potentials.double()
    reference[0, 3, 9], reference[..., 0] = -1e4, -1e4
    found = entropy(barred, [30]).item()
    assert found == pytest.approx(entropy(reference, [30]).item(), abs=1e-3)


@every_scale
def test_precision_of_candidates(scale):
    lengths = [20, 7]
    potentials = single(lengths, scale)
    found = k_best_entity_sets(potentials, lengths, 10, 3)
    expected = k_best_entity_sets(potentials.double(), lengths, 10, 3)
    assert found == expected
    scores = [log_prob for candidates in found for log_prob, _ in candidates]
    assert all(isinstance(score, float) and score <= 0.0 for score in scores)


@every_scale
def test_precision_of_candidates_is_that_of_enumerated_sets(scale):
    potentials = single([3], scale, n_labels=3)
    cells = tree_cells(3, 3)
    log_chances = tree_scores(potentials[0], cells).log_softmax(0)
    sets = [
        frozenset(tuple(node) for node in tree if node[2] < 2)
        for tree in cells.tolist()
    ]
    for log_prob, entities in k_best_entity_sets(potentials, [3], 10, 2)[0]:
        own = torch.tensor([each == frozenset(entities) for each in sets])
        expected = log_chances[own].logsumexp(0).item()
        assert log_prob == pytest.approx(expected, rel=1e-6, abs=1e-6 * scale)


@every_scale
def test_precision_of_k_best_trees(scale):
    potentials = single([20], scale)
    found = k_best_trees(potentials, [20], 10)[0]
    log_z = log_partition(potentials.double(), [20]).item()
    for score, tree in found:
        exact = sum(potentials[0][node].double().item() for node in tree)
        assert score == pytest.approx(exact, rel=1e-12)
        assert score <= log_z + 1e-12 * abs(log_z)


@every_scale
def test_precision_of_log_probabilities(scale):
    lengths = [40, 9]
    potentials = single(lengths, scale)
    allowed = torch.zeros(potentials.shape, dtype=torch.bool)
    allowed[..., -1] = True
    allowed[:, 0, 1, 0] = True
    found = log_probability(potentials, allowed, lengths)
    assert (found <= 0.0).all()
    expected = log_probability(potentials.double(), allowed, lengths)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-3)
    everything = log_probability(potentials, torch.ones_like(allowed), lengths)
    assert everything.tolist() == [0.0, 0.0]
    masked = masked_log_partition(potentials, allowed, lengths)
    assert (masked <= log_partition(potentials, lengths)).all()


@every_scale
def test_precision_of_gradients(scale):
    potentials = single([60, 9], scale).requires_grad_()
    log_partition(potentials, [60, 9]).sum().backward()
    expected = marginals(potentials.detach().double(), [60, 9])
    torch.testing.assert_close(potentials.grad.double(), expected, rtol=0, atol=1e-3)


@every_scale
def test_precision_of_samples(scale):
    # Two splits that differ by one nat, beneath scores of any size.
    length, drawn = 30, 2000
    potentials = single([length], scale)
    potentials[0, 3, 5, 1] = potentials[0, 2, 4, 1] = 10.0 * length * scale
    potentials[0, 2, 5, 1] = 20.0 * length * scale
    leaves = [(start, start + 1) for start in (2, 3, 4)]
    for leaf in leaves:
        potentials[(0, *leaf)] = torch.tensor([-1e8, 0.0, -1e8, -1e8])
    potentials[0, 2, 4, 1] += 1.0
    exact = potentials.double()
    odds = (exact[0, 2, 4, 1] - exact[0, 3, 5, 1]).sigmoid().item()
    trees = sample(potentials, [length], drawn, 0)[0]
    counts = Counter(
        node[:2] for tree in trees for node in tree if node[:2] in {(2, 4), (3, 5)}
    )
    assert counts.total() == drawn
    slack = 5 * (odds * (1 - odds) / drawn) ** 0.5
    assert counts[2, 4] / drawn == pytest.approx(odds, abs=slack)
