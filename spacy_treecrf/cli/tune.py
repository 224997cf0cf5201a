"""`python -m spacy treecrf tune`: choose decoder and threshold on development data."""

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Exit, Option, echo
from wasabi import msg

from spacy_treecrf.data.records import LabelledSpan
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from spacy.training import Example

    from spacy_treecrf.pipeline.docs.sweep import Decoding

# Docs that are decoded at a time: the potentials of all their spans are held.
BATCH_SIZE = 64
# Scores closer than this are equal: less than one span of any corpus.
SAME = 1e-9


class Metric(str, Enum):
    """What is to be as high as possible."""

    f = "f"
    precision = "precision"
    recall = "recall"


class Result(NamedTuple):
    """Settings and what they give.

    decoding (Decoding): The settings. p, r, f (float): Scores in [0, 1].
    """

    decoding: "Decoding"
    p: float
    r: float
    f: float


def tune_cli(
    model: Annotated[
        str, Argument(metavar="MODEL", help="Folder or package of a trained pipeline")
    ],
    dev: Annotated[
        Path, Argument(metavar="DEV.spacy", help="Development data with gold spans")
    ],
    output: Annotated[
        Path, Argument(metavar="OUTPUT", help="Folder for the copy with new settings")
    ],
    metric: Annotated[
        Metric, Option(help="What is to be as high as possible")
    ] = Metric.f,
    at_recall: Annotated[
        float | None,
        Option(min=0.0, max=1.0, help="Least recall, for `--metric precision`"),
    ] = None,
    at_precision: Annotated[
        float | None,
        Option(min=0.0, max=1.0, help="Least precision, for `--metric recall`"),
    ] = None,
    pipe: Annotated[
        str | None, Option(help="The pipe to tune, where the pipeline has several")
    ] = None,
    step: Annotated[
        float, Option(min=0.001, max=0.5, help="Distance of the thresholds tried")
    ] = 0.05,
    code_path: Annotated[
        Path | None,
        Option("--code", "-c", help="Python file with additional code of the pipeline"),
    ] = None,
    gpu_id: Annotated[
        int, Option("--gpu-id", "-g", help="GPU to run on, or -1 for the CPU")
    ] = -1,
) -> None:
    """Choose decoder and threshold on development data, and write a copy with them.

    Both decoders of `treecrf` are tried with all thresholds, and the thresholds of
    `spancat`; the encoder runs once. Scores are those of `spacy evaluate`.
    """
    from spacy.cli._util import import_code, setup_gpu

    from .visualize import load_pipeline

    import_code(code_path)
    setup_gpu(gpu_id, silent=True)
    try:
        check_metric(metric, at_recall, at_precision)
        nlp = load_pipeline(model)
        check_output(nlp, output)
        name = tuned_pipe(nlp, pipe)
        decodings = decodings_of(nlp.get_pipe(name), step)
        examples = read_examples(dev, nlp)
        results = score_all(nlp, name, examples, decodings, dev)
        best = choose(results, metric, at_recall, at_precision)
    except ConversionError as error:
        msg.fail("Nothing tuned")
        echo(str(error))
        raise Exit(1) from error
    print_results(results, best)
    set_decoding(nlp, name, best.decoding)
    nlp.to_disk(output)
    msg.good(f"Pipe '{name}' with {describe(best.decoding)}: {output}")


def check_metric(
    metric: Metric, at_recall: float | None, at_precision: float | None
) -> None:
    """Raise if the options contradict one another, or would choose an extreme."""
    expected = {
        Metric.f: (None, None),
        Metric.precision: (at_recall, None),
        Metric.recall: (None, at_precision),
    }[metric]
    is_bounded = metric is Metric.f or any(bound is not None for bound in expected)
    if expected != (at_recall, at_precision) or not is_bounded:
        raise ConversionError(Errors.T161.format(metric=metric.value))


def check_output(nlp: "Language", output: Path) -> None:
    """Raise if the copy would overwrite the pipeline itself, or a file."""
    if output.is_file():
        raise ConversionError(Errors.T047.format(path=output))
    source = getattr(nlp, "_path", None)
    if source is not None and output.resolve() == Path(source).resolve():
        raise ConversionError(Errors.T162.format(output=output))


