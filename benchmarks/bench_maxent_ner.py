"""Time the training and the decoding of `maxent_ner` on one thread, and its F.

    python benchmarks/bench_maxent_ner.py corpus/gmb --name gmb --lang en

Times are process times, decoding's the best of several rounds, so that other programs on
the machine count as little as can be. Results: benchmarks/results/maxent_ner_NAME.json.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import json
import time
from pathlib import Path

import spacy
from bench_identifinder import best_time, exact_f, measure_pipeline, rate
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.data.corpus_reader import FastDocBin

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="Folder with the .spacy files")
    parser.add_argument("--name", required=True)
    parser.add_argument("--lang", default="en")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    nlp = spacy.blank(args.lang)
    train, test = (
        list(FastDocBin().from_disk(args.corpus / f"{split}.spacy").get_docs(nlp.vocab))
        for split in ("train", "test")
    )
    pipe = nlp.add_pipe("maxent_ner")
    examples = [Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in train]
    start = time.process_time()
    nlp.initialize(lambda: examples)
    train_s = time.process_time() - start
    n_words = sum(map(len, test))
    blank = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in test]
    batches = [blank[at : at + 1000] for at in range(0, len(blank), 1000)]
    result = {
        "corpus": args.name,
        "train_words": sum(map(len, train)),
        "test_words": n_words,
        "train_s": round(train_s, 1),
        "features": len(pipe.maxent_model.weights),
        "model_bytes": len(pipe.to_bytes()),
        "f": exact_f(nlp, test),
    }
    texts = [doc.text for doc in test]
    result["pipeline"] = measure_pipeline(nlp, texts, args.rounds)
    for n_best in (1, 20):
        pipe.cfg["n_best"] = n_best
        times = best_time(lambda: [pipe.predict(b) for b in batches], args.rounds)
        result[f"predict_{n_best}_best"] = rate(n_words, times)
    pipe.cfg["n_best"], pipe.cfg["beam"] = 1, 1
    result["f_with_a_beam_of_1"] = exact_f(nlp, test)
    path = RESULTS / f"maxent_ner_{args.name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf8")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
