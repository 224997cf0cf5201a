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
from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.alignment import (
    LEFT_OUT,
    Aligner,
    AlignmentMode,
    Tokenize,
    n_misaligned,
    token_bounds,
)
from spacy_treecrf.data.bracketed import read_bracketed
from spacy_treecrf.data.brat import read_brat
from spacy_treecrf.data.conllu import read_conllu
from spacy_treecrf.data.docbin import make_docs, write_docbin
from spacy_treecrf.data.genia import read_genia
from spacy_treecrf.data.iob_layers import read_iob_layers
from spacy_treecrf.data.jsonl import read_jsonl
from spacy_treecrf.data.modality import Modality, change_modality
from spacy_treecrf.data.records import (
    N_NAMED,
    ConversionError,
    Problems,
    Sentence,
    checked_sentence,
    default_id,
)
from spacy_treecrf.data.sgml import read_sgml
from spacy_treecrf.data.statistics import SpanCounts, crossing_pairs
from spacy_treecrf.errors import Errors

from .input_files import plan_outputs


class Format(str, Enum):
    """Input formats; each is a module of `spacy_treecrf.data`."""

    jsonl = "jsonl"
    genia = "genia"
    iob_layers = "iob-layers"
    brat = "brat"
    bracketed = "bracketed"
    sgml = "sgml"
    conllu = "conllu"


# Endings of the files that are read from a folder.
SUFFIXES = {
    Format.jsonl: (".jsonl", ".jsonl.gz"),
    Format.genia: (".data", ".data.gz", ".txt"),
    Format.iob_layers: (".tsv", ".tsv.gz", ".iob", ".iob2", ".conll"),
    Format.brat: (".ann",),
    Format.bracketed: (".txt",),
    Format.sgml: (".sgml", ".sgm", ".sgml.gz"),
    Format.conllu: (".conllu", ".conllu.gz"),
}

Read = Callable[[Path, Problems], Iterator[Sentence]]


@dataclass
class Job:
    """Everything that is the same for all files of one run."""

    nlp: Language
    read: Read
    spans_key: str
    merge_docs: bool
    keep_ids: bool
    keep_spaces: bool
    modality: Modality
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
    keep_spaces: Annotated[
        bool,
        Option(
            "--keep-spaces",
            help="Keep the spacing of a corpus with its own tokens; spaCy then splits "
            "the texts anew in training, with the tokenizer of the config",
        ),
    ] = False,
    modality: Annotated[
        Modality,
        Option(help="Write the texts as they are, in upper case, or as speech"),
    ] = Modality.mixed,
    limit: Annotated[
        int | None,
        Option(min=1, help="Take only the first N sentences of each output file"),
    ] = None,
    only: Annotated[
        Path | None,
        Option(help="File that names the files of IN to take, one a line, in order"),
    ] = None,
    tokenized: Annotated[
        bool,
        Option("--tokenized", help="brat: tokens between spaces, a sentence a line"),
    ] = False,
    token_column: Annotated[
        int | None,
        Option(min=1, help="iob-layers: column of the tokens, detected by default"),
    ] = None,
    alignment_mode: Annotated[
        AlignmentMode,
        Option(help="Spans that begin or end within a token: leave out, cut or widen"),
    ] = "strict",
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
        plan = plan_outputs(SUFFIXES[format], inputs, output, only)
        for folder in inputs:
            if format is Format.brat and folder.is_dir():
                warn_of_unannotated(folder)
        nlp = make_language(lang)
        job = Job(
            nlp=nlp,
            read=make_reader(format, nlp, tokenized, token_column, alignment_mode),
            spans_key=spans_key,
            merge_docs=merge_docs,
            keep_ids=keep_ids,
            keep_spaces=keep_spaces,
            modality=modality,
            limit=limit,
            max_misaligned=max_misaligned,
        )
        for out_path, in_paths in plan.items():
            convert(in_paths, out_path, job)
    except ConversionError as error:
        msg.fail("Nothing written for this input")
        echo(str(error))
        raise Exit(1) from error


def make_language(lang: str) -> Language:
    """The blank pipeline of a language, for its tokenizer and vocabulary."""
    try:
        return spacy.blank(lang)
    except ImportError as error:
        raise ConversionError(Errors.T045.format(lang=lang)) from error


def make_reader(
    format: Format,
    nlp: Language,
    tokenized: bool = False,
    token_column: int | None = None,
    mode: AlignmentMode = "strict",
) -> Read:
    """The reader of a format, with the options bound that it needs."""
    tokenize = make_tokenize(nlp)
    readers: dict[Format, Read] = {
        Format.jsonl: partial(read_jsonl, tokenize=tokenize, mode=mode),
        Format.genia: read_genia,
        Format.iob_layers: partial(read_iob_layers, token_column=token_column),
        Format.brat: partial(
            read_brat, tokenize=tokenize, tokenized=tokenized, mode=mode
        ),
        Format.bracketed: read_bracketed_sentences,
        Format.sgml: partial(read_sgml, tokenize=tokenize, mode=mode),
        Format.conllu: read_conllu,
    }
    return readers[format]


