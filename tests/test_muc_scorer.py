"""MUC scoring."""

import pickle

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry

from spacy_treecrf.muc_scorer import greedy_pairs, half_credit, slot_credit

KEYS = [
    (0, 2, "ENAMEX/PERSON"),
    (5, 8, "ENAMEX/ORG"),
    (9, 10, "TIMEX/DATE"),
]
RESPONSES = [
    (0, 2, "ENAMEX/PERSON"),
    (5, 7, "ENAMEX/ORG"),
    (9, 10, "TIMEX/TIME"),
    (12, 13, "ENAMEX/LOC"),
]
WORDS = [f"w{n}" for n in range(14)]
NLP = spacy.blank("en")


def example_of(keys, responses, words=WORDS, key="nested"):
    example = Example(Doc(NLP.vocab, words=words), Doc(NLP.vocab, words=words))
    for doc, spans in ((example.reference, keys), (example.predicted, responses)):
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    return example


def scores(examples, key="nested", **config):
    score = registry.scorers.get("spacy-treecrf.muc_scorer.v1")(**config)
    result = score(examples, spans_key=key)
    return {name.removeprefix(f"spans_{key}_"): value for name, value in result.items()}


def test_muc_scorer_worked_example():
    found = scores([example_of(KEYS, RESPONSES)])
    assert found["muc_p"] == pytest.approx(2 / 4)
    assert found["muc_r"] == pytest.approx(2 / 3)
    assert found["muc_f"] == pytest.approx(4 / 7)
    assert found["f"] == pytest.approx(2 / 7)
    assert found["per_type"]["ENAMEX/PERSON"]["f"] == 1.0


def element_of(spans):
    return {span[2]: span[2].partition("/")[0] for span in spans}


@pytest.mark.parametrize(
    ("response", "halves", "slots"),
    [
        ((2, 5, "ENAMEX/PERSON"), 1.0, 1.0),
        ((2, 4, "ENAMEX/PERSON"), 0.5, 0.5),
        ((3, 5, "ENAMEX/PERSON"), 0.5, 0.5),
        ((1, 6, "ENAMEX/PERSON"), 0.0, 0.5),  # neither boundary: the modes differ
        ((2, 5, "ENAMEX/ORG"), 0.5, 0.5),
        ((2, 4, "ENAMEX/ORG"), 0.0, 0.0),
        ((2, 5, "TIMEX/DATE"), 0.0, 0.0),
        ((6, 7, "ENAMEX/PERSON"), 0.0, 0.0),
    ],
)
def test_muc_scorer_credit_of_one_pair(response, halves, slots):
    keys, responses = {(2, 5, "ENAMEX/PERSON")}, {response}
    elements = element_of(keys | responses)
    assert half_credit(keys, responses, elements) == halves
    assert slot_credit(keys, responses, elements) == slots


def test_muc_scorer_each_name_is_used_once():
    keys = {(0, 4, "X"), (4, 8, "X")}
    responses = {(0, 8, "X")}
    assert half_credit(keys, responses, {"X": None}) == 0.5


def test_muc_scorer_exact_pairs_come_first():
    keys = {(0, 4, "X"), (2, 4, "X")}
    responses = {(2, 4, "X")}
    assert half_credit(keys, responses, {"X": None}) == 1.0


def test_muc_scorer_larger_overlap_comes_first():
    keys = {(0, 3, "X"), (3, 8, "X")}
    pairs = greedy_pairs(keys, {(1, 8, "X")}, lambda key, response: True)
    assert pairs == [((3, 8, "X"), (1, 8, "X"))]


def test_muc_scorer_labels_without_element_have_no_half_for_it():
    keys, responses = {(0, 2, "PER")}, {(0, 2, "ORG")}
    assert half_credit(keys, responses, {"PER": None, "ORG": None}) == 0.0


def test_muc_scorer_takes_a_map_of_elements():
    example = example_of([(0, 2, "PER")], [(0, 2, "ORG")])
    elements = {"PER": "ENAMEX", "ORG": "ENAMEX"}
    assert scores([example], elements=elements)["muc_f"] == 0.5


def test_muc_scorer_warns_of_labels_that_a_map_lacks():
    example = example_of([(0, 2, "PER")], [(0, 2, "ORG")])
    with pytest.warns(UserWarning, match=r"T082.*\['ORG'\]"):
        assert scores([example], elements={"PER": "ENAMEX"})["muc_f"] == 0.5


@pytest.mark.parametrize(("lenient", "expected"), [(False, 0.0), (True, 1.0)])
def test_muc_scorer_lenient_edges(lenient, expected):
    words = ["the", "Acme", "Corp.", ","]
    example = example_of([(0, 3, "ORG")], [(1, 2, "ORG")], words)
    assert scores([example], lenient_edges=lenient)["muc_f"] == expected


def test_muc_scorer_lenient_edges_keep_one_token():
    example = example_of([(0, 1, "X")], [(0, 1, "X")], ["the", "Co", "."])
    assert scores([example], lenient_edges=True)["muc_f"] == 1.0


def test_muc_scorer_gold_may_be_in_ents():
    example = example_of([], [(0, 1, "X")])
    del example.reference.spans["nested"]
    example.reference.ents = [Span(example.reference, 0, 1, label="X")]
    assert scores([example])["f"] == 1.0


def test_muc_scorer_leaves_out_what_is_not_annotated():
    annotated, bare = example_of(KEYS, RESPONSES), example_of([], [(0, 1, "X")])
    del bare.reference.spans["nested"]
    assert scores([annotated, bare]) == scores([annotated])


def test_muc_scorer_without_gold_scores_none_and_warns():
    bare = example_of(KEYS, RESPONSES, key="other")
    with pytest.warns(UserWarning, match=r"T101.*\['other'\]"):
        found = scores([bare])
    assert set(found.values()) == {None}


def test_muc_scorer_of_no_examples_is_none():
    assert set(scores([]).values()) == {None}


def test_muc_scorer_of_empty_gold_and_no_prediction_is_zero():
    assert scores([example_of([], [])])["muc_f"] == 0.0


def test_muc_scorer_refuses_an_unknown_mode():
    with pytest.raises(ValueError, match="slots"):
        scores([], mode="thirds")


def test_muc_scorer_pickles():
    score = registry.scorers.get("spacy-treecrf.muc_scorer.v1")(mode="slots")
    again = pickle.loads(pickle.dumps(score))
    assert again([example_of(KEYS, RESPONSES)]) == score([example_of(KEYS, RESPONSES)])


spans = st.sets(
    st.tuples(
        st.integers(0, 6), st.integers(1, 3), st.sampled_from(["A/x", "A/y", "B/x"])
    )
).map(lambda found: {(s, s + size, label) for s, size, label in found})


@given(spans, spans)
def test_muc_scorer_credit_lies_between_exact_and_all(keys, responses):
    elements = element_of(keys | responses)
    exact = len(keys & responses)
    for give_credit in (half_credit, slot_credit):
        credit = give_credit(keys, responses, elements)
        assert exact <= credit <= min(len(keys), len(responses))
        # Keys and responses are treated alike up to the order of equal pairs.
        assert give_credit(keys, keys, elements) == len(keys)
