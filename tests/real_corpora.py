"""Real corpora as token lists with flat spans."""

import gzip
import json

import numpy as np


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


def read_both(folder, name):
    """Training and test sentences, and the number of each label in training."""
    train, test = read(folder, name, "train"), read(folder, name, "test")
    labels = sorted({label for _, spans in train for *_, label in spans})
    return train, test, {label: number for number, label in enumerate(labels)}


def placed(sentences, numbers):
    """(start, end, number of the label) of all spans, in words of the whole text."""
    lengths = [len(tokens) for tokens, _ in sentences]
    offsets = np.concatenate(([0], np.cumsum(lengths))).tolist()
    return [
        (offset + start, offset + end, numbers.get(label))
        for offset, (_, spans) in zip(offsets, sentences, strict=False)
        for start, end, label in spans
    ]


def exact_scores(gold, *columns):
    """Precision and F of predictions that are given as columns."""
    gold = set(gold)
    predicted = set(zip(*(column.tolist() for column in columns), strict=True))
    right = len(gold & predicted)
    return right / len(predicted), 2 * right / (len(gold) + len(predicted))
