"""What the pipes of this package would warn of in training, found without training.

The very code that reads gold in training reads it here: on the pipeline's own tokens,
and in the pipes' own segments.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import Config

from spacy_treecrf.gold import GoldKeys, same_tokens
from spacy_treecrf.labels import LabelSet

TREECRF = "treecrf"
FLAT = ("identifinder", "maxent_ner")
SENTENCES = "token.is_sent_start"
# Few sentences are longer, so that a segment of so many tokens is likely several; the
# time that it takes grows with the cube of its length.
LONG = 200

# Gives a Doc its sentence starts.
SentenceSetter = Callable[[Doc], None]


@dataclass
class PipeCheck:
    """A pipe that would be trained.

    name, factory (str): Its name, and its factory.
    cfg (dict[str, Any]): Its settings.
    """

    name: str
    factory: str
    cfg: dict[str, Any]


@dataclass
class Finding:
    """Something that training would warn of.

    headline (str): What, and how often.
    cases (list[str]): The first cases.
    """

    headline: str
    cases: list[str] = field(default_factory=list)


def pipes_to_check(config: Config | None, key: str) -> list[PipeCheck]:
    """The pipes of a config that learn from the spans of a key.

    config (Optional[Config]): An interpolated training config; without one, a `treecrf`
        with its defaults.
    key (str): The spans key.
    RETURNS (list[PipeCheck]): The pipes, in the order of the pipeline.
    """
    sections: dict[str, dict[str, Any]] = {TREECRF: {"factory": TREECRF}}
    sections[TREECRF]["spans_key"] = key
    names, frozen = [TREECRF], set()
    if config is not None:
        sections = config.get("components", {})
        names = config.get("nlp", {}).get("pipeline", list(sections))
        frozen = set(config.get("training", {}).get("frozen_components") or [])
    found = []
    for name in names:
        section = sections.get(name, {})
        factory = section.get("factory")
        if factory not in (TREECRF, *FLAT) or name in frozen:
            continue
        defaults = Language.get_factory_meta(factory).default_config or {}
        cfg = {k: v for k, v in {**defaults, **section}.items() if k != "model"}
        if cfg["spans_key"] == key:
            found.append(PipeCheck(name, factory, cfg))
    return found


def tokenizing_pipeline(config: Config) -> Language:
    """A pipeline without components that makes the tokens of training.

    config (Config): An interpolated training config.
    RETURNS (Language): The pipeline.
    """
    section = config.get("nlp", {})
    nlp = spacy.blank(section.get("lang") or "xx")
    if section.get("tokenizer"):
        make = registry.resolve({"tokenizer": section["tokenizer"]})["tokenizer"]
        nlp.tokenizer = make(nlp)
    return nlp


def sentence_setters(config: Config) -> tuple[list[SentenceSetter], list[str]]:
    """What sets sentence starts in training: components that annotate.

    config (Config): An interpolated training config.
    RETURNS (tuple[list[SentenceSetter], list[str]]): Those that need no training first;
        the names of the others.
    """
    setters: list[SentenceSetter] = []
    untrained = []
    components = config.get("components", {})
    lang = config.get("nlp", {}).get("lang") or "xx"
    for name in config.get("training", {}).get("annotating_components") or []:
        own = dict(components.get(name, {}))
        source, factory = own.pop("source", None), own.pop("factory", None)
        if source is not None:
            donor, part = spacy.load(source), own.get("component", name)
        else:
            donor, part = spacy.blank(lang), name
            if not donor.has_factory(factory):
                continue
            donor.add_pipe(factory, name=name, config=own)
        if SENTENCES not in donor.get_pipe_meta(part).assigns:
            continue
        if source is None and getattr(donor.get_pipe(part), "is_trainable", False):
            untrained.append(name)
        else:
            setters.append(_setter(donor, part))
    return setters, untrained


def _setter(donor: Language, last: str) -> SentenceSetter:
    """Run a pipeline up to a component, for the sentence starts that it sets."""

    def set_sentences(doc: Doc) -> None:
        words = [token.text for token in doc]
        spaces = [bool(token.whitespace_) for token in doc]
        own = Doc(donor.vocab, words=words, spaces=spaces)
        for name, pipe in donor.components:
            own = pipe(own)
            if name == last:
                break
        for token, model in zip(doc, own, strict=True):
            token.is_sent_start = model.is_sent_start

    return set_sentences


def examples_of(docs: Iterable[Doc], nlp: Language) -> Iterator[Example]:
    """Examples of some Docs, as `spacy.Corpus.v1` makes them.

    docs (Iterable[Doc]): The references; one of known spacing is split anew.
    nlp (Language): The pipeline whose tokenizer splits them.
    YIELDS (Example): The examples, without sentence starts.
    """
    for doc in docs:
        if doc.has_unknown_spaces:
            words = [token.text for token in doc]
            spaces = [bool(token.whitespace_) for token in doc]
            yield Example(Doc(nlp.vocab, words=words, spaces=spaces), doc)
        else:
            yield Example(nlp.make_doc(doc.text), doc)


def copy_sentences(example: Example) -> None:
    """Give the predicted Doc the sentence starts of the reference, where they fit."""
    reference, predicted = example.reference, example.predicted
    if len(reference) < 2 or not reference.has_annotation("SENT_START"):
        return
    same = same_tokens(example)
    for token in reference:
        if token.is_sent_start:
            at = [token.i] if same else example.alignment.y2x[token.i : token.i + 1]
            for place in list(at)[:1]:
                predicted[int(place)].is_sent_start = True


def check_training(
    examples: Sequence[Example],
    pipes: Sequence[PipeCheck],
    setters: Sequence[SentenceSetter] | None,
    n_named: int,
) -> list[Finding]:
    """What the pipes would warn of if they were trained on some examples.

    examples (Sequence[Example]): The examples; the predicted Docs get sentence starts.
    pipes (Sequence[PipeCheck]): The pipes.
    setters (Optional[Sequence[SentenceSetter]]): What sets sentence starts; None for
        those of the references.
    n_named (int): Of each kind so many cases are named.
    RETURNS (list[Finding]): What was found, pipe by pipe.
    """
    found = []
    # The flat pipes learn in `initialize`, before any component annotates.
    for pipe in pipes:
        if pipe.factory in FLAT:
            found += _check_flat(examples, pipe, n_named)
    trees = [pipe for pipe in pipes if pipe.factory == TREECRF]
    for example in examples if trees else ():
        if setters is None:
            copy_sentences(example)
        for set_sentences in setters or ():
            set_sentences(example.predicted)
    for pipe in trees:
        found += _check_treecrf(examples, pipe, n_named)
    return found


def _check_flat(
    examples: Sequence[Example], pipe: PipeCheck, n_named: int
) -> list[Finding]:
    from spacy_treecrf.pipeline.docs.flat_gold import FlatReport, read_flat_corpus

    keys = GoldKeys.of(pipe.cfg)
    report = FlatReport(pipe.name, keys, n_named)
    found = []
    try:
        read_flat_corpus(
            lambda: examples, pipe.name, keys.spans, keys.missing, report=report
        )
    except ValueError as error:
        found.append(Finding(str(error)))
    if report.n_empty_regions:
        found.append(Finding(report.regions_message()))
    for kind in sorted(report.problems.counts):
        headline = (
            f"'{pipe.name}': {report.problems.counts[kind]} of {report.total} gold "
            f"spans {kind}"
        )
        found.append(Finding(headline, _cases(report.problems, kind)))
    return found


def _check_treecrf(
    examples: Sequence[Example], pipe: PipeCheck, n_named: int
) -> list[Finding]:
    from spacy_treecrf.pipeline.base.settings import longest_segment
    from spacy_treecrf.pipeline.docs.segments import DocSegments
    from spacy_treecrf.pipeline.docs.tree_gold import GoldReader, gold_labels
    from spacy_treecrf.pipeline.docs.tree_gold_report import KINDS, GoldReport

    # Crossing gold is listed, where training with "error" would stop at the first.
    cfg = {**pipe.cfg, "crossing": "reduce"}
    labels = LabelSet()
    for example in examples:
        for combination in gold_labels(example, cfg):
            labels.add(combination)
    reader = GoldReader(pipe.name, labels, cfg)
    report = GoldReport(pipe.name, cfg, n_named)
    max_length, max_width = longest_segment(cfg), cfg["max_width"]
    windowed: list[str] = []
    long: list[str] = []
    for number, example in enumerate(examples):
        doc = example.predicted
        segments = DocSegments([doc], max_length)
        where = doc_name(number, example.reference)
        report.where = f"{where}, "
        reader.read([example], segments, report)
        longest = int(segments.lengths.max(initial=0))
        case = f"{where}: {len(doc)} tokens, {doc[:12].text!r}..."
        if segments.windowed:
            windowed.append(case)
        elif (
            max_width is None
            and longest > LONG
            and not doc.has_annotation("SENT_START")
        ):
            long.append(case)
    found = []
    if report.sources["ents"]:
        found.append(Finding(report.source_messages()["ents"]))
    for kind in sorted(report.counts):
        sort, count = KINDS[kind][0], report.counts[kind]
        share = f" ({count / report.totals[sort]:.2%})" if kind == "wide" else ""
        headline = (
            f"'{pipe.name}': {count} of {report.totals[sort]} {sort}{share} "
            f"{report.problem(kind)}"
        )
        found.append(Finding(headline, _cases(report.problems, kind)))
    for docs, problem in (
        (
            windowed,
            "Docs without sentence boundaries, or with longer sentences, are cut into "
            f"windows of at most {max_length} tokens (max_length), which no entity can "
            "cross. Set sentence boundaries with a pipe in `annotating_components`",
        ),
        (
            long,
            f"Docs of more than {LONG} tokens have no sentence boundaries and are one "
            "segment each, which is slow and no better. Set sentence boundaries with a "
            "pipe in `annotating_components`, or convert with one sentence a line",
        ),
    ):
        if docs:
            more = len(docs) - n_named
            rest = [f"... and {more} more"] if more > 0 else []
            headline = f"'{pipe.name}': {len(docs)} {problem}"
            found.append(Finding(headline, docs[:n_named] + rest))
    return found


def doc_name(number: int, reference: Doc) -> str:
    """How a Doc is named in messages: its index, and its id where it has one."""
    own = reference.user_data.get("id")
    return f"doc {number}" + (f" ({own})" if own is not None else "")


def _cases(problems: Any, kind: str) -> list[str]:
    named = problems.named[kind]
    more = problems.counts[kind] - len(named)
    return [*named, f"... and {more} more"] if more else list(named)
