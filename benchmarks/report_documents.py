"""Documents without sentence boundaries against the same sentences, from the results.

    python benchmarks/report_documents.py corpus/litbank corpus/gum

Reads results/ner/NAME_docs_cnn.SYSTEM.json and NAME_sentences_cnn.SYSTEM.json, and the
test files of both for where documents begin. Intervals: bootstrap over documents.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import spacy

from spacy_treecrf.data.corpus_reader import FastCorpus

RESULTS = Path(__file__).parent / "results" / "ner"
SAMPLES = 10_000


def lengths(path):
    nlp = spacy.blank("en")
    return np.array([len(e.reference) for e in FastCorpus(path)(nlp)])


def counts_by_document(folder, kind, system):
    """(right, predicted, gold) of each document; RETURNS None without a result."""
    name = folder.name
    path = RESULTS / f"{name}_{kind}_cnn.{system}.json"
    if not path.exists():
        return None
    counts = np.array(json.loads(path.read_text(encoding="utf8"))["test"]["counts"])
    if kind == "docs":
        return counts
    ends = np.cumsum(lengths(folder.parent / f"{name}_docs" / "test.spacy"))
    document = np.searchsorted(ends, np.cumsum(lengths(folder / "test.spacy")))
    return np.stack(
        [np.bincount(document, column, len(ends)) for column in counts.T], axis=1
    )


def f_scores(counts):
    right, predicted, gold = counts.sum(-2).T
    return 200 * right / (predicted + gold)


def compare(one, other):
    """Difference of F1 in points, with its 95% interval."""
    draws = np.random.default_rng(0).integers(len(one), size=(SAMPLES, len(one)))
    differences = f_scores(one[draws]) - f_scores(other[draws])
    low, high = np.percentile(differences, [2.5, 97.5])
    return f"{f_scores(one) - f_scores(other):+.1f} [{low:+.1f}, {high:+.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path)
    args = parser.parse_args()
    print("| corpus | system | documents | sentences | documents - sentences |")
    print("|---|---|---|---|---|")
    for folder in args.corpora:
        found = {
            (system, kind): counts_by_document(folder, kind, system)
            for system in ("treecrf_w48", "spancat8")
            for kind in ("docs", "sentences")
        }
        for system in ("treecrf_w48", "spancat8"):
            both = [found[system, kind] for kind in ("docs", "sentences")]
            cells = ["-" if one is None else f"{f_scores(one):.1f}" for one in both]
            last = "-" if any(one is None for one in both) else compare(*both)
            print(f"| {folder.name} | {system} | {cells[0]} | {cells[1]} | {last} |")
        tree, spancat = (found[s, "docs"] for s in ("treecrf_w48", "spancat8"))
        if tree is not None and spancat is not None:
            print(
                f"\n{folder.name}_docs, treecrf - spancat8: {compare(tree, spancat)}\n"
            )


if __name__ == "__main__":
    main()
