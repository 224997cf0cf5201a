"""Words per second of training and of `nlp.pipe`, against spaCy's spancat, in one run.

    python benchmarks/bench_pipeline.py --corpus corpus/genia [--encoder NAME] [--json FILE]

Contestants share encoder, batches and machine, and are run in turn, batch by batch; each
is trained for some updates first, so that what is written to Docs is no noise. "encoder"
is the pipeline without its last pipe: the ceiling of any span finder.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import spacy
import torch
from compare_ner import SYSTEMS, make_config
from spacy.training.initialize import init_nlp
from spacy.util import registry

from spacy_treecrf.data.corpus_reader import FastCorpus

CONTESTANTS = {
    **{name: SYSTEMS[name] for name in ("treecrf", "local", "spancat8")},
    "torch_struct": ("treecrf", {"components.treecrf.inference": "torch_struct"}),
}
# Longer sentences are left out for all: torch-struct pads a batch to its longest one and
# records n^3 / 6 splits of each, 17 GB with the one of 350 tokens that GENIA has.
MAX_TOKENS = 100
RATIOS = (
    ("train", "treecrf", "local", "seconds"),
    ("train", "torch_struct", "treecrf", "seconds"),
    ("train", "treecrf", "spancat8", "words"),
    ("pipe", "treecrf", "spancat8", "words"),
    ("pipe", "treecrf", "encoder", "words"),
)


class Contestant:
    """A pipeline in training, with its times for each batch."""

    def __init__(self, args, name):
        self.pipe, settings = CONTESTANTS[name]
        settings = {**settings, "corpora.train.limit": args.limit}
        config = make_config(args, self.pipe, settings, args.rate, 10_000)
        self.nlp = init_nlp(config, use_gpu=args.gpu_id)
        optimizer = config.interpolate()["training"]["optimizer"]
        self.optimizer = registry.resolve({"optimizer": optimizer})["optimizer"]
        batcher = config.interpolate()["training"]["batcher"]
        self.batcher = registry.resolve({"batcher": batcher})["batcher"]
        self.train_s, self.pipe_s, self.encoder_s = [], [], []

    def update(self, batch, measured):
        start = time.process_time()
        self.nlp.update(batch, sgd=False, drop=0.1)
        for _, pipe in self.nlp.pipeline:
            pipe.finish_update(self.optimizer)
        self.optimizer.step_schedules()
        if measured:
            self.train_s.append(time.process_time() - start)

    def annotate(self, docs):
        start = time.process_time()
        list(self.nlp.pipe([doc.copy() for doc in docs]))
        self.pipe_s.append(time.process_time() - start)

    def encode(self, docs):
        start = time.process_time()
        list(self.nlp.pipe([doc.copy() for doc in docs], disable=[self.pipe]))
        self.encoder_s.append(time.process_time() - start)


def examples_of(contestant, path, limit):
    """Examples of a pipeline's own vocabulary, sentence by sentence."""
    examples = [
        example
        for example in FastCorpus(path, limit=limit)(contestant.nlp)
        if len(example.reference) <= MAX_TOKENS
    ]
    return examples, sum(len(example.reference) for example in examples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--encoder", default="cnn")
    parser.add_argument("--contestants", nargs="+", default=list(CONTESTANTS))
    parser.add_argument("--rate", type=float, default=0.001)
    parser.add_argument("--warm-up", type=int, default=100, help="updates not measured")
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=int, default=2000, help="training sentences")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpu-id", type=int, default=-1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(args.threads)
    running = {name: Contestant(args, name) for name in args.contestants}
    batches = {}
    for name, contestant in running.items():
        examples, _ = examples_of(contestant, args.corpus / "train.spacy", args.limit)
        batches[name] = [list(batch) for batch in contestant.batcher(examples)]
    for number in range(args.warm_up + args.updates):
        for name, contestant in running.items():
            batch = batches[name][number % len(batches[name])]
            contestant.update(batch, number >= args.warm_up)
    first = batches[args.contestants[0]]
    measured = [
        sum(len(example.reference) for example in first[number % len(first)])
        for number in range(args.warm_up, args.warm_up + args.updates)
    ]
    dev = {}
    for name, contestant in running.items():
        examples, dev_words = examples_of(contestant, args.corpus / "dev.spacy", 0)
        dev[name] = [example.predicted for example in examples]
    for _ in range(args.repeats):
        for name, contestant in running.items():
            contestant.annotate(dev[name])
            contestant.encode(dev[name])
    figures = {"train": {}, "pipe": {}}
    for name, contestant in running.items():
        seconds = statistics.median(
            each / words
            for each, words in zip(contestant.train_s, measured, strict=True)
        )
        figures["train"][name] = 1 / seconds
        figures["pipe"][name] = dev_words / statistics.median(contestant.pipe_s)
    figures["pipe"]["encoder"] = dev_words / statistics.median(
        running[args.contestants[0]].encoder_s
    )
    result = {
        "corpus": args.corpus.name,
        "encoder": "cnn" if args.encoder == "cnn" else Path(args.encoder).parent.name,
        "threads": args.threads,
        "versions": {"spacy": spacy.__version__, "torch": torch.__version__},
        "words_per_cpu_second": figures,
        "ratios": {},
    }
    for task, names in figures.items():
        print(task, "words per CPU second:", {n: round(w) for n, w in names.items()})
    for task, one, two, unit in RATIOS:
        words = figures[task]
        if one in words and two in words:
            ratio = (
                words[one] / words[two] if unit == "words" else words[two] / words[one]
            )
            result["ratios"][f"{task} {unit}: {one} / {two}"] = round(ratio, 3)
            print(f"{task} {unit}, {one} / {two}: {ratio:.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
