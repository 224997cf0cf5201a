"""Reading candidate groups of Docs as segments of a reranker."""

import numpy as np
import pytest
import spacy
from candidate_toy import add_rank, two_sentences
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_treecrf.gold import Gold, GoldKeys
from spacy_treecrf.pipeline.candidate_groups import (
    aligned_annotation,
    aligned_gold,
    check_labels,
    read_candidates,
)
from spacy_treecrf.rerank.candidates import Candidate

VOCAB = spacy.blank("en").vocab


def read(*docs, gold=None):
    return read_candidates(docs, "nested", gold)


def test_candidate_groups_words_leave_white_space_out():
    found = read(two_sentences(VOCAB))
    assert [segment.words for segment in found.segments] == [
        ("Ann", "Lee", "left", "Rome", "."),
        ("It", "rained"),
    ]


def test_candidate_groups_candidates_are_in_words_of_the_segment():
    found = read(two_sentences(VOCAB))
    assert found.segments[0].candidates == (
        Candidate(-0.5, ((0, 2, "PER"), (3, 4, "LOC"))),
        Candidate(-1.5, ((3, 4, "LOC"),)),
    )
    assert found.segments[1].candidates == (Candidate(-0.1, ()),)


def test_candidate_groups_spans_go_back_to_tokens():
    found = read(two_sentences(VOCAB))
    assert found.token_spans(0, 0) == [(0, 3, "PER"), (4, 5, "LOC")]
    assert found.token_spans(1, 0) == []


def test_candidate_groups_token_spans_are_in_text_order_outer_first():
    doc = Doc(VOCAB, words=list("abc"))
    spans = [(2, 3, "A"), (0, 1, "A"), (0, 3, "B"), (0, 1, "0")]
    add_rank(doc, 0, [(0, 3)], [-1.0], spans)
    assert read(doc).token_spans(0, 0) == [
        (0, 3, "B"),
        (0, 1, "0"),
        (0, 1, "A"),
        (2, 3, "A"),
    ]


def test_candidate_groups_spans_are_trimmed_to_words():
    doc = Doc(VOCAB, words=[" ", "a", "\n", "b"])
    add_rank(doc, 0, [(0, 4)], [-1.0], [(0, 3, "A")])
    assert read(doc).token_spans(0, 0) == [(1, 2, "A")]


def test_candidate_groups_equal_candidates_are_merged():
    doc = Doc(VOCAB, words=["a"])
    for rank, log_prob in enumerate([-1.0, -2.0, -3.0]):
        add_rank(doc, rank, [(0, 1)], [log_prob], [(0, 1, "A")])
    (candidate,) = read(doc).segments[0].candidates
    assert candidate.log_prob == pytest.approx(np.log(np.exp([-1, -2, -3.0]).sum()))


def test_candidate_groups_ties_keep_the_order_of_ranks():
    doc = Doc(VOCAB, words=["a"])
    for rank, label in enumerate("BCA"):
        add_rank(doc, rank, [(0, 1)], [-1.0], [(0, 1, label)])
    found = [c.spans[0][2] for c in read(doc).segments[0].candidates]
    assert found == ["B", "C", "A"]


def test_candidate_groups_a_doc_is_one_document():
    found = read(two_sentences(VOCAB), two_sentences(VOCAB))
    assert [segment.document for segment in found.segments] == [0, 0, 1, 1]
    assert found.docs == [0, 0, 1, 1]


def test_candidate_groups_documents_within_a_doc():
    doc = two_sentences(VOCAB)
    segments = doc.spans["nested:0"].attrs["segments"]
    documents = np.array([7, 9], dtype=np.int32)
    add_rank(doc, 0, segments, [-0.5, -0.1], [], documents=documents)
    found = read(two_sentences(VOCAB), doc, doc)
    assert [segment.document for segment in found.segments] == [0, 0, 1, 2, 3, 4]


def test_candidate_groups_under_another_key():
    doc = Doc(VOCAB, words=["a"])
    add_rank(doc, 0, [(0, 1)], [-1.0], [(0, 1, "A")], key="names")
    assert len(read_candidates([doc], "names").segments) == 1
    assert read(doc).missing == [0]


def test_candidate_groups_docs_without_words_are_not_missing():
    docs = [Doc(VOCAB), Doc(VOCAB, words=["\n"]), Doc(VOCAB, words=["a"])]
    found = read(*docs)
    assert found.missing == [2]
    assert found.segments == []


