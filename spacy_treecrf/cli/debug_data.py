"""`python -m spacy treecrf debug-data`: the span section of spaCy's `debug data`."""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import spacy
from click import ClickException
from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.tokens import Doc, DocBin
from spacy.util import load_config, resolve_dot_names
from spacy.vocab import Vocab
from thinc.api import Config
from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.inspection import Inspection, inspect_docs
from spacy_treecrf.data.records import N_NAMED, ConversionError
from spacy_treecrf.errors import Errors

from .span_tables import print_report

DEFAULT_KEY = "nested"


def debug_data_cli(
    inputs: Annotated[
        list[str],
        Argument(
            metavar="CONFIG | TRAIN [DEV]",
            help="A training config, with overrides such as --paths.train; or one or "
            "two .spacy files or folders of them",
            show_default=False,
        ),
    ],
    spans_key: Annotated[
        str | None,
        Option(help="Key of the span group; by default that of the config, or nested"),
    ] = None,
    code_path: Annotated[
        Path | None,
        Option("--code", "-c", help="Python file with additional code of the config"),
    ] = None,
    verbose: Annotated[
        bool, Option("--verbose", "-V", help="Name all cases, not the first few")
    ] = False,
) -> None:
    """Look at the spans of a corpus: labels, nesting, lengths, and what makes trouble.

    Exits with 1 if a pipe cannot be trained on them.
    """
    import_code(code_path)
    try:
        docs, config = open_corpora(inputs)
        key = spans_key or key_of(config)
        n_named = 10**9 if verbose else N_NAMED
        corpora = {name: inspect_docs(ds, key, n_named) for name, ds in docs.items()}
        check_usable(corpora["train"], key)
        print_report(corpora, key)
    except ConversionError as error:
        msg.fail("The data cannot be used")
        echo(str(error))
        raise Exit(1) from error
    if "dev" in corpora and not corpora["dev"].counts.spans:
        msg.warn(f"dev has no spans under '{key}': no score can choose the best model")
    if config is not None:
        check_score_weights(config, key)


def open_corpora(inputs: list[str]) -> tuple[dict[str, Iterable[Doc]], Config | None]:
    """The Docs that the arguments name.

    inputs (list[str]): A config and its overrides, or paths of .spacy files.
    RETURNS (tuple[dict[str, Iterable[Doc]], Config | None]): Docs by corpus, "train"
        and perhaps "dev"; the config if there is one.
    RAISES (ConversionError): If one cannot be read.
    """
    n_paths = next((i for i, a in enumerate(inputs) if a.startswith("-")), len(inputs))
    paths, overrides = [Path(p) for p in inputs[:n_paths]], inputs[n_paths:]
    if len(paths) == 1 and paths[0].suffix == ".cfg":
        try:
            return open_config(paths[0], parse_config_overrides(overrides))
        except ClickException as error:
            raise ConversionError(error.format_message()) from error
    if overrides or len(paths) > 2:
        raise ConversionError(Errors.T058.format(received=" ".join(inputs)))
    vocab = spacy.blank("xx").vocab
    names = ("train", "dev")
    return {n: read_docs(p, vocab) for n, p in zip(names, paths, strict=False)}, None


def open_config(
    path: Path, overrides: dict[str, Any]
) -> tuple[dict[str, Iterable[Doc]], Config]:
    """The corpora that a training config names, read as training reads them."""
    if not path.exists():
        raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    with show_validation_error(path):
        config = load_config(path, overrides=overrides, interpolate=True)
    nlp = spacy.blank(config.get("nlp", {}).get("lang") or "xx")
    training = config.get("training", {})
    names = ("train", "dev")
    dot_names = [training.get(f"{name}_corpus", f"corpora.{name}") for name in names]
    try:
        with show_validation_error(path):
            readers = resolve_dot_names(config, dot_names)
        # Not the predicted Doc: the span groups are in the reference.
        return {
            name: [example.reference for example in reader(nlp)]
            for name, reader in zip(names, readers, strict=True)
        }, config
    except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise ConversionError(Errors.T056.format(path=path, reason=error)) from error


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read a .spacy file, or all of a folder, empty Docs included."""
    paths = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    if not paths:
        raise ConversionError(Errors.T046.format(path=path, suffixes=".spacy"))
    for file in paths:
        try:
            docbin = DocBin().from_disk(file)
        except OSError as error:
            raise ConversionError(
                Errors.T040.format(path=file, reason=error.strerror)
            ) from error
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise ConversionError(
                Errors.T055.format(path=file, reason=error)
            ) from error
        yield from docbin.get_docs(vocab)


def key_of(config: Config | None) -> str:
    """The spans key of the first component that has one."""
    components = config.get("components", {}) if config is not None else {}
    for component in components.values():
        if "spans_key" in component:
            return str(component["spans_key"])
    return DEFAULT_KEY


def check_usable(train: Inspection, key: str) -> None:
    """Raise if there is nothing to learn from."""
    if not train.counts.spans:
        keys = ", ".join(sorted(train.keys)) or "none"
        raise ConversionError(
            Errors.T057.format(key=key, n_docs=train.counts.docs, keys=keys)
        )


def check_score_weights(config: Config, key: str) -> None:
    """Warn if no score of the key chooses the best model."""
    weights = config.get("training", {}).get("score_weights", {})
    if weights and not any(
        w and s.startswith(f"spans_{key}_") for s, w in weights.items()
    ):
        msg.warn(
            f"No weight in [training.score_weights] is for a score of '{key}': set "
            f"spans_{key}_f = 1.0"
        )
