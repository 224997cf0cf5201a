"""Character offsets to token offsets, against spaCy's `Doc.char_span`."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_treecrf.data.alignment import Aligner, n_misaligned, token_bounds
from spacy_treecrf.problems import Problems

VOCAB = spacy.blank("xx").vocab


@st.composite
def docs_and_offsets(draw):
    words = draw(st.lists(st.sampled_from(["a", "bc", "def", "\n", " "]), min_size=1))
    spaces = draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    doc = Doc(VOCAB, words=words, spaces=spaces)
    start = draw(st.integers(0, len(doc.text) - 1))
    end = draw(st.integers(start + 1, len(doc.text)))
    return doc, words, spaces, start, end


@pytest.mark.parametrize("mode", ["strict", "contract"])
@given(docs_and_offsets())
def test_alignment_agrees_with_char_span(mode, drawn):
    doc, words, spaces, start, end = drawn
    aligner = Aligner(doc.text, token_bounds(words, spaces), Problems(), mode)
    span = doc.char_span(start, end, label="X", alignment_mode=mode)
    aligned = aligner.align(start, end, "X", "f:1")
    assert aligned == (span and (span.start, span.end, "X"))


@given(docs_and_offsets())
def test_alignment_expand_takes_all_tokens_it_touches(drawn):
    doc, words, spaces, start, end = drawn
    aligner = Aligner(doc.text, token_bounds(words, spaces), Problems(), "expand")
    touched = [t.i for t in doc if t.idx < end and start < t.idx + len(t)]
    expected = (touched[0], touched[-1] + 1, "X") if touched else None
    assert aligner.align(start, end, "X", "f:1") == expected


@given(docs_and_offsets(), st.sampled_from(["strict", "contract", "expand"]))
def test_alignment_counts_each_span_that_ends_within_a_token(drawn, mode):
    doc, words, spaces, start, end = drawn
    problems = Problems()
    Aligner(doc.text, token_bounds(words, spaces), problems, mode).align(
        start, end, "X", "f:1"
    )
    assert n_misaligned(problems) == (doc.char_span(start, end) is None)


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [
        (11, 15, r"f:1: GPE (11, 15) 'Hello from ' >'Indi'< 'a'"),
        (11, 17, r"f:1: GPE (11, 17) of a text of 16 characters"),
        (-1, 5, r"f:1: GPE (-1, 5) of a text of 16 characters"),
        (5, 5, r"f:1: GPE (5, 5) of a text of 16 characters"),
    ],
)
@pytest.mark.parametrize("mode", ["strict", "contract", "expand"])
def test_alignment_names_the_text(mode, start, end, shown):
    problems = Problems()
    text = "Hello from India"
    bounds = token_bounds(["Hello", "from", "India"], [True, True, False])
    Aligner(text, bounds, problems, mode).align(start, end, "GPE", "f:1")
    assert [details for _, details in problems.messages()] == [shown]
