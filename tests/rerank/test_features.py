"""The global features: strings are the definition, numbers the implementation."""

import json
import pickle
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.rerank import words
from spacy_treecrf.rerank.candidates import Candidate, CandidateSegment
from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.templates.word_templates import WORD_TEMPLATES

from .paper_sentence import ARTS, GEN_XER, LENNON, LOWER_CASE, make_segment

# How many, and their sum; of the paper's sentence.
PAPER_NUMBERS = (383, 13946892167398199571)
WORD_POOL = [
    "the", "The", "IBM", "a1", "G.M.", ",", '"', "``", "''", "",
    "x\x1fy", "x", "y", "\x00", "\x10", "\x100", "Aa",
]  # fmt: skip
LABEL_POOL = ["PER", "ORG", "A|WE=x", "A", "=", "inner", ""]


@st.composite
def segments(draw, flat=False, max_words=7):
    drawn = draw(st.lists(st.sampled_from(WORD_POOL), min_size=1, max_size=max_words))
    fences = st.lists(
        st.integers(0, len(drawn)), min_size=2, max_size=2, unique=True
    ).map(sorted)
    span = st.tuples(fences, st.sampled_from(LABEL_POOL)).map(lambda s: (*s[0], s[1]))
    span_sets = draw(st.lists(st.sets(span, max_size=4), min_size=1, max_size=4))
    if flat:
        span_sets = [set(without_overlap(spans)) for spans in span_sets]
    return make_segment(*span_sets, words=drawn, document=draw(st.integers(0, 1)))


def without_overlap(spans):
    reached = 0
    for span in sorted(spans):
        if span[0] >= reached:
            reached = span[1]
            yield span


corpora = st.lists(segments(), min_size=1, max_size=4).map(
    lambda drawn: sorted(drawn, key=lambda segment: segment.document)
)
options = st.fixed_dictionaries(
    {
        "typed": st.booleans(),
        "nested": st.booleans(),
        "context": st.booleans(),
        "quote_limit": st.integers(0, 6),
    }
)
few = settings(deadline=None, max_examples=20)


def fitted(corpus, **kwargs):
    features = GlobalFeatures(**kwargs)
    features.fit(corpus)
    return features


def all_strings(features, corpus):
    """The printed features of every candidate, in order."""
    return [
        features.strings(
            segment, rank, [s for s in corpus if s.document == segment.document]
        )
        for segment in corpus
        for rank in range(len(segment.candidates))
    ]


def columns(rows):
    return [set(part.tolist()) for part in np.split(rows.indices, rows.indptr[1:-1])]


def segments_with(features, corpus):
    """In how many segments each string occurs, by the definition."""
    found = {}
    strings = iter(all_strings(features, corpus))
    for number, segment in enumerate(corpus):
        for _ in segment.candidates:
            for string in next(strings):
                found.setdefault(string, set()).add(number)
    return {string: len(numbers) for string, numbers in found.items()}


@few
@given(corpora, options)
def test_features_share_columns_exactly_as_strings(corpus, kwargs):
    features = fitted(corpus, min_sentences=1, **kwargs)
    strings = all_strings(features, corpus)
    found = columns(features.transform(corpus))
    assert features.n_features == len(set().union(*strings))
    assert [len(row) for row in found] == [len(row) for row in strings]
    for (row, row_2), (printed, printed_2) in zip(
        combinations(found, 2), combinations(strings, 2), strict=True
    ):
        assert len(row & row_2) == len(printed & printed_2)


@few
@given(corpora, options, st.integers(1, 4))
def test_features_cut_off_counts_segments(corpus, kwargs, minimum):
    features = fitted(corpus, min_sentences=minimum, **kwargs)
    counts = segments_with(features, corpus)
    kept = {string for string, count in counts.items() if count >= minimum}
    assert features.n_features == len(kept)
    found = columns(features.transform(corpus))
    for row, strings in zip(found, all_strings(features, corpus), strict=True):
        assert len(row) == len(strings & kept)


@few
@given(segments(flat=True))
def test_features_flat_candidates_have_nothing_nested(segment):
    features = GlobalFeatures(nested=True, lower_case=())
    without = GlobalFeatures(nested=False, lower_case=())
    for rank in range(len(segment.candidates)):
        assert features.strings(segment, rank) == without.strings(segment, rank)


