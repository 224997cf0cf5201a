"""Augmenters that change the modality of a corpus: upper case, and speech (SNOR).

Train on converted data, test on converted data; the model is unchanged. Source: Bikel et
al. 1999, section 5.4.
"""

import random
import warnings
from collections.abc import Callable, Iterator

from spacy.attrs import (
    DEP,
    ENT_ID,
    ENT_IOB,
    ENT_KB_ID,
    ENT_TYPE,
    HEAD,
    LEMMA,
    MORPH,
    POS,
    SENT_START,
    TAG,
)
from spacy.language import Language
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example
from spacy.util import registry

from spacy_treecrf.errors import Warnings
from spacy_treecrf.speech import speech_of, to_snor

Augmenter = Callable[[Language, Example], Iterator[Example]]

_COPIED = [ENT_IOB, ENT_TYPE, ENT_KB_ID, ENT_ID, LEMMA, MORPH, POS, TAG]


@registry.augmenters("spacy-treecrf.upper_case.v1")
def create_upper_case_augmenter(level: float = 1.0) -> "UpperCaseAugmenter":
    """Build an augmenter that upper-cases texts and keeps all annotation.

    level (float): Share of the examples that are converted; the rest stay.
    RETURNS (UpperCaseAugmenter): Takes the pipeline and an example, yields one.
    RAISES (ValueError): If the share is not from 0 to 1.
    """
    return UpperCaseAugmenter(_checked(level))


@registry.augmenters("spacy-treecrf.snor.v1")
def create_snor_augmenter(level: float = 1.0) -> "SnorAugmenter":
    """Build an augmenter that turns texts into SNOR, in the language of the pipeline.

    level (float): Share of the examples that are converted; the rest stay.
    RETURNS (SnorAugmenter): Takes the pipeline and an example, yields one, or none if
        nothing of it is spoken.
    RAISES (ValueError): If the share is not from 0 to 1.
    """
    return SnorAugmenter(_checked(level))


def _checked(level: float) -> float:
    if not 0 <= level <= 1:
        raise ValueError(f"expected a level from 0 to 1, received {level}")
    return level


class UpperCaseAugmenter:
    """Upper-cases predicted and reference Docs token by token.

    level (float): Share of the examples that are converted.
    """

    def __init__(self, level: float) -> None:
        self.level = level

    def __call__(self, nlp: Language, example: Example) -> Iterator[Example]:
        """Convert an example, or let it pass.

        nlp (Language): The pipeline.
        example (Example): The example.
        YIELDS (Example): One example.
        """
        if random.random() >= self.level:
            yield example
            return
        yield Example(
            upper_case_doc(example.predicted), upper_case_doc(example.reference)
        )


class SnorAugmenter:
    """Turns the reference into SNOR; the predicted Doc gets the same words.

    level (float): Share of the examples that are converted.
    n_lost (int): Gold spans so far of which nothing is spoken.
    """

    def __init__(self, level: float) -> None:
        self.level = level
        self.n_lost = 0

    def __call__(self, nlp: Language, example: Example) -> Iterator[Example]:
        """Convert an example, or let it pass.

        nlp (Language): The pipeline, whose language reads the numbers.
        example (Example): The example.
        YIELDS (Example): One example; none if nothing of it is spoken.
        """
        if random.random() >= self.level:
            yield example
            return
        reference, lost = snor_doc(example.reference, nlp.lang or "")
        if lost and not self.n_lost:
            warnings.warn(
                Warnings.T085.format(span=lost[0], text=example.reference.text[:80]),
                stacklevel=2,
            )
        self.n_lost += len(lost)
        if len(reference):
            words = [token.text for token in reference]
            yield Example(Doc(nlp.vocab, words=words), reference)


def upper_case_doc(doc: Doc) -> Doc:
    """A Doc in upper case, with the annotation of the old one.

    doc (Doc): The Doc.
    RETURNS (Doc): A new Doc of as many tokens.
    """
    words = [token.text.upper() for token in doc]
    spaces = None if doc.has_unknown_spaces else [bool(t.whitespace_) for t in doc]
    result = Doc(doc.vocab, words=words, spaces=spaces)
    if len(doc):
        # A parse implies the sentence starts; spaCy does not take both.
        structure = [HEAD, DEP] if doc.has_annotation("DEP") else [SENT_START]
        attributes = _COPIED + structure
        result.from_array(attributes, doc.to_array(attributes))  # type: ignore[arg-type]
    for key, group in doc.spans.items():
        spans = [
            Span(result, s.start, s.end, s.label, kb_id=s.kb_id, span_id=s.id)
            for s in group
        ]
        result.spans[key] = SpanGroup(
            result, name=group.name, attrs=dict(group.attrs), spans=spans
        )
    result.cats = dict(doc.cats)
    return result


def snor_doc(doc: Doc, lang: str) -> tuple[Doc, list[tuple[int, int, str]]]:
    """A Doc as it is spoken, with its entities, span groups and sentence starts.

    doc (Doc): The Doc.
    lang (str): Code of the language that reads the numbers.
    RETURNS (tuple[Doc, list]): A new Doc, and the spans of which nothing is spoken.
    RAISES (ValueError): If the language has no conventions, or num2words is missing.
    """
    speech_of(lang)
    tokens = [token.text for token in doc]
    ents = [(e.start, e.end, e.label_) for e in doc.ents]
    spoken = to_snor(tokens, ents, lang)
    lost = list(spoken.lost)
    starts: list[bool | int | None] | None = None
    if doc.has_annotation("SENT_START"):
        starts = [False] * len(spoken.tokens)
        for sentence in doc.sents:
            at = spoken.offsets[sentence.start]
            if at < len(starts):
                starts[at] = True
    result = Doc(doc.vocab, words=spoken.tokens, sent_starts=starts)
    if doc.has_annotation("ENT_IOB"):
        result.set_ents(
            [Span(result, s, e, label=label) for s, e, label in spoken.spans]
        )
    for key, group in doc.spans.items():
        spans = []
        for span in group:
            start, end = spoken.offsets[span.start], spoken.offsets[span.end]
            if start < end:
                spans.append(Span(result, start, end, label=span.label))
            else:
                lost.append((span.start, span.end, span.label_))
        # Attributes that hold one value a span would no longer fit.
        result.spans[key] = SpanGroup(result, name=group.name, spans=spans)
    result.cats = dict(doc.cats)
    return result, lost
