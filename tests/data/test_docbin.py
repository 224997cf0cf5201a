"""Docs from sentences: the group, sentence starts, and a round trip by file."""

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.training import Corpus
from spacy.vocab import Vocab

from spacy_treecrf.data.docbin import make_docs, write_docbin
from spacy_treecrf.data.records import Sentence

VOCAB = spacy.blank("xx").vocab
# "\ud83d\ude80" spelt as one character, a combining accent, no-width and NUL characters.
TOKENS = st.sampled_from(["a", "\n ", "🚀", "cafe\u0301", "\u200b", "\ufeffB", "a\0b"])


@st.composite
def sentences(draw):
    tokens = draw(st.lists(TOKENS | st.text(min_size=1), max_size=6))
    spaces = draw(st.none() | st.just([bool(i % 2) for i in range(len(tokens))]))
    bounds = st.tuples(*[st.integers(0, len(tokens))] * 2).filter(lambda b: b[0] < b[1])
    spans = draw(
        st.sets(st.tuples(bounds, st.sampled_from(["X", "Y Z", "é|,\t"])), max_size=4)
        if tokens
        else st.just(set())
    )
    doc = draw(st.sampled_from([None, "d1", "d2"]))
    return Sentence("s", tokens, sorted((*b, label) for b, label in spans), doc, spaces)


def read(path):
    return list(DocBin().from_disk(path).get_docs(Vocab()))


def spans_of(doc, key="nested"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


@given(st.lists(sentences(), min_size=1, max_size=4))
def test_docbin_round_trip(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("docbin") / "new" / "out.spacy"
    write_docbin(make_docs(records, VOCAB, "nested", keep_spaces=True), path)
    docs = read(path)
    assert [[t.text for t in doc] for doc in docs] == [r.tokens for r in records]
    assert [spans_of(doc) for doc in docs] == [r.spans for r in records]
    for doc, record in zip(docs, records, strict=True):
        assert doc.has_unknown_spaces == (record.spaces is None)
        if record.spaces is not None:
            assert [bool(t.whitespace_) for t in doc] == record.spaces


@given(st.lists(sentences(), min_size=1, max_size=4))
def test_docbin_merge_keeps_every_sentence(records):
    docs = list(make_docs(records, VOCAB, "nested", merge_docs=True))
    tokens = [t for record in records for t in record.tokens]
    assert [t.text for doc in docs for t in doc] == tokens
    texts = [[t.text for t in sent] for doc in docs for sent in doc.sents]
    assert texts == [record.tokens for record in records if record.tokens]
    labels = sorted(label for record in records for _, _, label in record.spans)
    assert sorted(s[2] for doc in docs for s in spans_of(doc)) == labels


def test_docbin_merge_joins_runs_of_a_document():
    records = [
        Sentence("1", ["a", "b"], [(0, 2, "X")], "d1", [True, False]),
        Sentence("2", ["c"], [(0, 1, "Y")], "d1"),
        Sentence("3", ["e"], [], None),
        Sentence("4", ["f"], [], None),
        Sentence("5", ["g"], [], "d2"),
    ]
    docs = list(make_docs(records, VOCAB, "key", merge_docs=True))
    assert [doc.text.strip() for doc in docs] == ["a b c", "e", "f", "g"]
    assert spans_of(docs[0], "key") == [(0, 2, "X"), (2, 3, "Y")]
    assert [doc.user_data["id"] for doc in docs] == ["d1", "3", "4", "d2"]


def test_docbin_merge_keeps_words_of_known_spacing_apart():
    spaces = [False, False]
    records = [Sentence(n, [n, "."], [], "d", spaces, own_tokens=False) for n in "ab"]
    (doc,) = make_docs(records, VOCAB, "nested", merge_docs=True)
    assert doc.text == "a. b."
    assert not doc.has_unknown_spaces


def test_docbin_leaves_sentences_and_entities_unset():
    (doc,) = make_docs([Sentence("1", ["a", "b"], [])], VOCAB, "nested")
    assert not doc.has_annotation("SENT_START")
    assert not doc.has_annotation("ENT_IOB")


@pytest.mark.parametrize("keep_spaces", [True, False])
@pytest.mark.parametrize("own_tokens", [True, False])
def test_docbin_corpus_tokens_survive_the_reader(tmp_path, keep_spaces, own_tokens):
    """spaCy splits the text anew where the spacing is known, and only there."""
    nlp = spacy.blank("en")
    words, spaces = ["IL", "-", "2B"], [False, False, True]
    record = Sentence("1", words, [(0, 1, "X")], None, spaces, own_tokens)
    path = tmp_path / "out.spacy"
    docs = make_docs([record], nlp.vocab, "nested", keep_spaces=keep_spaces)
    write_docbin(docs, path)
    (example,) = Corpus(path)(nlp)
    is_known = keep_spaces or not own_tokens
    assert example.reference.text == ("IL-2B " if is_known else "IL - 2B ")
    tokens = [t.text for t in example.predicted]
    assert tokens == ([t.text for t in nlp("IL-2B ")] if is_known else words)


@pytest.mark.parametrize("tokens", [[], ["a"]])
def test_docbin_writes_an_empty_group(tmp_path, tokens):
    docs = make_docs([Sentence("1", tokens, [])], VOCAB, "other")
    write_docbin(docs, tmp_path / "out.spacy")
    (doc,) = read(tmp_path / "out.spacy")
    assert list(doc.spans) == ["other"]
    assert doc.spans["other"].name == "other"


def test_docbin_names_are_stored_on_demand(tmp_path):
    for keep_ids in (True, False):
        docs = make_docs([Sentence("s1", ["a"], [], "d1")], VOCAB, "nested")
        write_docbin(docs, tmp_path / f"{keep_ids}.spacy", keep_ids)
    assert read(tmp_path / "True.spacy")[0].user_data == {"id": "s1", "doc": "d1"}
    assert read(tmp_path / "False.spacy")[0].user_data == {}
