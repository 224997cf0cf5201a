"""k-best trees equal the sorted enumeration."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import tree_cells, tree_scores
from strategies import batches, few, random_batch

from spacy_treecrf.structure import best_tree, k_best_trees


@few
@given(batches(dtypes=[torch.float32, torch.float64]), st.sampled_from([1, 3, 20, 100]))
def test_kbest_equals_the_sorted_enumeration(batch, k):
    found = k_best_trees(batch.potentials, batch.lengths, k)
    for trees, (length, potentials) in zip(found, batch, strict=True):
        scores = tree_scores(potentials, tree_cells(length, batch.n_labels))
        expected = scores.sort(descending=True).values[:k].tolist()
        assert [score for score, _ in trees] == pytest.approx(expected, abs=1e-9)


@few
@given(batches())
def test_kbest_trees_are_distinct_and_have_their_scores(batch):
    found = k_best_trees(batch.potentials, batch.lengths, 30)
    for trees, (_, potentials) in zip(found, batch, strict=True):
        assert len({tuple(tree) for _, tree in trees}) == len(trees)
        for score, tree in trees:
            total = sum(potentials[node].item() for node in tree)
            assert score == pytest.approx(total, abs=1e-9)


@few
@given(batches())
def test_kbest_starts_with_the_best_tree(batch):
    found = k_best_trees(batch.potentials, batch.lengths, 2)
    scores = [
        sum(potentials[node].item() for node in tree)
        for tree, (_, potentials) in zip(
            best_tree(batch.potentials, batch.lengths), batch, strict=True
        )
    ]
    assert [trees[0][0] for trees in found] == pytest.approx(scores, abs=1e-9)


def test_kbest_fewer_trees_than_k_is_ordinary():
    batch = random_batch([1, 2], 2)
    found = k_best_trees(batch.potentials, batch.lengths, 100)
    assert [len(trees) for trees in found] == [2, 8]


def test_kbest_batch_equals_one_by_one():
    batch = random_batch([7, 1, 12, 4], 3)
    together = k_best_trees(batch.potentials, batch.lengths, 15)
    for number, length in enumerate(batch.lengths):
        alone = k_best_trees(batch.potentials[number : number + 1], [length], 15)[0]
        assert alone == together[number]


def test_kbest_needs_no_recursion_on_long_segments():
    batch = random_batch([400], 2, dtype=torch.float32)
    scores = [score for score, _ in k_best_trees(batch.potentials, [400], 5)[0]]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 5


def test_kbest_refuses_k_below_1():
    batch = random_batch([2], 2)
    with pytest.raises(ValueError, match="expected k of at least 1, received 0"):
        k_best_trees(batch.potentials, batch.lengths, 0)
