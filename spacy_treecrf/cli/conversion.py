"""Convert files to `.spacy` files, and say what was read, repaired and written."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from spacy.language import Language
from typer import echo
from wasabi import msg

from spacy_treecrf.data.alignment import (
    LEFT_OUT,
    Aligner,
    Tokenize,
    n_misaligned,
    token_bounds,
)
from spacy_treecrf.data.docbin import make_docs, write_docbin
from spacy_treecrf.data.formats.jsonl import BAD_SPAN, LAYOUTS
from spacy_treecrf.data.modality import Modality, change_modality
from spacy_treecrf.data.offsets import Offsets
from spacy_treecrf.data.records import Sentence, stem
from spacy_treecrf.data.splits import split_documents
from spacy_treecrf.data.statistics import SpanCounts, crossing_pairs
from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems

from .readers import Format, Read, make_tokenize

# Formats whose files do not always say where a document begins.
WITHOUT_DOCUMENTS = (Format.iob_layers, Format.conllu)
BAD_FILE = "files that can't be read: left out"
EMPTY_FILE = "files without a sentence: left out"
LOST_LATER = (
    "spans lost in training, where spaCy splits texts of known spacing anew, and they do "
    "not begin and end at its tokens (those of --lang {lang}): {hint}"
)


@dataclass
class Job:
    """Everything that is the same for all files of one run."""

    nlp: Language
    read: Read
    spans_key: str
    merge_docs: bool
    keep_ids: bool
    keep_spaces: bool
    modality: Modality
    limit: int | None
    max_misaligned: float
    format: Format
    strict: bool = False
    # Write disjoint spans, as `doc.ents`.
    flat: bool = False
    # What offsets in characters count; bound into `read`, too.
    offsets: Offsets = field(default_factory=Offsets)


def convert(in_paths: list[Path], out_path: Path, job: Job) -> None:
    """Convert some files into one and print the counts.

    in_paths (list[Path]): The input files, in order.
    out_path (Path): The `.spacy` file.
    job (Job): Reader and options.
    RAISES (ConversionError): If the input is broken or empty, or too many spans are
        misaligned; nothing is written then.
    """
    problems = Problems(strict=job.strict)
    sentences = read_all(in_paths, job, problems)
    write(sentences, out_path, job, problems, in_paths)


def convert_splits(
    in_paths: list[Path],
    folder: Path,
    job: Job,
    shares: Sequence[float],
    seed: int,
) -> None:
    """Convert some files into train, dev and test, a document in one of them alone.

    in_paths (list[Path]): The input files, in order.
    folder (Path): Where the `.spacy` files go.
    job (Job): Reader and options.
    shares (Sequence[float]): The share of each.
    seed (int): Seed of the choice.
    RAISES (ConversionError): As `convert`, or if there are fewer documents than splits.
    """
    problems = Problems(strict=job.strict)
    sentences = read_all(in_paths, job, problems)
    documents = {s.doc for s in sentences}
    if job.format in WITHOUT_DOCUMENTS and documents == {stem(in_paths[0])}:
        msg.warn(
            "The file says nowhere where a document begins: sentences are split, so that "
            "those of one text may come into two splits"
        )
        names = [str(i) for i in range(len(sentences))]
    else:
        # A sentence of no document is one.
        names = [s.doc or f"\0{i}" for i, s in enumerate(sentences)]
    splits = split_documents(names, shares, seed)
    show_problems(problems, job)
    for name, numbers in splits.items():
        n_documents = len({names[i] for i in numbers})
        msg.divider(f"{name}: {n_documents} documents")
        own = [sentences[i] for i in numbers]
        # What reading them gave is already told.
        write(own, folder / f"{name}.spacy", job, Problems(), in_paths, is_split=True)
    msg.divider("all")
    rows = [("Misaligned", n_misaligned(problems)), ("Repairs", problems.n_repairs)]
    msg.table([(name, str(value)) for name, value in rows], aligns=("l", "r"))


def read_all(in_paths: list[Path], job: Job, problems: Problems) -> list[Sentence]:
    """Read some files, and check that they are of the format.

    in_paths (list[Path]): The files.
    job (Job): Reader and options.
    problems (Problems): Takes what was repaired.
    RETURNS (list[Sentence]): The sentences, of which there is one at least.
    RAISES (ConversionError): If the input is broken or empty.
    """
    job.offsets.clear()
    try:
        sentences = list(islice(_read_files(in_paths, job, problems), job.limit))
        check_losses(in_paths, job, problems, sentences)
    except ConversionError:
        show_problems(problems, job)
        raise
    return sentences


def _read_files(
    in_paths: list[Path], job: Job, problems: Problems
) -> Iterator[Sentence]:
    for path in in_paths:
        empty = True
        n_lost = problems.lost_records
        try:
            for sentence in job.read(path, problems):
                empty = False
                yield sentence
        except ConversionError as error:
            if job.strict or len(in_paths) == 1:
                raise
            problems.repair(BAD_FILE, str(error), lost_record=True)
            continue
        if empty and problems.lost_records == n_lost and len(in_paths) > 1:
            problems.repair(EMPTY_FILE, str(path))


def check_losses(
    in_paths: list[Path], job: Job, problems: Problems, sentences: list[Sentence]
) -> None:
    """Raise if so much was not understood that the input is of another format, or if
    too many spans are misaligned."""
    path = in_paths[0] if len(in_paths) == 1 else f"{in_paths[0]} ..."
    lost, bad_spans = problems.lost_records, problems.counts[BAD_SPAN]
    n_spans = bad_spans + sum(len(s.spans) for s in sentences)
    is_json = job.format is Format.jsonl
    if lost > len(sentences) or 2 * bad_spans > n_spans:
        total = lost + len(sentences)
        if not is_json:
            raise ConversionError(
                Errors.T121.format(
                    lost=lost, total=total, path=path, format=job.format.value
                )
            )
        reason = f"{lost} of {total} records"
        if 2 * bad_spans > n_spans:
            reason = f"{bad_spans} of {n_spans} spans"
        raise ConversionError(
            Errors.T125.format(
                path=path, reason=f"{reason} are not understood", layouts=LAYOUTS
            )
        )
    if not sentences:
        raise ConversionError(Errors.T049.format(path=path))
    misaligned = n_misaligned(problems)
    n_gold = n_spans - bad_spans + problems.counts[LEFT_OUT]
    if misaligned > job.max_misaligned * n_gold:
        hints = [headline for headline, _ in job.offsets.messages()]
        message = Errors.T050.format(
            misaligned=misaligned, n_gold=n_gold, limit=job.max_misaligned
        )
        raise ConversionError(" ".join([message, *hints]))


def write(
    sentences: Iterable[Sentence],
    out_path: Path,
    job: Job,
    problems: Problems,
    in_paths: list[Path],
    is_split: bool = False,
) -> None:
    """Write sentences to a file, and print what was read and written.

    sentences (Iterable[Sentence]): The sentences.
    out_path (Path): The `.spacy` file.
    job (Job): Options.
    problems (Problems): What reading them gave; takes what writing them does.
    in_paths (list[Path]): Where they come from, for messages.
    is_split (bool): They are a part of what was read, and `problems` is of it alone.
    """
    counts = SpanCounts()
    tokenize = make_tokenize(job.nlp)
    n_lost_later = 0

    def counted() -> Iterator[Sentence]:
        nonlocal n_lost_later
        for sentence in change_modality(
            sentences, job.modality, job.nlp.lang or "", problems
        ):
            counts.add(len(sentence.tokens), sentence.spans)
            name_crossing_pairs(sentence, problems)
            if job.keep_spaces or sentence.given_tokens:
                n_lost_later += name_lost_spans(sentence, tokenize, job, problems)
            yield sentence

    docs = list(
        make_docs(
            counted(),
            job.nlp.vocab,
            job.spans_key,
            job.merge_docs,
            job.keep_spaces,
            job.flat,
        )
    )
    counts.docs = len(docs)
    if not is_split:
        show_problems(problems, job)
    else:
        show(problems.messages())
    write_docbin(docs, out_path, job.keep_ids, job.flat)
    misaligned = n_misaligned(problems) + n_lost_later
    print_counts(counts, misaligned, job.spans_key, problems.n_repairs, is_split)
    if not counts.spans:
        msg.warn(f"No spans in {len(in_paths)} files: check format and options")
    msg.good(f"{out_path} ({counts.docs} Docs)")


def show_problems(problems: Problems, job: Job) -> None:
    """Print what reading gave, and what is to say of the offsets."""
    show([*problems.messages(), *job.offsets.messages()])


def show(messages: Iterable[tuple[str, str]]) -> None:
    """Print headlines, each with its count and the first places."""
    for headline, details in messages:
        msg.warn(headline)
        if details:
            echo(details)


def name_crossing_pairs(sentence: Sentence, problems: Problems) -> None:
    """Report spans of which a tree holds one at most; both are converted."""
    for left, right in crossing_pairs((s, e) for s, e, _ in sentence.spans):
        problems.add(
            "crossing pairs of spans: kept, but no tree holds both",
            f"{sentence.id}: {sentence.text(*left)!r} and {sentence.text(*right)!r}",
        )


def name_lost_spans(
    sentence: Sentence, tokenize: Tokenize, job: Job, problems: Problems
) -> int:
    """Report spans that do not fit the tokens into which spaCy will split the text.

    sentence (Sentence): The sentence, whose spacing will be known in training.
    tokenize (Tokenize): Splits its text as training does.
    job (Job): Options, for messages.
    problems (Problems): Takes the spans.
    RETURNS (int): How many there are.
    """
    if sentence.spaces is None:
        return 0
    bounds = token_bounds(sentence.tokens, sentence.spaces)
    text = sentence.text()
    # The aligner's own count is of spans that are not in the output; these are.
    aligner = Aligner(text, token_bounds(*tokenize(text)), Problems())
    hint = "correct them, or list them with debug-data and the pipeline's config"
    if sentence.own_tokens:
        hint = "convert without --keep-spaces"
    kind = LOST_LATER.format(lang=job.nlp.lang, hint=hint)
    n_lost = 0
    for start, end, label in sentence.spans:
        first, last = bounds[start][0], bounds[end - 1][1]
        if aligner.align(first, last, label, sentence.id) is None:
            n_lost += 1
            problems.add(kind, f"{sentence.id}: {label} {aligner.show(first, last)}")
    return n_lost


def print_counts(
    counts: SpanCounts,
    misaligned: int,
    spans_key: str,
    n_repairs: int = 0,
    is_split: bool = False,
) -> None:
    """Print what was converted as two tables: totals, and spans by label."""

    def share(number: int) -> str:
        return (
            f"{number} ({number / counts.spans:.1%})" if counts.spans else str(number)
        )

    rows = [
        ("Docs", counts.docs),
        ("Sentences", counts.sentences),
        ("Tokens", counts.tokens),
        (f"Spans under '{spans_key}'", counts.spans),
        ("Inside a longer span", share(counts.inner)),
        ("Inside or around another", share(counts.nested)),
        ("Deepest nesting", counts.max_depth),
        ("Crossing pairs", counts.crossing),
        ("Spans with several labels", counts.multi_label),
    ]
    # Of a split it is not known.
    if misaligned or not is_split:
        rows.append(("Misaligned", misaligned))
    if not is_split:
        rows.append(("Repairs", n_repairs))
    msg.table([(name, str(value)) for name, value in rows], aligns=("l", "r"))
    if counts.labels:
        by_label = [(label, str(n)) for label, n in counts.labels.most_common()]
        msg.table(by_label, header=("Label", "Spans"), divider=True, aligns=("l", "r"))
