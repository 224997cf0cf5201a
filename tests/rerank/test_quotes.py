"""Quotation marks: which are a pair, and what the templates say of it."""

import pytest

from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.quotes import quote_pairs

from .paper_sentence import LENNON, LOWER_CASE, WORDS, make_segment, readable


def quote_features(words, *spans, lower_case=(), **kwargs):
    features = GlobalFeatures(lower_case=lower_case, **{"typed": False, **kwargs})
    strings = features.strings(make_segment(set(spans), words=words), 0)
    return {string for string in readable(strings) if string.startswith("Q")}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ('" a " b " c "', [(0, 2), (4, 6)]),
        ('" a " b "', [(0, 2)]),
        ("`` a '' b ''", [(0, 2)]),
        ("'' a ``", []),
        ("`` a `` b ''", [(2, 4)]),
        ("“ a ” b ”", [(0, 2)]),
        ("“ a “ b ” c ”", [(2, 4)]),
        ("„ a “ b „ c ”", [(0, 2), (4, 6)]),
        ("« a »", [(0, 2)]),
        ("\" a `` b '' c \"", [(2, 4), (0, 6)]),
        ('`` a "', []),
        ("' a '", []),
        ("a b", []),
        ('" "', [(0, 1)]),
        ("", []),
    ],
)
def test_quotes_pairs(text, pairs):
    assert quote_pairs(text.split()) == pairs


def test_quotes_of_the_paper():
    found = quote_features(WORDS, LENNON, lower_case=LOWER_CASE)
    # e - s is 8: no Q and no Q2.
    assert found == {"QF=1_6_0_Aa1_Aa0", "QF2=1_1_Aa1_Aa0"}


def test_quotes_of_the_paper_without_the_entity():
    found = quote_features(WORDS, lower_case=LOWER_CASE)
    assert found == {"QF=0_6_0_Aa1_Aa0", "QF2=0_1_Aa1_Aa0"}


@pytest.mark.parametrize(
    "spans",
    [
        [(15, 20, "WORK")],
        [(16, 21, "WORK")],
        [(14, 21, "WORK")],
        [(15, 17, "WORK"), (17, 21, "WORK")],
    ],
)
def test_quotes_filled_by_other_than_one_entity(spans):
    found = quote_features(WORDS, *spans, lower_case=LOWER_CASE)
    assert found == {"QF=0_6_0_Aa1_Aa0", "QF2=0_1_Aa1_Aa0"}


def test_quotes_by_hand():
    found = quote_features(["x", '"', "a", "Bc", '"', "y"], (2, 4, "A"))
    assert found == {
        'Q="0_N_a0_S_Aa0_C_"0_N',
        'Q2=a0_N_"0_N_a0_S_Aa0_C_"0_N_a0_N',
        "QF=1_1_1_a0_Aa0",
        "QF2=1_1_a0_Aa0",
    }


def test_quotes_at_the_edges_see_null():
    found = quote_features(['"', "a", '"'])
    assert 'Q2=NULL_NULL_"0_N_a0_N_"0_N_NULL_NULL' in found


def test_quotes_mostly_lower_case():
    assert "QF2=0_0_a0_Aa0" in quote_features(['"', "a", "b", "Cc", '"'])


@pytest.mark.parametrize(("n_words", "has_q"), [(4, True), (5, False)])
def test_quotes_templates_of_all_words_are_for_near_marks(n_words, has_q):
    found = quote_features(['"', *["a"] * n_words, '"'])
    assert any(string.startswith("Q=") for string in found) == has_q
    assert any(string.startswith("Q2=") for string in found) == has_q


def test_quotes_limit_is_a_setting():
    words = ['"', "a", '"']
    assert len(quote_features(words, quote_limit=3)) == 4
    assert len(quote_features(words, quote_limit=2)) == 2


def test_quotes_around_no_word_are_not_filled():
    assert quote_features(['"', ",", '"']) == {
        'Q="0_N_,0_N_"0_N',
        'Q2=NULL_NULL_"0_N_,0_N_"0_N_NULL_NULL',
    }


def test_quotes_entity_may_leave_out_trailing_punctuation_only():
    assert "QF=1_1_0_Aa0_Aa0" in quote_features(['"', "Xx", "!", '"'], (1, 2, "A"))
    assert "QF=0_1_0_!0_Aa0" in quote_features(['"', "!", "Xx", '"'], (2, 3, "A"))


def test_quotes_typed_copy_has_the_labels():
    found = quote_features(['"', "Xx", '"'], (1, 2, "A"), typed=True)
    assert {"QF=1_1_0_Aa0_Aa0", "QF=1-A_1_0_Aa0_Aa0"} <= found
    assert {'Q="0_N_Aa0_S_"0_N', 'Q="0_N_Aa0_S-A_"0_N'} <= found


def test_quotes_typed_entity_is_one():
    found = quote_features(['"', "Xx", "Y", '"'], (1, 2, "A"), (2, 3, "B"), typed=True)
    assert "QF=0_2_0_Aa0_A0" in found


def test_quotes_of_nested_spans_see_the_outermost():
    words = ['"', "Xx", "Y", '"']
    outer = quote_features(words, (1, 3, "A"), typed=True)
    assert quote_features(words, (1, 3, "A"), (2, 3, "B"), typed=True) == outer
