"""Lines of text files: what ends a line, and errors that name it."""

import gzip

import pytest

from spacy_treecrf.data.text_files import read_lines, read_text
from spacy_treecrf.problems import ConversionError


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"a\nb", [(1, "a"), (2, "b")]),
        (b"a\r\n\r\nb\r\n", [(1, "a"), (2, ""), (3, "b")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [(1, "a"), (2, "\ufeffb")]),
        ("a\u2028b\x85c\rd\x00\n".encode(), [(1, "a\u2028b\x85c\rd\x00")]),
    ],
    ids=["empty", "no last end", "crlf", "byte order mark", "other separators"],
)
def test_text_files_lines(tmp_path, raw, lines):
    path = tmp_path / "file.txt"
    path.write_bytes(raw)
    assert list(read_lines(path)) == lines


def test_text_files_gzip(tmp_path):
    path = tmp_path / "file.txt.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert list(read_lines(path)) == [(1, "a"), (2, "b")]


def test_text_files_text_keeps_line_ends(tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\rc\n")
    assert read_text(path) == "a\r\nb\rc\n"


@pytest.mark.parametrize("read", [read_text, lambda path: list(read_lines(path))])
@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.txt", b"a\ncaf\xe9\n", r"a\.txt:2: not UTF-8"),
        ("a.txt", "a\n".encode("utf-16"), r"a\.txt:1: not UTF-8"),
        ("a.gz", b"no gzip", r"Can't read .*a\.gz"),
        ("a.gz", gzip.compress(b"abc" * 99)[:-9], r"Can't read .*a\.gz"),
        ("a.gz", gzip.compress(b"abc")[:-8] + b"\0" * 8, r"Can't read .*a\.gz"),
    ],
    ids=["latin1", "utf16", "no gzip", "truncated", "bad checksum"],
)
def test_text_files_broken(tmp_path, read, name, raw, message):
    path = tmp_path / name
    path.write_bytes(raw)
    with pytest.raises(ConversionError, match=message):
        read(path)


@pytest.mark.parametrize("name", ["missing.txt", "missing.gz", "."])
def test_text_files_missing(tmp_path, name):
    with pytest.raises(ConversionError, match="Can't read"):
        list(read_lines(tmp_path / name))
