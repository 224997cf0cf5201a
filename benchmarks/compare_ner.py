"""Train systems over the same encoder, data order and number of updates; score the test.

Each system is trained once per learning rate with the search budget; the rate with the
best development F1 is trained again with the full budget (unless that is the same), its
threshold is chosen on the development set, and the test set is scored once.

    python benchmarks/compare_ner.py litbank_cnn
    python benchmarks/compare_ner.py litbank_cnn_seed1 --systems treecrf --force

run what benchmarks/experiments.toml says of that comparison, with all of its seeds or with
one, unless it has a result. A corpus that is not in the table is described by options:

    python benchmarks/compare_ner.py mine_cnn --corpus corpus/mine --steps 1200 \
        --systems treecrf spancat8 --search-steps 300 --rates 0.0005 0.001 0.002

Results: benchmarks/results/ner/NAME.SYSTEM.json. `report_ner.py` makes the tables.
"""

import argparse
import copy
import json
import os
import sys
import time
from pathlib import Path

import spacy
import torch
from experiments import load_experiments, unknown
from spacy.scorer import PRFScore
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

from spacy_treecrf.data.corpus_reader import FastCorpus

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "ner"
KEY = "nested"
THRESHOLDS = [round(0.05 * step, 2) for step in range(2, 19)]
# Words of an update, in all configs.
BATCH_WORDS = 1000
# Spans that spancat's default suggester can reach.
SHORT = 8

# The paper's scorer, loss and start: a form of the edges of a span, plain likelihood.
EDGES = {
    "components.treecrf.initial_bias": "zero",
    "components.treecrf.softmax_margin": 0.0,
    "components.treecrf.model.span_scorer.pooling": None,
    "components.treecrf.model.span_scorer.dropout": 0.2,
}
# Settings of each system beside those of the shipped configs.
SYSTEMS = {
    "treecrf": ("treecrf", {}),
    # Each objective has the start and the margin that did better on development data.
    "local": (
        "treecrf",
        {
            "components.treecrf.objective": "local",
            "components.treecrf.initial_bias": "zero",
            "components.treecrf.softmax_margin": 0.0,
        },
    ),
    "local_margin": (
        "treecrf",
        {
            "components.treecrf.objective": "local",
            "components.treecrf.initial_bias": "zero",
        },
    ),
    "spancat8": ("spancat", {}),
    "spancat16": ("spancat", {"components.spancat.suggester.max_size": 16}),
    "treecrf_paper": (
        "treecrf",
        {
            "components.treecrf.potential_normalization": True,
            "components.treecrf.structure_smoothing": 0.02,
            **EDGES,
        },
    ),
    "treecrf_edges": ("treecrf", EDGES),
    "local_edges": ("treecrf", {**EDGES, "components.treecrf.objective": "local"}),
    "treecrf_unlimited": ("treecrf", {"components.treecrf.max_width": None}),
    # No window, however long a document is.
    **{
        f"treecrf_w{width}": (
            "treecrf",
            {
                "components.treecrf.max_width": width,
                "components.treecrf.max_length": 1_000_000,
            },
        )
        for width in (32, 48, 64)
    },
    "treecrf_likelihood": ("treecrf", {"components.treecrf.softmax_margin": 0.0}),
    "treecrf_zero": (
        "treecrf",
        {
            "components.treecrf.initial_bias": "zero",
            "components.treecrf.softmax_margin": 0.0,
        },
    ),
}


