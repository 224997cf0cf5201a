"""MUC's mark-up: names as ENAMEX, TIMEX and NUMEX elements inside the text.

    <DOC><DOCNO> 1 </DOCNO><TXT>
    <s><ENAMEX TYPE="PERSON">Ann Lee</ENAMEX> left.</s>
    </TXT></DOC>

A label is the element and its TYPE, as in ENAMEX/PERSON, which is the form that the MUC
scorer takes apart.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spacy_treecrf.problems import Problems

from ..alignment import Aligner, AlignmentMode, Tokenize, token_bounds
from ..records import LabelledSpan, Sentence, checked_records, is_encodable, stem
from ..text_files import read_text

ELEMENTS = ("ENAMEX", "TIMEX", "NUMEX")
# What holds the document's name or counts, and no text.
SKIPPED = frozenset(("DOCID", "DOCNO", "STORYID", "NWORDS"))
NAMES = frozenset(("DOCID", "DOCNO", "STORYID"))
TOKENS = re.compile(
    r"<!--.*?-->|<[!?][^>]*>|<(?P<close>/?)(?P<tag>[A-Za-z][\w.-]*)(?P<rest>[^<>]*)>"
    r"|(?P<text>[^<]+)|(?P<stray><)",
    re.DOTALL,
)
STRAY = "brackets '<' that open no tag: read as text"
BAD_ELEMENT = "elements without TYPE, or not opened and closed in one text: left out"
BAD_TEXT = "texts that are not UTF-8: left out"
TYPE = re.compile(
    r"""\bTYPE\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)


