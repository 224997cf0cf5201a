"""`python -m spacy treecrf jackknife`: candidates of a whole training corpus.

Source: Collins (2002), section 4: a base model looks too good on what it was trained
on, so the candidates of each fold come from a model of the other folds.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from importlib.metadata import entry_points, version
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import spacy
from click import ClickException
from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import load_config, registry, resolve_dot_names
from thinc.api import Config
from typer import Argument, Context, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.corpus_reader import FastDocBin
from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.problems import ConversionError
from spacy_treecrf.rerank.candidates import f_score

from .jackknife_fold import (
    CONFIG,
    CORPUS,
    ORACLES,
    FoldReport,
    Plan,
    has_user_data,
    is_corpus,
    log_path,
    run_logged,
    save_plan,
)

# What the folds' reports count.
COUNTED = (
    *("segments", "candidates", "gold", "outside", "misaligned"),
    *("lost_marks", "unannotated"),
)
# Lines of a failed fold's log that are shown: most of a traceback.
LOG_LINES = 15


def jackknife_cli(
    ctx: Context,
    config_path: Annotated[
        Path, Argument(metavar="CONFIG", help="Training config of the base pipe")
    ],
    output: Annotated[
        Path, Argument(metavar="OUT.spacy", help="File to write the candidates to")
    ],
    folds: Annotated[int, Option(min=2, help="Parts to cut the corpus into")] = 5,
    n_best: Annotated[int, Option(min=2, help="Candidates a segment")] = 20,
    workers: Annotated[int, Option(min=1, help="Folds to train at the same time")] = 1,
    pipe: Annotated[
        str | None,
        Option(help="The pipe that writes candidates, where the config has several"),
    ] = None,
    resume: Annotated[
        bool, Option("--resume/--no-resume", help="Use the folds that are done")
    ] = True,
    code_path: Annotated[
        Path | None,
        Option("--code", "-c", help="Python file with additional code of the config"),
    ] = None,
    gpu_id: Annotated[
        int, Option("--gpu-id", "-g", help="GPU to train on, or -1 for the CPU")
    ] = -1,
) -> None:
    """Train a base pipe on all folds but one, decode that one, and so on for each.

    Writes the candidates of the whole training corpus with its gold, for `ner_reranker`
    to learn from. Folds are kept next to OUT.spacy, so that a stopped run goes on where
    it was. Further options override the config, e.g. --paths.train FILE.
    """
    import_code(code_path)
    try:
        config = read_config(config_path, ctx.args)
        nlp = spacy.blank(config.get("nlp", {}).get("lang") or "xx")
        name, key = base_pipe(config, nlp, pipe, config_path, n_best)
        docs = read_corpus(config, nlp, "train", config_path)
        dev_docs = read_corpus(config, nlp, "dev", config_path)
        documents = number_documents(docs)
        plan = Plan(
            train_corpus=corpus_name(config, "train"),
            pipe=name,
            spans_key=key,
            n_best=n_best,
            borders=cut_folds(documents, folds),
            documents=documents,
            sets_sentences=sets_sentences(config, nlp),
            code=None if code_path is None else str(code_path),
            gpu_id=gpu_id,
            **region_keys(config, nlp, name),
        )
        folder = prepare_folder(output, config, plan, docs, dev_docs)
        del docs, dev_docs
        run_folds(folder, folds, workers, resume, gpu_id)
        report = merge_folds(folder, folds, output)
    except ConversionError as error:
        msg.fail("No candidates")
        echo(str(error))
        raise Exit(1) from error
    print_report(report, plan, output)


def read_config(path: Path, arguments: list[str]) -> Config:
    """Read a config with its overrides; variables stay variables."""
    if not path.exists():
        raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    try:
        overrides = parse_config_overrides(arguments)
    except ClickException as error:
        raise ConversionError(error.format_message()) from error
    with show_validation_error(path):
        return load_config(path, overrides=overrides, interpolate=False)


def base_pipe(
    config: Config, nlp: Language, wanted: str | None, path: Path, n_best: int
) -> tuple[str, str]:
    """Name and spans key of the pipe that writes candidates.

    RAISES (ConversionError): If the config does not train exactly one such pipe, or it
        cannot write so many candidates.
    """
    config = config.interpolate()
    frozen = config.get("training", {}).get("frozen_components") or []
    keys, beams = {}, {}
    for name in config["nlp"]["pipeline"]:
        section = config["components"][name]
        factory = section.get("factory")
        if factory is None or name in frozen or not nlp.has_factory(factory):
            continue
        defaults = nlp.get_factory_meta(factory).default_config or {}
        if "n_best" in defaults and "spans_key" in defaults:
            keys[name] = section.get("spans_key", defaults["spans_key"])
            beams[name] = section.get("beam", defaults.get("beam"))
    found = [name for name in keys if wanted in (None, name)]
    if len(found) != 1:
        pipes = ", ".join(f"'{name}'" for name in keys) or "none"
        raise ConversionError(Errors.T093.format(path=path, pipes=pipes))
    beam = beams[found[0]]
    if beam is not None and n_best > beam:  # nothing would check it before decoding
        raise ConversionError(
            Errors.T002.format(
                setting="n_best",
                name=found[0],
                value=n_best,
                expected=f"at most its beam of {beam}",
            )
        )
    return found[0], str(keys[found[0]])


def region_keys(config: Config, nlp: Language, name: str) -> dict[str, str | None]:
    """The keys of a pipe's partial annotation, where it has such settings."""
    section = config.interpolate()["components"][name]
    defaults = nlp.get_factory_meta(section["factory"]).default_config or {}
    names = ("missing_spans_key", "incorrect_spans_key")
    return {key: section.get(key, defaults.get(key)) for key in names}


