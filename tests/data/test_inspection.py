"""What is reported of a corpus of Docs, and under which index."""

import pytest
import spacy
from spacy.tokens import Doc, Span, SpanGroup

from spacy_treecrf.data import inspection
from spacy_treecrf.data.inspection import inspect_docs, sentence_lengths

VOCAB = spacy.blank("en").vocab


def make_doc(words, spans=None, starts=None, key="nested"):
    sent_starts = None
    if starts is not None:
        sent_starts = [i in starts for i in range(len(words))]
    doc = Doc(VOCAB, words=words, sent_starts=sent_starts)
    if spans is not None:
        made = [Span(doc, start, end, label=label) for start, end, label in spans]
        doc.spans[key] = SpanGroup(doc, name=key, spans=made)
    return doc


def inspect(*docs, n_named=5):
    return inspect_docs([make_doc(["x"], []), *docs], "nested", n_named)


@pytest.mark.parametrize(
    ("doc", "kind", "detail"),
    [
        (
            make_doc(list("abcd"), [(0, 3, "A"), (1, 4, "B")]),
            inspection.CROSSING,
            "doc 1: 'a b c' and 'b c d'",
        ),
        (
            make_doc(list("ab"), [(0, 2, "B"), (0, 2, "A")]),
            inspection.SEVERAL_LABELS,
            "doc 1: A + B 'a b'",
        ),
        (
            make_doc(["a", "\n "], [(0, 2, "A")]),
            inspection.WHITE_SPACE,
            "doc 1: A 'a \\n '",
        ),
        (
            make_doc([" ", "a"], [(0, 2, "A")]),
            inspection.WHITE_SPACE,
            "doc 1: A '  a'",
        ),
        (
            make_doc(list("abc"), [(0, 2, "A"), (1, 3, "B"), (1, 2, "C")], {0, 2}),
            inspection.ACROSS_SENTENCES,
            "doc 1: B 'b c'",
        ),
        (make_doc(list("ab"), [(1, 1, "A")]), inspection.EMPTY, "doc 1: A at token 1"),
        (
            make_doc(list("ab"), [(0, 1, "A"), (0, 1, "A")]),
            inspection.REPEATED,
            "doc 1: A 'a'",
        ),
        (make_doc(list("ab"), [], key="sc"), inspection.NO_GROUP, "doc 1: 'a b '"),
    ],
    ids=lambda value: value.split(":")[0] if isinstance(value, str) else "",
)
def test_inspection_names_what_makes_trouble(doc, kind, detail):
    problems = inspect(doc).problems
    assert problems.counts[kind] == 1
    assert problems.named[kind] == [detail]


def test_inspection_finds_no_trouble_in_nested_spans():
    spans = [(0, 2, "A"), (0, 2, "B"), (1, 2, "A"), (2, 4, "A")]
    found = inspect(make_doc(list("abcd"), spans, {0, 2})).problems
    assert dict(found.counts) == {inspection.SEVERAL_LABELS: 1}
    assert not inspect(make_doc(list("abcd"), spans[1:], {0, 2})).problems.counts


def test_inspection_names_docs_by_id_where_stored():
    doc = make_doc(["a"])
    doc.user_data["id"] = "s7"
    problems = inspect(doc, make_doc(["b"])).problems
    assert problems.named[inspection.NO_GROUP] == ["doc 1 (s7): 'a '", "doc 2: 'b '"]


def test_inspection_names_as_many_as_asked():
    docs = [make_doc(["a"]) for _ in range(4)]
    problems = inspect(*docs, n_named=3).problems
    assert problems.counts[inspection.NO_GROUP] == 4
    assert len(problems.named[inspection.NO_GROUP]) == 3


def test_inspection_totals():
    found = inspect(
        make_doc(list("abc"), [(0, 2, "A"), (1, 2, "B"), (2, 2, "A")], {0, 2}),
        make_doc(list("ab"), [(0, 1, "A")], key="other"),
        make_doc([], []),
    )
    assert (found.counts.docs, found.counts.sentences, found.counts.tokens) == (4, 4, 6)
    assert (found.counts.spans, found.counts.inner) == (2, 1)
    assert (found.n_without_boundaries, found.n_without_spans) == (1, 3)
    assert found.sentence_lengths == {1: 2, 2: 2}
    assert found.keys == {"nested": 3, "other": 1}
    assert found.entities == {("a b", "A"): 1, ("b", "B"): 1}
    assert found.texts == {"x": 1, "a b c": 1, "a b": 1, "": 1}


@pytest.mark.parametrize(
    ("n_tokens", "starts", "lengths"),
    [(0, None, []), (3, None, [3]), (3, {0, 1}, [1, 2]), (3, {0, 1, 2}, [1, 1, 1])],
)
def test_inspection_sentence_lengths(n_tokens, starts, lengths):
    assert sentence_lengths(make_doc(["a"] * n_tokens, starts=starts)) == lengths