def tuned_pipe(nlp: "Language", wanted: str | None) -> str:
    """Name of the pipe to tune; RAISES (ConversionError): If it isn't exactly one."""
    found = [
        name
        for name in nlp.pipe_names
        if nlp.get_pipe_meta(name).factory in ("treecrf", "spancat")
    ]
    chosen = [name for name in found if wanted in (None, name)]
    if len(chosen) != 1:
        raise ConversionError(
            Errors.T163.format(
                wanted="" if wanted is None else f" named '{wanted}'",
                found=", ".join(f"'{name}'" for name in found) or "none",
                pipes=", ".join(nlp.pipe_names) or "none",
            )
        )
    return chosen[0]


def decodings_of(pipe: Any, step: float) -> list["Decoding"]:
    """The settings to try, those that the pipe has first.

    pipe (Any): A `treecrf` or `spancat`.
    step (float): Distance of the thresholds.
    RETURNS (list[Decoding]): Without repetition.
    """
    from spacy_treecrf.pipeline.docs.sweep import Decoding

    # Thresholds of 0 and 1 keep everything and nothing.
    grid = [round(step * i, 6) for i in range(1, int(1 / step) + 1)]
    grid = [threshold for threshold in grid if threshold < 1]
    decoder = pipe.cfg.get("decoder")
    now = Decoding(decoder, pipe.cfg["threshold"])
    if decoder is None:
        tried = [Decoding(None, threshold) for threshold in grid]
    elif pipe.cfg["objective"] == "local":  # one decoder, whatever the setting says
        tried = [Decoding(decoder, threshold) for threshold in (None, *grid)]
    else:
        tried = [Decoding("cky", threshold) for threshold in (None, *grid)]
        tried += [Decoding("mbr", threshold) for threshold in grid]
    return list(dict.fromkeys([now, *tried]))


def read_examples(path: Path, nlp: "Language") -> list["Example"]:
    """Read development data as `spacy evaluate` does.

    RAISES (ConversionError): If it can't be read, or is empty.
    """
    import zlib

    from spacy_treecrf.data.corpus_reader import FastCorpus

    if not path.exists():
        raise ConversionError(Errors.T040.format(path=path, reason="no such file"))
    try:
        examples = list(FastCorpus(path)(nlp))
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise ConversionError(Errors.T055.format(path=path, reason=error)) from error
    if not examples:
        raise ConversionError(Errors.T049.format(path=path))
    return examples


def score_all(
    nlp: "Language",
    name: str,
    examples: Sequence["Example"],
    decodings: Sequence["Decoding"],
    path: Path,
) -> list[Result]:
    """Score each of the settings.

    nlp (Language): The pipeline. name (str): Its pipe.
    examples (Sequence[Example]): Development data.
    decodings (Sequence[Decoding]): The settings.
    path (Path): Where the data are from, for messages.
    RETURNS (list[Result]): One for each setting.
    RAISES (ConversionError): If the pipe's scorer gives no scores of its spans.
    """
    from spacy.tokens import Span, SpanGroup
    from spacy.training import Example
    from spacy.util import minibatch

    pipe: Any = nlp.get_pipe(name)
    key = pipe.cfg["spans_key"]
    later = nlp.pipe_names[nlp.pipe_names.index(name) :]
    docs: list[Doc] = []
    found: list[list[list[LabelledSpan]]] = [[] for _ in decodings]
    with nlp.select_pipes(disable=later):
        stream = nlp.pipe(example.predicted for example in examples)
        for batch in minibatch(stream, BATCH_SIZE):
            for spans, more in zip(
                found, spans_of_all(pipe, key, batch, decodings), strict=True
            ):
                spans.extend(more)
            for doc in batch:
                drop_vectors(doc)
            docs.extend(batch)
    pairs = [Example(d, e.reference) for d, e in zip(docs, examples, strict=True)]
    results = []
    for decoding, by_doc in zip(decodings, found, strict=True):
        for doc, labelled in zip(docs, by_doc, strict=True):
            made = [
                Span(doc, start, end, label=label) for start, end, label in labelled
            ]
            doc.spans[key] = SpanGroup(doc, name=key, spans=made)
        scores = pipe.score(pairs)
        figures = [scores.get(f"spans_{key}_{figure}") for figure in ("p", "r", "f")]
        if any(figure is None for figure in figures):
            raise ConversionError(Errors.T164.format(path=path, key=key, name=name))
        results.append(Result(decoding, *figures))
    return results


