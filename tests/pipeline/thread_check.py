"""Whether a pipeline says in eight threads what it says in one."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from nested_toy import SENTENCES

# More threads than cores, so that they are interrupted everywhere.
N_THREADS = 8


def texts(words, count, length):
    rng = random.Random(0)
    return [" ".join(rng.choices(words, k=length)) for _ in range(count)]


def toy_words():
    return sorted({word for words, _ in SENTENCES for word in words.split()})


def spans_and_scores(doc):
    """All groups of a Doc: entities, and what is numbers."""
    entities, figures = {}, {}
    for key, group in doc.spans.items():
        entities[key] = [(s.start, s.end, s.label_) for s in group]
        for name, values in group.attrs.items():
            figures[key, name] = np.asarray(values)
    entities["ents"] = [(e.start, e.end, e.label_) for e in doc.ents]
    return entities, figures


def differing(one, many):
    """How many answers differ in entities, or in figures by more than rounding."""
    count = 0
    for (entities, figures), (others, values) in zip(one, many, strict=True):
        same = entities == others and figures.keys() == values.keys()
        count += not (
            same and all(np.allclose(figures[k], values[k], atol=1e-4) for k in figures)
        )
    return count


def check_threads(nlp, inputs, as_doc=lambda text: text):
    """By call and by pipe, in eight threads, as in one."""

    def call(text):
        return spans_and_scores(nlp(as_doc(text)))

    def pipe(batch):
        docs = nlp.pipe([as_doc(text) for text in batch], batch_size=4)
        return [spans_and_scores(doc) for doc in docs]

    one = [call(text) for text in inputs]
    batches = [inputs[i : i + 8] for i in range(0, len(inputs), 8)]
    piped = [answer for batch in batches for answer in pipe(batch)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        assert differing(one, list(pool.map(call, inputs))) == 0
        many = [answer for batch in pool.map(pipe, batches) for answer in batch]
        assert differing(piped, many) == 0
