"""A toy corpus of flat names, and the flat pipes trained on it."""

import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

PEOPLE = ["Ann Lee", "Bo Chan", "Cy Dow", "Di Ek", "Ed Fry", "Flo Gray"]
CITIES = ["Paris", "Rome", "Oslo", "New York"]
# What each flat pipe needs to learn from a handful of sentences.
CONFIGS = {"identifinder": {}, "maxent_ner": {"cutoff": 1}}


def make_doc(vocab, words, spans=None, ents=None, key="nested", starts=None):
    doc = Doc(vocab, words=words, sent_starts=starts)
    if spans is not None:
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    if ents is not None:
        doc.ents = [Span(doc, s, e, label=label) for s, e, label in ents]
    return doc


def sentence(person, city):
    first, last = person.split(), city.split()
    words = ["Mr.", *first, "lives", "in", *last, "."]
    at = len(first) + 3
    return words, [(1, 1 + len(first), "PER"), (at, at + len(last), "LOC")]


def examples_of(nlp, gold="spans", **kwargs):
    found = []
    for person in PEOPLE:
        for city in CITIES:
            words, spans = sentence(person, city)
            reference = make_doc(nlp.vocab, words, **{gold: spans}, **kwargs)
            found.append(Example(Doc(nlp.vocab, words=words), reference))
    return found


def untrained(factory, **config):
    nlp = spacy.blank("en")
    nlp.add_pipe(factory, config={**CONFIGS[factory], **config})
    return nlp


def trained(factory="identifinder", **config):
    nlp = untrained(factory, **config)
    examples = examples_of(nlp)
    nlp.initialize(lambda: examples)
    return nlp


def run(nlp, words):
    return nlp(Doc(nlp.vocab, words=words))


def found(doc, key="nested"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


TEXT = ["Mr.", "Gus", "Holt", "lives", "in", "Rome", "."]
ENTITIES = [(1, 3, "PER"), (5, 6, "LOC")]
