"""Time `identifinder` and its peers on one thread, in one run.

    python benchmarks/bench_identifinder.py corpus/gmb --name gmb --lang en \
        --ner training/ner_gmb/model-last

Peers: the same pipeline with the tokenizer alone, and spaCy's CNN `ner` trained on the
same data (any pipeline that writes `doc.ents`). Times are the best of several rounds in
process time, so that other programs on the machine count as little as can be; ratios are
between figures of one run. Results: benchmarks/results/identifinder/speed_NAME.json.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.data.corpus_reader import FastDocBin

RESULTS = Path(__file__).parent / "results" / "identifinder"


def best_time(run: Callable[[], Any], rounds: int) -> dict[str, float]:
    """The first, the best and the median time of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return {
        "cold_s": round(times[0], 4),
        "best_s": round(min(times), 4),
        "median_s": round(statistics.median(times), 4),
    }


def rate(words: int, times: dict[str, float]) -> dict[str, float]:
    """Times and words a second."""
    return {
        **times,
        "cold_words_s": round(words / times["cold_s"]),
        "words_s": round(words / times["best_s"]),
        "median_words_s": round(words / times["median_s"]),
    }


def folder_size(path: Path) -> int:
    """Bytes of all files of a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def memory_mb() -> float:
    """Resident memory of this process."""
    return psutil.Process().memory_info().rss / 2**20


def exact_f(nlp: Language, gold: list[Doc]) -> float:
    """Exact F1 of `doc.ents`."""
    hits = predicted = wanted = 0
    blank = (Doc(nlp.vocab, words=[t.text for t in doc]) for doc in gold)
    for doc, expected in zip(nlp.pipe(blank, batch_size=1000), gold, strict=True):
        found = {(e.start, e.end, e.label_) for e in doc.ents}
        right = {(e.start, e.end, e.label_) for e in expected.ents}
        hits += len(found & right)
        predicted += len(found)
        wanted += len(right)
    return round(200 * hits / max(1, predicted + wanted), 2)


def measure_pipeline(nlp: Language, texts: list[str], rounds: int) -> dict[str, float]:
    """Words a second of a whole pipeline, from texts; the first round is cold.

    The pipeline must not have seen a text: its tokenizer remembers words.
    """
    words = 0

    def run() -> None:
        nonlocal words
        words = sum(len(doc) for doc in nlp.pipe(texts, batch_size=1000))

    times = best_time(run, rounds)
    return rate(words, times)


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="Folder with the .spacy files")
    parser.add_argument("--name", required=True)
    parser.add_argument("--lang", default="en")
    parser.add_argument("--ner", type=Path, help="A trained pipeline to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    result: dict[str, Any] = {
        "corpus": args.name,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, 1 thread used",
        "spacy": spacy.__version__,
    }

    nlp = spacy.blank(args.lang)
    start = time.process_time()
    docs = {
        split: list(
            FastDocBin().from_disk(args.corpus / f"{split}.spacy").get_docs(nlp.vocab)
        )
        for split in ("train", "test")
    }
    examples = [
        Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in docs["train"]
    ]
    result["read_s"] = round(time.process_time() - start, 2)
    result["train_words"] = sum(map(len, docs["train"]))
    result["test_words"] = test_words = sum(map(len, docs["test"]))

    pipe = nlp.add_pipe("identifinder")
    before = memory_mb()
    start = time.process_time()
    nlp.initialize(lambda: examples)
    result["train_s"] = round(time.process_time() - start, 2)
    result["memory_of_model_mb"] = round(memory_mb() - before)

    blank = [Doc(nlp.vocab, words=[t.text for t in doc]) for doc in docs["test"]]
    batches = [blank[at : at + 1000] for at in range(0, len(blank), 1000)]
    result["predict"] = rate(
        test_words,
        best_time(lambda: [pipe.predict(batch) for batch in batches], args.rounds),
    )
    pipe.cfg["n_best"] = 20
    result["predict_20_best"] = rate(
        test_words, best_time(lambda: [pipe.predict(batch) for batch in batches], 2)
    )
    pipe.cfg["n_best"] = 1
    with tempfile.TemporaryDirectory() as folder:
        nlp.to_disk(folder)
        result["model_bytes"] = folder_size(Path(folder) / "identifinder")
        result["load_s"] = best_time(
            lambda: pipe.from_disk(Path(folder) / "identifinder"), 3
        )["best_s"]
    result["test_f"] = exact_f(nlp, docs["test"])

    texts = [doc.text for doc in docs["test"]]
    tokenizer = spacy.blank(args.lang)
    result["pipe_tokenizer"] = measure_pipeline(tokenizer, texts, args.rounds)
    result["pipe_identifinder"] = measure_pipeline(nlp, texts, args.rounds)
    result["peak_memory_mb"] = round(memory_mb())
    if args.ner:
        ner = spacy.load(args.ner)
        result["pipe_ner"] = measure_pipeline(ner, texts, 2)
        result["ner_bytes"] = folder_size(args.ner)
        result["ner_test_f"] = exact_f(ner, docs["test"])
        train_seconds = args.ner.parent / "train_s.txt"
        if train_seconds.exists():
            result["ner_train_s"] = float(train_seconds.read_text())
        result["ratio_to_ner"] = round(
            result["pipe_identifinder"]["words_s"] / result["pipe_ner"]["words_s"], 1
        )
    for kind in ("cold_words_s", "words_s"):
        ratio = result["pipe_tokenizer"][kind] / result["pipe_identifinder"][kind]
        result[f"ratio_to_tokenizer_{kind.split('_')[0]}"] = round(ratio, 2)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"speed_{args.name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
