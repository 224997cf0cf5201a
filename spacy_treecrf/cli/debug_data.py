"""`python -m spacy treecrf debug-data`: the span section of spaCy's `debug data`."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from click import ClickException
from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import load_config, resolve_dot_names
from spacy.vocab import Vocab
from thinc.api import Config
from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.inspection import Inspection, inspect_docs
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import N_NAMED, ConversionError

from .convert import make_language
from .documents import read_docbin
from .span_tables import print_report
from .training_check import (
    Finding,
    check_training,
    examples_of,
    pipes_to_check,
    sentence_setters,
    tokenizing_pipeline,
)

DEFAULT_KEY = "nested"
Corpora = dict[str, list[Example]]


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
    lang: Annotated[
        str,
        Option(help="Language whose tokenizer splits .spacy files; a config names its"),
    ] = "en",
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
        examples, config = open_corpora(inputs, lang)
        key = spans_key or key_of(config)
        n_named = 10**9 if verbose else N_NAMED
        corpora = {
            name: inspect_docs((e.reference for e in given), key, n_named)
            for name, given in examples.items()
        }
        check_usable(corpora["train"], key)
        findings = find_trouble(examples, config, key, n_named)
        print_report(corpora, key, findings)
    except ConversionError as error:
        msg.fail("The data cannot be used")
        echo(str(error))
        raise Exit(1) from error
    if "dev" in corpora and not corpora["dev"].counts.spans:
        msg.warn(f"dev has no spans under '{key}': no score can choose the best model")
    if config is not None:
        check_score_weights(config, key)


def find_trouble(
    corpora: Corpora, config: Config | None, key: str, n_named: int
) -> dict[str, list[Finding]]:
    """What training on each corpus would warn of."""
    setters, untrained = (None, []) if config is None else sentence_setters(config)
    if untrained:
        names = ", ".join(f"'{name}'" for name in untrained)
        msg.warn(
            f"{names} will set sentence boundaries once it has been trained: what is said "
            "of them below is how training begins"
        )
    pipes = pipes_to_check(config, key)
    return {
        name: check_training(examples, pipes, setters, n_named)
        for name, examples in corpora.items()
    }


def open_corpora(inputs: list[str], lang: str) -> tuple[Corpora, Config | None]:
    """The examples that the arguments name.

    inputs (list[str]): A config and its overrides, or paths of .spacy files.
    lang (str): Language of the tokenizer, where there is no config.
    RETURNS (tuple[dict[str, list[Example]], Config | None]): Examples by corpus, "train"
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
    nlp = make_language(lang)
    names = ("train", "dev")
    return {
        name: list(examples_of(read_docs(path, nlp.vocab), nlp))
        for name, path in zip(names, paths, strict=False)
    }, None


def open_config(path: Path, overrides: dict[str, Any]) -> tuple[Corpora, Config]:
    """The corpora that a training config names, read as training reads them."""
    if not path.exists():
        raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    with show_validation_error(path):
        config = load_config(path, overrides=overrides, interpolate=True)
    training = config.get("training", {})
    names = ("train", "dev")
    dot_names = [training.get(f"{name}_corpus", f"corpora.{name}") for name in names]
    try:
        with show_validation_error(path):
            readers = resolve_dot_names(config, dot_names)
        nlp = tokenizing_pipeline(config)
        return {
            name: list(reader(nlp)) for name, reader in zip(names, readers, strict=True)
        }, config
    except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
        raise ConversionError(Errors.T056.format(path=path, reason=error)) from error


def read_docs(path: Path, vocab: Vocab) -> Iterator[Doc]:
    """Read a .spacy file, or all of a folder, empty Docs included."""
    paths = sorted(path.rglob("*.spacy")) if path.is_dir() else [path]
    if not paths:
        raise ConversionError(Errors.T046.format(path=path, suffixes=".spacy"))
    for file in paths:
        yield from read_docbin(file, vocab)


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
