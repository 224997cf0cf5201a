"""Packing Docs with candidates into larger ones."""

import numpy as np
import pytest
import spacy
from candidate_toy import add_rank, two_sentences
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_treecrf.gold import Gold, GoldKeys
from spacy_treecrf.pipeline.docs.packing import Source, pack

VOCAB = spacy.blank("en").vocab


def one_segment(words, label="PER", log_prob=(-0.5, -1.0)):
    doc = Doc(VOCAB, words=words)
    spans = [[(0, 1, label)], []]
    for rank, value in enumerate(log_prob):
        add_rank(doc, rank, [(0, len(words))], [value], spans[rank])
    return doc


def found(doc, key="nested"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]


def packed(*items, n_segments=100):
    return list(pack(items, VOCAB, GoldKeys("nested"), n_segments))


@pytest.fixture
def pair():
    docs = [two_sentences(VOCAB), one_segment(["Bo", "ran"])]
    gold = [[(0, 3, "PER")], [(0, 1, "PER")]]
    (doc,) = packed(
        *(
            Source(d, Gold(spans=g), n)
            for n, (d, g) in enumerate(zip(docs, gold, strict=True))
        )
    )
    return doc


def test_packing_words_follow_one_another(pair):
    assert [token.text for token in pair][-3:] == [" ", "Bo", "ran"]
    assert len(pair) == 11


def test_packing_gold_moves_along(pair):
    assert found(pair) == [(0, 3, "PER"), (9, 10, "PER")]


def test_packing_spans_move_along(pair):
    assert found(pair, "nested:0") == [(0, 3, "PER"), (4, 5, "LOC"), (9, 10, "PER")]
    assert found(pair, "nested:1") == [(4, 5, "LOC")]


def test_packing_attrs_move_along(pair):
    first, second = (pair.spans[f"nested:{rank}"].attrs for rank in range(2))
    assert first["segments"].tolist() == [[0, 6], [6, 9], [9, 11]]
    assert first["segments"].dtype == np.int32
    assert first["log_prob"].tolist() == [-0.5, -0.1, -0.5]
    assert first["log_prob"].dtype == np.float64
    assert first["documents"].tolist() == [0, 0, 1]
    assert first["documents"].dtype == np.int32
    assert second["segments"].tolist() == [[0, 6], [9, 11]]
    assert second["documents"].tolist() == [0, 1]


def test_packing_sentences_are_the_segments(pair):
    assert [sentence.start for sentence in pair.sents] == [0, 6, 9]


def test_packing_regions_move_along():
    docs = [two_sentences(VOCAB), one_segment(["Bo", "ran"])]
    annotation = [
        Gold("spans", missing=[(3, 5, ""), (5, 7, "LOC")], incorrect=[(0, 1, "LOC")]),
        Gold("ents", unknown=[(1, 2)], incorrect=[(0, 1, "")]),
    ]
    items = [
        Source(doc, own, number)
        for number, (doc, own) in enumerate(zip(docs, annotation, strict=True))
    ]
    keys = GoldKeys("nested", "open", "wrong")
    (doc,) = pack(items, VOCAB, keys)
    data = DocBin(docs=[doc]).to_bytes()
    doc = next(DocBin().from_bytes(data).get_docs(Vocab()))
    assert found(doc, "open") == [(3, 5, ""), (5, 7, "LOC")]
    assert found(doc, "wrong") == [(0, 1, "LOC"), (9, 10, "")]
    attrs = doc.spans["nested"].attrs
    assert attrs["unknown"].tolist() == [[10, 11]]
    assert attrs["missing_spans_key"] == "open"
    assert attrs["incorrect_spans_key"] == "wrong"


def test_packing_a_segment_starts_a_sentence_also_within_one():
    doc = Doc(VOCAB, words=list("abcd"))
    add_rank(doc, 0, [(0, 2), (2, 4)], [-1.0, -1.0], [])
    (doc,) = packed(Source(doc, Gold(), 0))
    assert [sentence.start for sentence in doc.sents] == [0, 2]


def test_packing_scores_are_kept_if_all_have_them():
    docs = [Doc(VOCAB, words=["a"]) for _ in range(2)]
    for score, doc in enumerate(docs):
        scores = np.array([score], dtype=np.float32)
        add_rank(doc, 0, [(0, 1)], [-1.0], [(0, 1, "A")], scores=scores)
    both = packed(*(Source(doc, Gold(), 0) for doc in docs))
    assert both[0].spans["nested:0"].attrs["scores"].tolist() == [0.0, 1.0]
    docs[0].spans["nested:0"].attrs = {
        k: v for k, v in docs[0].spans["nested:0"].attrs.items() if k != "scores"
    }
    one = packed(*(Source(doc, Gold(), 0) for doc in docs))
    assert "scores" not in one[0].spans["nested:0"].attrs


@pytest.mark.parametrize(
    ("documents", "expected"),
    [([0, 1, 2, 3, 4], [2, 2, 1]), ([0, 0, 0, 1, 2], [3, 2]), ([0] * 5, [5])],
)
def test_packing_docs_are_full_at_a_document_border(documents, expected):
    items = [Source(one_segment(["Bo"]), Gold(), number) for number in documents]
    assert [len(doc) for doc in packed(*items, n_segments=2)] == expected


@pytest.mark.parametrize("known", [True, False])
def test_packing_spaces_are_kept_if_known(known):
    doc = Doc(VOCAB, words=["Bo", "."], spaces=[False, False])
    add_rank(doc, 0, [(0, 2)], [-1.0], [])
    items = [Source(doc, Gold(), 0, known), Source(doc, Gold(), 1)]
    (doc,) = packed(*items)
    assert doc.has_unknown_spaces == (not known)
    assert doc.text == ("Bo. Bo. " if known else "Bo . Bo . ")


def test_packing_of_docs_without_groups_or_words():
    items = [Source(Doc(VOCAB), Gold(), 0), Source(Doc(VOCAB, words=["\n"]), Gold(), 1)]
    (doc,) = packed(*items)
    assert list(doc.spans) == ["nested"]
    assert len(doc) == 1


def test_packing_of_nothing():
    assert packed() == []


def test_packing_survive_docbin(pair):
    data = DocBin(attrs=["SENT_START"], docs=[pair]).to_bytes()
    again = next(DocBin().from_bytes(data).get_docs(Vocab()))
    for key in ("nested", "nested:0", "nested:1"):
        assert found(again, key) == found(pair, key)
        for name, values in pair.spans[key].attrs.items():
            np.testing.assert_array_equal(again.spans[key].attrs[name], values)
            assert again.spans[key].attrs[name].dtype == values.dtype