def sets_sentences(config: Config, nlp: Language) -> bool:
    """Whether a pipe of the pipeline sets sentence starts."""
    sections = config.interpolate()["components"].values()
    factories = [section.get("factory") for section in sections]
    return any(
        factory is None  # sourced: whatever it does, it does at run time too
        or (
            nlp.has_factory(factory)
            and "token.is_sent_start" in nlp.get_factory_meta(factory).assigns
        )
        for factory in factories
    )


def corpus_name(config: Config, split: str) -> str:
    """Dotted name of the training or development corpus."""
    training = config.get("training", {})
    return str(training.get(f"{split}_corpus", f"corpora.{split}"))


def read_corpus(config: Config, nlp: Language, split: str, path: Path) -> list[Doc]:
    """The Docs of a corpus as they are stored: not augmented, shuffled or cut.

    RAISES (ConversionError): If it can't be read.
    """
    dot_name = corpus_name(config, split)
    try:
        with show_validation_error(path):
            config = config.interpolate()
            section: Any = config
            for part in dot_name.split("."):
                section = section[part]
            if is_corpus(section):
                plain = {**section, "gold_preproc": False, "max_length": 0}
                plain["augmenter"] = None
                plain.pop("shuffle", None)
                reader = registry.resolve({"corpus": plain})["corpus"]
            else:
                (reader,) = resolve_dot_names(config, [dot_name])
        return [example.reference for example in reader(nlp)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConversionError(Errors.T056.format(path=path, reason=error)) from error


def number_documents(docs: Sequence[Doc]) -> list[int]:
    """The source document of each Doc: neighbours of one `user_data["doc"]` share it."""
    numbers: list[int] = []
    name = None
    for doc in docs:
        here = doc.user_data.get("doc")
        is_new = here is None or here != name
        numbers.append(numbers[-1] + is_new if numbers else 0)
        name = here
    return numbers


def cut_folds(documents: Sequence[int], folds: int) -> list[int]:
    """First Doc of each fold, and the number of Docs: folds of as many documents.

    RAISES (ConversionError): If there are fewer documents than folds.
    """
    n_documents = documents[-1] + 1 if documents else 0
    if n_documents < folds:
        raise ConversionError(Errors.T092.format(n_documents=n_documents, folds=folds))
    first = np.arange(folds + 1) * n_documents // folds
    return np.searchsorted(documents, first).tolist()


def prepare_folder(
    output: Path,
    config: Config,
    plan: Plan,
    docs: Sequence[Doc],
    dev_docs: Sequence[Doc],
) -> Path:
    """Make the work folder, whose name depends on all that decides about the folds.

    RETURNS (Path): `OUT.folds/KEY`, with the plan, the config and the corpus.
    """
    corpus = FastDocBin(docs=docs, store_user_data=has_user_data(docs)).to_bytes()
    shared = {k: v for k, v in asdict(plan).items() if k != "gpu_id"}
    parts = [
        config.interpolate().to_str().encode("utf8"),
        json.dumps(shared).encode("utf8"),
        corpus,
        FastDocBin(docs=dev_docs, store_user_data=has_user_data(dev_docs)).to_bytes(),
        Path(plan.code).read_bytes() if plan.code else b"",
        f"{version('spacy')} {version('spacy-treecrf')}".encode(),
    ]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    folder = output.with_suffix(".folds") / digest.hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CORPUS).write_bytes(corpus)
    config.to_disk(folder / CONFIG, interpolate=False)
    save_plan(folder, plan)
    return folder


