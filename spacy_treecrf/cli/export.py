"""`python -m spacy treecrf export`: spans for annotation tools, to be corrected there."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.export import Tool, make_record, scored_spans
from spacy_treecrf.data.offsets import OffsetUnit
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

from .documents import load_pipeline, predict, read_gold

# What Label Studio shows for spans that were predicted by no model that we know.
UNKNOWN_MODEL = "spacy-treecrf"


def export_cli(
    data: Annotated[
        Path,
        Argument(metavar="DATA", help="A .spacy file; also .jsonl, or a text a line"),
    ],
    output: Annotated[
        Path,
        Argument(metavar="OUT", help="The file to write; Label Studio's is one array"),
    ],
    to: Annotated[Tool, Option(help="The annotation tool")],
    model: Annotated[
        str | None,
        Option(help="Pipeline that predicts the spans; else those of DATA are written"),
    ] = None,
    spans_key: Annotated[str, Option(help="Key of the span group")] = "nested",
    offsets: Annotated[
        OffsetUnit, Option(help="What offsets count; JavaScript's are utf-16")
    ] = OffsetUnit.code_points,
    gpu_id: Annotated[
        int, Option("--gpu-id", "-g", help="GPU to run on, or -1 for the CPU")
    ] = -1,
) -> None:
    """Write gold or predicted spans for an annotation tool, so that people correct them.

    `convert jsonl` reads what comes back.
    """
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    try:
        nlp = load_pipeline(model) if model is not None else spacy.blank("xx")
        docs = list(read_docs(data, nlp, spans_key, is_predicted=model is not None))
        check_group(data, docs, spans_key)
        records = make_records(docs, spans_key, to, offsets, model_name(nlp, model))
        write_records(records, output, to)
    except ConversionError as error:
        msg.fail("Nothing written")
        echo(str(error))
        raise Exit(1) from error
    missing = sum(spans_key not in doc.spans for doc in docs)
    if missing:
        msg.warn(f"{missing} texts without the span group: written without spans")
    n_spans = sum(len(scored_spans(doc, spans_key)) for doc in docs)
    msg.good(f"{output} ({len(docs)} texts, {n_spans} spans)")


def read_docs(
    data: Path, nlp: Language, spans_key: str, is_predicted: bool
) -> Iterator[Doc]:
    """The Docs of a file, as they are or annotated anew."""
    docs = read_gold(data, nlp, spans_key)
    return predict(docs, nlp) if is_predicted else docs


def check_group(data: Path, docs: list[Doc], spans_key: str) -> None:
    """Raise if there is no text, or none has the span group."""
    if not docs:
        raise ConversionError(Errors.T049.format(path=data))
    if not any(spans_key in doc.spans for doc in docs):
        keys = ", ".join(sorted({key for doc in docs for key in doc.spans})) or "none"
        raise ConversionError(Errors.T126.format(path=data, key=spans_key, keys=keys))


def model_name(nlp: Language, model: str | None) -> str | None:
    """Name and version of the pipeline that predicts; None if none does."""
    if model is None:
        return None
    name = "_".join(
        str(nlp.meta[k]) for k in ("lang", "name", "version") if nlp.meta[k]
    )
    return name or UNKNOWN_MODEL


def make_records(
    docs: Iterable[Doc],
    spans_key: str,
    tool: Tool,
    unit: OffsetUnit,
    model: str | None,
) -> Iterator[dict[str, Any]]:
    """The records of a file; spans with scores are predictions, whoever made them."""
    for doc in docs:
        scored = any(score is not None for *_, score in scored_spans(doc, spans_key))
        name = model or (UNKNOWN_MODEL if scored else None)
        yield make_record(doc, spans_key, tool, unit, name)


def write_records(records: Iterable[dict[str, Any]], path: Path, tool: Tool) -> None:
    """Write JSON Lines, or for Label Studio an array, with a record a line.

    records (Iterable[dict[str, Any]]): The records.
    path (Path): The file.
    tool (Tool): The tool.
    RAISES (ConversionError): If the file can't be written.
    """
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    text = "\n".join([*lines, ""])
    if tool is Tool.label_studio:
        text = "[\n" + ",\n".join(lines) + "\n]\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")
    except OSError as error:
        raise ConversionError(
            Errors.T127.format(path=path, reason=error.strerror or error)
        ) from error
