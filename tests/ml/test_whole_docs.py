"""The model over Docs alone, as `spacy debug model` calls it."""

import numpy as np
import spacy
from nested_toy import add_treecrf, toy_examples
from spacy.tokens import Doc

from spacy_treecrf.pipeline.docs.segments import DocSegments


def test_whole_docs_are_a_segment_each():
    nlp = spacy.blank("en")
    pipe = add_treecrf(nlp)
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    docs = [Doc(nlp.vocab, words=words) for words in (["a"], [], ["b", " ", "c"])]
    segments = DocSegments(docs, 512).for_model()
    (expected,) = pipe.model.predict((docs, segments))
    (chunk,) = pipe.model.predict(docs)
    np.testing.assert_array_equal(chunk.data, expected.data)
    assert chunk.usable.tolist() == expected.usable.tolist()
    assert pipe.model.predict(docs[1:2]) == []
