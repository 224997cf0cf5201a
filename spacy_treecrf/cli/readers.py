"""The readers of all formats, with the options bound that they need."""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from pathlib import Path

import spacy
from spacy.language import Language

from spacy_treecrf.data.alignment import AlignmentMode, Tokenize
from spacy_treecrf.data.formats.bracketed import read_bracketed
from spacy_treecrf.data.formats.brat import read_brat
from spacy_treecrf.data.formats.conllu import read_conllu
from spacy_treecrf.data.formats.genia import read_genia
from spacy_treecrf.data.formats.iob_layers import read_iob_layers
from spacy_treecrf.data.formats.jsonl import read_jsonl
from spacy_treecrf.data.formats.sgml import read_sgml
from spacy_treecrf.data.offsets import Offsets
from spacy_treecrf.data.records import Sentence, checked_records, default_id
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems


class Format(str, Enum):
    """Input formats; each is a module of `spacy_treecrf.data.formats`."""

    jsonl = "jsonl"
    genia = "genia"
    iob_layers = "iob-layers"
    brat = "brat"
    bracketed = "bracketed"
    sgml = "sgml"
    conllu = "conllu"


# Endings of the files that are read from a folder.
SUFFIXES = {
    Format.jsonl: (".jsonl", ".jsonl.gz", ".json", ".json.gz"),
    Format.genia: (".data", ".data.gz", ".txt"),
    Format.iob_layers: (".tsv", ".tsv.gz", ".iob", ".iob2", ".conll"),
    Format.brat: (".ann",),
    Format.bracketed: (".txt",),
    Format.sgml: (".sgml", ".sgm", ".sgml.gz"),
    Format.conllu: (".conllu", ".conllu.gz"),
}

BAD_LINE = "sentences with ill-formed brackets: left out"

Read = Callable[[Path, Problems], Iterator[Sentence]]


def make_language(lang: str) -> Language:
    """The blank pipeline of a language, for its tokenizer and vocabulary.

    lang (str): Code of the language.
    RETURNS (Language): The pipeline.
    RAISES (ConversionError): If there is no such language, or its tokenizer needs a
        package that is not installed.
    """
    try:
        return spacy.blank(lang)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        # E048: there is no such language; else its tokenizer lacks a package.
        if "[E048]" in str(error):
            raise ConversionError(Errors.T045.format(lang=lang)) from error
        reason = str(error).strip().rstrip(".") + "."
        raise ConversionError(Errors.T123.format(lang=lang, reason=reason)) from error


def make_reader(
    format: Format,
    nlp: Language,
    tokenized: bool = False,
    token_column: int | None = None,
    mode: AlignmentMode = "strict",
    offsets: Offsets | None = None,
    tag_columns: Sequence[int] = (),
    misc_keys: Sequence[str] = (),
) -> Read:
    """The reader of a format, with the options bound that it needs."""
    tokenize = make_tokenize(nlp)
    readers: dict[Format, Read] = {
        Format.jsonl: partial(
            read_jsonl, tokenize=tokenize, mode=mode, offsets=offsets
        ),
        Format.genia: read_genia,
        Format.iob_layers: partial(
            read_iob_layers, token_column=token_column, tag_columns=tag_columns
        ),
        Format.brat: partial(
            read_brat,
            tokenize=tokenize,
            tokenized=tokenized,
            mode=mode,
            offsets=offsets,
        ),
        Format.bracketed: read_bracketed_sentences,
        Format.sgml: partial(read_sgml, tokenize=tokenize, mode=mode),
        Format.conllu: partial(read_conllu, misc_keys=misc_keys),
    }
    return readers[format]


def parse_columns(columns: str | None) -> list[int]:
    """Read the numbers of columns, e.g. "3,4".

    columns (str | None): The option; None if it is not given.
    RETURNS (list[int]): The numbers, from 1.
    RAISES (ConversionError): If it is anything else.
    """
    if columns is None:
        return []
    found = re.fullmatch(r"\s*[1-9]\d{0,5}\s*(,\s*[1-9]\d{0,5}\s*)*", columns)
    if found is None:
        reason = "expected numbers of columns from 1, e.g. 4 or 3,4"
        raise ConversionError(
            Errors.T044.format(where=f"--tag-columns {columns}", reason=reason)
        )
    return list(dict.fromkeys(int(column) for column in columns.split(",")))


def read_bracketed_sentences(path: Path, problems: Problems) -> Iterator[Sentence]:
    """Read inline brackets as the other readers read their formats."""

    def repair(error: ValueError) -> None:
        problems.repair(BAD_LINE, str(error), lost_record=True)

    try:
        for number, tokens, spans in read_bracketed(path, repair):
            sentence = Sentence(default_id(path, number - 1), tokens, spans)
            yield from checked_records(sentence, f"{path}:{number}", problems)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConversionError(Errors.T040.format(path=path, reason=reason)) from error


def make_tokenize(nlp: Language) -> Tokenize:
    """Split texts as a pipeline of this language would."""

    def tokenize(text: str) -> tuple[list[str], list[bool]]:
        doc = nlp.make_doc(text)
        return [t.text for t in doc], [bool(t.whitespace_) for t in doc]

    return tokenize