@given(
    st.lists(st.sampled_from(["a", "b", " ", "\n"]), min_size=1, max_size=8), st.data()
)
def test_candidate_groups_round_trip_of_trimmed_spans(words, data):
    doc = Doc(VOCAB, words=words)
    place = [number for number, word in enumerate(words) if word.strip()]
    edges = (
        st.tuples(*[st.sampled_from(place)] * 2).map(sorted) if place else st.nothing()
    )
    chosen = data.draw(st.lists(edges, max_size=4) if place else st.just([]))
    spans = sorted({(first, last + 1, "A") for first, last in chosen})
    cut = data.draw(st.integers(0, len(words)))
    inside = [s for s in spans if s[1] <= cut or s[0] >= cut]
    segments = [s for s in [(0, cut), (cut, len(words))] if s[0] < s[1]]
    add_rank(doc, 0, segments, [-1.0] * len(segments), inside)
    found = read(doc, gold=[inside])
    pairs = [found.token_spans(number, 0) for number in range(len(found.segments))]
    assert sorted(span for spans in pairs for span in spans) == inside
    for segment in found.segments:
        assert segment.gold == segment.candidates[0].spans
    assert found.lost_gold == []


# Gold.


def test_candidate_groups_gold_is_in_words_of_the_segment():
    gold = [[(0, 3, "PER"), (6, 7, "X"), (0, 3, "PER")]]
    found = read(two_sentences(VOCAB), gold=gold)
    assert [segment.gold for segment in found.segments] == [
        ((0, 2, "PER"),),
        ((0, 1, "X"),),
    ]
    assert found.n_gold == 2


@pytest.mark.parametrize("span", [(5, 7, "X"), (1, 2, "X"), (0, 9, "X")])
def test_candidate_groups_gold_in_no_segment_is_counted(span):
    found = read(two_sentences(VOCAB), gold=[[(0, 3, "PER"), span]])
    assert found.lost_gold == [(0, span)]
    assert found.n_gold == 2


def test_candidate_groups_without_gold_it_is_unknown():
    assert read(two_sentences(VOCAB)).segments[0].gold is None


def test_candidate_groups_gold_of_an_example_in_other_tokens():
    reference = Doc(VOCAB, words=["Ann", "Lee's", "cat"])
    reference.spans["nested"] = [
        Span(reference, 0, 1, "A"),
        Span(reference, 1, 2, "B"),
        Span(reference, 1, 3, "C"),
    ]
    predicted = Doc(VOCAB, words=["Ann", "Lee", "'s", "cat"], spaces=[1, 0, 1, 0])
    spans, lost = aligned_gold(Example(predicted, reference), "nested")
    assert spans == [(0, 1, "A"), (1, 3, "B"), (1, 4, "C")]
    assert lost == []


def test_candidate_groups_gold_that_fits_no_tokens_is_lost():
    reference = Doc(VOCAB, words=["Ann", "Lee"])
    reference.spans["nested"] = [Span(reference, 0, 1, "A")]
    predicted = Doc(VOCAB, words=["An", "n Lee"], spaces=[0, 0])
    assert aligned_gold(Example(predicted, reference), "nested") == ([], [(0, 1, "A")])


def test_candidate_groups_gold_of_ents_where_there_is_no_group():
    doc = Doc(VOCAB, words=["Ann"], ents=["B-PER"])
    assert aligned_gold(Example(doc, doc), "nested") == ([(0, 1, "PER")], [])


# Partial annotation.


def judged(annotation, doc=None):
    doc = two_sentences(VOCAB) if doc is None else doc
    return read_candidates([doc], "nested", annotation=[annotation]).segments


def test_candidate_groups_are_judged_by_their_spans_outside_of_regions():
    # Rank 0: Ann Lee and Rome; rank 1: Rome alone. Nobody looked at the first name.
    first, _ = judged(Gold("spans", [(4, 5, "LOC")], missing=[(0, 3, "")]))
    (candidate,) = first.candidates
    assert candidate.spans == ((3, 4, "LOC"),)
    assert candidate.log_prob == pytest.approx(np.log(np.exp([-0.5, -1.5]).sum()))
    assert first.gold == ((3, 4, "LOC"),)


@pytest.mark.parametrize(
    ("annotation", "n_candidates"),
    [
        (Gold("spans", missing=[(0, 3, "LOC")]), 2),  # another label than PER
        (Gold("spans", missing=[(0, 2, "")]), 2),  # the span reaches beyond
        (Gold("spans", missing=[(0, 9, "")]), 1),
        (Gold("spans", [(0, 3, "PER")], missing=[(0, 9, "")]), 2),  # gold all the same
        (Gold("spans", missing=[(0, 9, "")], incorrect=[(0, 3, "PER")]), 2),
        (Gold("ents", unknown=[(2, 3)]), 1),
        (Gold("ents", unknown=[(3, 4)]), 2),
    ],
)
def test_candidate_groups_lose_what_nobody_can_judge(annotation, n_candidates):
    assert len(judged(annotation)[0].candidates) == n_candidates


