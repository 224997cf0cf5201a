"""Train a config on a corpus, score its test set, and print the scores.

    python scripts/train.py treecrf_trf genia --encoder dmis-lab/biobert-v1.1 --gpu-id 0

Prints and runs three commands of spaCy, which differ from config to config: the pipe
whose key is set, the encoder, the language of the corpus. What is not given, or given as
"config" (as the variables of project.yml are), stays what the config says.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

from spacy.util import load_config

from spacy_treecrf.data.public_corpora import CORPORA

ROOT = Path(__file__).parent.parent
OWN = "config"
RATE = "training.optimizer.learn_rate"


def default_name(config, corpus):
    """Name of model and scores: litbank, litbank-spancat, litbank-trf-spancat, ..."""
    pipe, _, kind = config.partition("_")
    if pipe not in ("treecrf", "spancat"):
        return f"{corpus}-{config}"
    return "-".join(filter(None, (corpus, kind, pipe.removeprefix("treecrf"))))


def find_overrides(args, config):
    """What `spacy train` is told beside the config; RETURNS (dict[str, str])."""
    corpus = Path("corpus") / args.corpus
    lang = args.lang
    if lang == OWN and args.corpus in CORPORA:
        lang = CORPORA[args.corpus].lang
    overrides = {
        "paths.train": str(corpus / "train.spacy"),
        "paths.dev": str(corpus / "dev.spacy"),
        "system.seed": str(args.seed),
    }
    encoder = None
    for name, component in config["components"].items():
        if "spans_key" in component:
            overrides[f"components.{name}.spans_key"] = args.spans_key
        if "TransformerModel" in component.get("model", {}).get("@architectures", ""):
            encoder = f"components.{name}.model.name"
    has_schedule = isinstance(config["training"]["optimizer"]["learn_rate"], dict)
    settings = {
        "lang": ("nlp.lang", lang),
        "encoder": (encoder, args.encoder),
        "steps": (f"{RATE}.total_steps" if has_schedule else None, args.steps),
        "rate": (f"{RATE}.initial_rate" if has_schedule else None, args.rate),
    }
    for option, (key, value) in settings.items():
        if value == OWN:
            continue
        if key is None:
            raise SystemExit(f"--{option}: configs/{args.config}.cfg has none to set.")
        overrides[key] = value
    return overrides


def make_calls(args):
    """The words of the three commands, without the interpreter."""
    path = f"configs/{args.config}.cfg"
    config = load_config(ROOT / path, interpolate=False)
    name = args.name or default_name(args.config, args.corpus)
    key = ["--spans-key", args.spans_key]
    # Pipes that learn by counting have no use for a GPU.
    has_encoder = {"tok2vec", "transformer"} & set(config["components"])
    gpu = ["--gpu-id", str(args.gpu_id)] if has_encoder else []
    train = ["-m", "spacy", "train", path, "--output", f"training/{name}"]
    for option, value in find_overrides(args, config).items():
        train += [f"--{option}", value]
    evaluate = ["-m", "spacy", "evaluate", f"training/{name}/model-best"]
    evaluate += [f"corpus/{args.corpus}/test.spacy"]
    evaluate += ["--output", f"metrics/{name}.json"]
    report = ["-m", "spacy", "treecrf", "report", f"metrics/{name}.json"]
    return [[*train, *gpu], [*evaluate, *key, *gpu], [*report, *key]]


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config", help="name of a file in configs/, e.g. treecrf")
    parser.add_argument("corpus", help="name of a folder in corpus/, e.g. litbank")
    parser.add_argument("--name", help="of model and scores; default: of both above")
    parser.add_argument("--lang", default=OWN, help="default: that of the corpus")
    parser.add_argument("--encoder", default=OWN, help="of a hub, or a folder")
    parser.add_argument("--steps", default=OWN, help="updates")
    parser.add_argument("--rate", default=OWN, help="highest learning rate")
    parser.add_argument("--spans-key", default="nested")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gpu-id", type=int, default=-1)
    return parser


def main():
    for words in make_calls(make_parser().parse_args()):
        print(shlex.join(["python", *words]), flush=True)
        subprocess.run([sys.executable, *words], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
