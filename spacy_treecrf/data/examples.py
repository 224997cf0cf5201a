"""Training examples from texts and character offsets, without spaCy's pitfalls."""

import warnings
from collections.abc import Iterable

from spacy.language import Language
from spacy.tokens import Span, SpanGroup
from spacy.training import Example

from spacy_treecrf.errors import Warnings
from spacy_treecrf.problems import Problems

from .alignment import Aligner, AlignmentMode, n_misaligned, token_bounds
from .records import Sentence, checked_sentence

# A text and its spans as (start character, end character, label).
AnnotatedText = tuple[str, Iterable[tuple[int, int, str]]]


def make_examples(
    nlp: Language,
    annotated: Iterable[AnnotatedText],
    spans_key: str = "nested",
    alignment_mode: AlignmentMode = "strict",
) -> list[Example]:
    """Make training examples from texts and possibly nested character spans.

    `Example.from_dict` raises E855 on spans that do not begin and end at token
    borders. Here they are left out or adjusted, and one warning counts and shows them.

    nlp (Language): The pipeline whose tokenizer splits the texts.
    annotated (Iterable[AnnotatedText]): Texts, each with its spans.
    spans_key (str): Key of the span group, which every example gets.
    alignment_mode (AlignmentMode): What becomes of misaligned spans: left out
        ("strict"), cut to the tokens inside ("contract"), or widened ("expand").
    RETURNS (list[Example]): One example for each text, in order.
    RAISES (ConversionError): If a label is empty.
    """
    problems = Problems()
    examples = []
    n_spans = 0
    for i, (text, spans) in enumerate(annotated):
        reference = nlp.make_doc(text)
        words = [token.text for token in reference]
        spaces = [bool(token.whitespace_) for token in reference]
        aligner = Aligner(text, token_bounds(words, spaces), problems, alignment_mode)
        where = f"text {i}"
        aligned = []
        for start, end, label in spans:
            n_spans += 1
            span = aligner.align(start, end, label, where)
            if span is not None:
                aligned.append(span)
        sentence = checked_sentence(Sentence(where, words, aligned), where, problems)
        reference.spans[spans_key] = SpanGroup(
            reference,
            name=spans_key,
            spans=[
                Span(reference, s, e, label=label) for s, e, label in sentence.spans
            ],
        )
        examples.append(Example(nlp.make_doc(text), reference))
    if n_misaligned(problems):
        details = "\n".join("\n".join(message) for message in problems.messages())
        warnings.warn(
            Warnings.T060.format(
                count=n_misaligned(problems), total=n_spans, details=details
            ),
            stacklevel=2,
        )
    return examples