@few
@given(corpora)
def test_features_rows_are_sorted_and_distinct(corpus):
    rows = fitted(corpus, min_sentences=1).transform(corpus)
    assert rows.indptr[0] == 0
    assert rows.indptr[-1] == len(rows.indices)
    for start, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        assert np.all(np.diff(rows.indices[start:end]) > 0)


@few
@given(corpora)
def test_features_dropped_are_those_that_all_candidates_have(corpus):
    features = fitted(corpus, min_sentences=1)
    whole = columns(features.transform(corpus))
    reduced = columns(features.transform(corpus, drop_shared=True))
    first = 0
    for segment in corpus:
        rows = slice(first, first + len(segment.candidates))
        shared = set.intersection(*whole[rows])
        assert reduced[rows] == [row - shared for row in whole[rows]]
        first = rows.stop


def test_features_of_a_large_corpus_do_not_depend_on_its_blocks():
    corpus = [
        make_segment(
            {(i % 3, i % 3 + 1, "PER")},
            set(),
            words=[f"w{i % 7}", "b", "c"],
            document=i,
        )
        for i in range(700)
    ]
    features = fitted(corpus, min_sentences=5)
    counts = segments_with(features, corpus)
    assert features.n_features == sum(count >= 5 for count in counts.values())
    whole = columns(features.transform(corpus))
    alone = [
        row for segment in corpus for row in columns(features.transform([segment]))
    ]
    assert whole == alone


def test_features_cut_off_ignores_how_many_candidates_have_a_string():
    spans = [{(0, 1, "A")}, {(0, 1, "A"), (1, 2, "B")}, {(0, 1, "A"), (2, 3, "B")}]
    corpus = [make_segment(*spans, words=["a", "b", "c"], document=i) for i in range(2)]
    assert fitted(corpus, min_sentences=2).n_features > 0
    assert fitted(corpus, min_sentences=3).n_features == 0


