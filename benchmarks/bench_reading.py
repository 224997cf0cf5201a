"""Reading `.spacy` files: `spacy-treecrf.Corpus.v1` and `spacy.Corpus.v1` in one run.

    python benchmarks/bench_reading.py corpus/genia/train.spacy --limit 3000

Prints CPU milliseconds a Doc (medians of interleaved rounds) and writes
benchmarks/results/reading_NAME.json, NAME the folder of the file.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import spacy
from spacy.tokens import DocBin
from spacy.training import Corpus

from spacy_treecrf.data.corpus_reader import FastCorpus, FastDocBin

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3


def cpu_ms(function, n_docs):
    """CPU milliseconds a Doc of one call."""
    start = time.process_time()
    function()
    return 1000 * (time.process_time() - start) / n_docs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--limit", type=int, default=3000)
    args = parser.parse_args()
    nlp = spacy.blank("xx")
    docs = list(
        FastCorpus(args.path, limit=args.limit).read_docbin(nlp.vocab, [args.path])
    )
    has_data = any(doc.user_data for doc in docs)
    cases = {
        "read": lambda cls, _: sum(1 for _ in cls(args.path, limit=args.limit)(nlp)),
        "write": lambda _, cls: cls(docs=docs, store_user_data=has_data).to_bytes(),
    }
    result = {
        "docs": len(docs),
        "tokens": sum(map(len, docs)),
        "with_groups": sum(bool(len(doc.spans)) for doc in docs),
        "with_user_data": has_data,
    }
    for name, case in cases.items():
        times = {"spacy": [], "spacy_treecrf": []}
        for _ in range(ROUNDS):
            n = len(docs)
            times["spacy"].append(cpu_ms(lambda: case(Corpus, DocBin), n))  # noqa: B023
            times["spacy_treecrf"].append(
                cpu_ms(lambda: case(FastCorpus, FastDocBin), n)  # noqa: B023
            )
        medians = {who: statistics.median(values) for who, values in times.items()}
        ratio = medians["spacy"] / medians["spacy_treecrf"]
        result[name] = {
            **{f"{who}_ms": round(ms, 4) for who, ms in medians.items()},
            "ratio": round(ratio, 1),
        }
        print(name, result[name])
    out = RESULTS / f"reading_{args.path.resolve().parent.name}.json"
    out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