def read_bracketed_sentences(path: Path, problems: Problems) -> Iterator[Sentence]:
    """Read inline brackets as the other readers read their formats."""
    try:
        for number, tokens, spans in read_bracketed(path):
            sentence = Sentence(default_id(path, number - 1), tokens, spans)
            yield checked_sentence(sentence, f"{path}:{number}", problems)
    except ConversionError:
        raise
    except (OSError, ValueError) as error:
        raise ConversionError(str(error)) from error


def warn_of_unannotated(folder: Path) -> None:
    """Name the texts that no annotation file goes with."""
    texts = sorted(
        p for p in folder.glob("*.txt") if not p.with_suffix(".ann").exists()
    )
    if texts:
        msg.warn(f"{len(texts)} texts without .ann file: left out")
        echo("\n".join(map(str, texts[:N_NAMED])))


def make_tokenize(nlp: Language) -> Tokenize:
    """Split texts as a pipeline of this language would."""

    def tokenize(text: str) -> tuple[list[str], list[bool]]:
        doc = nlp.make_doc(text)
        return [t.text for t in doc], [bool(t.whitespace_) for t in doc]

    return tokenize


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
    tokenize = make_tokenize(job.nlp)

    def sentences() -> Iterator[Sentence]:
        for path in in_paths:
            empty = True
            for sentence in job.read(path, problems):
                empty = False
                yield sentence
            if empty:
                raise ConversionError(Errors.T049.format(path=path))

    def counted() -> Iterator[Sentence]:
        written = islice(sentences(), job.limit)
        for sentence in change_modality(
            written, job.modality, job.nlp.lang or "", problems
        ):
            counts.add(len(sentence.tokens), sentence.spans)
            name_crossing_pairs(sentence, problems)
            if job.keep_spaces:
                name_lost_spans(sentence, tokenize, problems)
            yield sentence

    docs = list(
        make_docs(
            counted(), job.nlp.vocab, job.spans_key, job.merge_docs, job.keep_spaces
        )
    )
    counts.docs = len(docs)
    for headline, details in problems.messages():
        msg.warn(headline)
        echo(details)
    misaligned, left_out = n_misaligned(problems), problems.counts[LEFT_OUT]
    n_gold = counts.spans + left_out
    if misaligned > job.max_misaligned * n_gold:
        raise ConversionError(
            Errors.T050.format(
                misaligned=misaligned, n_gold=n_gold, limit=job.max_misaligned
            )
        )
    write_docbin(docs, out_path, job.keep_ids)
    print_counts(counts, misaligned, job.spans_key)
    if not counts.spans:
        msg.warn(f"No spans in {len(in_paths)} files: check format and options")
    msg.good(f"{out_path} ({counts.docs} Docs)")


def name_crossing_pairs(sentence: Sentence, problems: Problems) -> None:
    """Report spans of which a tree holds one at most; both are converted."""
    for left, right in crossing_pairs((s, e) for s, e, _ in sentence.spans):
        problems.add(
            "crossing pairs of spans: kept, but no tree holds both",
            f"{sentence.id}: {sentence.text(*left)!r} and {sentence.text(*right)!r}",
        )


def name_lost_spans(sentence: Sentence, tokenize: Tokenize, problems: Problems) -> None:
    """Report spans that do not fit the tokens into which spaCy will split the text."""
    if sentence.spaces is None or not sentence.own_tokens:
        return
    bounds = token_bounds(sentence.tokens, sentence.spaces)
    text = sentence.text()
    # The aligner's own count is of spans that are not in the output; these are.
    aligner = Aligner(text, token_bounds(*tokenize(text)), Problems())
    for start, end, label in sentence.spans:
        first, last = bounds[start][0], bounds[end - 1][1]
        if aligner.align(first, last, label, sentence.id) is None:
            problems.add(
                "spans lost in training, where spaCy splits texts of known spacing "
                "anew: convert without --keep-spaces",
                f"{sentence.id}: {label} {aligner.show(first, last)}",
            )


def print_counts(counts: SpanCounts, misaligned: int, spans_key: str) -> None:
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
        ("Misaligned", misaligned),
    ]
    msg.table([(name, str(value)) for name, value in rows], aligns=("l", "r"))
    if counts.labels:
        by_label = [(label, str(n)) for label, n in counts.labels.most_common()]
        msg.table(by_label, header=("Label", "Spans"), divider=True, aligns=("l", "r"))
