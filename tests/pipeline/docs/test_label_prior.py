"""The constant terms that a new model starts with, from how often labels occur."""

import numpy as np
import pytest
import torch
from nested_toy import initialized, toy_examples, train, untrained

from spacy_treecrf.pipeline.docs.label_prior import LabelPrior
from spacy_treecrf.structure.marginals import packed_marginals
from spacy_treecrf.structure.spans import SpanIndex

LENGTHS = np.array([1, 4, 2, 7, 7])
COUNTS = np.array([5, 2, 1])


def bias_of(nlp):
    module = nlp.get_pipe("treecrf").model.get_ref("span_scorer").shims[0]._model
    return module.bias.detach().numpy()


def prior(lengths=LENGTHS, counts=COUNTS):
    result = LabelPrior()
    # In two batches, the first of which knows fewer labels.
    result.add(lengths[:2], np.zeros(counts[0], dtype=np.int64))
    result.add(lengths[2:], np.repeat([1, 2], counts[1:]))
    return result


@pytest.mark.parametrize("n_latent", [1, 3])
def test_label_prior_gives_trees_as_many_entities(n_latent):
    odds = prior(np.repeat(LENGTHS, 100), COUNTS * 100)
    odds = odds.log_odds(3, "treecrf", n_latent)
    index = SpanIndex.build(LENGTHS.tolist())
    potentials = torch.zeros(3 + n_latent, index.n_spans, dtype=torch.float64)
    potentials[:3] = torch.from_numpy(odds)[:, None]
    expected = packed_marginals(potentials, index).sum(1)[:3].numpy()
    np.testing.assert_allclose(expected, COUNTS, rtol=0.01)


def test_label_prior_gives_spans_as_many_entities():
    odds = prior(np.repeat(LENGTHS, 100), COUNTS * 100).log_odds(3, "local", 1)
    shares = np.exp(odds) / (1 + np.exp(odds).sum())
    n_spans = (LENGTHS * (LENGTHS + 1) // 2).sum()
    np.testing.assert_allclose(shares * n_spans, COUNTS, rtol=0.01)


def test_label_prior_of_a_label_without_entities_is_finite():
    odds = prior().log_odds(5, "treecrf", 1)
    assert np.isfinite(odds).all()
    assert (odds[3:] < odds[:3].min()).all()


def test_label_prior_where_every_node_is_an_entity_is_finite():
    full = LabelPrior()
    full.add(np.ones(4, dtype=np.int64), np.zeros(4, dtype=np.int64))
    assert np.isfinite(full.log_odds(1, "treecrf", 1)).all()


@pytest.mark.parametrize("objective", ["treecrf", "local"])
def test_treecrf_starts_at_the_log_odds_of_the_data(objective):
    nlp = untrained(objective=objective)
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("treecrf")
    numbers = pipe.label_set.numbers()
    counts = LabelPrior()
    for example in examples:
        cells = {}
        for span in example.reference.spans["nested"]:
            cells.setdefault((span.start, span.end), set()).add(span.label_)
        labels = [numbers[tuple(sorted(names))] for names in cells.values()]
        length = np.array([len(example.reference)])
        counts.add(length, np.array(labels, dtype=np.int64))
    odds = counts.log_odds(len(pipe.label_set), objective, 1)
    np.testing.assert_allclose(bias_of(nlp), [*odds, 0.0], rtol=1e-6)


@pytest.mark.parametrize(
    "config", [{"initial_bias": "zero"}, {"potential_normalization": True}], ids=str
)
def test_treecrf_starts_at_zero(config):
    assert not bias_of(initialized(**config)).any()


def test_treecrf_initialised_again_starts_at_the_log_odds_again():
    nlp = untrained()
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    start = bias_of(nlp).copy()
    train(nlp, examples, steps=2)
    assert (bias_of(nlp) != start).any()
    pipe = nlp.get_pipe("treecrf")
    pipe.initialize(lambda: examples, nlp=nlp)
    assert (bias_of(nlp) == start).all()
    # Nothing is left to be saved with the model.
    assert "initial_bias" not in pipe.model.get_ref("output_layer").attrs
