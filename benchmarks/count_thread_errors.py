"""How many answers differ between one thread and eight, for each pipe and encoder.

    python benchmarks/count_thread_errors.py [--encoder FOLDER] [--answers N] [--json FILE]

An answer is what a pipeline writes for a text: entities, and scores or, of an encoder, the
mean of its output. `ner` is spaCy's own pipe, over the same transformer, for comparison:
nothing of ours is in it.
"""

import argparse
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import spacy
from bench_threads import make_pipeline
from spacy.tokens import Span
from spacy.training import Example

N_THREADS = 8
UPDATES = 30


def answer(doc):
    found = {
        key: [(s.start, s.end, s.label_) for s in group]
        for key, group in doc.spans.items()
    }
    found["ents"] = [(e.start, e.end, e.label_) for e in doc.ents]
    scores = [np.asarray(group.attrs["scores"]) for group in doc.spans.values()]
    if doc.has_extension("trf_data") and doc._.trf_data is not None:
        # The encoder's output tells more than entities that hardly depend on it.
        scores.append(doc._.trf_data.model_output.last_hidden_state.mean(axis=1))
    return found, scores


def count(nlp, texts):
    """Answers whose entities differ, and those with a score off by more than 0.0001."""
    start = time.perf_counter()
    batches = [texts[i : i + 50] for i in range(0, len(texts), 50)]

    def call(text):
        return [answer(nlp(text))]

    def pipe(batch):
        return [answer(doc) for doc in nlp.pipe(batch)]

    wrong = {"texts": len(texts)}
    for way, function, items in (("call", call, texts), ("pipe", pipe, batches)):
        one = [each for item in items for each in function(item)]
        with ThreadPoolExecutor(N_THREADS) as pool:
            many = [each for found in pool.map(function, items) for each in found]
        pairs = list(zip(one, many, strict=True))
        wrong[f"{way}: entities"] = sum(a[0] != b[0] for a, b in pairs)
        wrong[f"{way}: scores"] = sum(
            not all(
                np.allclose(x, y, atol=1e-4) for x, y in zip(a[1], b[1], strict=True)
            )
            for a, b in pairs
            if a[0] == b[0]
        )
    wrong["seconds"] = round(time.perf_counter() - start, 1)
    return wrong


def train(nlp, examples, optimizer, updates=UPDATES):
    for number in range(updates):
        batch = examples[number * 32 % len(examples) :][:32]
        nlp.update(batch, sgd=False)
        for _, pipe in nlp.pipeline:
            if hasattr(pipe, "finish_update"):
                pipe.finish_update(optimizer)


def tree(encoder):
    nlp, examples, optimizer = make_pipeline(encoder)
    train(nlp, examples, optimizer)
    return nlp, examples


def flat(factory, examples):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory)
    nlp.initialize(lambda: examples)
    return nlp


def reranking(examples):
    """The reranker behind `identifinder`, trained on what that says of its own data."""
    nlp = flat("identifinder", examples)
    base = nlp.get_pipe("identifinder")
    base.cfg["n_best"] = 5
    training = []
    for example in examples:
        reference = nlp(example.predicted.copy())
        gold = example.reference.spans["nested"]
        reference.spans["nested"] = [
            Span(reference, s.start, s.end, label=s.label_) for s in gold
        ]
        training.append(Example(example.predicted.copy(), reference))
    nlp.add_pipe("ner_reranker").initialize(lambda: training)
    return nlp


def stock_ner(encoder, examples):
    """spaCy's `ner` over the transformer; entities are the outermost gold spans."""
    nlp, _, _ = make_pipeline(encoder)
    model = nlp.get_pipe_config("transformer")["model"]
    nlp = spacy.blank("en")
    nlp.add_pipe("transformer", config={"model": model})
    listener = {
        "@architectures": "spacy-transformers.TransformerListener.v1",
        "grad_factor": 1.0,
        "upstream": "*",
        "pooling": {"@layers": "reduce_mean.v1"},
    }
    nlp.add_pipe("ner", config={"model": {"tok2vec": listener}})
    given = []
    for example in examples:
        reference = example.reference.copy()
        reference.ents = spacy.util.filter_spans(reference.spans["nested"])
        given.append(Example(example.predicted.copy(), reference))
    optimizer = nlp.initialize(lambda: given)
    optimizer.learn_rate = 5e-4
    # It finds nothing at first, and nothing cannot differ.
    train(nlp, given, optimizer, 5 * UPDATES)
    return nlp


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", help="folder of a transformer")
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--pipes", nargs="+", help="only these, by name")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    nlp, examples = tree(None)
    words = sorted({t.text for e in examples for t in e.reference})
    rng = random.Random(0)
    texts = [" ".join(rng.choices(words, k=25)) for _ in range(args.answers)]
    pipes = {
        "treecrf, CNN": lambda: nlp,
        "identifinder": lambda: flat("identifinder", examples),
        "maxent_ner": lambda: flat("maxent_ner", examples),
        "ner_reranker": lambda: reranking(examples),
    }
    if args.encoder:
        pipes["treecrf, transformer"] = lambda: tree(args.encoder)[0]
        pipes["spaCy's ner, transformer"] = lambda: stock_ner(args.encoder, examples)
    result = {}
    wanted = args.pipes or list(pipes)
    for name, make in ((n, pipes[n]) for n in wanted):
        # The answers of a transformer take minutes, and a tenth shows as much.
        share = texts[: len(texts) // 10] if "transformer" in name else texts
        result[name] = count(make(), share)
        print(name, result[name], flush=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
