"""Sub-commands of `python -m spacy treecrf`."""

import typer

app = typer.Typer(help="Nested NER: convert and check data, report and visualise.", no_args_is_help=True)
