"""F on real corpora, which an error in the model would lower without failing a test."""

import numpy as np
import pytest
from real_corpora import exact_scores, placed, read_both

from spacy_treecrf.maxent.decoding import decode
from spacy_treecrf.maxent.model import tag_entities
from spacy_treecrf.maxent.training import train

from .oracle import batch_of


@pytest.mark.slow
@pytest.mark.parametrize(("corpus", "least"), [("conll2002_es", 72.5), ("gmb", 82.5)])
def test_corpora_exact_f_of_the_default_tagger(corpora, corpus, least):
    training, test, numbers = read_both(corpora, corpus)
    batch = batch_of([tokens for tokens, _ in training])
    spans = np.array(placed(training, numbers))
    tags = tag_entities(len(batch.tokens), *spans.T)
    model = train(batch, tags, len(numbers))
    found = decode(model, batch_of([tokens for tokens, _ in test]), 20, 1)
    _, f = exact_scores(placed(test, numbers), *found[1:4])
    assert 100 * f >= least
