"""Docs as runs of words, sentence by sentence."""

from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_treecrf.pipeline.docs.segments import DocSegments, join_words

VOCAB = Vocab()
tokens = st.lists(
    st.tuples(st.sampled_from(["a", "Bc", "\n", " ", "🚀"]), st.booleans()), max_size=8
)


def make(words, vocab=VOCAB):
    return Doc(
        vocab,
        words=[word for word, _ in words],
        sent_starts=[at == 0 or start for at, (_, start) in enumerate(words)],
    )


def expected_of(doc):
    """Words and their places, sentence by sentence, white space left out."""
    found = []
    for sentence in doc.sents if len(doc) else ():
        words = [(t.i, t.text) for t in sentence if not t.is_space]
        if words:
            found.append(((sentence.start, sentence.end), words))
    return found


@settings(deadline=None)
@given(st.lists(tokens, max_size=4))
def test_segments_equal_those_of_the_docs(texts):
    docs = [make(words) for words in texts]
    segments = DocSegments(docs)
    sentences = segments.words()
    types, numbers = sentences.types()
    got, at = [], 0
    for length, number, doc in zip(
        sentences.lengths, sentences.segments, sentences.docs, strict=True
    ):
        segment = (int(segments.start[number]), int(segments.end[number]))
        here = slice(at, at + length)
        words = list(
            zip(
                sentences.tokens[here].tolist(),
                [types[n] for n in numbers[here]],
                strict=True,
            )
        )
        got.append((int(doc), segment, words))
        at += length
    assert got == [
        (number, segment, words)
        for number, doc in enumerate(docs)
        for segment, words in expected_of(doc)
    ]


def test_segments_a_doc_without_starts_is_one():
    sentences = DocSegments([Doc(VOCAB, words=["a", ".", "b"])])
    assert sentences.lengths.tolist() == [3]


def test_segments_resolve_words_of_several_vocabularies():
    docs = [make([("one", True)], Vocab()), make([("two", True)], Vocab())]
    types, numbers = DocSegments(docs).words().types()
    assert [types[n] for n in numbers] == ["one", "two"]


def test_segments_join():
    parts = [DocSegments([make([("a", True), ("b", True)])]).words() for _ in range(2)]
    joined = join_words(parts)
    assert joined.lengths.tolist() == [1, 1, 1, 1]
    assert len(joined.stores) == 1
