"""A toy corpus on which the words around a name tell which candidate is right."""

import spacy
from candidate_toy import add_rank
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

NAMES = ["Ann", "Bo", "Cy", "Di", "Ed", "Flo"]
# The base prefers PER; behind "in", the name is a LOC.
BEFORE = {"in": "LOC", "Mr.": "PER"}


def words_of(before, name):
    return ["I", "saw", before, name, "."]


def toy_doc(vocab, before, name, key="nested", **attrs):
    """A Doc with the candidates of a base that does not look at the word before."""
    doc = Doc(vocab, words=words_of(before, name))
    for rank, (log_prob, label) in enumerate([(-0.4, "PER"), (-1.2, "LOC")]):
        add_rank(doc, rank, [(0, 5)], [log_prob], [(3, 4, label)], key=key, **attrs)
    add_rank(doc, 2, [(0, 5)], [-4.0], [], key=key)
    return doc


def set_gold(doc, spans, key="nested"):
    made = [Span(doc, start, end, label=label) for start, end, label in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=made)


def toy_examples(nlp, key="nested", gold_key=None):
    examples = []
    for before, label in BEFORE.items():
        for name in NAMES:
            reference = toy_doc(nlp.vocab, before, name, key)
            set_gold(reference, [(3, 4, label)], gold_key or key)
            words = words_of(before, name)
            examples.append(Example(Doc(nlp.vocab, words=words), reference))
    return examples


def untrained(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("ner_reranker", config=config)
    return nlp


def trained(**config):
    nlp = untrained(**config)
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    return nlp


def found(doc, key="nested"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


def reranked(nlp, before="in", name="Gus"):
    return nlp(toy_doc(nlp.vocab, before, name))
