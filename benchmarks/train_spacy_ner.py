"""Train spaCy's own CNN `ner` on a corpus, as the peer of `identifinder`.

    python benchmarks/train_spacy_ner.py corpus/gmb training/ner_gmb --lang en --steps 2500

The config is spaCy's own for `--optimize efficiency`, with batches of 1,000 words from the
start. Writes OUT/model-best, chosen on dev, and OUT/train_s.txt: CPU seconds of training on
one thread, evaluation on dev included.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported

import argparse
import time
from pathlib import Path

from spacy.cli.init_config import init_config
from spacy.cli.train import train


def main() -> None:
    """Train and record the time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="Folder with the .spacy files")
    parser.add_argument("out", type=Path, help="Folder to write")
    parser.add_argument("--lang", default="en")
    parser.add_argument("--steps", type=int, default=2500)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    config = init_config(lang=args.lang, pipeline=["ner"], optimize="efficiency")
    config["training"]["batcher"]["size"] = 1000
    path = args.out / "config.cfg"
    config.to_disk(path)
    start = time.process_time()
    train(
        path,
        args.out,
        overrides={
            "paths.train": str(args.corpus / "train.spacy"),
            "paths.dev": str(args.corpus / "dev.spacy"),
            "training.max_steps": args.steps,
            "training.eval_frequency": args.steps // 2,
            "training.patience": 0,
        },
    )
    seconds = time.process_time() - start
    (args.out / "train_s.txt").write_text(f"{seconds:.0f}\n")
    print(f"{args.steps} steps in {seconds:.0f} CPU seconds")


if __name__ == "__main__":
    main()