def run_folds(
    folder: Path, folds: int, workers: int, resume: bool, gpu_id: int = -1
) -> None:
    """Run the folds that are not done yet, each as a process.

    RAISES (ConversionError): If one fails; the others are run all the same.
    """
    open_folds = []
    for number in range(folds):
        result = folder / f"fold-{number}.spacy"
        if resume and result.exists():
            msg.info(f"Fold {number + 1} of {folds}: done before")
        else:
            result.unlink(missing_ok=True)
            open_folds.append(number)
    if not open_folds:
        return
    msg.text(f"Work folder: {folder}")
    # Processes that use all cores each would stand in one another's way.
    cores = max(1, (os.cpu_count() or 1) // min(workers, len(open_folds)))
    n_threads = None if "OMP_NUM_THREADS" in os.environ else cores
    failed = []
    with ThreadPoolExecutor(workers) as pool:
        runs = {
            pool.submit(run_process, folder, number, gpu_id, n_threads): number
            for number in open_folds
        }
        for run in as_completed(runs):
            number = runs[run]
            if run.result() == 0:
                report = read_report(folder, number)
                msg.good(
                    f"Fold {number + 1} of {folds}: trained in {report.train_s:.0f} s, "
                    f"decoded in {report.decode_s:.0f} s, "
                    f"base F1 {100 * best_f(report, 1):.2f}"
                )
            else:
                failed.append(number)
                msg.fail(f"Fold {number + 1} of {folds}")
    if failed:
        logs = [log_path(folder, number) for number in sorted(failed)]
        for log in logs:
            lines = log.read_text(encoding="utf8", errors="replace").splitlines()
            echo("\n".join(lines[-LOG_LINES:]))
        names = ", ".join(
            f"fold {n + 1} ({log})" for n, log in zip(sorted(failed), logs, strict=True)
        )
        raise ConversionError(Errors.T094.format(failed=names))


def run_process(folder: Path, number: int, gpu_id: int, n_threads: int | None) -> int:
    """Run one fold in a process of its own.

    RETURNS (int): Its exit status, negative where a signal has killed it.
    """
    # A copy of a clean process that has the imports, which are most of a small fold.
    # This one is not copied: it may have threads. Nor can what CUDA has set up be, so
    # that a fold on a GPU begins anew.
    context: ForkServerContext | SpawnContext = get_context("spawn")
    if gpu_id < 0:
        context = get_context("forkserver")
        factories = {entry.module for entry in entry_points(group="spacy_factories")}
        context.set_forkserver_preload([run_logged.__module__, *sorted(factories)])
    process = context.Process(target=run_logged, args=(folder, number, n_threads))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def read_report(folder: Path, number: int) -> FoldReport:
    """What a finished fold has told."""
    text = (folder / f"fold-{number}.json").read_text(encoding="utf8")
    return FoldReport(**json.loads(text))


def merge_folds(folder: Path, folds: int, output: Path) -> FoldReport:
    """Put the folds together into one file, in the order of the corpus."""
    total = FoldReport(counts={str(n): [0, 0] for n in ORACLES})
    merged = None
    for number in range(folds):
        docbin = FastDocBin().from_disk(folder / f"fold-{number}.spacy")
        if merged is None:
            merged = docbin
        else:
            merged.merge(docbin)
        report = read_report(folder, number)
        for name in COUNTED:
            setattr(total, name, getattr(total, name) + getattr(report, name))
        total.train_s += report.train_s
        total.decode_s += report.decode_s
        total.first = total.first or report.first
        total.first_mark = total.first_mark or report.first_mark
        for n, counts in (total.counts or {}).items():
            more = (report.counts or {})[n]
            counts[:] = [a + b for a, b in zip(counts, more, strict=True)]
    assert merged is not None
    output.parent.mkdir(parents=True, exist_ok=True)
    merged.to_disk(output)
    return total


def best_f(report: FoldReport, n_best: int) -> float:
    """Span F of the best choice among the first candidates of each segment."""
    right, predicted = (report.counts or {})[str(n_best)]
    return f_score(right, predicted, report.gold)


def print_report(report: FoldReport, plan: Plan, output: Path) -> None:
    """Print what the candidates are worth."""
    figures = [
        ("Segments", f"{report.segments}"),
        ("Candidates a segment", f"{report.candidates / max(1, report.segments):.1f}"),
        ("Gold spans", f"{report.gold}"),
        ("Base F1", f"{100 * best_f(report, 1):.2f}"),
    ]
    figures += [
        (f"Oracle F1 ({n})", f"{100 * best_f(report, n):.2f}")
        for n in ORACLES
        if 1 < n <= plan.n_best
    ]
    msg.table(figures, aligns=("l", "r"))
    if report.outside:
        msg.warn(
            f"{report.outside} gold spans lie in no segment (they cross its border, or "
            "are white space): no candidate has them; they count as missed"
        )
    if report.misaligned:
        msg.warn(
            Warnings.T097.format(
                count=report.misaligned,
                total=report.gold,
                key=plan.spans_key,
                first=report.first,
            )
        )
    if report.lost_marks:
        msg.warn(Warnings.T147.format(count=report.lost_marks, first=report.first_mark))
    if report.unannotated:
        msg.warn(Warnings.T148.format(count=report.unannotated, key=plan.spans_key))
    msg.good(str(output))
