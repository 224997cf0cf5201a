r"""How well the scores of predicted entities agree with how many are right.

    python benchmarks/calibration.py training/compare/litbank_cnn.treecrf \
        training/compare/litbank_cnn.treecrf_likelihood corpus/litbank/dev.spacy

For the entities that a model scores above 0.5: their mean score, their precision, and the
expected calibration error over ten bins. `compare_ner.py` leaves such models behind.
"""

import argparse
from pathlib import Path

import numpy as np
import spacy

from spacy_treecrf.data.corpus_reader import FastCorpus

LEAST = 0.5
BINS = 10


def scored_entities(nlp, path):
    """Scores of the predicted entities above LEAST, and whether each is right."""
    pipe = nlp.get_pipe("treecrf")
    pipe.cfg.update(decoder="mbr", threshold=LEAST)
    examples = list(FastCorpus(path)(nlp))
    docs = nlp.pipe(example.predicted for example in examples)
    scores, right = [], []
    for doc, example in zip(docs, examples, strict=True):
        gold = {
            (span.start_char, span.end_char, span.label_)
            for span in example.reference.spans.get(pipe.key, [])
        }
        group = doc.spans[pipe.key]
        for span, score in zip(group, group.attrs["scores"], strict=True):
            scores.append(float(score))
            right.append((span.start_char, span.end_char, span.label_) in gold)
    return np.array(scores), np.array(right, dtype=float)


def calibration_error(scores, right):
    """Mean over the entities of |score - precision| of the bin that they are in."""
    bins = np.minimum((scores * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=scores - right, minlength=BINS)
    return np.abs(gaps).sum() / len(scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path, nargs="+", metavar="MODEL")
    parser.add_argument("corpus", type=Path, help="a .spacy file with gold")
    args = parser.parse_args()
    for model in args.models:
        scores, right = scored_entities(spacy.load(model), args.corpus)
        print(
            f"{model.name}: {len(scores)} entities above {LEAST}, mean score "
            f"{scores.mean():.3f}, precision {right.mean():.3f}, calibration error "
            f"{calibration_error(scores, right):.3f}"
        )


if __name__ == "__main__":
    main()
