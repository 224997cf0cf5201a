"""Reading candidate groups of Docs as segments of a reranker."""

import numpy as np
import pytest
import spacy
from candidate_toy import add_rank, two_sentences
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, SpanGroup
from spacy.training import Example

from spacy_treecrf.gold import Gold, GoldKeys, aligned_gold
from spacy_treecrf.pipeline.docs.analyses import write
from spacy_treecrf.pipeline.docs.reading import read as read_analyses
from spacy_treecrf.pipeline.ranking.corpus import (
    check_labels,
    place_gold,
    ranking_gold,
    ranking_segments,
    without_open,
)
from spacy_treecrf.rerank.candidates import Candidate

VOCAB = spacy.blank("en").vocab


def read(*docs, key="nested"):
    return read_analyses(docs, key)


def segments_of(*docs, gold=None):
    found = read(*docs)
    placed = None if gold is None else place_gold(found.segments, gold)[0]
    return ranking_segments(found, placed)


def rank_of(doc, rank=0):
    return next(read(doc).by_doc(rank))[0]


def test_reading_words_leave_white_space_out():
    assert [segment.words for segment in segments_of(two_sentences(VOCAB))] == [
        ("Ann", "Lee", "left", "Rome", "."),
        ("It", "rained"),
    ]


def test_reading_candidates_are_in_words_of_the_segment():
    first, second = segments_of(two_sentences(VOCAB))
    assert first.candidates == (
        Candidate(-0.5, ((0, 2, "PER"), (3, 4, "LOC"))),
        Candidate(-1.5, ((3, 4, "LOC"),)),
    )
    assert second.candidates == (Candidate(-0.1, ()),)


def test_reading_end_at_the_first_gap():
    doc = two_sentences(VOCAB)
    add_rank(doc, 3, [(0, 6)], [-3.0], [])
    assert read(doc).n_ranks == 2


def test_reading_written_again_are_the_same():
    docs = [two_sentences(VOCAB), Doc(VOCAB), two_sentences(VOCAB)]
    copies = [Doc(VOCAB, words=[token.text for token in doc]) for doc in docs]
    write(copies, "nested", read(*docs), ents=False)
    for doc, copy in zip(docs, copies, strict=True):
        for rank in range(2 if len(doc) else 0):
            one, other = (d.spans[f"nested:{rank}"] for d in (doc, copy))
            assert [(s.start, s.end, s.label) for s in one] == [
                (s.start, s.end, s.label) for s in other
            ]
            for name, values in one.attrs.items():
                np.testing.assert_array_equal(other.attrs[name], values)


def test_reading_token_spans_are_in_text_order_outer_first():
    doc = Doc(VOCAB, words=list("abc"))
    spans = [(2, 3, "A"), (0, 1, "A"), (0, 3, "B"), (0, 1, "0")]
    add_rank(doc, 0, [(0, 3)], [-1.0], spans)
    assert rank_of(doc) == [
        (0, 3, "B"),
        (0, 1, "0"),
        (0, 1, "A"),
        (2, 3, "A"),
    ]


def test_reading_spans_are_trimmed_to_words():
    doc = Doc(VOCAB, words=[" ", "a", "\n", "b"])
    add_rank(doc, 0, [(0, 4)], [-1.0], [(0, 3, "A")])
    (segment,) = segments_of(doc)
    assert segment.candidates[0].spans == ((0, 1, "A"),)


def test_reading_equal_candidates_are_merged():
    doc = Doc(VOCAB, words=["a"])
    for rank, log_prob in enumerate([-1.0, -2.0, -3.0]):
        add_rank(doc, rank, [(0, 1)], [log_prob], [(0, 1, "A")])
    (candidate,) = segments_of(doc)[0].candidates
    assert candidate.log_prob == pytest.approx(np.log(np.exp([-1, -2, -3.0]).sum()))


def test_reading_ties_keep_the_order_of_ranks():
    doc = Doc(VOCAB, words=["a"])
    for rank, label in enumerate("BCA"):
        add_rank(doc, rank, [(0, 1)], [-1.0], [(0, 1, label)])
    found = [c.spans[0][2] for c in segments_of(doc)[0].candidates]
    assert found == ["B", "C", "A"]


def test_reading_a_doc_is_one_document():
    docs = two_sentences(VOCAB), two_sentences(VOCAB)
    assert [segment.document for segment in segments_of(*docs)] == [0, 0, 1, 1]
    assert read(*docs).segments.doc.tolist() == [0, 0, 1, 1]


def test_reading_documents_within_a_doc():
    doc = two_sentences(VOCAB)
    segments = doc.spans["nested:0"].attrs["segments"]
    documents = np.array([7, 9], dtype=np.int32)
    add_rank(doc, 0, segments, [-0.5, -0.1], [], documents=documents)
    found = segments_of(two_sentences(VOCAB), doc, doc)
    assert [segment.document for segment in found] == [0, 0, 1, 2, 3, 4]


