"""One fold of `jackknife`, in a process of its own.

It trains the pipeline on the other folds, decodes this one, and writes
`fold-NUMBER.spacy` and `fold-NUMBER.json` into the work folder. A process for each fold
frees its memory, and lets folds run side by side.
"""

import gc
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from timeit import default_timer
from typing import Any

import numpy as np
import spacy
from spacy.attrs import SENT_START
from spacy.cli._util import import_code, setup_gpu
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from thinc.api import Config
from threadpoolctl import threadpool_limits

from spacy_treecrf.data.corpus_reader import FastCorpus, FastDocBin
from spacy_treecrf.data.docbin import write_docbin
from spacy_treecrf.gold import GoldKeys, LabelledSpan
from spacy_treecrf.pipeline.base.learned_pipe import LearnedPipe
from spacy_treecrf.pipeline.docs.packing import Source, pack
from spacy_treecrf.pipeline.docs.reading import read
from spacy_treecrf.pipeline.docs.segments import starts_of
from spacy_treecrf.pipeline.ranking.corpus import (
    place_gold,
    ranking_gold,
    ranking_segments,
    without_open,
)
from spacy_treecrf.rerank.candidates import CandidateSegment, oracle_index, span_counts

CORPUS, CONFIG, PLAN = "corpus.spacy", "config.cfg", "plan.json"
# The oracle is told for the best candidate alone, which is the base, and for these.
ORACLES = (1, 5, 20)
# What names of readers of `.spacy` files begin with.
READERS = ("spacy.Corpus.", "spacy-treecrf.Corpus.")


@dataclass(frozen=True)
class Plan:
    """What all folds share; the work folder holds it as JSON.

    train_corpus (str): Dotted name of the training corpus in the config.
    pipe (str): Name of the pipe that writes candidates.
    spans_key (str): Its spans key.
    n_best (int): Candidates a segment.
    borders (list[int]): First Doc of each fold, and one past the last Doc.
    documents (list[int]): Number of the source document of each Doc.
    sets_sentences (bool): Whether a pipe of the pipeline sets sentence starts.
    code (str | None): File with further code to import.
    gpu_id (int): GPU to train on, or -1.
    missing_spans_key, incorrect_spans_key (str | None): The pipe's keys of regions that
        are not annotated, and of spans with labels known to be wrong.
    """

    train_corpus: str
    pipe: str
    spans_key: str
    n_best: int
    borders: list[int]
    documents: list[int]
    sets_sentences: bool
    code: str | None = None
    gpu_id: int = -1
    missing_spans_key: str | None = None
    incorrect_spans_key: str | None = None

    @property
    def keys(self) -> GoldKeys:
        """Where the annotation of the corpus is."""
        return GoldKeys.of(asdict(self))


@dataclass
class FoldReport:
    """What one fold, or all together, gave.

    segments, candidates (int): Segments, and their candidates in all.
    gold (int): Gold spans, those too that no candidate can have.
    outside (int): Gold spans that lie in no segment.
    misaligned (int): Gold spans that fit no tokens.
    first (str): The first of these.
    lost_marks (int): Regions and incorrect spans that fit no tokens.
    first_mark (str): The first of these.
    unannotated (int): Docs without any annotation.
    counts (dict[str, list[int]]): By the number of best candidates: right and
        predicted spans of the best choice among them.
    train_s, decode_s (float): Time taken.
    """

    segments: int = 0
    candidates: int = 0
    gold: int = 0
    outside: int = 0
    misaligned: int = 0
    first: str = ""
    lost_marks: int = 0
    first_mark: str = ""
    unannotated: int = 0
    counts: dict[str, list[int]] | None = None
    train_s: float = 0.0
    decode_s: float = 0.0


def save_plan(folder: Path, plan: Plan) -> None:
    """Write the plan into the work folder."""
    (folder / PLAN).write_text(json.dumps(asdict(plan)), encoding="utf8")


def log_path(folder: Path, number: int) -> Path:
    """Where the output of a fold goes."""
    return folder / f"fold-{number}.log"


def run_logged(folder: Path, number: int, n_threads: int | None) -> None:
    """Run one fold with its output in a file, on so many threads.

    The process is for this fold alone.
    """
    gc.freeze()  # what is imported needs no looking through, an eighth of the time
    with log_path(folder, number).open("wb") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    with threadpool_limits(n_threads):
        run_fold(folder, number)


def run_fold(folder: Path, number: int) -> None:
    """Train without one fold, decode it, and write its candidates.

    folder (Path): The work folder.
    number (int): The fold, from 0.
    """
    plan = Plan(**json.loads((folder / PLAN).read_text(encoding="utf8")))
    import_code(plan.code)
    setup_gpu(plan.gpu_id)
    scratch = folder / f"fold-{number}.scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "model").mkdir(parents=True)  # where training saves its checkpoints
    start, end = plan.borders[number : number + 2]
    write_parts(folder / CORPUS, start, end, scratch)
    began = default_timer()
    config = load_config(folder / CONFIG, interpolate=False)
    point_to(config, plan.train_corpus, scratch / "train.spacy")
    nlp = init_nlp(config, use_gpu=plan.gpu_id)
    if not is_complete(nlp, config):
        train(nlp, scratch / "model", use_gpu=plan.gpu_id)
        # The best one on the development corpus, as `spacy train` leaves it.
        nlp = spacy.load(scratch / "model" / "model-best")
    trained = default_timer()
    # Not in training, whose evaluations would decode so many candidates in vain.
    nlp.get_pipe(plan.pipe).cfg["n_best"] = plan.n_best  # type: ignore[attr-defined]
    report = FoldReport(train_s=trained - began)
    decoded = decode(nlp, scratch / "held_out.spacy", plan, start, report)
    docs = list(pack(decoded, nlp.vocab, plan.keys))
    count_oracles(docs, plan.spans_key, report)
    report.decode_s = default_timer() - trained
    unfinished = scratch / "packed.spacy"
    write_docbin(docs, unfinished)
    text = json.dumps(asdict(report))
    (folder / f"fold-{number}.json").write_text(text, encoding="utf8")
    # A fold is finished once this file is there, so it comes last and all at once.
    unfinished.replace(folder / f"fold-{number}.spacy")
    shutil.rmtree(scratch)


