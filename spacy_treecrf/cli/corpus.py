"""`python -m spacy treecrf corpus`: a public corpus as train, dev and test files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.modality import Modality
from spacy_treecrf.data.public_corpora import CORPORA, NEIGHBOURS, find_source
from spacy_treecrf.data.records import Sentence
from spacy_treecrf.errors import Errors
from spacy_treecrf.pipeline.docs.entities import outermost_spans
from spacy_treecrf.problems import ConversionError, Problems

from .conversion import Job, convert
from .readers import Format, Read, make_language, make_reader


def corpus_cli(
    name: Annotated[
        str, Argument(metavar="NAME", help=f"One of {', '.join(sorted(CORPORA))}")
    ],
    output: Annotated[
        Path,
        Argument(metavar="OUT", help="Folder for train, dev and test .spacy files"),
    ],
    assets: Annotated[Path, Option(help="Folder of the fetched original files")] = Path(
        "assets"
    ),
    limit: Annotated[
        int | None,
        Option(min=1, help="Take only the first N training sentences, but all others"),
    ] = None,
    spans_key: Annotated[str, Option(help="Key of the span group to write")] = "nested",
    merge_docs: Annotated[
        bool,
        Option(
            "--merge-docs",
            help="Join the sentences of one document into one Doc with sentence starts",
        ),
    ] = False,
    keep_ids: Annotated[
        bool,
        Option(
            "--keep-ids",
            help="Keep id and document as doc.user_data; the file is read more slowly",
        ),
    ] = False,
    flat: Annotated[
        bool,
        Option(
            "--flat",
            help="Write the outermost spans alone, to doc.ents; so are flat corpora "
            "written always",
        ),
    ] = False,
) -> None:
    """Make the training files of a public corpus.

    Reads the local copy that the environment variable SPACY_TREECRF_CORPORA names, or
    else the original files, which `python -m spacy project assets --extra` fetches.
    """
    try:
        if name not in CORPORA:
            raise ConversionError(
                Errors.T113.format(name=name, known=", ".join(sorted(CORPORA)))
            )
        corpus = CORPORA[name]
        source = find_source(corpus, assets)
        msg.info(f"Source: {source.description}")
        nlp = make_language(corpus.lang)
        flat = flat or corpus.is_flat
        reader = make_reader(Format(source.format), nlp)
        for split, paths in source.splits.items():
            read = _read_flat(reader, split if corpus.is_flat else None)
            job = Job(
                nlp=nlp,
                read=read if flat else reader,
                spans_key=spans_key,
                merge_docs=merge_docs,
                keep_ids=keep_ids,
                keep_spaces=False,
                modality=Modality.mixed,
                limit=limit if split == "train" else None,
                # These corpora come with tokens, to which their spans are aligned.
                max_misaligned=0.0,
                format=Format(source.format),
                flat=flat,
            )
            msg.divider(split)
            convert(paths, output / f"{split}.spacy", job)
    except ConversionError as error:
        msg.fail("Stopped")
        echo(str(error))
        raise Exit(1) from error


def _read_flat(read: Read, split: str | None) -> Read:
    """A reader of the outermost spans alone; in a named split, of numbered documents."""

    def read_flat(path: Path, problems: Problems) -> Iterator[Sentence]:
        for i, sentence in enumerate(read(path, problems)):
            doc = sentence.doc if split is None else f"{split}-{i // NEIGHBOURS}"
            yield replace(sentence, spans=outermost_spans(sentence.spans), doc=doc)

    return read_flat
