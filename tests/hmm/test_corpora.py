"""F on real corpora, which an error in the model would lower without failing a test."""

import numpy as np
import pytest
from real_corpora import exact_scores, placed, read_both

from spacy_treecrf.hmm.decoding import decode
from spacy_treecrf.hmm.learning import learn
from spacy_treecrf.hmm.model import Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features


def label(sentences, numbers):
    classes, begins = [], []
    for tokens, spans in sentences:
        of_token = [0] * len(tokens)
        first = [False] * len(tokens)
        for start, end, name in spans:
            of_token[start:end] = [numbers[name] + 1] * (end - start)
            first[start] = True
        for at, c in enumerate(of_token):
            first[at] |= c == 0 and (at == 0 or of_token[at - 1] != 0)
        classes += of_token
        begins += first
    return np.array(classes), np.array(begins)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "least"), [("conll2002_es", 76.5), ("gmb", 80.0), ("genia", 64.0)]
)
def test_corpora_exact_f_of_the_default_model(corpora, corpus, least):
    train, test, numbers = read_both(corpora, corpus)
    model = learn(
        TokenBatch.from_sentences([tokens for tokens, _ in train]),
        *label(train, numbers),
        np.arange(len(train)) >= len(train) // 2,
        Settings(len(numbers) + 1),
        make_word_features(),
    )
    batch = TokenBatch.from_sentences([tokens for tokens, _ in test])
    _, start, end, name_class, scores, _ = decode(model, batch)
    precision, f = exact_scores(placed(test, numbers), start, end, name_class - 1)
    assert 100 * f >= least
    assert np.isfinite(scores).all()
    # Posteriors are calibrated well enough to be thresholds (0.02 to 0.12 off in mean).
    assert abs(scores.mean() - precision) < 0.2
