"""Affixes of an entity's words, and words around it."""

import pytest

from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.templates.word_templates import WORD_TEMPLATES

from ..paper_sentence import ARTS, GEN_XER, LENNON, LOWER_CASE, make_segment, readable

NAMES = tuple(f"{name}=" for name in WORD_TEMPLATES.templates)


def word_features(*spans, **kwargs):
    """Strings of these templates, of the paper's sentence if there are no other words."""
    words = kwargs.pop("words", None)
    features = GlobalFeatures(lower_case=LOWER_CASE, **kwargs)
    segment = make_segment(set(spans), **({"words": words} if words else {}))
    strings = readable(features.strings(segment, 0))
    return {s for s in strings if s.rpartition("|")[2].startswith(NAMES)}


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        (
            GEN_XER,
            {
                "LS2=er", "LS3=xer", "LS4=xer", "FP3=gen", "FP4=gen", "FS3=gen",
                "C-2=a", "C-3=or", "C+2=“", "C-2-1=a_clueless", "C+1+2=,_“",
                "C-1+1=clueless_,",
            },
        ),
        (
            ARTS,
            {
                "LS2=er", "LS3=ter", "LS4=nter", "FP3=dou", "FP4=doug", "FS3=rty",
                "C-2=at", "C-3=playing", "C+2=entertains", "C-2-1=at_the",
                "C+1+2=,_entertains", "C-1+1=the_,",
            },
        ),
    ],
)  # fmt: skip
def test_word_templates_of_the_paper_sentence(span, expected):
    assert word_features(span, typed=False) == expected


def test_word_templates_outside_the_segment_is_null():
    found = word_features((0, 1, "A"), words=["IBM"], typed=False)
    around = {string for string in found if string.startswith("C")}
    assert around == {
        "C-2=NULL", "C-3=NULL", "C+2=NULL", "C-2-1=NULL_NULL", "C+1+2=NULL_NULL",
        "C-1+1=NULL_NULL",
    }  # fmt: skip


def test_word_templates_do_not_see_case():
    words = ["The", "Bank", "OF", "China", "Said", "So"]
    one = word_features((1, 4, "A"), words=words)
    assert one == word_features((1, 4, "A"), words=[word.lower() for word in words])


def test_word_templates_have_copies_with_the_label_only():
    plain = word_features(GEN_XER, LENNON, typed=False)
    typed = word_features(GEN_XER, (*LENNON[:2], "PER"))
    assert typed == {f"PER|{string}" for string in plain}


def test_word_templates_are_not_the_papers():
    assert not word_features(GEN_XER, LENNON, ARTS, context=False)


def test_word_templates_have_no_copies_with_a_role():
    found = word_features((0, 3, "A"), (2, 3, "B"))
    assert {string.count("|") for string in found} == {1}


def test_word_templates_names_are_of_no_other_template():
    without = GlobalFeatures(lower_case=LOWER_CASE, context=False, typed=False)
    strings = without.strings(make_segment({GEN_XER, LENNON, ARTS}), 0)
    assert not any(string.startswith(NAMES) for string in strings)