def spans_of_all(
    pipe: Any, key: str, docs: list["Doc"], decodings: Sequence["Decoding"]
) -> list[list[list[LabelledSpan]]]:
    """The spans that a pipe finds in each Doc of a batch, for each of the settings."""
    from spacy_treecrf.pipeline.docs.sweep import sweep

    if "decoder" in pipe.cfg:
        found = sweep(pipe, docs, decodings)
        return [[spans for spans, _ in one.by_doc()] for one in found]
    # The span categorizer applies its threshold when it writes.
    predictions, before = pipe.predict(docs), pipe.cfg["threshold"]
    result = []
    for decoding in decodings:
        pipe.cfg["threshold"] = decoding.threshold
        pipe.set_annotations(docs, predictions)
        result.append(
            [[(s.start, s.end, s.label_) for s in doc.spans[key]] for doc in docs]
        )
    pipe.cfg["threshold"] = before
    return result


def drop_vectors(doc: "Doc") -> None:
    """Let go of what an encoder has written: of a transformer some 10 KB a token."""
    import numpy as np

    doc.tensor = np.zeros((0,), dtype="float32")
    user_data: dict[Any, Any] = doc.user_data
    user_data.pop(("._.", "trf_data", None, None), None)


def choose(
    results: Sequence[Result],
    metric: Metric,
    at_recall: float | None = None,
    at_precision: float | None = None,
) -> Result:
    """The best result; of equal ones that with the higher F, then the first.

    RAISES (ConversionError): If none has the recall or precision asked for.
    """
    wanted = {Metric.f: "f", Metric.precision: "p", Metric.recall: "r"}[metric]
    fitting = [
        result
        for result in results
        if result.r >= (at_recall or 0.0) and result.p >= (at_precision or 0.0)
    ]
    if not fitting:
        figure, bound = (
            ("recall", at_recall) if at_recall else ("precision", at_precision)
        )
        most = max(result.r if at_recall else result.p for result in results)
        raise ConversionError(Errors.T165.format(figure=figure, bound=bound, most=most))
    best = fitting[0]
    for result in fitting[1:]:
        gain = getattr(result, wanted) - getattr(best, wanted)
        if gain > SAME or (gain > -SAME and result.f > best.f + SAME):
            best = result
    return best


def print_results(results: Sequence[Result], best: Result) -> None:
    """Print a row for each of the settings; the first are those of the pipe."""
    rows = []
    for number, result in enumerate(results):
        marks = ["now"] if number == 0 else []
        marks += ["best"] if result is best else []
        rows.append(
            (
                result.decoding.decoder or "-",
                "null" if result.decoding.threshold is None else result.decoding[1],
                *(f"{100 * figure:.2f}" for figure in result[1:]),
                ", ".join(marks),
            )
        )
    header = ("Decoder", "Threshold", "P", "R", "F", "")
    msg.table(rows, header=header, divider=True, aligns=("l", *"rrrr", "l"))


def describe(decoding: "Decoding") -> str:
    """The settings in words."""
    threshold = "null" if decoding.threshold is None else decoding.threshold
    decoder = "" if decoding.decoder is None else f'decoder = "{decoding.decoder}", '
    return f"{decoder}threshold = {threshold}"


def set_decoding(nlp: "Language", name: str, decoding: "Decoding") -> None:
    """Set decoder and threshold of a pipe, in what it has and in the config."""
    chosen: dict[str, Any] = {"threshold": decoding.threshold}
    if decoding.decoder is not None:
        chosen["decoder"] = decoding.decoder
    pipe: Any = nlp.get_pipe(name)
    for settings in (pipe.cfg, nlp.get_pipe_config(name)):
        settings.update(chosen)
