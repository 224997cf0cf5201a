"""Analyses under a width limit, enumerated: trees, or chains of trees over stretches."""

import functools
import itertools
import math

import torch
from oracles import bracketings


@functools.cache
def chains(start, end, max_width):
    """All sequences of stretches of at most a width that cover [start, end)."""
    if start == end:
        return ((),)
    return tuple(
        ((start, middle), *rest)
        for middle in range(start + 1, min(end, start + max_width) + 1)
        for rest in chains(middle, end, max_width)
    )


@functools.cache
def analyses(length, max_width):
    """All analyses of a segment, each a tuple of spans."""
    if length <= max_width:
        return bracketings(0, length)
    return tuple(
        tuple(itertools.chain.from_iterable(trees))
        for stretches in chains(0, length, max_width)
        for trees in itertools.product(*(bracketings(*span) for span in stretches))
    )


@functools.cache
def labelled_analyses(length, max_width, n_labels):
    """All labelled analyses of a segment, each a tuple of (start, end, label)."""
    return tuple(
        tuple((*span, label) for span, label in zip(spans, labels, strict=True))
        for spans in analyses(length, max_width)
        for labels in itertools.product(range(n_labels), repeat=len(spans))
    )


def analysis_scores(potentials, length, max_width):
    """Log-sum of each analysis of `analyses` over its labellings, which are independent.

    potentials: (P, P, L). RETURNS: (number of analyses,), float64.
    """
    spans = potentials.double().logsumexp(-1)
    return torch.stack(
        [sum(spans[span] for span in each) for each in analyses(length, max_width)]
    )


def labelled_scores(potentials, trees):
    """Score of each labelled analysis, in float64."""
    values = potentials.double().tolist()
    return torch.tensor(
        [
            math.fsum(values[start][end][label] for start, end, label in tree)
            for tree in trees
        ],
        dtype=torch.float64,
    )


def analysis_marginals(potentials, length, max_width):
    """p(span, label in analysis) by counting. (P, P, L) -> (P, P, L), float64."""
    chances = analysis_scores(potentials, length, max_width).softmax(0)
    result = torch.zeros(potentials.shape, dtype=torch.float64)
    shares = potentials.double().softmax(-1)
    for chance, spans in zip(chances, analyses(length, max_width), strict=True):
        for span in spans:
            result[span] += chance * shares[span]
    return result


def analysis_entropy(potentials, length, max_width):
    """Entropy of the labelled analyses, by counting."""
    trees = labelled_analyses(length, max_width, potentials.shape[-1])
    chances = labelled_scores(potentials, trees).softmax(0)
    return torch.special.entr(chances).sum().item()
