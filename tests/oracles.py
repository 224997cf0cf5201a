"""Definitions, enumerated: what the fast code is tested against."""

import functools
import itertools
import math

import torch


@functools.cache
def bracketings(start, end):
    """All full binary bracketings of [start, end), each a tuple of spans."""
    if end - start == 1:
        return (((start, end),),)
    return tuple(
        ((start, end), *left, *right)
        for split in range(start + 1, end)
        for left in bracketings(start, split)
        for right in bracketings(split, end)
    )


@functools.cache
def labelled_trees(length, n_labels):
    """All labelled trees of a segment, each a tuple of (start, end, label)."""
    return tuple(
        tuple((*span, label) for span, label in zip(spans, labels, strict=True))
        for spans in bracketings(0, length)
        for labels in itertools.product(range(n_labels), repeat=len(spans))
    )


@functools.cache
def tree_cells(length, n_labels):
    """`labelled_trees` as a table. Shape: (number of trees, 2n - 1, 3), int64."""
    return torch.tensor(labelled_trees(length, n_labels))


def with_entity_set(cells, entities, n_entity_labels):
    """The trees whose `entity_set` is the given one. (number of trees, 2n - 1, 3)."""
    codes = (cells[..., 0] * 100 + cells[..., 1]) * 100 + cells[..., 2]
    wanted = torch.tensor([(s * 100 + e) * 100 + k for s, e, k in entities])
    hits = torch.isin(codes, wanted)
    exact = (hits == (cells[..., 2] < n_entity_labels)).all(1)
    return cells[exact & (hits.sum(1) == len(set(entities)))]


def crosses(a, b):
    """Whether two half-open spans cross."""
    return a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1]


def entity_set(tree, n_entity_labels):
    """The labelled, non-latent nodes of a tree."""
    return {node for node in tree if node[2] < n_entity_labels}


def tree_scores(potentials, trees):
    """Score of each tree in float64. potentials: (P, P, L) -> (number of trees,).

    Trees are those of `labelled_trees`, or their table of `tree_cells`, which is faster.
    """
    cells = torch.as_tensor(trees)
    doubles = potentials.double()
    return doubles[cells[..., 0], cells[..., 1], cells[..., 2]].sum(-1)


def log_sum(scores):
    """Log of the sum of exponentials; -inf of nothing."""
    return scores.logsumexp(0).item() if len(scores) else -math.inf


def tree_marginals(potentials, trees):
    """p(span, label in tree) by counting. (P, P, L) -> (P, P, L), float64."""
    chances = tree_scores(potentials, trees).softmax(0)
    result = torch.zeros(potentials.shape, dtype=torch.float64)
    cells = torch.as_tensor(trees)
    for node in range(cells.shape[1]):
        start, end, label = cells[:, node].T
        result.index_put_((start, end, label), chances, accumulate=True)
    return result
