"""Lines of text files, plain or gzipped, with errors that name the line."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError


def read_lines(path: Path, keep_bytes: bool = False) -> Iterator[tuple[int, str]]:
    """Read a UTF-8 file line by line.

    Lines end at LF or CRLF alone: the other characters at which Python's
    `str.splitlines` cuts (U+2028, U+0085, ...) occur within tokens.

    path (Path): The file; unpacked if it ends in `.gz`.
    keep_bytes (bool): Keep bytes that are not UTF-8 as lone surrogates instead of
        raising, so that they cost no more than the sentence that they stand in.
    YIELDS (tuple[int, str]): Line number from 1, and the line without its end and
        without byte order mark.
    RAISES (ConversionError): If the file is missing, broken or not UTF-8.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                line = _decode(raw, path, number, keep_bytes)
                yield number, line.rstrip("\n").removesuffix("\r")
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConversionError(
            Errors.T040.format(path=path, reason=reason or str(error))
        ) from error


def read_text(path: Path, keep_bytes: bool = False) -> str:
    """Read a whole UTF-8 file as it is, line ends included.

    path (Path): The file; unpacked if it ends in `.gz`.
    keep_bytes (bool): Keep bytes that are not UTF-8 as lone surrogates.
    RETURNS (str): The text, without byte order mark.
    RAISES (ConversionError): If the file is missing, broken or not UTF-8.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return "".join(
                _decode(raw, path, i, keep_bytes) for i, raw in enumerate(file, start=1)
            )
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ConversionError(
            Errors.T040.format(path=path, reason=reason or str(error))
        ) from error


def has_byte_order_mark(path: Path) -> bool:
    """Whether a file, which can be read, starts with the mark that is left out."""
    with path.open("rb") as file:
        return file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


def _decode(raw: bytes, path: Path, number: int, keep_bytes: bool) -> str:
    try:
        line = raw.decode("utf8", errors="surrogateescape" if keep_bytes else "strict")
    except UnicodeDecodeError as error:
        raise ConversionError(
            Errors.T041.format(where=f"{path}:{number}", reason=error.reason)
        ) from error
    return line.removeprefix("\ufeff") if number == 1 else line
