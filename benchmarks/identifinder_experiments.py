"""The experiments of Bikel et al. (1999), section 5, on public corpora.

    python benchmarks/identifinder_experiments.py corpus/gmb --name gmb --lang en
    python benchmarks/identifinder_experiments.py corpus/conll2002_es \
        --name conll2002_es --lang es

Corpora are those of `python -m spacy treecrf corpus`, nested ones with `--flat`.
Three modalities (Table 5.1), the five-feature ablation and the other options (Table 5.3),
and the size of the training data by halving (Figure 5.4). Each model is trained and
tested on data of the same modality; dev and test are scored exactly and by MUC's half
credit. Results: benchmarks/results/identifinder/NAME.json; `report_identifinder.py` makes
the tables and the plot.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.augment import snor_doc, upper_case_doc
from spacy_treecrf.data.corpus_reader import FastDocBin

RESULTS = Path(__file__).parent / "results" / "identifinder"
FIVE = {
    "features": {
        "@misc": "spacy-treecrf.identifinder_features.v1",
        "feature_set": "five",
    }
}
OPTIONS: dict[str, dict[str, Any]] = {
    "five features": FIVE,
    "no punctuation context": {"punctuation_context": False},
    "product level": {"product_level": True},
    "acronym periods": {"acronym_periods": True},
    "merged unknown words": {"unknown": "merged"},
}
SPLITS = ("train", "dev", "test")
Docs = dict[str, list[Doc]]


def load(folder: Path, lang: str) -> Docs:
    """Read the three splits."""
    vocab = spacy.blank(lang).vocab
    return {
        split: list(FastDocBin().from_disk(folder / f"{split}.spacy").get_docs(vocab))
        for split in SPLITS
    }


def convert(docs: Docs, change: Callable[[Doc], Doc]) -> Docs:
    """Put all splits into another modality; what has no words left goes."""
    changed = {split: [change(doc) for doc in docs[split]] for split in SPLITS}
    return {split: [doc for doc in changed[split] if len(doc)] for split in SPLITS}


def bare(doc: Doc) -> Doc:
    """The same words without annotation."""
    return Doc(doc.vocab, words=[token.text for token in doc])


def run(lang: str, docs: Docs, config: dict[str, Any]) -> dict[str, Any]:
    """Train on one version of the data and score dev and test."""
    nlp = spacy.blank(lang)
    pipe = nlp.add_pipe("identifinder", config=config)
    examples = [Example(bare(doc), doc) for doc in docs["train"]]
    start = time.process_time()
    pipe.initialize(lambda: examples, nlp=nlp)
    result: dict[str, Any] = {
        "train_words": sum(map(len, docs["train"])),
        "train_cpu_s": round(time.process_time() - start, 2),
    }
    for split in ("dev", "test"):
        tested = [Example(bare(doc), doc) for doc in docs[split]]
        predicted = nlp.pipe((example.predicted for example in tested), batch_size=1000)
        for example, doc in zip(tested, predicted, strict=True):
            example.predicted = doc
        scores = pipe.score(tested)
        result[split] = {
            name: round(100 * scores[f"spans_nested_{key}"], 2)
            for name, key in (
                ("p", "p"),
                ("r", "r"),
                ("f", "f"),
                ("muc_f", "muc_f"),
            )
        }
    return result


def halved(docs: Docs, halvings: int, seed: int) -> list[Docs]:
    """Nested random samples of the training Docs, half as many each time."""
    order = list(docs["train"])
    random.Random(seed).shuffle(order)
    return [{**docs, "train": order[: len(order) >> n]} for n in range(halvings + 1)]


def main() -> None:
    """Run all experiments on one corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="Folder with the three .spacy files")
    parser.add_argument("--name", required=True)
    parser.add_argument("--lang", default="en")
    parser.add_argument("--halvings", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lists", type=Path, help="JSON of named word lists")
    parser.add_argument(
        "--only",
        nargs="+",
        help="Names of the rows to run, e.g. 'word lists'; the others stay as they are",
    )
    args = parser.parse_args()
    docs = load(args.corpus, args.lang)
    path = RESULTS / f"{args.name}.json"
    rows = json.loads(path.read_text())["rows"] if args.only else []

    def add(section: str, name: str, data: Docs, config: dict[str, Any]) -> None:
        if args.only and name not in args.only:
            return
        result = run(args.lang, data, config)
        row = {"section": section, "name": name, **result}
        key = ("section", "name", "train_words")
        rows[:] = [old for old in rows if any(old[k] != row[k] for k in key)] + [row]
        print(
            section,
            name,
            result["train_words"],
            result["dev"],
            result["test"],
            flush=True,
        )

    add("modality", "mixed case", docs, {})
    options = dict(OPTIONS)
    if args.lists:
        lists = {"lists": json.loads(args.lists.read_text())}
        options["word lists"] = lists
        options["word lists, merged unknown words"] = {**lists, "unknown": "merged"}
    for name, config in options.items():
        add("option", name, docs, config)
    for data in halved(docs, args.halvings, args.seed):
        add("size", "random sentences", data, {})
    if not args.only or {"upper case", "upper case, five features"} & set(args.only):
        upper = convert(docs, upper_case_doc)
        add("modality", "upper case", upper, {})
        add("option", "upper case, five features", upper, FIVE)
    if not args.only or "SNOR" in args.only:
        spoken = convert(docs, lambda doc: snor_doc(doc, args.lang)[0])
        add("modality", "SNOR", spoken, {})
    RESULTS.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"corpus": args.name, "lang": args.lang, "rows": rows}, indent=1)
        + "\n"
    )
    print(path)


if __name__ == "__main__":
    main()
