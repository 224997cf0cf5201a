"""`python -m spacy treecrf report`: scores of several systems as one table."""

import json
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option, echo
from wasabi import msg, table

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

# Keys of `spacy evaluate --output` after "spans_KEY_", and what the columns are called.
COLUMNS = {
    "p": "P",
    "r": "R",
    "f": "F",
    "inner_f": "Inner F",
    "outer_f": "Outer F",
    "unlabelled_f": "Unlabelled F",
}
Row = tuple[str, ...]


class Layout(str, Enum):
    """How tables are written."""

    text = "text"
    markdown = "markdown"


def report_cli(
    inputs: Annotated[
        list[Path],
        Argument(
            metavar="METRICS...",
            help="JSON files of `spacy evaluate --output`; each is a row of its name",
        ),
    ],
    spans_key: Annotated[str, Option(help="Key of the scores")] = "nested",
    layout: Annotated[
        Layout, Option("--format", help="Layout of the tables")
    ] = Layout.text,
    per_label: Annotated[
        bool, Option("--per-label/--no-per-label", help="Add a table of F by label")
    ] = True,
) -> None:
    """Compare evaluations: precision, recall and F, by depth, without labels, by label.

    A cell is empty where a scorer does not give the figure (spancat's has no depths).
    """
    try:
        files = {name: read_scores(path) for name, path in name_rows(inputs).items()}
        scores = {
            row: values
            for name, found in files.items()
            for row, values in component_rows(name, found, spans_key).items()
        }
        for name, values in scores.items():
            if f"spans_{spans_key}_f" not in values:
                raise ConversionError(
                    Errors.T117.format(path=name, key=spans_key, keys=sorted(values))
                )
    except ConversionError as error:
        msg.fail("No report")
        echo(str(error))
        raise Exit(1) from error
    echo(format_table(*overall_table(scores, spans_key), layout))
    header, rows = label_table(scores, spans_key)
    if per_label and rows:
        echo(format_table(header, rows, layout))


def name_rows(paths: list[Path]) -> dict[str, Path]:
    """Name each file by its stem, or by its folder too where stems are equal."""
    stems = [path.stem for path in paths]
    return {
        path.stem if stems.count(path.stem) == 1 else str(path.with_suffix("")): path
        for path in paths
    }


def read_scores(path: Path) -> dict[str, Any]:
    """Read what `spacy evaluate --output` has written.

    path (Path): The JSON file.
    RETURNS (dict[str, Any]): Scores by name.
    RAISES (ConversionError): If it is missing or no such file.
    """
    try:
        scores = json.loads(path.read_text(encoding="utf8"))
    except OSError as error:
        raise ConversionError(
            Errors.T040.format(path=path, reason=error.strerror)
        ) from error
    except ValueError as error:
        raise ConversionError(
            Errors.T116.format(path=path, reason=str(error))
        ) from error
    if not isinstance(scores, dict):
        raise ConversionError(
            Errors.T116.format(path=path, reason="expected an object of scores")
        )
    return scores


def component_rows(
    name: str, scores: dict[str, Any], spans_key: str
) -> dict[str, dict[str, Any]]:
    """The scores of a file by row: of `spacy evaluate -P`, a row for each component.

    name (str): Name of the file's row.
    scores (dict[str, Any]): What the file holds.
    spans_key (str): Key of the scores.
    RETURNS (dict[str, dict[str, Any]]): The file itself where it has the scores; else
        the components that have them, named where there are several.
    """
    wanted = f"spans_{spans_key}_f"
    components = {
        component: values
        for component, values in scores.items()
        if isinstance(values, dict) and wanted in values
    }
    if wanted in scores or not components:
        return {name: scores}
    if len(components) == 1:
        return {name: next(iter(components.values()))}
    return {f"{name} ({part})": values for part, values in components.items()}


def overall_table(
    scores: dict[str, dict[str, Any]], spans_key: str
) -> tuple[Row, list[Row]]:
    """Header and rows: a row a system, in the order given."""
    rows = [
        (name, *(_percent(values.get(f"spans_{spans_key}_{c}")) for c in COLUMNS))
        for name, values in scores.items()
    ]
    return ("", *COLUMNS.values()), rows


def label_table(
    scores: dict[str, dict[str, Any]], spans_key: str
) -> tuple[Row, list[Row]]:
    """Header and rows: a row a label, with the F of each system."""
    by_system = {
        name: values.get(f"spans_{spans_key}_per_type") or {}
        for name, values in scores.items()
    }
    labels = sorted({label for values in by_system.values() for label in values})
    rows = [
        (
            label,
            *(
                _percent(values.get(label, {}).get("f"))
                for values in by_system.values()
            ),
        )
        for label in labels
    ]
    return ("F by label", *by_system), rows


def format_table(header: Row, rows: list[Row], layout: Layout) -> str:
    """Write a table, first column to the left, the figures to the right."""
    if layout is Layout.text:
        aligns = ("l", *"r" * (len(header) - 1))
        width = max(len(cell) for row in [header, *rows] for cell in row)
        return str(
            table(rows, header=header, divider=True, aligns=aligns, max_col=width)
        )
    lines = [header, ("---", *["---:"] * (len(header) - 1)), *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped) + "\n"


def _percent(score: float | None) -> str:
    return "" if score is None else f"{100 * score:.2f}"
