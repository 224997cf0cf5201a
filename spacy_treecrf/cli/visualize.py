"""`python -m spacy treecrf visualize`: the nested entities of a text."""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Annotated

import spacy
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc
from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.formats.bracketed import format_line
from spacy_treecrf.data.records import LabelledSpan
from spacy_treecrf.data.statistics import crossing_pairs, nesting_depths
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

from .documents import is_data, load_pipeline, read_gold, without_annotation

# Columns of a table are padded to their longest cell, but to no more than this.
MAX_WIDTH = 60
# Colours for labels that displaCy has none for; light, since black text stands beside.
PALETTE = (
    *("#8fd3e8", "#f6c177", "#b8e08c", "#f2a7b5", "#c9b6f2", "#f4e285"),
    *("#9fd8c4", "#e7b8e0", "#d6c7ae", "#a9c1f0"),
)


def visualize_cli(
    model: Annotated[
        str, Argument(metavar="MODEL", help="Folder or package of a trained pipeline")
    ],
    text: Annotated[
        str,
        Argument(
            metavar="TEXT",
            help="A text, a .spacy or .jsonl file, or a UTF-8 file with one text a line",
        ),
    ],
    html: Annotated[
        Path | None, Option(help="Also write displaCy's page of the spans here")
    ] = None,
    spans_key: Annotated[str, Option(help="Key of the span group")] = "nested",
    gpu_id: Annotated[
        int, Option("--gpu-id", "-g", help="GPU to run on, or -1 for the CPU")
    ] = -1,
) -> None:
    """Show the nested entities that a pipeline finds: in brackets and as a table."""
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)
    try:
        nlp = load_pipeline(model)
        docs = list(nlp.pipe(read_input(text, nlp, spans_key)))
        check_key(docs, spans_key)
    except ConversionError as error:
        msg.fail("Nothing to show")
        echo(str(error))
        raise Exit(1) from error
    for doc in docs:
        echo(show_brackets(doc, spans_key))
        print_table(doc, spans_key)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(render_page(docs, spans_key), encoding="utf8")
        msg.good(str(html))


def read_input(text: str, nlp: Language, spans_key: str) -> Iterator[Doc]:
    """The texts to annotate.

    text (str): A text, or the name of a .spacy, JSON or text file.
    nlp (Language): The pipeline, whose tokenizer splits texts.
    spans_key (str): Key of the span group.
    YIELDS (Doc): Docs without annotation.
    RAISES (ConversionError): If a file can't be read.
    """
    try:
        is_file = Path(text).is_file()
    except (OSError, ValueError):
        # Too long for a file name, or not possible as one.
        is_file = False
    if not is_file and is_data(text) and len(text.split()) == 1:
        raise ConversionError(Errors.T040.format(path=text, reason="no such file"))
    if not is_file:
        yield nlp.make_doc(text)
        return
    for doc in read_gold(Path(text), nlp, spans_key):
        yield without_annotation(doc, nlp)


def check_key(docs: list[Doc], spans_key: str) -> None:
    """Raise if there is no text, or no pipe that writes the group."""
    if not docs:
        raise ConversionError(Errors.T049.format(path="TEXT"))
    if not any(spans_key in doc.spans for doc in docs):
        keys = sorted({key for doc in docs for key in doc.spans})
        raise ConversionError(Errors.T115.format(key=spans_key, keys=keys or "none"))


def show_brackets(doc: Doc, spans_key: str) -> str:
    """A text with its entities in inline brackets.

    doc (Doc): The Doc.
    spans_key (str): Key of the span group.
    RETURNS (str): The tokens that are not white space, between single spaces. Of spans
        that cross, which brackets cannot show, the one that starts later is left out.
    """
    spans = spans_of(doc, spans_key)
    crossing = {right for _, right in crossing_pairs(span[:2] for span in spans)}
    # White space is no token in brackets: number the others anew.
    numbers: list[int] = []
    kept: list[str] = []
    for token in doc:
        numbers.append(len(kept))
        if not token.is_space:
            kept.append(_without_spaces(token.text))
    numbers.append(len(kept))
    shown = [
        (numbers[start], numbers[end], _without_spaces(label))
        for start, end, label in spans
        if (start, end) not in crossing and numbers[start] < numbers[end]
    ]
    return format_line(kept, shown)


def _without_spaces(name: str) -> str:
    # In brackets a space ends a label or token.
    return "_".join(name.split())


def print_table(doc: Doc, spans_key: str) -> None:
    """Print a row for each entity: text, label, probability, depth."""
    spans = spans_of(doc, spans_key)
    if not spans:
        return
    depths = nesting_depths(span[:2] for span in spans)
    probabilities = scores_of(doc, spans_key)
    rows = []
    for span in spans:
        start, end, label = span
        depth = depths[start, end]
        text = "  " * (depth - 1) + " ".join(doc[start:end].text.split())
        probability = probabilities.get(span)
        shown = "-" if probability is None else f"{probability:.3f}"
        rows.append((text, label, shown, str(depth)))
    header = ("Text", "Label", "Probability", "Depth")
    aligns = ("l", "l", "r", "r")
    msg.table(rows, header=header, divider=True, aligns=aligns, max_col=MAX_WIDTH)


def spans_of(doc: Doc, spans_key: str) -> list[LabelledSpan]:
    """The spans of a group in text order, outer before inner; none without group."""
    spans = doc.spans.get(spans_key, ())
    found = {(span.start, span.end, span.label_) for span in spans}
    return sorted(found, key=lambda s: (s[0], -s[1], s[2]))


def scores_of(doc: Doc, spans_key: str) -> dict[LabelledSpan, float]:
    """The probability of each span, of pipes that give them."""
    group = doc.spans[spans_key]
    scores = group.attrs.get("scores", ())
    if len(scores) != len(group):
        return {}
    return {
        (span.start, span.end, span.label_): float(score)
        for span, score in zip(group, scores, strict=True)
    }


def render_page(docs: Iterable[Doc], spans_key: str) -> str:
    """The page that displaCy makes of the spans.

    docs (Iterable[Doc]): The Docs.
    spans_key (str): Key of the span group.
    RETURNS (str): HTML; each span's label stands once, at its start.
    """
    docs = list(docs)
    labels = sorted({span[2] for doc in docs for span in spans_of(doc, spans_key)})
    parsed = [
        {
            "tokens": [token.text for token in doc],
            # displaCy escapes the text alone.
            "spans": [
                {"start_token": start, "end_token": end, "label": escape(label)}
                for start, end, label in spans_of(doc, spans_key)
            ],
        }
        for doc in docs
    ]
    # By number, so that the labels of one corpus differ as far as possible.
    colors = {
        escape(label): PALETTE[i % len(PALETTE)] for i, label in enumerate(labels)
    }
    options = {"colors": colors}
    return str(
        displacy.render(
            parsed, style="span", manual=True, page=True, jupyter=False, options=options
        )
    )