def make_config(args, pipe, settings, rate, steps):
    suffix = "" if args.encoder == "cnn" else "_trf"
    overrides = {
        "paths.train": str(args.train or args.corpus / "train.spacy"),
        "paths.dev": str(args.corpus / "dev.spacy"),
        "training.optimizer.learn_rate.total_steps": steps,
        "training.eval_frequency": steps,
        # The loop's own evaluation chooses nothing here: keep it short.
        "corpora.dev.limit": 50,
        "training.optimizer.learn_rate.initial_rate": rate,
        "training.optimizer.learn_rate.warmup_steps": max(1, steps * 6 // 100),
        "system.seed": args.seed,
        "training.batcher.size": args.batch_words,
        **settings,
    }
    if args.encoder != "cnn":
        # A folder of this project, wherever the script runs, or a name of a hub.
        folder = ROOT / args.encoder
        name = str(folder) if folder.exists() else args.encoder
        overrides["components.transformer.model.name"] = name
    return load_config(ROOT / "configs" / f"{pipe}{suffix}.cfg", overrides=overrides)


def train_system(args, pipe, settings, rate, steps):
    """Train with spaCy's own loop; returns the last model and its training time."""
    config = make_config(args, pipe, settings, rate, steps)
    nlp = init_nlp(config, use_gpu=args.gpu_id)
    start = time.perf_counter(), time.process_time()
    nlp, _ = train(nlp, None, use_gpu=args.gpu_id, stdout=sys.stderr)
    return nlp, time.perf_counter() - start[0], time.process_time() - start[1]


def encode(nlp, pipe, path):
    """Gold spans of a corpus, and its Docs after all pipes before the one that scores."""
    examples = list(FastCorpus(path)(nlp))
    docs = [example.predicted for example in examples]
    for example in examples:
        # Scores compare token offsets.
        if len(example.predicted) != len(example.reference):
            raise ValueError(f"{path} was not converted with its own tokens")
    with nlp.select_pipes(disable=[pipe]):
        docs = list(nlp.pipe(docs, batch_size=128))
    return [spans_of(example.reference) for example in examples], docs


def find_spans(nlp, pipe, docs):
    """Spans that a pipe predicts for encoded Docs."""
    component = nlp.get_pipe(pipe)
    return [spans_of(doc) for doc in component.pipe(docs, batch_size=128)]


def spans_of(doc):
    return {(span.start, span.end, span.label_) for span in doc.spans.get(KEY, [])}


def choose_threshold(nlp, pipe, path):
    """Best development F1 over the thresholds, and with the system's own default."""
    component = nlp.get_pipe(pipe)
    settings = [(component.cfg["threshold"], component.cfg.get("decoder"))]
    is_tree = component.cfg.get("objective") == "treecrf"
    settings += [(threshold, "mbr" if is_tree else None) for threshold in THRESHOLDS]
    gold, docs = encode(nlp, pipe, path)
    scores = []
    for threshold, decoder in settings:
        set_threshold(component, threshold, decoder)
        scores.append((f_score(gold, find_spans(nlp, pipe, docs)), threshold, decoder))
    best = max(scores, key=lambda score: score[0])
    set_threshold(component, *best[1:])
    return best, scores


def set_threshold(component, threshold, decoder):
    component.cfg["threshold"] = threshold
    if decoder is not None:
        component.cfg["decoder"] = decoder


def f_score(gold, found):
    score = PRFScore()
    for one, other in zip(gold, found, strict=True):
        score.score_set(other, one)
    return score.fscore


def summary(gold, found):
    """All figures of a test set; `counts` are (right, predicted, gold) a sentence.

    Inner, outer and unlabelled are those of `spacy_treecrf.scorers.nested_score`, which
    has no precision and recall of them, and neither counts nor short spans.
    """
    parts = {
        name: PRFScore() for name in ("all", "inner", "outer", "short", "unlabelled")
    }
    labels = {}
    for one, other in zip(gold, found, strict=True):
        edges = {span[:2] for span in one}
        inner = {
            span
            for span in one | other
            if any(
                s <= span[0] and span[1] <= e and (s, e) != span[:2] for s, e in edges
            )
        }
        short = {span for span in one | other if span[1] - span[0] <= SHORT}
        parts["all"].score_set(other, one)
        parts["inner"].score_set(other & inner, one & inner)
        parts["outer"].score_set(other - inner, one - inner)
        parts["short"].score_set(other & short, one & short)
        parts["unlabelled"].score_set({span[:2] for span in other}, edges)
        for label in {span[2] for span in one | other}:
            labels.setdefault(label, PRFScore()).score_set(
                {span for span in other if span[2] == label},
                {span for span in one if span[2] == label},
            )
    return {
        **{name: score.to_dict() for name, score in parts.items()},
        "per_label": {label: labels[label].to_dict() for label in sorted(labels)},
        "counts": [
            [len(one & other), len(other), len(one)]
            for one, other in zip(gold, found, strict=True)
        ],
    }


def run(args, system):
    pipe, settings = SYSTEMS[system]
    dev, test = args.corpus / "dev.spacy", args.corpus / "test.spacy"
    search, trained = {}, {}
    for rate in args.rates if len(args.rates) > 1 else []:
        one = train_system(args, pipe, settings, rate, args.search_steps)
        gold, docs = encode(one[0], pipe, dev)
        search[rate] = f_score(gold, find_spans(one[0], pipe, docs))
        print(f"{system} {rate} dev F {search[rate]:.4f} {one[1]:.0f} s", flush=True)
        if args.search_steps == args.steps and search[rate] == max(search.values()):
            trained = {rate: one}
    rate = max(search, key=search.get) if search else args.rates[0]
    if rate not in trained:
        trained = {rate: train_system(args, pipe, settings, rate, args.steps)}
    nlp, seconds, cpu_seconds = trained[rate]
    best, scores = choose_threshold(nlp, pipe, dev)
    args.models.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(args.models / f"{args.name}.{system}")
    gold, docs = encode(nlp, pipe, test)
    found = find_spans(nlp, pipe, docs)
    result = {
        "name": args.name,
        "system": system,
        "encoder": "cnn" if args.encoder == "cnn" else Path(args.encoder).parent.name,
        "learning_rate": rate,
        "search_steps": args.search_steps,
        "search_dev_f": search,
        "steps": args.steps,
        "seed": args.seed,
        "settings": settings,
        "threshold": best[1],
        "decoder": best[2],
        "dev_f": best[0],
        "dev_f_default_threshold": scores[0][0],
        "train_s": round(seconds, 1),
        "train_cpu_s": round(cpu_seconds, 1),
        "torch_threads": torch.get_num_threads(),
        "versions": {"spacy": spacy.__version__, "torch": torch.__version__},
        "test": summary(gold, found),
    }
    out = result_path(args.name, system)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result) + "\n", encoding="utf8")
    print(
        f"{system} test F {result['test']['all']['f']:.4f} dev F {best[0]:.4f} "
        f"threshold {best[1]} {seconds:.0f} s",
        flush=True,
    )


