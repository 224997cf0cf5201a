"""One or two torch threads, idle and busy; Python threads and processes in prediction.

    python benchmarks/bench_threads.py [--encoder FOLDER] [--json FILE]

"head" is what the pipe runs in torch, with its limit of one thread; "free" is the same with
as many as torch takes. Both are run in turn, batch by batch, first on the machine as it
is, then beside one process a core that does nothing but count. Times are of the wall: to
spin costs time that somebody else could use, and on a busy machine our own.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import spacy
import torch
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import load_config

from spacy_treecrf.data.formats.bracketed import read_bracketed
from spacy_treecrf.ml import decoding, loss, treecrf

ROOT = Path(__file__).parent.parent
LIMITED = [treecrf, loss, decoding]
BATCH = 32


@contextlib.contextmanager
def limit(is_limited):
    """With the pipe's limit of one thread, or without it."""
    with contextlib.ExitStack() as stack:
        if not is_limited:
            for module in LIMITED:
                free = mock.patch.object(module, "one_thread", contextlib.nullcontext)
                stack.enter_context(free)
        yield


def count():
    while True:
        sum(range(10_000))


@contextlib.contextmanager
def busy(is_busy):
    """Beside one process a core that takes all the time it gets, or alone."""
    context = multiprocessing.get_context("spawn")
    n_cores = os.cpu_count() or 1
    others = [context.Process(target=count) for _ in range(n_cores * is_busy)]
    for other in others:
        other.start()
    try:
        time.sleep(2 * is_busy)  # they have to import this module first
        yield
    finally:
        for other in others:
            other.kill()


def make_pipeline(encoder):
    """A pipeline of the shipped config, initialised on the embedded corpus."""
    name = "treecrf" if encoder is None else "treecrf_trf"
    config = load_config(ROOT / "configs" / f"{name}.cfg", interpolate=True)
    if encoder is not None:
        config["components"]["transformer"]["model"]["name"] = encoder
    nlp = spacy.blank("en")
    for component in config["nlp"]["pipeline"]:
        settings = config["components"][component]
        nlp.add_pipe(settings.pop("factory"), name=component, config=settings)
    examples = []
    for split in ("train", "dev"):
        path = ROOT / "assets" / "quickstart" / f"{split}.txt"
        for _, words, spans in read_bracketed(path):
            gold = Doc(nlp.vocab, words=words)
            gold.spans["nested"] = [
                Span(gold, s, e, label=label) for s, e, label in spans
            ]
            examples.append(Example(Doc(nlp.vocab, words=words), gold))
    return nlp, examples, nlp.initialize(lambda: examples)


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def measure_head(nlp, batches, optimizer, repeats):
    """Seconds of training and predicting some batches, with the limit and without."""
    result = {}
    for state in ("idle", "busy"):
        seconds = {(t, h): [] for t in ("train", "predict") for h in ("head", "free")}
        with busy(state == "busy"):
            for number in range(repeats):
                batch = batches[number % len(batches)]
                docs = [example.predicted for example in batch]
                # In turns, and each first every other time.
                for head in ("head", "free")[:: 1 if number % 2 else -1]:
                    with limit(head == "head"):
                        step = timed(lambda b=batch: nlp.update(b, sgd=optimizer))
                        copies = [doc.copy() for doc in docs]
                        run = timed(lambda d=copies: list(nlp.pipe(d)))
                    seconds["train", head].append(step)
                    seconds["predict", head].append(run)
        for (task, head), times in seconds.items():
            result[f"{state} {task} {head}"] = statistics.median(times)
        for task in ("train", "predict"):
            free, head = (result[f"{state} {task} {h}"] for h in ("free", "head"))
            result[f"{state} {task}: free / head"] = free / head
            print(f"{state}, {task}: free / head {free / head:.2f}")
    return result


def measure_service(nlp, texts, repeats):
    """Words a second of calls from threads, and of `nlp.pipe` in processes."""
    n_words = sum(len(text.split()) for text in texts)

    def called(n_threads):
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(nlp, texts))

    ways = {f"{n} threads, nlp(text)": lambda n=n: called(n) for n in (1, 2, 8)}
    for n in (1, 2):
        ways[f"nlp.pipe, n_process={n}"] = lambda n=n: list(
            nlp.pipe(texts, n_process=n)
        )
    seconds = {way: [] for way in ways}
    for _ in range(repeats):
        for way, function in ways.items():
            seconds[way].append(timed(function))
    result = {way: n_words / statistics.median(s) for way, s in seconds.items()}
    for way, words in result.items():
        print(f"{way}: {words:,.0f} words/s")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", help="folder of a transformer; by default a CNN")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    nlp, examples, optimizer = make_pipeline(args.encoder)
    batches = [examples[i : i + BATCH] for i in range(0, len(examples), BATCH)]
    result = {
        "encoder": "cnn" if args.encoder is None else Path(args.encoder).parent.name,
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "versions": {"spacy": spacy.__version__, "torch": torch.__version__},
        "head_s": measure_head(nlp, batches, optimizer, args.repeats),
        "words_per_s": measure_service(
            nlp, [example.reference.text for example in examples], 3
        ),
    }
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