def test_reading_under_another_key():
    doc = Doc(VOCAB, words=["a"])
    add_rank(doc, 0, [(0, 1)], [-1.0], [(0, 1, "A")], key="names")
    assert len(read(doc, key="names").segments) == 1
    assert len(read(doc).segments) == 0


@given(
    st.lists(st.sampled_from(["a", "b", " ", "\n"]), min_size=1, max_size=8), st.data()
)
def test_reading_round_trip_of_trimmed_spans(words, data):
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
    assert sorted(rank_of(doc)) == inside
    for segment in segments_of(doc, gold=[inside]):
        assert segment.gold == segment.candidates[0].spans
    assert place_gold(read(doc).segments, [inside])[1] == []


# Gold.


def test_reading_gold_is_in_words_of_the_segment():
    gold = [[(0, 3, "PER"), (6, 7, "X"), (0, 3, "PER")]]
    found = segments_of(two_sentences(VOCAB), gold=gold)
    assert [segment.gold for segment in found] == [((0, 2, "PER"),), ((0, 1, "X"),)]


@pytest.mark.parametrize("span", [(5, 7, "X"), (1, 2, "X"), (0, 9, "X")])
def test_reading_gold_in_no_segment_is_counted(span):
    gold = [[(0, 3, "PER"), span]]
    assert place_gold(read(two_sentences(VOCAB)).segments, gold)[1] == [(0, span)]


def test_reading_without_gold_it_is_unknown():
    assert segments_of(two_sentences(VOCAB))[0].gold is None


def test_reading_gold_of_an_example_in_other_tokens():
    reference = Doc(VOCAB, words=["Ann", "Lee's", "cat"])
    reference.spans["nested"] = [
        Span(reference, 0, 1, "A"),
        Span(reference, 1, 2, "B"),
        Span(reference, 1, 3, "C"),
    ]
    predicted = Doc(VOCAB, words=["Ann", "Lee", "'s", "cat"], spaces=[1, 0, 1, 0])
    found = aligned_gold(Example(predicted, reference), GoldKeys("nested"))
    assert found.spans == [(0, 1, "A"), (1, 3, "B"), (1, 4, "C")]
    assert found.lost == []


def test_reading_gold_that_fits_no_tokens_is_lost():
    reference = Doc(VOCAB, words=["Ann", "Lee"])
    reference.spans["nested"] = [Span(reference, 0, 1, "A")]
    predicted = Doc(VOCAB, words=["An", "n Lee"], spaces=[0, 0])
    found = aligned_gold(Example(predicted, reference), GoldKeys("nested"))
    assert (found.spans, found.lost) == ([], [(0, 1, "A")])


def test_reading_gold_of_ents_where_there_is_no_group():
    doc = Doc(VOCAB, words=["Ann"], ents=["B-PER"])
    found = aligned_gold(Example(doc, doc), GoldKeys("nested"))
    assert (found.spans, found.lost) == ([(0, 1, "PER")], [])


# Partial annotation.


def judged(annotation, doc=None):
    doc = two_sentences(VOCAB) if doc is None else doc
    found = without_open(read(doc), [annotation])
    return ranking_segments(found, place_gold(found.segments, [annotation.spans])[0])


def test_reading_are_judged_by_their_spans_outside_of_regions():
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
def test_reading_lose_what_nobody_can_judge(annotation, n_candidates):
    assert len(judged(annotation)[0].candidates) == n_candidates


def test_reading_without_any_annotation_teach_nothing():
    doc = two_sentences(VOCAB)
    annotation = ranking_gold(Example(doc, doc), {"spans_key": "nested"})
    assert annotation.source is None
    for segment in judged(annotation, doc):
        assert [candidate.spans for candidate in segment.candidates] == [()]


def test_reading_regions_are_where_the_gold_group_says():
    doc = two_sentences(VOCAB)
    attrs = {"missing_spans_key": "open", "unknown": np.array([[6, 7]])}
    doc.spans["nested"] = SpanGroup(doc, name="nested", attrs=attrs)
    doc.spans["open"] = [Span(doc, 0, 1)]
    doc.spans["other"] = [Span(doc, 3, 4)]
    example = Example(doc, doc)
    own = aligned_gold(example, GoldKeys("nested"))
    assert (own.missing, own.unknown) == ([(0, 1, "")], [(6, 7)])
    set_ones = aligned_gold(example, GoldKeys("nested", "other"))
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
def test_reading_malformed_ones_are_named(name):
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
def test_reading_and_gold_need_a_label_in_common(gold, fits):
    found = segments_of(two_sentences(VOCAB), gold=[gold])
    if fits:
        check_labels(found, "nested")
        return
    with pytest.raises(
        ValueError, match=r"T086.*\['LOC', 'PER'\]; of gold: \['NAME'\]"
    ):
        check_labels(found, "nested")