@dataclass
class _Chunk:
    """The text between two structural tags, and the names in it."""

    line: int
    pieces: list[str] = field(default_factory=list)
    length: int = 0
    names: list[tuple[int, int, str]] = field(default_factory=list)
    # Label, start and line of the elements that are not closed yet.
    opened: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add text, each run of white space as one space, none at the start."""
        text = re.sub(r"\s+", " ", html.unescape(text))
        if not self.length or self.pieces[-1].endswith(" "):
            text = text.removeprefix(" ")
        if text:
            self.pieces.append(text)
            self.length += len(text)


def read_sgml(
    path: Path,
    problems: Problems,
    tokenize: Tokenize,
    mode: AlignmentMode = "strict",
) -> Iterator[Sentence]:
    """Read a file of one or more documents.

    path (Path): The file.
    problems (Problems): Takes names that do not begin and end at token borders, and
        mark-up that is ill-formed.
    tokenize (Tokenize): Splits the text.
    mode (AlignmentMode): What becomes of such names.
    YIELDS (Sentence): One record for each text between two tags other than the three
        elements: a sentence where they are marked, else a paragraph.
    RAISES (ConversionError): If the file can't be read; or if an element is not closed,
        closed twice or without TYPE, and `problems` is strict.

    Deviates: MIN, ALT and STATUS="OPT", which the official scorer honours, are not read.
    """
    number, name, count = 0, stem(path), 0
    for tag, chunk in _read_chunks(path, problems):
        if tag == "DOC":
            number, count = number + 1, 0
            name = f"{stem(path)}-{number}"
        text = "".join(chunk.pieces).rstrip()
        if not text:
            continue
        if tag in SKIPPED:
            name = text if tag in NAMES else name
            continue
        where = f"{path}:{chunk.line}"
        if not is_encodable(text):
            detail = f"{where}: not UTF-8: {text[:60]!r}"
            problems.repair(BAD_TEXT, detail, lost_record=True)
            continue
        words, spaces = tokenize(text)
        sentence = Sentence(
            f"{name}-{count}", words, [], name, spaces, own_tokens=False
        )
        count += 1
        aligner = Aligner(text, token_bounds(words, spaces), problems, mode)
        for start, end, label in chunk.names:
            found = aligner.align(*_without_space(text, start, end), label, where)
            if found is not None:
                sentence.spans.append(found)
        yield from checked_records(sentence, where, problems)


def _without_space(text: str, start: int, end: int) -> tuple[int, int]:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _read_chunks(path: Path, problems: Problems) -> Iterator[tuple[str, _Chunk]]:
    """Each text and the last structural tag before it, in upper case."""
    tag, line, chunk = "", 1, _Chunk(1)
    for match in TOKENS.finditer(read_text(path, keep_bytes=True)):
        where = f"{path}:{line}"
        if match["stray"]:
            problems.repair(
                STRAY, f"{where}: '<' that opens no tag: write &lt; for the character"
            )
            # Only what `html.unescape` makes of it is text.
            chunk.add("&lt;")
        if match["text"]:
            if not chunk.length:
                chunk.line = line
            chunk.add(match["text"])
        elif match["tag"]:
            name = match["tag"].upper()
            if name in ELEMENTS:
                _open_or_close(chunk, match, name, where, line, problems)
            else:
                _require_closed(chunk, path, problems)
                yield tag, chunk
                # Behind a closing tag the text belongs to the element around it.
                tag, chunk = "" if match["close"] else name, _Chunk(line)
        line += match.group().count("\n")
    _require_closed(chunk, path, problems)
    yield tag, chunk


def _open_or_close(
    chunk: _Chunk,
    match: re.Match[str],
    name: str,
    where: str,
    line: int,
    problems: Problems,
) -> None:
    if not match["close"]:
        found = TYPE.search(match["rest"])
        kind = html.unescape("".join(filter(None, found.groups()))) if found else ""
        if not kind:
            problems.repair(BAD_ELEMENT, f"{where}: {name} without TYPE")
        # One without TYPE is kept for the tag that closes it.
        chunk.opened.append((f"{name}/{kind}", chunk.length, line))
        return
    if not chunk.opened or not chunk.opened[-1][0].startswith(f"{name}/"):
        problems.repair(BAD_ELEMENT, f"{where}: </{name}> that closes nothing")
        return
    label, start, _ = chunk.opened.pop()
    if not label.endswith("/"):
        chunk.names.append((start, chunk.length, label))


def _require_closed(chunk: _Chunk, path: Path, problems: Problems) -> None:
    for label, _, line in chunk.opened:
        detail = f"{path}:{line}: {label} is not closed before the next tag"
        problems.repair(BAD_ELEMENT, detail)


def format_sgml(
    tokens: Sequence[str],
    spans: Iterable[LabelledSpan],
    spaces: Sequence[bool] | None = None,
) -> str:
    """Write one sentence with its names marked up.

    tokens (Sequence[str]): The tokens.
    spans (Iterable[LabelledSpan]): Names; of a label without element the element is
        ENAMEX.
    spaces (Optional[Sequence[bool]]): Whether a space follows each token, by default
        everywhere.
    RETURNS (str): The mark-up, without the tags of the sentence itself.
    RAISES (ValueError): If two spans cross, or a label has an element that is not one of
        the three.
    """
    spaces = [True] * len(tokens) if spaces is None else spaces
    opening: list[list[str]] = [[] for _ in tokens]
    closing: list[list[str]] = [[] for _ in tokens]
    stack: list[tuple[int, str]] = []
    for start, end, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack and stack[-1][0] < end:
            raise ValueError(
                f"expected spans that do not cross, received {label!r} over "
                f"{' '.join(tokens[start:end])!r} and a name that ends inside it"
            )
        element, kind = label.split("/", 1) if "/" in label else (ELEMENTS[0], label)
        if element not in ELEMENTS:
            raise ValueError(
                f"expected a label of one of the elements {ELEMENTS}, received {label!r}"
            )
        stack.append((end, element))
        opening[start].append(f'<{element} TYPE="{html.escape(kind)}">')
        closing[end - 1].insert(0, f"</{element}>")
    pieces = []
    for at, token in enumerate(tokens):
        pieces += [*opening[at], html.escape(token, quote=False), *closing[at]]
        if spaces[at] and at + 1 < len(tokens):
            pieces.append(" ")
    return "".join(pieces)


def write_sgml(sentences: Iterable[Sentence], path: Path) -> None:
    """Write sentences as documents with MUC's mark-up.

    sentences (Iterable[Sentence]): The records; successive ones of one `doc` are one
        document.
    path (Path): The file to write.
    RAISES (ValueError): If spans cross, or a label has an unknown element.
    """
    lines: list[str] = []
    current: str | None = None
    for sentence in sentences:
        name = sentence.doc or sentence.id
        if name != current:
            lines += ["</TXT></DOC>"] if current is not None else []
            lines += [f"<DOC><DOCNO> {html.escape(name)} </DOCNO><TXT>"]
            current = name
        text = format_sgml(sentence.tokens, sentence.spans, sentence.spaces)
        lines.append(f"<s> {text} </s>")
    lines += ["</TXT></DOC>"] if current is not None else []
    path.write_text("\n".join([*lines, ""]), encoding="utf8")
