"""Best trees equal the argmax over enumerated trees; ties follow the stated order."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import bracketings, labelled_trees, tree_cells, tree_scores
from strategies import batches, few, is_span, random_batch, seeds

from spacy_treecrf.structure import best_tree, marginals, mbr_tree
from spacy_treecrf.structure.decode import best_bracketing, packed_mbr_tree
from spacy_treecrf.structure.spans import SpanIndex

DTYPES = [torch.float32, torch.float64]


def score(chart, tree):
    return sum(chart[node].double().item() for node in tree)


def is_tree(tree, length):
    return {node[:2] for node in tree} in map(set, bracketings(0, length))


@few
@given(batches(dtypes=DTYPES))
def test_decode_best_tree_is_the_argmax_of_enumeration(batch):
    trees = best_tree(batch.potentials, batch.lengths)
    for tree, (length, potentials) in zip(trees, batch, strict=True):
        scores = tree_scores(potentials, tree_cells(length, batch.n_labels))
        assert is_tree(tree, length)
        assert score(potentials, tree) == pytest.approx(scores.max().item(), abs=1e-4)


@few
@given(batches(dtypes=DTYPES))
def test_decode_trees_are_in_text_order_outer_before_inner(batch):
    for tree in best_tree(batch.potentials, batch.lengths):
        assert tree == sorted(tree, key=lambda node: (node[0], -node[1]))
        assert all(type(number) is int for node in tree for number in node)


@few
@given(batches(dtypes=DTYPES))
def test_decode_mbr_tree_has_the_most_expected_correct_nodes(batch):
    chances = marginals(batch.potentials, batch.lengths)
    trees = mbr_tree(batch.potentials, batch.lengths)
    for number, tree in enumerate(trees):
        length = batch.lengths[number]
        expected = tree_scores(chances[number], tree_cells(length, batch.n_labels))
        assert is_tree(tree, length)
        assert score(chances[number], tree) == pytest.approx(
            expected.max().item(), abs=1e-4
        )


@few
@given(
    batches(labels=(2, 3), dtypes=DTYPES),
    st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    st.booleans(),
)
def test_decode_mbr_threshold_maximises_what_exceeds_it(batch, threshold, two_latent):
    n_entity_labels = batch.n_labels - (2 if two_latent and batch.n_labels > 2 else 1)
    chances = marginals(batch.potentials, batch.lengths)
    trees = mbr_tree(batch.potentials, batch.lengths, threshold, n_entity_labels)
    gains = (chances[..., :n_entity_labels] - threshold).clamp(min=0)
    gains = torch.cat([gains, torch.zeros_like(gains[..., :1])], dim=-1)
    for number, tree in enumerate(trees):
        length = batch.lengths[number]
        # One latent label is enough: all add nothing.
        cells = tree_cells(length, n_entity_labels + 1)
        expected = tree_scores(gains[number], cells).max()
        entities = [node for node in tree if node[2] < n_entity_labels]
        found = [chances[number][node].item() - threshold for node in entities]
        assert sum(found) == pytest.approx(expected.item(), abs=1e-4)
        assert all(gain > 0 for gain in found)
        assert is_tree(tree, length)


def test_decode_mbr_threshold_does_not_count_what_lies_below_it():
    # (1, 4) and (1, 3) have the larger sum, but only (0, 2) exceeds the threshold.
    chances = torch.zeros(1, 5, 5, 2)
    chances[0, 0, 2, 0] = 0.6
    chances[0, 1, 4, 0] = chances[0, 1, 3, 0] = 0.45
    index = SpanIndex.build([4])
    rows, labels = packed_mbr_tree(index.pack(chances), index, threshold=0.5)
    entities = rows[labels == 0]
    assert (index.start[entities].tolist(), index.end[entities].tolist()) == ([0], [2])


def test_decode_mbr_threshold_gives_other_nodes_the_first_latent_label():
    potentials = torch.zeros(1, 4, 4, 4)
    potentials[..., 3] = 5.0
    labels = {node[2] for node in mbr_tree(potentials, [3], 0.5, n_entity_labels=2)[0]}
    assert labels == {2}


def test_decode_mbr_threshold_counts_all_labels_but_the_last_as_entities():
    potentials = random_batch([4], 3).potentials
    expected = mbr_tree(potentials, [4], 0.2, n_entity_labels=2)
    assert mbr_tree(potentials, [4], 0.2) == expected


def test_decode_mbr_prefers_a_span_of_many_trees_to_the_best_tree():
    # One tree of score 0 has (0, 2) and (2, 4); two of score -0.3 share (1, 3).
    potentials = torch.zeros(1, 5, 5, 1)
    potentials[0, 0, 3] = potentials[0, 1, 4] = -3.0
    potentials[0, 1, 3] = 2.7
    assert {(0, 2, 0), (2, 4, 0)} < set(best_tree(potentials, [4])[0])
    assert (1, 3, 0) in mbr_tree(potentials, [4])[0]


@few
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), seeds)
def test_decode_best_bracketing_has_the_largest_sum(lengths, seed):
    batch = random_batch(lengths, 1, seed)
    index = SpanIndex.build(lengths)
    rows = best_bracketing(index.pack(batch.potentials)[0], index)
    chosen = torch.zeros(1, index.n_spans, dtype=torch.bool)
    chosen[0, rows] = True
    assert len(rows) == sum(2 * length - 1 for length in lengths)
    for number, (length, potentials) in enumerate(batch):
        spans = index.unpack(chosen)[number, ..., 0].nonzero().tolist()
        found = sum(potentials[start, end, 0].item() for start, end in spans)
        best = max(
            sum(potentials[start, end, 0].item() for start, end in spans)
            for spans in bracketings(0, length)
        )
        assert found == pytest.approx(best)


@pytest.mark.parametrize("lengths", [[5], [5, 3], [5, 5]])
def test_decode_ties_go_to_the_smallest_left_part_and_the_lowest_label(lengths):
    trees = best_tree(torch.zeros(len(lengths), 6, 6, 3), lengths)
    for tree, length in zip(trees, lengths, strict=True):
        expected = {(start, start + 1, 0) for start in range(length)}
        expected |= {(start, length, 0) for start in range(length)}
        assert set(tree) == expected


def test_decode_ties_between_some_trees_follow_the_same_order():
    # (0, 2) (2, 4) ties with (1, 4) (2, 4); the left part (0, 1) is smaller.
    potentials = torch.zeros(1, 5, 5, 2)
    potentials[0, 0, 2, 1] = potentials[0, 1, 4, 1] = 1.0
    tree = best_tree(potentials, [4])[0]
    assert (1, 4, 1) in tree
    assert (0, 2) not in {node[:2] for node in tree}


@few
@given(seeds, st.integers(2, 4))
def test_decode_ties_equal_the_first_of_the_best_by_left_width_and_label(seed, length):
    # Scores of few values, so that ties are many.
    generator = torch.Generator().manual_seed(seed)
    chart = torch.randint(0, 2, (1, 5, 5, 2), generator=generator).double()
    trees = labelled_trees(length, 2)
    best = max(score(chart[0], tree) for tree in trees)

    # `bracketings` lists splits from the top, the smallest left part first.
    def key(tree):
        spans = tuple(node[:2] for node in tree)
        return bracketings(0, length).index(spans), [node[2] for node in tree]

    expected = min((tree for tree in trees if score(chart[0], tree) == best), key=key)
    assert best_tree(chart, [length])[0] == sorted(
        expected, key=lambda node: (node[0], -node[1])
    )


@few
@given(batches(labels=(2, 3)), st.integers(0, 99))
def test_decode_never_chooses_a_label_of_minus_infinity(batch, seed):
    generator = torch.Generator().manual_seed(seed)
    blocked = torch.rand(batch.potentials.shape, generator=generator) < 0.4
    blocked[..., 0] = False
    batch.potentials[blocked] = -math.inf
    for number, tree in enumerate(best_tree(batch.potentials, batch.lengths)):
        assert not any(blocked[number][node] for node in tree)


def test_decode_chooses_the_fewest_impossible_nodes_where_no_tree_is_possible():
    potentials = torch.zeros(1, 4, 4, 1)
    potentials[0, 0, 3] = potentials[0, 1, 3] = -math.inf
    assert (0, 2, 0) in best_tree(potentials, [3])[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_decode_of_large_scores_is_the_argmax(scale, dtype):
    batch = random_batch([4, 3], 2, scale=scale, dtype=dtype)
    trees = best_tree(batch.potentials, batch.lengths)
    for tree, (length, potentials) in zip(trees, batch, strict=True):
        best = tree_scores(potentials, tree_cells(length, 2)).max().item()
        assert score(potentials, tree) == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
def test_decode_of_1500_tokens_needs_no_recursion():
    length = 1500
    # A chain of 1,500 levels: every suffix is an entity.
    potentials = torch.zeros(1, length + 1, length + 1, 2)
    potentials[..., 1] = 1.0
    potentials[0, :, length, 0] = 3.0
    tree = best_tree(potentials, [length])[0]
    assert len(tree) == 2 * length - 1
    assert sum(node[2] == 0 for node in tree) == length


def test_decode_reads_no_cell_outside_the_segments():
    batch = random_batch([4, 2], 2)
    batch.potentials[~is_span([4, 2])] = 1e9
    for tree, length in zip(best_tree(batch.potentials, [4, 2]), [4, 2], strict=True):
        assert is_tree(tree, length)
