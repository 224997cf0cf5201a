"""Train the rerankers over one base pipe and score them beside it and the oracle.

    python benchmarks/rerank_experiments.py [maxent_ner_gmb ...] [--force]

does what benchmarks/experiments.toml says of these, or of all: trains the base pipe on
the whole training set, with n_best = 20, into training/rerank/NAME; writes candidates by
`python -m spacy treecrf jackknife` into corpus/candidates/NAME.spacy; trains and scores
the rerankers. What is there is not made again. Rounds of boosting are chosen on dev, as
far as the settings of the table leave them to it; the test set is scored once a method.
Writes the rows of each base and corpus into benchmarks/results/rerank.json;
"seconds" is CPU time on one thread: training a reranker, or decoding the test set (base).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import cProfile
import json
import pstats
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import spacy
from experiments import load_experiments, unknown
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.data.corpus_reader import FastCorpus, FastDocBin
from spacy_treecrf.gold import GoldKeys, aligned_gold
from spacy_treecrf.pipeline.docs.packing import Source, pack

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "rerank.json"
METHODS = ("boosting", "voted_perceptron", "averaged_perceptron")
N_BEST = 20
Spans = set[tuple[int, int, str]]


class Split(NamedTuple):
    """A corpus decoded by the base pipe.

    docs (list[Doc]): Packed Docs, gold under the base pipe's key, and its candidates.
    gold (list[Spans]): Gold of each.
    base (list[tuple[Spans, Spans]]): Gold and what the base pipe predicts, for each Doc
        before packing. Its decoder may choose another set than the first candidate.
    seconds (float): CPU time of decoding.
    """

    docs: list[Doc]
    gold: list[Spans]
    base: list[tuple[Spans, Spans]]
    seconds: float


def decode(nlp: Language, key: str, path: Path) -> Split:
    """Decode a corpus with the base pipe, and pack the candidates."""
    examples = list(FastCorpus(path)(nlp))
    for example in examples:
        if len(example.predicted) != len(example.reference):
            raise ValueError(f"{path} was not converted with its own tokens")
    start = time.process_time()
    docs = list(nlp.pipe(example.predicted for example in examples))
    seconds = time.process_time() - start
    decoded, base, name, number = [], [], None, -1
    for doc, example in zip(docs, examples, strict=True):
        here = example.reference.user_data.get("doc")
        number += here is None or here != name
        name = here
        gold = aligned_gold(example, GoldKeys(key))
        if gold.lost:
            raise ValueError(
                f"{path}: gold that does not fit the tokens: {gold.lost[0]}"
            )
        base.append((set(gold.spans), spans_of(doc, key)))
        decoded.append(Source(doc, gold, number))
    packed = list(pack(decoded, nlp.vocab, GoldKeys(key)))
    return Split(
        packed,
        [spans_of(doc, key) for doc in packed],
        base,
        seconds,
    )


def spans_of(doc: Doc, key: str) -> Spans:
    return {(span.start, span.end, span.label_) for span in doc.spans.get(key, [])}


def oracle(split: Split, key: str, n_best: int) -> list[Spans]:
    """The candidate of each segment with the best span F against gold."""
    found = []
    for doc, gold in zip(split.docs, split.gold, strict=True):
        best: dict[tuple[int, int], tuple[float, Spans]] = {}
        for rank in range(n_best):
            group = doc.spans.get(f"{key}:{rank}")
            if group is None:
                break
            parts = by_segment(spans_of(doc, group.name), group.attrs["segments"])
            golden = by_segment(gold, group.attrs["segments"])
            for segment, spans in parts.items():
                f = score([golden[segment]], [spans])["f"]
                # As for training: a sentence without entities and none found is right.
                f = 1.0 if not spans and not golden[segment] else f
                if segment not in best or f > best[segment][0]:
                    best[segment] = (f, spans)
        found.append(set().union(*(spans for _, spans in best.values())))
    return found


def by_segment(spans: Spans, segments) -> dict[tuple[int, int], Spans]:
    """Spans by the segment that they lie in."""
    borders = [tuple(row) for row in segments.tolist()]
    of_token = {token: b for b in borders for token in range(*b)}
    parts: dict[tuple[int, int], Spans] = {border: set() for border in borders}
    for span in spans:
        segment = of_token.get(span[0])
        if segment is not None:
            parts[segment].add(span)
    return parts


def score(gold: Sequence[Spans], found: Sequence[Spans]) -> dict[str, float]:
    """Precision, recall and F1 of labelled spans, in [0, 1]."""
    right = sum(len(one & other) for one, other in zip(gold, found, strict=True))
    n_gold, n_found = sum(map(len, gold)), sum(map(len, found))
    return {
        "p": right / max(n_found, 1),
        "r": right / max(n_gold, 1),
        "f": 2 * right / max(n_gold + n_found, 1),
    }


def error_kinds(gold: Sequence[Spans], found: Sequence[Spans]) -> dict[str, int]:
    """Gold spans that are missing and spans that are wrong, by what is there instead."""
    kinds: Counter[str] = Counter()
    for one, other in zip(gold, found, strict=True):
        for name, left, right in (("missed", one, other), ("wrong", other, one)):
            edges = {span[:2] for span in right}
            for start, end, label in left - right:
                if (start, end) in edges:
                    kind = "label"
                elif any(
                    s < end and start < e and same == label
                    for s, e, same in right - left
                ):
                    kind = "boundary"
                else:
                    kind = "no counterpart"
                inner = any(
                    s <= start and end <= e and (s, e) != (start, end)
                    for s, e, _ in one
                )
                kinds[f"{name}, {kind}{', inner' if inner else ''}"] += 1
    return dict(sorted(kinds.items()))


def rerank(pipe: Any, split: Split, key: str) -> tuple[list[Spans], float]:
    """What a reranker chooses, and its CPU time."""
    docs = [doc.copy() for doc in split.docs]
    for doc in docs:
        doc.spans[key] = [span for span in doc.spans[f"{key}:0"]]
    start = time.process_time()
    docs = list(pipe.pipe(docs, batch_size=8))
    return [spans_of(doc, key) for doc in docs], time.process_time() - start


def run(args: argparse.Namespace) -> tuple[list[dict], dict]:
    """Rows and details of one base and corpus."""
    nlp = spacy.load(args.model)
    key = nlp.get_pipe(args.base).cfg["spans_key"]
    dev, test = decode(nlp, key, args.dev), decode(nlp, key, args.test)
    vocab_docs = list(FastDocBin().from_disk(args.train).get_docs(nlp.vocab))
    train = [Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in vocab_docs]
    development = [
        Example(Doc(nlp.vocab, words=[t.text for t in d]), d) for d in dev.docs
    ]
    base = score(*zip(*test.base, strict=True))
    details: dict[str, Any] = {
        "base": args.base,
        "corpus": args.corpus,
        "dev_f": {"base": score(*zip(*dev.base, strict=True))["f"]},
        "oracle_f": {
            str(n): score(test.gold, oracle(test, key, n))["f"] for n in (1, 5, 20)
        },
        "settings": args.settings,
        "words_per_second": {},
    }
    best = oracle(test, key, N_BEST)
    details["left_by_oracle"] = error_kinds(test.gold, best)
    details["left_by_base"] = error_kinds(*zip(*test.base, strict=True))
    found = {"base": (base, test.seconds), "oracle": (score(test.gold, best), 0.0)}
    words = sum(len(doc) for doc in test.docs)
    for method in args.methods:
        pipe = nlp.create_pipe(
            "ner_reranker",
            config={
                "candidates_key": key,
                "spans_key": key,
                "method": method,
                **args.settings.get(method, {}),
            },
        )
        start = time.process_time()
        pipe.initialize(lambda: train, development=lambda _: development)
        seconds = time.process_time() - start
        on_dev, _ = rerank(pipe, dev, key)
        details["dev_f"][method] = score(dev.gold, on_dev)["f"]
        chosen, took = rerank(pipe, test, key)
        details["words_per_second"][method] = round(words / took)
        details[f"left_by_{method}"] = error_kinds(test.gold, chosen)
        found[method] = (score(test.gold, chosen), seconds)
        print(method, found[method], flush=True)
        if args.profile:
            with cProfile.Profile() as profile:
                rerank(pipe, test, key)
            pstats.Stats(profile).sort_stats("tottime").print_stats(args.profile)
    rows = []
    for method, (figures, seconds) in found.items():
        reduction = (figures["f"] - base["f"]) / (1 - base["f"])
        rows.append(
            {
                "base": args.base,
                "corpus": args.corpus,
                "method": method,
                **{name: round(figure, 4) for name, figure in figures.items()},
                "relative_error_reduction": round(reduction, 4),
                "seconds": round(seconds, 1),
            }
        )
    return rows, details


def make_calls(name: str, experiment: dict) -> list[tuple[Path, list[str]]]:
    """The commands that make base and candidates, with what each writes."""
    base = experiment["base"]
    corpus = f"corpus/{experiment['folder']}"
    config = f"configs/{base}.cfg"
    overrides = {
        "paths.train": f"{corpus}/train.spacy",
        "paths.dev": f"{corpus}/dev.spacy",
        "nlp.lang": experiment["lang"],
        **experiment["train"],
    }
    options = [x for key, value in overrides.items() for x in (f"--{key}", str(value))]
    model = f"training/rerank/{name}"
    candidates = f"corpus/candidates/{name}.spacy"
    train = ["-m", "spacy", "train", config, "--output", model, *options]
    train += [f"--components.{base}.n_best", str(N_BEST)]
    jackknife = ["-m", "spacy", "treecrf", "jackknife", config, candidates]
    jackknife += ["--folds", str(experiment["folds"]), *options]
    return [
        (ROOT / model / "model-last", train),
        (ROOT / candidates, jackknife),
    ]


def read_table(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Experiments of the table, all if none is named, with all of their settings."""
    table = load_experiments("rerank")
    for name in names:
        if name not in table:
            raise SystemExit(unknown(name, table))
    found = {}
    for name in names or table:
        one = {"train": {}, "settings": {}, **table[name]}
        one["base"] = name.removesuffix(f"_{one['corpus']}")
        found[name] = {"folder": one["corpus"], **one}
    return found


