"""`python -m spacy treecrf convert`: corpora and annotations to `.spacy` files."""

from pathlib import Path
from typing import Annotated, NoReturn

from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.alignment import AlignmentMode
from spacy_treecrf.data.modality import Modality
from spacy_treecrf.data.offsets import Offsets, OffsetUnit
from spacy_treecrf.data.splits import parse_shares
from spacy_treecrf.problems import N_NAMED, ConversionError

from .conversion import Job, convert, convert_splits
from .input_files import plan_outputs, plan_splits
from .readers import SUFFIXES, Format, make_language, make_reader, parse_columns


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
    strict: Annotated[
        bool,
        Option("--strict", help="Fail at the first place that would be repaired"),
    ] = False,
    offsets: Annotated[
        OffsetUnit,
        Option(help="brat, jsonl: what offsets count; JavaScript's are utf-16"),
    ] = OffsetUnit.code_points,
    tag_columns: Annotated[
        str | None,
        Option(help="iob-layers: columns of the tags, from 1, e.g. 4 or 3,4"),
    ] = None,
    misc_key: Annotated[
        list[str] | None,
        Option(help="conllu: key of MISC with IOB tags, for several layers repeated"),
    ] = None,
    split: Annotated[
        str | None,
        Option(help="Shares of train, dev and test, e.g. 0.8/0.1/0.1, by document"),
    ] = None,
    seed: Annotated[int, Option(help="Seed of --split")] = 0,
) -> None:
    """Convert a corpus with nested spans to spaCy's binary format.

    Each line, block or sentence of the input becomes one Doc with a span group,
    even an empty one. Prints what was converted, and names what was repaired or could
    not be converted.
    """
    try:
        shares = parse_shares(split) if split is not None else None
        paths = (
            plan_splits(SUFFIXES[format], inputs, output, split, only) if split else []
        )
        plan = {} if shares else plan_outputs(SUFFIXES[format], inputs, output, only)
        for folder in inputs:
            if format is Format.brat and folder.is_dir():
                warn_of_unannotated(folder)
        nlp = make_language(lang)
        counted = Offsets(offsets)
        read = make_reader(
            format,
            nlp,
            tokenized,
            token_column,
            alignment_mode,
            counted,
            parse_columns(tag_columns),
            misc_key or [],
        )
        job = Job(
            nlp=nlp,
            read=read,
            spans_key=spans_key,
            merge_docs=merge_docs,
            keep_ids=keep_ids,
            keep_spaces=keep_spaces,
            modality=modality,
            limit=limit,
            max_misaligned=max_misaligned,
            format=format,
            strict=strict,
            offsets=counted,
        )
        if shares is not None:
            convert_splits(paths, output, job, shares, seed)
    except ConversionError as error:
        refuse(error)
    # One file that can't be converted does not cost the others.
    failed = False
    for out_path, in_paths in plan.items():
        try:
            convert(in_paths, out_path, job)
        except ConversionError as error:
            if strict or len(plan) == 1:
                refuse(error)
            show_error(error)
            failed = True
    if failed:
        raise Exit(1)


def refuse(error: ConversionError) -> NoReturn:
    """Print an error and exit."""
    show_error(error)
    raise Exit(1) from error


def show_error(error: ConversionError) -> None:
    """Print an error."""
    msg.fail("Nothing written for this input")
    echo(str(error))


def warn_of_unannotated(folder: Path) -> None:
    """Name the texts that no annotation file goes with."""
    texts = sorted(
        p for p in folder.glob("*.txt") if not p.with_suffix(".ann").exists()
    )
    if texts:
        msg.warn(f"{len(texts)} texts without .ann file: left out")
        echo("\n".join(map(str, texts[:N_NAMED])))
