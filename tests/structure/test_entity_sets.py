"""Candidate entity sets against the enumerated distribution of entity sets."""

import math
from collections import defaultdict

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import crosses, entity_set, labelled_trees, tree_cells, tree_scores
from strategies import few, random_batch, seeds

from spacy_treecrf.structure import k_best_entity_sets
from spacy_treecrf.structure.entity_sets import score_sets
from spacy_treecrf.structure.spans import SpanIndex

K = 20
lengths_drawn = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def set_chances(potentials, length, n_entity_labels):
    """Probability of each entity set, by adding up trees."""
    n_labels = potentials.shape[-1]
    chances = tree_scores(potentials, tree_cells(length, n_labels)).softmax(0)
    result = defaultdict(float)
    trees = labelled_trees(length, n_labels)
    for tree, chance in zip(trees, chances.tolist(), strict=True):
        result[frozenset(entity_set(tree, n_entity_labels))] += chance
    return result


def set_chances_by_span(potentials, length, n_entity_labels):
    """The same by a table of sets a span, for lengths whose trees are too many."""
    table = {}
    for width in range(1, length + 1):
        for start in range(length - width + 1):
            end = start + width
            below = {frozenset(): 1.0} if width == 1 else defaultdict(float)
            for split in range(start + 1, end):
                for left, one in table[start, split].items():
                    for right, other in table[split, end].items():
                        below[left | right] += one * other
            sums = defaultdict(float)
            for label, weight in enumerate(potentials[start, end].exp().tolist()):
                node = {(start, end, label)} if label < n_entity_labels else set()
                for entities, value in below.items():
                    sums[entities | node] += value * weight
            table[start, end] = sums
    total = sum(table[0, length].values())
    return {entities: value / total for entities, value in table[0, length].items()}


@few
@given(lengths_drawn, seeds, st.sampled_from([1, 2]))
def test_entity_sets_have_exact_log_probabilities(lengths, seed, n_entity_labels):
    batch = random_batch(lengths, 3, seed=seed, padding=math.nan)
    found = k_best_entity_sets(batch.potentials, lengths, K, n_entity_labels)
    for candidates, (length, potentials) in zip(found, batch, strict=True):
        chances = set_chances(potentials, length, n_entity_labels)
        for log_prob, entities in candidates:
            expected = math.log(chances[frozenset(entities)])
            assert log_prob == pytest.approx(expected, abs=1e-8)


@few
@given(lengths_drawn, seeds)
def test_entity_sets_are_distinct_sorted_and_without_crossing(lengths, seed):
    batch = random_batch(lengths, 3, seed=seed)
    for candidates in k_best_entity_sets(batch.potentials, lengths, K, 2):
        scores = [log_prob for log_prob, _ in candidates]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(entities) for _, entities in candidates}) == len(candidates)
        for _, entities in candidates:
            assert not any(crosses(a, b) for a in entities for b in entities)
            assert len({entity[:2] for entity in entities}) == len(entities)


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 4.0])
def test_entity_sets_recall_the_enumerated_best(scale):
    found, wanted = 0, 0
    for length in (2, 3, 4, 5, 6):
        for seed in range(3):
            # One entity label: with two there are 100,000 sets of 6 tokens.
            n_entity_labels = 2 if length < 5 else 1
            batch = random_batch([length], n_entity_labels + 1, seed=seed, scale=scale)
            chances = set_chances_by_span(batch.potentials[0], length, n_entity_labels)
            best = sorted(chances, key=chances.__getitem__, reverse=True)[:K]
            candidates = k_best_entity_sets(
                batch.potentials, [length], K, n_entity_labels
            )[0]
            sets = {frozenset(entities) for _, entities in candidates}
            found += sum(entities in sets for entities in best)
            wanted += len(best)
    assert found / wanted >= 0.95


def test_entity_sets_by_span_table_equals_enumeration():
    batch = random_batch([4], 3)
    by_tree = set_chances(batch.potentials[0], 4, 2)
    by_span = set_chances_by_span(batch.potentials[0], 4, 2)
    assert by_span == pytest.approx(dict(by_tree))


def test_entity_sets_scoring_in_parts_changes_nothing(monkeypatch):
    batch = random_batch([5, 3], 3)
    index = SpanIndex.build(batch.lengths)
    packed = index.pack(batch.potentials)
    sets = [
        [frozenset(), frozenset({(0, 2, 0)}), frozenset({(1, 4, 1), (2, 4, 0)})],
        [frozenset({(0, 3, 1)})],
    ]
    together = score_sets(packed, index, sets, 2)
    monkeypatch.setattr("spacy_treecrf.structure.entity_sets.MAX_CELLS", 1)
    apart = score_sets(packed, index, sets, 2)
    for one, other in zip(together, apart, strict=True):
        assert one == pytest.approx(other)


def test_entity_sets_fewer_than_k_is_ordinary():
    batch = random_batch([1], 3)
    candidates = k_best_entity_sets(batch.potentials, [1], K, 2)[0]
    assert {tuple(entities) for _, entities in candidates} == {
        (),
        ((0, 1, 0),),
        ((0, 1, 1),),
    }


def test_entity_sets_leave_out_what_is_impossible():
    batch = random_batch([2], 2)
    batch.potentials[0, 0, 1, 0] = -torch.inf
    for _, entities in k_best_entity_sets(batch.potentials, [2], K, 1)[0]:
        assert (0, 1, 0) not in entities