def result_path(name, system):
    return RESULTS / f"{name}.{system}.json"


def plan(args):
    """What to run; RETURNS (list[tuple[Namespace, str]]): Settings and systems."""
    if args.corpus is not None:
        if not (args.systems and args.rates and args.steps):
            raise SystemExit("--corpus needs --systems, --rates and --steps.")
        args.seed = args.seed or 0
        args.encoder = args.encoder or "cnn"
        args.search_steps = args.search_steps or args.steps
        args.batch_words = args.batch_words or BATCH_WORDS
        return [(args, system) for system in args.systems]
    own = ("train", "encoder", "rates", "steps", "search_steps", "seed", "batch_words")
    if given := [name for name in own if getattr(args, name) is not None]:
        option = given[0].replace("_", "-")
        raise SystemExit(
            f"--{option} needs --corpus: the table says it of {args.name}."
        )
    table = load_experiments("ner")
    base, _, seed = args.name.partition("_seed")
    if base not in table:
        raise SystemExit(unknown(args.name, table))
    planned = []
    for row in table[base]["runs"]:
        for one in row.get("seeds", [0]):
            if seed not in ("", str(one)):
                continue
            settings = copy.copy(args)
            settings.name = f"{base}_seed{one}" if one else base
            settings.corpus = ROOT / "corpus" / table[base]["corpus"]
            settings.encoder = table[base]["encoder"]
            settings.steps = table[base]["steps"]
            settings.batch_words = table[base].get("batch_words", BATCH_WORDS)
            settings.search_steps = row.get("search_steps", settings.steps)
            settings.rates, settings.seed = row["rates"], one
            planned += [(settings, system) for system in row["systems"]]
    found = {system for _, system in planned}
    if missing := set(args.systems or found) - found:
        raise SystemExit(f"{args.name} has no {', '.join(sorted(missing))}.")
    return [one for one in planned if not args.systems or one[1] in args.systems]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", help="of the table, also with _seedN; or a new one")
    parser.add_argument("--systems", nargs="+", choices=sorted(SYSTEMS))
    parser.add_argument("--force", action="store_true", help="also what has a result")
    parser.add_argument("--corpus", type=Path, help="a folder, for a new name")
    parser.add_argument("--train", type=Path, help="another training file")
    parser.add_argument("--encoder", help="cnn (default), or a transformer's name")
    parser.add_argument("--rates", nargs="+", type=float)
    parser.add_argument("--search-steps", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--batch-words", type=int, help=f"default: {BATCH_WORDS}")
    parser.add_argument("--gpu-id", type=int, default=-1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--models", type=Path, default=ROOT / "training" / "compare")
    args = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(args.threads)
    for settings, system in plan(args):
        path = result_path(settings.name, system)
        if path.exists() and not args.force:
            print(f"{path.name} exists", flush=True)
            continue
        run(settings, system)


if __name__ == "__main__":
    main()
