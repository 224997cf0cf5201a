"""Templates of spans within spans, by hand."""

import pytest

from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.templates.nested_templates import (
    is_nested,
    make_forest,
    roles,
)

from ..paper_sentence import make_segment, readable

WORDS = ["the", "Bank", "of", "China", "and", "Peru", "said"]
ORG, CHINA, PERU = (0, 6, "ORG"), (3, 4, "GPE"), (5, 6, "GPE")


def nested_features(*spans, words=WORDS, **kwargs):
    """Strings that exist only as spans are nested; of entities only copies by role."""
    segment = make_segment(set(spans), words=words)
    with_, without = (
        GlobalFeatures(lower_case=(), nested=nested, **kwargs).strings(segment, 0)
        for nested in (True, False)
    )
    assert without <= with_
    return readable(with_ - without)


def relations(*spans, **kwargs):
    return {s for s in nested_features(*spans, **kwargs) if "inner|" not in s} - {
        s for s in nested_features(*spans, **kwargs) if "outer|" in s
    }


def test_nested_templates_of_one_inner_span():
    assert relations((1, 4, "ORG"), CHINA) == {
        "PC=ORG_GPE",
        "PCpos=ORG_GPE_suffix",
        "PCw=ORG_GPE_before_of",
        "PCe=ORG_GPE_first_China",
        "PCe=ORG_GPE_last_China",
        "PCh=ORG_GPE_of",
        "PCh=ORG_GPE_of_China",
        "PClen=ORG_GPE_3_1",
        "PCf=Aa_a_[GPE]",
        "ORG|PCf=Aa_a_[GPE]",
        "DEP=GPE_2",
        "NC=1",
        "ORG|NC=1",
        "D=2",
        "ND=1",
        "LAB=ORG_1",
        "LAB=GPE_1",
    }


@pytest.mark.parametrize(
    "string",
    [
        "SIB=GPE_GPE_and", "SIB2=GPE_GPE", "ORG|SIB2=GPE_GPE", "NC=2", "ORG|NC=2",
        "ND=2", "LAB=GPE_2", "PCpos=ORG_GPE_middle", "PCpos=ORG_GPE_suffix",
        "PCw=ORG_GPE_before_of", "PCw=ORG_GPE_after_and", "PCw=ORG_GPE_before_and",
        "PCf=a_Aa_a_[GPE]_a_Aa", "PClen=ORG_GPE_6-9_1", "PCh=ORG_GPE_Peru",
    ],
)  # fmt: skip
def test_nested_templates_of_siblings(string):
    assert string in relations(ORG, CHINA, PERU)


@pytest.mark.parametrize(
    ("child", "place"),
    [
        ((0, 2, "B"), "prefix"),
        ((1, 2, "B"), "middle"),
        ((4, 6, "B"), "suffix"),
        ((0, 6, "PER"), "whole"),
    ],
)
def test_nested_templates_place_of_the_child(child, place):
    found = relations(ORG, child)
    assert f"PCpos=ORG_{child[2]}_{place}" in found
    assert any(string.startswith("PCh") for string in found) == (place != "whole")


def test_nested_templates_depth():
    found = relations((0, 6, "A"), (1, 4, "B"), (3, 4, "C"))
    assert {"D=3", "ND=2", "DEP=B_2", "DEP=C_3", "PC=A_B", "PC=B_C"} <= found
    assert "PC=A_C" not in found


def test_nested_templates_distant_siblings_have_labels_only():
    found = relations((0, 7, "A"), (0, 1, "B"), (6, 7, "C"))
    assert "SIB2=B_C" in found
    assert not any(string.startswith("SIB=") for string in found)


def test_nested_templates_many_counts_are_one():
    spans = [(i, i + 1, "B") for i in range(5)]
    assert {"NC=3+", "ND=3+", "LAB=B_3+"} <= relations((0, 7, "A"), *spans)


def test_nested_templates_entities_have_copies_by_role():
    found = nested_features((1, 4, "ORG"), CHINA)
    assert {"ORG|outer|WE=Bank_of_China", "GPE|inner|LW=China"} <= found
    assert sum("|inner|" in s for s in found) == 49
    assert sum("|outer|" in s for s in found) == 57


def test_nested_templates_standing_alone_is_no_role():
    alone, pair = (6, 7, "X"), [(1, 4, "ORG"), CHINA]
    assert not any("X|" in string for string in nested_features(*pair, alone))


def test_nested_templates_untyped_have_no_label():
    found = nested_features((1, 4, "ORG"), CHINA, typed=False)
    assert {"PC=_", "outer|WE=Bank_of_China", "inner|LW=China", "LAB=_2"} <= found
    assert not any("GPE" in string or "ORG" in string for string in found)


def test_nested_templates_untyped_labels_on_one_span_are_one_span():
    assert nested_features((1, 4, "A"), (1, 4, "B"), typed=False) == set()


def test_nested_templates_are_a_setting():
    segment = make_segment({(1, 4, "ORG"), CHINA}, words=WORDS)
    flat = make_segment({(1, 4, "ORG")}, {CHINA}, words=WORDS)
    features = GlobalFeatures(lower_case=(), nested=False, context=False)
    both = features.strings(flat, 0) | features.strings(flat, 1)
    assert features.strings(segment, 0) == both


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], False),
        ([(0, 1, "A"), (1, 2, "A")], False),
        ([(0, 2, "A"), (1, 2, "A")], True),
        ([(0, 1, "A"), (0, 1, "B")], True),
    ],
)
def test_nested_templates_is_nested(spans, expected):
    assert is_nested(spans) == expected


@pytest.mark.parametrize(
    ("spans", "ordered", "parents", "depths"),
    [
        ([(0, 1, "A"), (0, 3, "B")], [(0, 3, "B"), (0, 1, "A")], [-1, 0], [1, 2]),
        ([(0, 2, "B"), (0, 2, "A")], [(0, 2, "A"), (0, 2, "B")], [-1, 0], [1, 2]),
        ([(0, 2, "A"), (2, 3, "A")], [(0, 2, "A"), (2, 3, "A")], [-1, -1], [1, 1]),
        # Crossing spans, which no pipe of ours writes.
        ([(0, 2, "A"), (1, 3, "A")], [(0, 2, "A"), (1, 3, "A")], [-1, -1], [1, 1]),
    ],
)
def test_nested_templates_forest(spans, ordered, parents, depths):
    assert make_forest(spans) == (ordered, parents, depths)


def test_nested_templates_roles():
    forest = make_forest([(0, 4, "A"), (1, 4, "B"), (2, 3, "C"), (5, 6, "D")])
    assert roles(forest) == ["outer", "inner", "inner", ""]
