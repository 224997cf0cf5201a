"""Docs of `.spacy`, JSON and text files, as gold or as input of a pipeline."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import ensure_path
from spacy.vocab import Vocab
from typer import echo
from wasabi import msg

from spacy_treecrf.data.corpus_reader import FastDocBin
from spacy_treecrf.data.docbin import make_docs
from spacy_treecrf.data.text_files import read_lines
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems

from .readers import SUFFIXES, Format, make_reader

JSON_SUFFIXES = SUFFIXES[Format.jsonl]
DOCBIN_SUFFIX = ".spacy"


def load_pipeline(model: str) -> Language:
    """Load a pipeline; RAISES (ConversionError): If it can't be loaded."""
    try:
        return spacy.load(ensure_path(model) if Path(model).is_dir() else model)
    except (OSError, ImportError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise ConversionError(Errors.T114.format(model=model, reason=reason)) from error


def is_data(name: str) -> bool:
    """Whether an argument is the name of a file of ours, be it there or not."""
    return name.endswith((DOCBIN_SUFFIX, *JSON_SUFFIXES))


def read_gold(path: Path, nlp: Language, spans_key: str) -> Iterator[Doc]:
    """Read the Docs of a file as they are.

    path (Path): A `.spacy`, JSON or JSON Lines file, or a text file with a text a line.
    nlp (Language): Splits texts without tokens.
    spans_key (str): Key of the span group that the spans of JSON get.
    YIELDS (Doc): The Docs.
    RAISES (ConversionError): If the file can't be read.
    """
    if path.name.endswith(DOCBIN_SUFFIX):
        yield from read_docbin(path, nlp.vocab)
    elif path.name.endswith(JSON_SUFFIXES):
        problems = Problems()
        sentences = list(make_reader(Format.jsonl, nlp)(path, problems))
        # That a text has no spans is no news here.
        for headline, details in problems.messages(repairs_only=True):
            msg.warn(headline)
            echo(details)
        yield from make_docs(sentences, nlp.vocab, spans_key)
    else:
        for _, line in read_lines(path):
            if line.strip():
                yield nlp.make_doc(line.strip())


def read_docbin(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read a `.spacy` file.

    path (Path): The file.
    vocab (Vocab): Vocabulary of the Docs.
    YIELDS (Doc): The Docs.
    RAISES (ConversionError): If it is missing or no such file.
    """
    try:
        docbin = FastDocBin()
        docbin.from_disk(path)
    except OSError as error:
        raise ConversionError(
            Errors.T040.format(path=path, reason=error.strerror or error)
        ) from error
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise ConversionError(Errors.T055.format(path=path, reason=error)) from error
    yield from docbin.get_docs(vocab)


def without_annotation(doc: Doc, nlp: Language) -> Doc:
    """A Doc for a pipeline to annotate, made as spaCy makes those of evaluation.

    doc (Doc): The Doc.
    nlp (Language): The pipeline.
    RETURNS (Doc): The same tokens where their spacing is unknown; else its text, split
        by the pipeline's tokenizer. The names in `user_data` are kept.
    """
    if doc.has_unknown_spaces:
        fresh = Doc(nlp.vocab, words=[token.text for token in doc])
    else:
        fresh = nlp.make_doc(doc.text)
    for name in ("id", "doc"):
        if name in doc.user_data:
            fresh.user_data[name] = doc.user_data[name]
    return fresh


def predict(docs: Iterator[Doc], nlp: Language) -> Iterator[Doc]:
    """Annotate the texts of Docs anew.

    docs (Iterator[Doc]): The Docs.
    nlp (Language): The pipeline.
    YIELDS (Doc): The annotated Docs.
    """
    yield from nlp.pipe(without_annotation(doc, nlp) for doc in docs)
