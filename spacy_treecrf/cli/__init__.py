"""Sub-commands of `python -m spacy treecrf`."""

import typer
from spacy.cli._util import app as spacy_app

from .convert import convert_cli
from .corpus import corpus_cli
from .debug_data import debug_data_cli
from .export import export_cli
from .jackknife import jackknife_cli
from .report import report_cli
from .tune import tune_cli
from .visualize import visualize_cli

app = typer.Typer(
    name="treecrf",
    help="Nested NER: convert and check data, report and visualise.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("convert")(convert_cli)
app.command("corpus")(corpus_cli)
app.command("export")(export_cli)
app.command("report")(report_cli)
app.command("tune")(tune_cli)
app.command("visualize")(visualize_cli)
# Unknown options are overrides of the config.
app.command("debug-data", context_settings={"ignore_unknown_options": True})(
    debug_data_cli
)
app.command(
    "jackknife",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)(jackknife_cli)


@app.callback()
def treecrf_cli() -> None:
    """Nested NER: convert and check data, report and visualise."""


# spaCy loads this module through the `spacy_cli` entry point and then runs its own app.
spacy_app.add_typer(app)
