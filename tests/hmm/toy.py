"""The two-sentence corpus of the worked numbers, and enumeration of labellings."""

import itertools

import numpy as np

from spacy_treecrf.hmm.learning import learn
from spacy_treecrf.hmm.model import Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import make_word_features

NAN, PER, ORG = 0, 1, 2
SENTENCES = [
    ["Mr.", "Jones", "eats", "."],
    ["Mr.", "Smith", "of", "IBM", "eats", "."],
]
CLASSES = [[NAN, PER, NAN, NAN], [NAN, PER, NAN, ORG, NAN, NAN]]


def segment_starts(classes):
    """Where segments begin if no two segments of one class are adjacent."""
    return [at == 0 or c != classes[at - 1] for at, c in enumerate(classes)]


def learn_from(sentences, classes, begins=None, n_classes=3, features=None, **settings):
    """A model of labelled sentences, the hold-out cut in the middle."""
    begins = begins or [segment_starts(c) for c in classes]
    return learn(
        TokenBatch.from_sentences(sentences),
        np.array([c for sentence in classes for c in sentence]),
        np.array([b for sentence in begins for b in sentence]),
        np.arange(len(sentences)) >= len(sentences) // 2,
        Settings(n_classes, **settings),
        features or make_word_features(),
    )


def toy_model(**settings):
    """The model of the worked numbers, which predate the punctuation context."""
    settings.setdefault("punctuation_context", False)
    return learn_from(SENTENCES, CLASSES, **settings)


def labellings(length, n_classes):
    """Every labelled segmentation: two adjacent NOT-A-NAME segments are one."""
    for classes in itertools.product(range(n_classes), repeat=length):
        for inner in itertools.product((True, False), repeat=length - 1):
            begins = (True, *inner)
            if all(
                (begins[t] or classes[t] == classes[t - 1])
                and not (begins[t] and classes[t] == classes[t - 1] == NAN)
                for t in range(1, length)
            ):
                yield classes, begins
