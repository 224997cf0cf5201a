"""The definition of the tagger, word by word: predicates, p(t | h), taggings."""

import itertools
import math

import numpy as np

from spacy_treecrf.maxent.features import (
    TEMPLATES,
    WordBatch,
    character_types,
    collapsed_types,
    start_predicate,
)


def batch_of(sentences):
    """Number the words of tokenised sentences."""
    types = sorted({word for sentence in sentences for word in sentence})
    numbers = {word: number for number, word in enumerate(types)}
    tokens = [numbers[word] for sentence in sentences for word in sentence]
    lengths = [len(sentence) for sentence in sentences]
    return WordBatch(types, np.array(tokens, dtype=np.int64), np.array(lengths))


def predicates(words, at, lower_case):
    """(template, value) of each predicate of a word that tags don't matter for."""
    word = words[at]
    return [
        ("word", word),
        ("previous word", words[at - 1] if at else None),
        ("next word", words[at + 1] if at + 1 < len(words) else None),
        ("start", start_predicate(word, at == 0, lower_case)),
        ("types", character_types(word)),
        ("collapsed types", collapsed_types(word)),
    ]


def history(tags, at, n_tags):
    """(template, value) of the tags before a word."""
    padded = [n_tags, n_tags, *tags]
    return [
        ("last", padded[at + 1]),
        ("last two", (padded[at], padded[at + 1])),
    ]


def weights_of(model):
    """The weight of each feature by (template, value, tag)."""
    n_tags = model.n_tags
    names = [
        (template, value)
        for template, values in zip(TEMPLATES, model.predicates.kept, strict=True)
        for value in values
    ]
    tags = range(n_tags + 1)
    names += [("last", tag) for tag in tags]
    names += [("last two", pair) for pair in itertools.product(tags, tags)]
    return {
        (*names[feature // n_tags], feature % n_tags): weight
        for feature, weight in zip(
            model.features.tolist(), model.weights.tolist(), strict=True
        )
    }


def log_prob(weights, n_tags, lower_case, words, tags):
    """Log probability of a tagging of a sentence, from the weights by name."""
    total = 0.0
    for at, tag in enumerate(tags):
        seen = predicates(words, at, lower_case) + history(tags, at, n_tags)
        scores = [
            math.fsum(weights.get((*predicate, t), 0.0) for predicate in seen)
            for t in range(n_tags)
        ]
        total += scores[tag] - math.log(math.fsum(map(math.exp, scores)))
    return total


def well_formed(tags):
    """Whether each C follows S or C of its label."""
    return all(
        tag == 0 or tag % 2 == 1 or last in (tag - 1, tag)
        for last, tag in zip((0, *tags), tags, strict=False)
    )


def taggings(length, n_tags):
    """Every well-formed tagging of a sentence."""
    return [
        tags
        for tags in itertools.product(range(n_tags), repeat=length)
        if well_formed(tags)
    ]


def spans_of(tags):
    """(start, end, label) of the entities of a well-formed tagging."""
    spans = []
    for at, tag in enumerate(tags):
        if tag % 2 == 1:
            spans.append([at, at + 1, tag // 2])
        elif tag:
            spans[-1][1] = at + 1
    return [tuple(span) for span in spans]
