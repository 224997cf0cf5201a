"""Corpora in another modality: upper case, or speech (SNOR).

Source: Bikel et al. 1999, section 5.4.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import Enum

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError, Problems
from spacy_treecrf.speech import to_snor

from .records import Sentence


class Modality(str, Enum):
    """How a corpus is written."""

    mixed = "mixed"
    upper_case = "upper-case"
    snor = "snor"


def change_modality(
    sentences: Iterable[Sentence], modality: Modality, lang: str, problems: Problems
) -> Iterator[Sentence]:
    """Write sentences in another modality, their spans kept aligned.

    sentences (Iterable[Sentence]): Sentences in mixed case.
    modality (Modality): The modality.
    lang (str): Code of the language, which reads the numbers of SNOR.
    problems (Problems): Takes spans and sentences of which nothing is spoken.
    YIELDS (Sentence): The sentences of which something is left.
    RAISES (ConversionError): If numbers can't be read in the language.
    """
    for sentence in sentences:
        if modality is Modality.mixed:
            yield sentence
        elif modality is Modality.upper_case:
            yield replace(sentence, tokens=[text.upper() for text in sentence.tokens])
        else:
            spoken = _spoken(sentence, lang, problems)
            if spoken.tokens:
                yield spoken
            else:
                problems.add(
                    "sentences of which nothing is spoken: left out", sentence.id
                )


def _spoken(sentence: Sentence, lang: str, problems: Problems) -> Sentence:
    try:
        spoken = to_snor(sentence.tokens, sentence.spans, lang)
    except ValueError as error:
        raise ConversionError(
            Errors.T044.format(where=sentence.id, reason=str(error).rstrip("."))
        ) from error
    for start, end, label in spoken.lost:
        problems.add(
            "spans of which nothing is spoken: left out",
            f"{sentence.id}: {label} {sentence.text(start, end)!r}",
        )
    return replace(sentence, tokens=spoken.tokens, spans=spoken.spans, spaces=None)