def test_candidate_groups_without_any_annotation_teach_nothing():
    doc = two_sentences(VOCAB)
    annotation = aligned_annotation(Example(doc, doc), GoldKeys("nested"))
    assert annotation.source is None
    for segment in judged(annotation, doc):
        assert [candidate.spans for candidate in segment.candidates] == [()]


def test_candidate_groups_regions_are_where_the_gold_group_says():
    doc = two_sentences(VOCAB)
    attrs = {"missing_spans_key": "open", "unknown": np.array([[6, 7]])}
    doc.spans["nested"] = SpanGroup(doc, name="nested", attrs=attrs)
    doc.spans["open"] = [Span(doc, 0, 1)]
    doc.spans["other"] = [Span(doc, 3, 4)]
    example = Example(doc, doc)
    own = aligned_annotation(example, GoldKeys("nested"))
    assert (own.missing, own.unknown) == ([(0, 1, "")], [(6, 7)])
    set_ones = aligned_annotation(example, GoldKeys("nested", "other"))
    assert set_ones.missing == [(3, 4, "")]


# Malformed groups.


def replaced(**attrs):
    """A change of the attrs of rank 1."""

    def change(doc):
        group = doc.spans["nested:1"]
        kept = {k: v for k, v in {**group.attrs, **attrs}.items() if v is not None}
        doc.spans["nested:1"] = SpanGroup(
            doc, name="nested:1", attrs=kept, spans=list(group)
        )

    return change


def first_rank(segments, spans=()):
    def change(doc):
        add_rank(doc, 0, segments, [-0.1] * len(segments), spans)

    return change


MALFORMED = {
    "no segments": (replaced(segments=None), "no attrs['segments']"),
    "no log_prob": (replaced(log_prob=None), "no attrs['log_prob']"),
    "flat segments": (replaced(segments=np.array([0, 6])), "shape (2,)"),
    "three columns": (replaced(segments=np.array([[0, 6, 1]])), "shape (1, 3)"),
    "float segments": (replaced(segments=np.array([[0.0, 6.0]])), "float64"),
    "long log_prob": (replaced(log_prob=np.zeros(2)), "of shape (2,), for 1 segments"),
    "nan": (replaced(log_prob=np.array([np.nan])), "not finite"),
    "infinite": (replaced(log_prob=np.array([-np.inf])), "not finite"),
    "text": (replaced(log_prob=np.array(["x"])), "not finite"),
    "documents": (replaced(documents=np.zeros(3)), "attrs['documents'] is of shape"),
    "other segment": (replaced(segments=np.array([[0, 5]])), "is not in 'nested:0'"),
    "outside": (first_rank([(0, 6), (6, 10)]), "within 9 tokens"),
    "negative": (first_rank([(-1, 6), (6, 9)]), "within 9 tokens"),
    "overlap": (first_rank([(0, 6), (5, 9)]), "do not follow one another"),
    "order": (first_rank([(6, 9), (0, 6)]), "do not follow one another"),
    "twice": (
        replaced(segments=np.array([[0, 6], [0, 6]]), log_prob=np.zeros(2)),
        "has a segment twice",
    ),
    "empty segment": (first_rank([(0, 6), (6, 6), (6, 9)]), "do not follow"),
    "words left out": (first_rank([(0, 6)]), "hold 5 of 7 words"),
    "none": (first_rank([]), "hold 0 of 7 words"),
    "span across": (
        first_rank([(0, 6), (6, 9)], [(4, 7, "A")]),
        "span (4, 7, 'A') lies in no segment",
    ),
    "white space": (first_rank([(0, 6), (6, 9)], [(1, 2, "A")]), "holds no word"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_candidate_groups_malformed_ones_are_named(name):
    change, problem = MALFORMED[name]
    doc = two_sentences(VOCAB)
    change(doc)
    with pytest.raises(ValueError, match="T090") as caught:
        read(doc)
    assert problem in str(caught.value)
    assert "'nested:" in str(caught.value)
    assert "'Ann" in str(caught.value)


@pytest.mark.parametrize(
    ("gold", "fits"),
    [([(0, 2, "NAME")], False), ([(0, 2, "NAME"), (0, 1, "LOC")], True), ([], True)],
    ids=["other labels", "one in common", "no gold"],
)
def test_candidate_groups_and_gold_need_a_label_in_common(gold, fits):
    found = read(two_sentences(VOCAB), gold=[gold])
    if fits:
        check_labels(found.segments, "nested")
        return
    with pytest.raises(
        ValueError, match=r"T086.*\['LOC', 'PER'\]; of gold: \['NAME'\]"
    ):
        check_labels(found.segments, "nested")
