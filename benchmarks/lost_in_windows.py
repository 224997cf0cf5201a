"""Entities that windows of 512 tokens lose, and that a width limit finds.

    python benchmarks/lost_in_windows.py training/compare/litbank_docs_cnn.treecrf_w48 \
        corpus/litbank_docs/test.spacy

The same weights decode the same documents in windows, without a width limit, and whole,
with the limit that the model was trained with.
"""

import argparse
import json
from pathlib import Path

import spacy
import torch
from compare_ner import encode, f_score, find_spans

from spacy_treecrf.pipeline.docs.segments import DocSegments

WINDOW = 512


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("docs", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    nlp = spacy.load(args.model)
    pipe = nlp.get_pipe("treecrf")
    gold, docs = encode(nlp, "treecrf", args.docs)
    whole = find_spans(nlp, "treecrf", docs)
    pipe.cfg.update(max_width=None, max_length=WINDOW)
    cut = find_spans(nlp, "treecrf", docs)
    windows = DocSegments(docs, WINDOW)
    lost, found = 0, 0
    for number, (spans, here) in enumerate(zip(gold, whole, strict=True)):
        borders = windows.start[windows.doc == number]
        crossing = {
            span for span in spans if ((span[0] < borders) & (borders < span[1])).any()
        }
        lost += len(crossing)
        found += len(crossing & here)
    figures = {
        "windows": len(windows),
        "gold": sum(map(len, gold)),
        "gold across a border": lost,
        "of these found under the limit": found,
        "f1, whole": round(100 * f_score(gold, whole), 2),
        "f1, windows": round(100 * f_score(gold, cut), 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
