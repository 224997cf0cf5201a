"""Entities next to one another, and equal strings in a candidate and in a document."""

import pytest

from spacy_treecrf.rerank.features import GlobalFeatures

from ..paper_sentence import make_segment, readable

NAMES = ("PE=", "NE=", "PN=", "INC=", "DS=", "DO=", "DF", "DL")


def context_features(words, *spans, document=(), **kwargs):
    """Strings of the context templates of one candidate; its document's others follow."""
    features = GlobalFeatures(lower_case=(), **kwargs)
    segment = make_segment(set(spans), words=words)
    strings = readable(features.strings(segment, 0, [segment, *document]))
    return {s for s in strings if s.rpartition("|")[2].startswith(NAMES)}


def test_context_neighbours():
    found = context_features(["A", "of", "the", "B"], (0, 1, "X"), (3, 4, "Y"))
    assert found == {"PE=X_of_the", "NE=Y_of_the", "PN=X_Y_of_the"}


def test_context_neighbours_may_touch():
    found = context_features(["A", "B"], (0, 1, "X"), (1, 2, "Y"))
    assert found == {"PE=X", "NE=Y", "PN=X_Y"}


@pytest.mark.parametrize(("between", "n_strings"), [(3, 3), (4, 0)])
def test_context_neighbours_are_near(between, n_strings):
    words = ["A", *"v" * between, "B"]
    found = context_features(
        words, (0, 1, "X"), (between + 1, between + 2, "X"), typed=False
    )
    assert len(found) == n_strings


def test_context_neighbours_are_outermost():
    words = ["A", "of", "B", "and", "C"]
    outer = context_features(words, (0, 3, "X"), (4, 5, "Y"))
    inner = context_features(words, (0, 3, "X"), (2, 3, "Z"), (4, 5, "Y"))
    assert inner == outer == {"PE=X_and", "NE=Y_and", "PN=X_Y_and"}


def test_context_untyped_neighbours_have_no_label():
    found = context_features(["A", ",", "B"], (0, 1, "X"), (2, 3, "Y"), typed=False)
    assert found == {"PE=_,", "NE=_,", "PN=__,"}


FAR = ["A", "b", *"vvvv", "A", "b"]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(0, 2, "Y"), (6, 8, "X")], {"INC=X_Y"}),
        ([(0, 2, "X"), (6, 8, "X")], set()),
        ([(0, 1, "Y"), (6, 8, "X")], set()),
        ([(0, 2, "Y"), (0, 2, "X")], set()),
        ([(0, 2, "Z"), (1, 2, "Y"), (7, 8, "X")], {"INC=X_Y"}),
    ],
)
def test_context_equal_strings_with_two_labels(spans, expected):
    assert context_features(FAR, *spans) == expected


def test_context_document_says_that_a_string_has_its_label_elsewhere():
    others = [make_segment({(0, 1, "X")}, words=["A", "n"]) for _ in range(2)]
    found = context_features(["n", "A"], (1, 2, "X"), document=others)
    same = {"DS=2", "DFS=2", "DLS=2"}
    assert found == same | {f"X|{string}" for string in same}


def test_context_document_says_that_a_string_has_another_label_elsewhere():
    others = [
        make_segment({(0, 1, "X")}, words=["A"]),
        *[make_segment({(0, 1, "Z")}, words=["A"])] * 3,
    ]
    found = context_features(["A"], (0, 1, "Y"), document=others)
    assert {s for s in found if s.rpartition("|")[2].startswith("DO=")} == {
        "DO=3+",
        "Y|DO=3+",
        "Y|DO=NULL_X",
        "Y|DO=NULL_Z",
    }


def test_context_document_counts_base_best_candidates_only():
    others = [make_segment({(1, 2, "X")}, {(0, 1, "X")}, words=["A", "B"])]
    assert context_features(["A"], (0, 1, "X"), document=others) == set()
    assert "DS=1" in context_features(["B"], (0, 1, "X"), document=others)


def test_context_document_leaves_the_own_segment_out():
    others = [make_segment(set(), words=["A"])]
    assert context_features(["A", "x"], (0, 1, "X"), document=others) == set()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["A"], {"DFS=1", "X|DFS=1"}),
        (["B"], {"DLS=1", "X|DLS=1"}),
        (["A", "v", "B"], {"DFS=1", "X|DFS=1", "DLS=1", "X|DLS=1"}),
        (["B", "A"], set()),
        (["v"], set()),
    ],
)
def test_context_document_names_begin_or_end_alike(words, expected):
    others = [make_segment({(0, 2, "X")}, words=["A", "B"])]
    span = (0, len(words), "X")
    assert context_features(words, span, document=others) == expected


def test_context_document_names_with_another_label_end_alike():
    others = [make_segment({(0, 2, "X")}, words=["A", "B"])]
    found = context_features(["v", "B"], (0, 2, "Y"), document=others)
    assert found == {"DLO=1", "Y|DLO=1", "Y|DLO=NULL_X"}


def test_context_document_untyped_sees_one_label():
    others = [make_segment({(0, 1, "X")}, words=["A"])]
    found = context_features(["A"], (0, 1, "Y"), document=others, typed=False)
    assert found == {"DS=1", "DFS=1", "DLS=1"}


def test_context_transform_keeps_documents_apart():
    corpus = [
        make_segment({(0, 1, "X")}, words=["A"], document=number)
        for number in (1, 1, 2)
    ]
    features = GlobalFeatures(min_sentences=1, lower_case=())
    features.fit(corpus)
    sizes = (
        features.transform(corpus).indptr[1:] - features.transform(corpus).indptr[:-1]
    )
    # DS, DFS, DLS and their copies.
    assert (sizes - sizes[2]).tolist() == [6, 6, 0]


def test_context_is_a_setting():
    others = [make_segment({(0, 1, "X")}, words=["A"])]
    spans = [(0, 1, "X"), (1, 2, "Y")]
    found = context_features(["A", "A"], *spans, document=others, context=False)
    assert found == set()
