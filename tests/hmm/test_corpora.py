"""F on real corpora, which an error in the model would lower without failing a test."""

import gzip
import json

import numpy as np
import pytest

from spacy_treecrf.hmm.decoding import decode
from spacy_treecrf.hmm.learning import learn
from spacy_treecrf.hmm.model import Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features


def outermost(spans):
    kept = []
    for span in sorted(spans, key=lambda s: (s[0], -s[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def read(folder, name, split):
    (path,) = folder.rglob(f"{name}/{split}.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf8") as file:
        records = [json.loads(line) for line in file]
    return [(r["tokens"], outermost(r["spans"])) for r in records if r["tokens"]]


def label(sentences, numbers):
    classes, begins = [], []
    for tokens, spans in sentences:
        of_token = [0] * len(tokens)
        first = [False] * len(tokens)
        for start, end, name in spans:
            of_token[start:end] = [numbers[name]] * (end - start)
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
    train, test = read(corpora, corpus, "train"), read(corpora, corpus, "test")
    labels = sorted({name for _, spans in train for *_, name in spans})
    numbers = {name: number for number, name in enumerate(labels, 1)}
    model = learn(
        TokenBatch.from_sentences([tokens for tokens, _ in train]),
        *label(train, numbers),
        np.arange(len(train)) >= len(train) // 2,
        Settings(len(labels) + 1),
        make_word_features(),
    )
    batch = TokenBatch.from_sentences([tokens for tokens, _ in test])
    found = decode(model, batch)
    offsets = np.concatenate(([0], np.cumsum(batch.lengths))).tolist()
    gold = {
        (offset + start, offset + end, numbers.get(name))
        for offset, (_, spans) in zip(offsets, test, strict=False)
        for start, end, name in spans
    }
    columns = (found.start, found.end, found.name_class)
    predicted = set(zip(*(column.tolist() for column in columns), strict=True))
    f = 200 * len(gold & predicted) / (len(gold) + len(predicted))
    assert f >= least
    assert np.isfinite(found.posterior).all()
    # Posteriors are calibrated well enough to be thresholds (0.02 to 0.12 off in mean).
    precision = len(gold & predicted) / len(predicted)
    assert abs(found.posterior.mean() - precision) < 0.2