def merge(report: dict[str, list], rows: list[dict], details: dict) -> None:
    """Put what was found in the place of what stood for its base and corpus."""
    mine = (details["base"], details["corpus"])
    for name, new in (("rows", rows), ("details", [details])):
        kept = [row for row in report[name] if (row["base"], row["corpus"]) != mine]
        report[name] = sorted(kept + new, key=lambda r: (r["base"], r["corpus"]))


def main() -> None:
    """Run what has no result; keep the rows of all others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--force", action="store_true", help="also what has a result")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument(
        "--profile", type=int, default=0, help="Print so many functions of reranking"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    report: dict[str, list] = {"rows": [], "details": []}
    if args.out.exists():
        report = json.loads(args.out.read_text(encoding="utf8"))
    done = {(row["base"], row["corpus"]) for row in report["details"]}
    for name, experiment in read_table(args.names).items():
        if (experiment["base"], experiment["corpus"]) in done and not args.force:
            print(f"{name} has a result", flush=True)
            continue
        calls = make_calls(name, experiment)
        for made, words in calls:
            if not made.exists():
                print(shlex.join(["python", *words]), flush=True)
                made.parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([sys.executable, *words], cwd=ROOT, check=True)
        (model, _), (candidates, _) = calls
        folder = ROOT / "corpus" / experiment["folder"]
        args.base, args.corpus = experiment["base"], experiment["corpus"]
        args.settings = experiment["settings"]
        args.model, args.train = model, candidates
        args.dev, args.test = folder / "dev.spacy", folder / "test.spacy"
        merge(report, *run(args))
        args.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