def test_features_are_the_same_in_another_process():
    code = (
        "import json, sys\n"
        "from tests.rerank.test_features import paper_numbers\n"
        "print(json.dumps(paper_numbers()))\n"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert [json.loads(text) for text in printed] == [paper_numbers()] * 2


def paper_numbers(**kwargs):
    """Numbers of the features of the paper's sentence."""
    features = GlobalFeatures(min_sentences=1, lower_case=LOWER_CASE, **kwargs)
    features.fit([make_segment({GEN_XER, LENNON, ARTS})])
    return features.to_arrays()[1]["features"].tolist()


@pytest.mark.parametrize(
    ("context", "expected"),
    [(False, (344, 12701786719528771689)), (True, PAPER_NUMBERS)],
)
def test_features_keep_their_numbers_between_versions(context, expected):
    """Saved models hold numbers: a change of the hash must be a new format."""
    numbers = paper_numbers(context=context)
    assert len(numbers) == len(set(numbers))
    assert (len(numbers), sum(numbers) % 2**64) == expected


def test_features_word_with_a_separator_is_not_two_words():
    features = GlobalFeatures(lower_case=())
    one = make_segment({(0, 1, "A")}, words=["x\x1fy"])
    two = make_segment({(0, 2, "A")}, words=["x", "y"])
    assert "WE=x\x1fy" in features.strings(two, 0)
    assert "WE=x\x1fy" not in features.strings(one, 0)


def test_features_word_of_the_null_character_is_not_outside():
    features = GlobalFeatures(lower_case=())
    outside = make_segment({(0, 1, "A")}, words=["x"])
    inside = make_segment({(1, 2, "A")}, words=["\x00", "x"])
    assert "BO00=\x00\x1fx" in features.strings(outside, 0)
    assert "BO00=\x00\x1fx" not in features.strings(inside, 0)


def test_features_unseen_labels_and_words_are_unknown():
    features = fitted([make_segment({GEN_XER, LENNON, ARTS})], min_sentences=1)
    other = make_segment({(0, 1, "NEW")}, set(), words=["Zzz9"], document=3)
    rows = features.transform([other])
    # The types of "the Zzz9": nothing is left but what any entity shares, LWLC=0.
    assert columns(rows) == [columns(rows)[0], set()]
    assert len(columns(rows)[0]) == 1


@pytest.mark.parametrize("spans", [set(), {(0, 1, "A")}])
def test_features_of_one_word(spans):
    segment = make_segment(spans, words=["IBM"])
    features = fitted([segment], min_sentences=1)
    # 49 templates without and with the label, T, and those of words with the label.
    n_strings = 99 + len(WORD_TEMPLATES)
    assert len(features.strings(segment, 0)) == (n_strings if spans else 0)
    assert np.diff(features.transform([segment]).indptr).tolist() == [
        len(features.strings(segment, 0))
    ]


def test_features_of_a_candidate_without_spans_are_none():
    segment = make_segment(set(), words=["x"])
    assert GlobalFeatures(lower_case=()).strings(segment, 0) == set()


def test_features_transform_nothing():
    rows = GlobalFeatures().transform([])
    assert (rows.indptr.tolist(), rows.indices.tolist()) == ([0], [])
    assert (rows.indptr.dtype, rows.indices.dtype) == (np.int64, np.int32)


def test_features_without_fit_know_nothing():
    rows = GlobalFeatures().transform([make_segment({GEN_XER}, set())])
    assert rows.indptr.tolist() == [0, 0, 0]


def test_features_fit_nothing():
    assert fitted([]).n_features == 0


@few
@given(corpora, options)
def test_features_survive_arrays(corpus, kwargs):
    features = fitted(corpus, min_sentences=1, **kwargs)
    header, arrays = features.to_arrays()
    again = GlobalFeatures.from_arrays(json.loads(json.dumps(header)), arrays)
    rows, rows_2 = features.transform(corpus), again.transform(corpus)
    assert rows.indptr.tolist() == rows_2.indptr.tolist()
    assert rows.indices.tolist() == rows_2.indices.tolist()
    assert again.settings == features.settings
    assert again.min_sentences == features.min_sentences


@few
@given(corpora, st.integers(0, 2))
def test_features_selected_keep_their_order(corpus, skipped):
    features = fitted(corpus, min_sentences=1)
    kept = np.arange(features.n_features) % 3 != skipped
    numbers = (np.cumsum(kept) - 1).tolist()
    expected = [
        {numbers[k] for k in row if kept[k]}
        for row in columns(features.transform(corpus))
    ]
    features.select(kept)
    assert features.n_features == kept.sum()
    assert columns(features.transform(corpus)) == expected


def test_features_fit_reports_progress():
    done = []
    segment = make_segment({GEN_XER})
    GlobalFeatures().fit([segment] * 300, progress=done.append)
    assert sum(done) == 300


@pytest.mark.parametrize(
    "kwargs", [{"min_sentences": 0}, {"min_sentences": 256}, {"quote_limit": -1}]
)
def test_features_refuse_settings_without_meaning(kwargs):
    with pytest.raises(ValueError, match="expected"):
        GlobalFeatures(**kwargs)


def test_features_learn_lower_case_words_from_training():
    segments_ = [
        CandidateSegment(text, (Candidate(0.0, ()),))
        for text in [("The", "cat", "Bill"), ("A", "The", "the", "the", "bill")]
    ]
    features = fitted(segments_)
    # "The" at a start does not count; "bill" is as often capitalised as not.
    assert features.lower_case == {"the", "cat"}


def test_features_given_lower_case_words_are_kept():
    features = GlobalFeatures(lower_case=LOWER_CASE)
    features.fit([make_segment({GEN_XER})])
    assert features.lower_case == set(LOWER_CASE)


def test_features_hold_a_bounded_number_of_words(monkeypatch):
    monkeypatch.setattr(words, "_CACHE_SIZE", 3)
    features = fitted([make_segment({GEN_XER})], min_sentences=1)
    expected = columns(features.transform([make_segment({GEN_XER})]))
    features.transform([make_segment({(0, 1, "A")}, words=map(str, range(9)))])
    assert columns(features.transform([make_segment({GEN_XER})])) == expected


def test_features_are_pickled():
    features = fitted([make_segment({GEN_XER})], min_sentences=1)
    again = pickle.loads(pickle.dumps(features))
    rows = again.transform([make_segment({GEN_XER})])
    assert columns(rows) == columns(features.transform([make_segment({GEN_XER})]))
