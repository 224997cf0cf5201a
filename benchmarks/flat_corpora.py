"""Write a corpus of flat names as train.spacy, dev.spacy and test.spacy with `doc.ents`.

    python benchmarks/flat_corpora.py gmb corpus/gmb --asset assets/ner_dataset.csv.zip
    python benchmarks/flat_corpora.py conll2002_es corpus/conll2002_es \
        --asset assets/conll2002.zip

Without `--asset` the corpus is taken from the folder of corpora that the environment
variable SPACY_TREECRF_CORPORA names. Nested corpora (genia) are reduced to their
outermost spans. Gold is in `doc.ents`, which spaCy reads ten times as fast as a span
group a Doc, and which its own `ner` can learn from too.
"""

import argparse
import csv
import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import spacy
from spacy.tokens import Doc, Span

from spacy_treecrf.data.corpus_reader import FastDocBin
from spacy_treecrf.pipeline._spans import outermost_spans

SPLITS = ("train", "dev", "test")
LANGUAGES = {"conll2002_es": "es"}
Sentence = tuple[list[str], list[tuple[int, int, str]]]


def read_prepared(name: str, split: str) -> Iterator[Sentence]:
    """Read a split of a corpus in the prepared folder of corpora."""
    folder = os.environ.get("SPACY_TREECRF_CORPORA")
    if not folder:
        raise SystemExit("Give --asset, or set SPACY_TREECRF_CORPORA.")
    found = sorted(Path(folder).rglob(f"{name}/{split}.jsonl.gz"))
    if not found:
        raise SystemExit(f"No {name}/{split}.jsonl.gz below {folder}.")
    with gzip.open(found[0], "rt", encoding="utf8") as file:
        for line in file:
            record = json.loads(line)
            yield record["tokens"], [tuple(span) for span in record["spans"]]


def spans_of_tags(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """Spans of IOB2 tags; an I- that continues nothing begins a span."""
    spans: list[tuple[int, int, str]] = []
    for at, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix == "I" and spans and spans[-1][1:] == (at, label):
            spans[-1] = (spans[-1][0], at + 1, label)
        elif prefix in ("B", "I"):
            spans.append((at, at + 1, label))
    return spans


def read_gmb(asset: Path) -> dict[str, list[Sentence]]:
    """Read the table of the Groningen Meaning Bank; 80/10/10 by sentence order."""
    with zipfile.ZipFile(asset) as archive:
        text = archive.read("ner_dataset.csv").decode("latin-1")
    rows: list[tuple[list[str], list[str]]] = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["Sentence #"]:
            rows.append(([], []))
        if row["Word"].strip(" "):
            rows[-1][0].append(row["Word"].strip(" "))
            rows[-1][1].append(row["Tag"])
    sentences = [(words, spans_of_tags(tags)) for words, tags in rows if words]
    first, second = (len(sentences) * share // 10 for share in (8, 9))
    return {
        "train": sentences[:first],
        "dev": sentences[first:second],
        "test": sentences[second:],
    }


def read_conll2002_es(asset: Path) -> dict[str, list[Sentence]]:
    """Read the Spanish part of the CoNLL-2002 archive, with its official split."""
    found = {}
    with zipfile.ZipFile(asset) as archive:
        for split, file in zip(SPLITS, ("train", "testa", "testb"), strict=True):
            text = archive.read(f"conll2002/esp.{file}").decode("utf8")
            blocks = [
                [line.split() for line in block.split("\n") if line.strip()]
                for block in text.split("\n\n")
            ]
            found[split] = [
                ([row[0] for row in block], spans_of_tags(row[-1] for row in block))
                for block in blocks
                if block
            ]
    return found


READERS = {"gmb": read_gmb, "conll2002_es": read_conll2002_es}


def main() -> None:
    """Convert one corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", help="gmb, conll2002_es, or a prepared corpus")
    parser.add_argument("out", type=Path, help="Folder to write")
    parser.add_argument("--asset", type=Path, help="The downloaded archive")
    parser.add_argument(
        "--documents",
        type=int,
        metavar="N",
        help="Number so many neighbouring sentences as one document in doc.user_data, "
        "for a corpus in the order of its texts without borders between them",
    )
    args = parser.parse_args()
    nlp = spacy.blank(LANGUAGES.get(args.name, "en"))
    use_asset = args.asset is not None and args.asset.exists()
    splits = READERS[args.name](args.asset) if use_asset else None
    args.out.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        sentences = splits[split] if splits else read_prepared(args.name, split)
        docbin = FastDocBin(store_user_data=args.documents is not None)
        count = words = names = 0
        for tokens, spans in sentences:
            if not tokens:
                continue
            doc = Doc(nlp.vocab, words=tokens)
            ents = outermost_spans(spans)
            if args.documents is not None:
                doc.user_data["doc"] = f"{split}-{count // args.documents}"
            doc.set_ents([Span(doc, s, e, label=label) for s, e, label in ents])
            docbin.add(doc)
            count, words, names = count + 1, words + len(doc), names + len(ents)
        docbin.to_disk(args.out / f"{split}.spacy")
        print(f"{args.name} {split}: {count} Docs, {words} words, {names} names")


if __name__ == "__main__":
    main()
