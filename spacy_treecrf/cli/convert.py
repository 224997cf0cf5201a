"""`python -m spacy treecrf convert`: corpora and annotations to `.spacy` files."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import spacy
from spacy.language import Language
from typer import Argument, Option
from wasabi import msg

from spacy_treecrf.data.docbin import make_docs, write_docbin
from spacy_treecrf.data.jsonl import Tokenize, read_jsonl
from spacy_treecrf.data.records import (
    MISALIGNED,
    ConversionError,
    Problems,
    Sentence,
    stem,
)
from spacy_treecrf.data.statistics import SpanCounts
from spacy_treecrf.errors import Errors


class Format(str, Enum):
    """Input formats; each is a module of `spacy_treecrf.data`."""

    jsonl = "jsonl"


# Endings of the files that are read from a folder.
SUFFIXES = {Format.jsonl: (".jsonl", ".jsonl.gz")}

Read = Callable[[Path, Problems], Iterator[Sentence]]


@dataclass
class Job:
    """Everything that is the same for all files of one run."""

    nlp: Language
    read: Read
    spans_key: str
    merge_docs: bool
    keep_ids: bool
    limit: int | None
    max_misaligned: float


def convert_cli(
    format: Annotated[Format, Argument(help="Format of the input")],
    inputs: Annotated[
        list[Path], Argument(metavar="IN...", help="Input files or folders")
    ],
    output: Annotated[
        Path,
        Argument(
            metavar="OUT",
            help="A .spacy file for all input, or a folder for one .spacy file each",
        ),
    ],
    spans_key: Annotated[str, Option(help="Key of the span group to write")] = "nested",
    lang: Annotated[
        str,
        Option(help="Language whose tokenizer splits texts without tokens, or xx"),
    ] = "en",
    merge_docs: Annotated[
        bool,
        Option(
            "--merge-docs",
            help="Join the lines of one document into one Doc with sentence starts",
        ),
    ] = False,
    keep_ids: Annotated[
        bool,
        Option(
            "--keep-ids",
            help="Keep id and document as doc.user_data; the file is read more slowly",
        ),
    ] = False,
    limit: Annotated[
        int | None,
        Option(min=1, help="Take only the first N sentences of each output file"),
    ] = None,
    max_misaligned: Annotated[
        float,
        Option(min=0, max=1, help="Fail if a larger share of spans is misaligned"),
    ] = 0.05,
) -> None:
    """Convert a corpus with nested spans to spaCy's binary format.

    Each line, block or sentence of the input becomes one Doc with a span group,
    even an empty one. Prints what was converted, and names what could not be.
    """
    try:
        nlp = spacy.blank(lang)
    except ImportError:
        msg.fail(Errors.T045.format(lang=lang), exits=1)
    job = Job(
        nlp=nlp,
        read=make_reader(format, nlp),
        spans_key=spans_key,
        merge_docs=merge_docs,
        keep_ids=keep_ids,
        limit=limit,
        max_misaligned=max_misaligned,
    )
    try:
        for out_path, in_paths in plan_outputs(format, inputs, output).items():
            convert(in_paths, out_path, job)
    except ConversionError as error:
        msg.fail("Nothing written for this input", str(error), exits=1)


def make_reader(format: Format, nlp: Language) -> Read:
    """The reader of a format, with the options bound that it needs."""
    readers: dict[Format, Read] = {
        Format.jsonl: partial(read_jsonl, tokenize=make_tokenize(nlp)),
    }
    return readers[format]


def make_tokenize(nlp: Language) -> Tokenize:
    """Split texts as a pipeline of this language would."""

    def tokenize(text: str) -> tuple[list[str], list[bool]]:
        doc = nlp.make_doc(text)
        return [t.text for t in doc], [bool(t.whitespace_) for t in doc]

    return tokenize


def plan_outputs(
    format: Format, inputs: list[Path], output: Path
) -> dict[Path, list[Path]]:
    """Which input files go into which output file.

    format (Format): Decides which files of a folder are read.
    inputs (list[Path]): Files and folders.
    output (Path): A `.spacy` file for all, or a folder for one file each.
    RETURNS (dict[Path, list[Path]]): Input files by output file.
    RAISES (ConversionError): If an input is missing, a folder holds no file of the
        format, or two inputs would be written to the same file.
    """
    paths: list[Path] = []
    for path in inputs:
        if path.is_dir():
            found = sorted(
                p for p in path.iterdir() if p.name.endswith(SUFFIXES[format])
            )
            if not found:
                raise ConversionError(
                    Errors.T046.format(
                        path=path, suffixes=" or ".join(SUFFIXES[format])
                    )
                )
            paths.extend(found)
        elif path.exists():
            paths.append(path)
        else:
            raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    if output.suffix == ".spacy":
        return {output: paths}
    if output.is_file():
        raise ConversionError(Errors.T047.format(path=output))
    plan: dict[Path, list[Path]] = {}
    for path in paths:
        target = output / f"{stem(path)}.spacy"
        if target in plan:
            raise ConversionError(
                Errors.T048.format(first=plan[target][0], second=path, target=target)
            )
        plan[target] = [path]
    return plan


def convert(in_paths: list[Path], out_path: Path, job: Job) -> None:
    """Convert some files into one and print the counts.

    in_paths (list[Path]): The input files, in order.
    out_path (Path): The `.spacy` file.
    job (Job): Reader and options.
    RAISES (ConversionError): If the input is broken or empty, or too many spans are
        misaligned; nothing is written then.
    """
    problems = Problems()
    counts = SpanCounts()

    def sentences() -> Iterator[Sentence]:
        for path in in_paths:
            empty = True
            for sentence in job.read(path, problems):
                empty = False
                yield sentence
            if empty:
                raise ConversionError(Errors.T049.format(path=path))

    def counted() -> Iterator[Sentence]:
        for sentence in islice(sentences(), job.limit):
            counts.add(len(sentence.tokens), sentence.spans)
            yield sentence

    docs = list(make_docs(counted(), job.nlp.vocab, job.spans_key, job.merge_docs))
    counts.docs = len(docs)
    for headline, details in problems.messages():
        msg.warn(headline, details)
    n_misaligned = problems.counts[MISALIGNED]
    n_gold = counts.spans + n_misaligned
    if n_misaligned > job.max_misaligned * n_gold:
        raise ConversionError(
            Errors.T050.format(
                n_misaligned=n_misaligned, n_gold=n_gold, limit=job.max_misaligned
            )
        )
    write_docbin(docs, out_path, job.keep_ids)
    print_counts(counts, n_misaligned, job.spans_key)
    if not counts.spans:
        msg.warn(f"No spans in {len(in_paths)} files: check format and options")
    msg.good(f"{out_path} ({counts.docs} Docs)")


def print_counts(counts: SpanCounts, n_misaligned: int, spans_key: str) -> None:
    """Print what was converted as two tables: totals, and spans by label."""

    def share(number: int) -> str:
        return (
            f"{number} ({number / counts.spans:.1%})" if counts.spans else str(number)
        )

    rows = [
        ("Docs", counts.docs),
        ("Sentences", counts.sentences),
        ("Tokens", counts.tokens),
        (f"Spans under '{spans_key}'", counts.spans),
        ("Inside a longer span", share(counts.inner)),
        ("Inside or around another", share(counts.nested)),
        ("Deepest nesting", counts.max_depth),
        ("Crossing pairs", counts.crossing),
        ("Spans with several labels", counts.multi_label),
        ("Misaligned, left out", n_misaligned),
    ]
    msg.table([(name, str(value)) for name, value in rows], aligns=("l", "r"))
    if counts.labels:
        by_label = [(label, str(n)) for label, n in counts.labels.most_common()]
        msg.table(by_label, header=("Label", "Spans"), divider=True, aligns=("l", "r"))