def is_complete(nlp: Language, config: Config) -> bool:
    """Whether an initialised pipeline has learnt all that training would teach it.

    So it is if all its pipes learn in `initialize`, unless the config has code to run
    before training or saving.
    """
    training = config.get("training", {})
    callbacks = (training.get(name) for name in ("before_update", "before_to_disk"))
    return not any(callbacks) and all(
        isinstance(pipe, LearnedPipe) or not hasattr(pipe, "update")
        for _, pipe in nlp.pipeline
    )


def write_parts(corpus: Path, start: int, end: int, scratch: Path) -> None:
    """Write the Docs from `start` to `end` as held out, the others for training."""
    docbin = FastDocBin()
    docbin.from_disk(corpus)
    docbin.part(slice(start, end)).to_disk(scratch / "held_out.spacy")
    rest = docbin.part(slice(start), slice(end, None))
    rest.to_disk(scratch / "train.spacy")


def has_user_data(docs: Sequence[Doc]) -> bool:
    """Whether any Doc has user data: stored where there is none, it slows reading."""
    return any(doc.user_data for doc in docs)


def point_to(config: Config, dot_name: str, path: Path) -> None:
    """Let a corpus of a config read another file, with its other settings as they are.

    A reader that is not spaCy's own, of which no path is known, is replaced.
    """
    *sections, name = dot_name.split(".")
    parent: dict[str, Any] = config
    for section in sections:
        parent = parent[section]
    if not is_corpus(parent[name]):
        parent[name] = {"@readers": "spacy-treecrf.Corpus.v1", "gold_preproc": False}
    # The limit has been applied when the corpus was read.
    parent[name] = {**parent[name], "path": str(path), "limit": 0}


def is_corpus(section: dict[str, Any]) -> bool:
    """Whether a section of the config is a reader of `.spacy` files, spaCy's or ours."""
    return str(section.get("@readers")).startswith(READERS)


def decode(
    nlp: Language, path: Path, plan: Plan, first: int, report: FoldReport
) -> Iterator[Source]:
    """Run the pipeline over the Docs of a file, which are numbered from `first`."""
    examples = list(FastCorpus(path)(nlp))
    if not plan.sets_sentences:
        for example in examples:
            copy_sentence_starts(example)
    docs = nlp.pipe(example.predicted for example in examples)
    for number, (doc, example) in enumerate(zip(docs, examples, strict=True), first):
        gold = ranking_gold(example, asdict(plan))
        lost, marks = gold.lost, [*gold.lost_missing, *gold.lost_incorrect]
        report.first = report.first or describe(example.reference, lost, number)
        report.first_mark = report.first_mark or describe(
            example.reference, marks, number
        )
        report.misaligned += len(lost)
        report.gold += len(lost)
        report.lost_marks += len(marks)
        report.unannotated += gold.source is None and len(doc) > 0
        is_spacing_known = not example.reference.has_unknown_spaces
        document = plan.documents[number]
        yield Source(doc, gold, document, is_spacing_known)


def describe(doc: Doc, spans: Sequence[LabelledSpan], number: int) -> str:
    """The first of some spans of a Doc in words; nothing if there is none."""
    for start, end, label in spans:
        text = doc[start:end].text[:80]
        return f"({start}, {end}, {label!r}) {text!r} in Doc {number}"
    return ""


def copy_sentence_starts(example: Example) -> None:
    """Give the predicted Doc the sentence starts by which the flat pipes learn."""
    source = starts_of(example)
    if source is not example.predicted and len(source):
        starts = source.to_array([SENT_START])
        example.predicted.from_array([SENT_START], starts)  # type: ignore[arg-type]


def count_oracles(docs: Sequence[Doc], key: str, report: FoldReport) -> None:
    """Count what the best choice among the first candidates of each segment finds."""
    gold = [ranking_gold(Example(doc, doc), {"spans_key": key}) for doc in docs]
    analyses = without_open(read(docs, key), gold)
    placed, lost = place_gold(analyses.segments, [own.spans for own in gold])
    segments = ranking_segments(analyses, placed)
    report.segments = len(segments)
    report.candidates = sum(len(segment.candidates) for segment in segments)
    report.gold += sum(len(set(own.spans)) for own in gold)
    report.outside = len(lost)
    report.counts = {
        str(n): np.sum(
            [[0, 0], *(_oracle_counts(segment, n) for segment in segments)],
            axis=0,
        ).tolist()
        for n in ORACLES
    }


def _oracle_counts(segment: CandidateSegment, n_best: int) -> tuple[int, int]:
    segment = replace(segment, candidates=segment.candidates[:n_best])
    chosen = segment.candidates[oracle_index(segment)]
    right, predicted, _ = span_counts(chosen, segment.gold or ())
    return right, predicted
