"""Entropy equals enumeration; samples follow the distribution."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from oracles import bracketings, tree_cells, tree_scores
from strategies import batches, few, random_batch

from spacy_treecrf.structure import entropy, marginals, sample

SAMPLES = 4000


@few
@given(batches())
def test_sampling_entropy_equals_enumeration(batch):
    found = entropy(batch.potentials, batch.lengths)
    for value, (length, potentials) in zip(found, batch, strict=True):
        scores = tree_scores(potentials, tree_cells(length, batch.n_labels))
        chances = scores.softmax(0)
        expected = -(chances * scores.log_softmax(0)).sum().item()
        assert value.item() == pytest.approx(expected, abs=1e-8)


def test_sampling_entropy_of_uniform_trees_is_the_log_of_their_number():
    potentials = torch.zeros(1, 5, 5, 2, dtype=torch.float64)
    expected = torch.tensor(5.0 * 2**7, dtype=torch.float64).log()
    assert entropy(potentials, [4])[0].item() == pytest.approx(expected.item())


def test_sampling_entropy_is_finite_where_labels_are_impossible():
    batch = random_batch([4, 3], 3, padding=float("nan"))
    batch.potentials[:, 1, 3, 0] = -torch.inf
    assert torch.isfinite(entropy(batch.potentials, batch.lengths)).all()


def test_sampling_trees_are_full_trees_in_text_order():
    batch = random_batch([5, 1, 3], 3)
    for trees, length in zip(
        sample(batch.potentials, batch.lengths, 20, 0), batch.lengths, strict=True
    ):
        assert len(trees) == 20
        for tree in trees:
            assert {node[:2] for node in tree} in map(set, bracketings(0, length))
            assert tree == sorted(tree, key=lambda node: (node[0], -node[1]))


def test_sampling_frequencies_approach_the_marginals():
    batch = random_batch([4, 2], 2, scale=1.5)
    chances = marginals(batch.potentials, batch.lengths)
    drawn = sample(batch.potentials, batch.lengths, SAMPLES, 1)
    for number, trees in enumerate(drawn):
        counts = Counter(node for tree in trees for node in tree)
        for node, count in counts.items():
            chance = chances[(number, *node)].item()
            # Five standard deviations of a frequency.
            slack = 5 * (chance * (1 - chance) / SAMPLES) ** 0.5 + 1e-9
            assert count / SAMPLES == pytest.approx(chance, abs=slack)


def test_sampling_draws_the_same_trees_from_the_same_seed():
    batch = random_batch([6], 3)
    first, again, other = (
        sample(batch.potentials, batch.lengths, 10, seed) for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_sampling_refuses_k_below_1():
    batch = random_batch([2], 2)
    with pytest.raises(ValueError, match="expected k of at least 1, received 0"):
        sample(batch.potentials, batch.lengths, 0, 0)
