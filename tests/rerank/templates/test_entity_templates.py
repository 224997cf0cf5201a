"""The entity templates: the paper's sentence, and how many there are."""

import pytest

from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.templates.entity_templates import (
    FIXED,
    entity_strings,
    feature,
)
from spacy_treecrf.rerank.words import SegmentWords, WordTable

from ..paper_sentence import (
    ARTS,
    GEN_XER,
    LENNON,
    LOWER_CASE,
    WORDS,
    make_segment,
    readable,
)


def paper_features(*spans, words=WORDS):
    """The features of the paper and no others."""
    features = GlobalFeatures(typed=False, context=False, lower_case=LOWER_CASE)
    return readable(features.strings(make_segment(set(spans), words=words), 0))


def templates_of(span, words=WORDS):
    table = WordTable(frozenset(LOWER_CASE))
    return entity_strings(SegmentWords(words, table), *span[:2])


@pytest.mark.parametrize(
    "string",
    [
        "WE=Gen_Xer", "FF=Aa_Aa", "GF=Aa0_Aa0", "LW=Xer", "LWLC=0",
        "BO00=clueless_Gen", "BO01=clueless_Aa0", "BO10=a1_Gen", "BO11=a1_Aa0",
        "BE00=Xer_,", "BE01=Xer_,0", "BE10=Aa0_,", "BE11=Aa0_,0",
        "TO000=a_clueless_Gen", "TO010=a_a1_Gen", "TO100=a1_clueless_Gen",
        "TO111=a1_a1_Aa0", "TO2000=clueless_Gen_Xer", "TO2010=clueless_Aa0_Xer",
        "TO2001=clueless_Gen_Aa0", "TE000=Gen_Xer_,", "TE001=Gen_Xer_,0",
        "TE011=Gen_Aa0_,0", "TE2000=clueless_Gen_Xer", "TE2100=a1_Gen_Xer",
        "TE2111=a1_Aa0_Aa0", "PF=Aa", "PF=Aa_Aa", "PF2=Aa0", "PF2=Aa0_Aa0",
        "SF=Aa", "SF=Aa_Aa", "SF2=Aa0", "SF2=Aa0_Aa0",
    ],
)  # fmt: skip
def test_entity_templates_of_the_paper(string):
    assert string in paper_features(GEN_XER)


@pytest.mark.parametrize(
    "string",
    [
        "WE=Gen_Xer", "WE=The_Day_They_Shot_John_Lennon", "WE=Dougherty_Arts_Center",
        "LW=Lennon", "BO00=“_The", "BE00=Lennon_,", "GF=Aa1_Aa1_Aa1_Aa1_Aa0_Aa0",
        "PF2=Aa1_Aa1", "SF2=Aa0_Aa0_Aa1", "TO000=,_“_The", "TE000=John_Lennon_,",
        "TO2110=a1_Aa0_Arts", "SF2=Aa1_Aa1_Aa0", "PF2=Aa0_Aa1_Aa1",
    ],
)  # fmt: skip
def test_entity_templates_of_the_whole_paper_candidate(string):
    assert string in paper_features(GEN_XER, LENNON, ARTS)


@pytest.mark.parametrize(("span", "size"), [(GEN_XER, 53), (LENNON, 69), (ARTS, 57)])
def test_entity_templates_print_45_and_4_a_word(span, size):
    assert len(templates_of(span)) == size


@pytest.mark.parametrize("span", [GEN_XER, LENNON, ARTS])
def test_entity_templates_print_the_features_of_an_entity_alone(span):
    # The quotation marks stand around Lennon, whether or not it is an entity.
    quotes = {s for s in paper_features(span) if s.startswith("Q")}
    printed = readable(templates_of(span))
    assert paper_features(span) - quotes == printed


@pytest.mark.parametrize(
    ("words", "span", "expected"),
    [
        (("University", "for", "Women"), (0, 2, "ORG"), {"LWLC=1", "LW=for"}),
        (
            ("IBM",),
            (0, 1, "ORG"),
            {
                "BO00=NULL_IBM", "BE11=A0_NULL", "TO000=NULL_NULL_IBM",
                "TO2111=NULL_A0_NULL", "TE101=NULL_IBM_NULL", "TE2000=NULL_NULL_IBM",
                "PF=A", "SF2=A0",
            },
        ),
        (
            ("G.M.", "3M"),
            (0, 2, "ORG"),
            {"GF=A.A.0_0A0", "SF=0A", "SF=0A_A.A.", "PF=A.A._0A", "TE010=G.M._0A0_NULL"},
        ),
    ],
)  # fmt: skip
def test_entity_templates_by_hand(words, span, expected):
    assert expected <= paper_features(span, words=words)


def test_entity_templates_names_are_the_papers():
    names = {f"B{side}{i}{j}" for side in "OE" for i in "01" for j in "01"} | {
        f"T{side}{two}{i}{j}{k}"
        for side in "OE"
        for two in ("", "2")
        for i in "01"
        for j in "01"
        for k in "01"
    }
    assert set(FIXED.templates) == names | {"LW", "LWLC"}


def test_entity_templates_typed_copy_has_the_label():
    features = GlobalFeatures(lower_case=LOWER_CASE, context=False)
    untyped = GlobalFeatures(lower_case=LOWER_CASE, context=False, typed=False)
    segment = make_segment({GEN_XER}, words=WORDS[:13])
    plain = untyped.strings(segment, 0)
    copies = {f"PER|{string}" for string in plain}
    assert features.strings(segment, 0) == plain | copies | {"T=PER"}


def test_entity_templates_feature_prints_its_parts():
    assert feature("LW", "a", "b") == "LW=a\x1fb"
