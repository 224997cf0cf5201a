"""The scorer of nested entities, against figures worked out by hand."""

import pickle

import pytest
from nested_toy import make_doc
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_treecrf.muc_scorer import muc_score
from spacy_treecrf.scorers import aligned_spans, nested_score

VOCAB = Vocab()
WORDS = "a b c d e f"
# Outer A, inner B and C; one outer D. The prediction has A, C, E inside A, D mislabelled.
GOLD = [(0, 4, "A"), (0, 2, "B"), (3, 4, "C"), (5, 6, "D")]
PREDICTED = [(0, 4, "A"), (3, 4, "C"), (1, 2, "E"), (5, 6, "B")]


def example_of(gold, predicted, words=WORDS, key="nested", **groups):
    reference = make_doc(VOCAB, words, gold, key)
    for name, spans in groups.items():
        reference.spans[name] = [
            Span(reference, s, e, label=label) for s, e, label in spans
        ]
    return Example(make_doc(VOCAB, words, predicted, key), reference)


def scores(*examples, key="nested", **kwargs):
    result = nested_score(examples, spans_key=key, **kwargs)
    return {name.removeprefix(f"spans_{key}_"): value for name, value in result.items()}


def test_scorers_total_by_hand():
    result = scores(example_of(GOLD, PREDICTED))
    assert (result["p"], result["r"], result["f"]) == (0.5, 0.5, 0.5)


def test_scorers_inner_by_hand():
    # Inside a gold span: B and C in gold, C and E in the prediction; C is right.
    assert scores(example_of(GOLD, PREDICTED))["inner_f"] == 0.5


def test_scorers_outer_by_hand():
    # In none: A and D in gold, A and B(5, 6) in the prediction; A is right.
    assert scores(example_of(GOLD, PREDICTED))["outer_f"] == 0.5


def test_scorers_inner_and_outer_share_out_all_spans():
    examples = [example_of(GOLD, []), example_of(GOLD, GOLD)]
    result = scores(*examples)
    assert result["inner_f"] == result["outer_f"] == result["f"]


def test_scorers_unlabelled_by_hand():
    # Of (0, 4), (0, 2), (3, 4), (5, 6) the prediction has three, and (1, 2) besides.
    assert scores(example_of(GOLD, PREDICTED))["unlabelled_f"] == 0.75


def test_scorers_per_type_by_hand():
    per_type = scores(example_of(GOLD, PREDICTED))["per_type"]
    assert list(per_type) == ["A", "B", "C", "D", "E"]
    assert [per_type[label]["f"] for label in per_type] == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert per_type["B"] == {"p": 0.0, "r": 0.0, "f": 0.0}


def test_scorers_counts_add_up_over_examples():
    result = scores(example_of([(0, 1, "A")], [(0, 1, "A")]), example_of([], PREDICTED))
    assert result["p"] == 1 / 5
    assert result["r"] == 1.0


def test_scorers_same_span_with_two_labels_counts_twice():  # I-18
    gold = [(0, 1, "DNA"), (0, 1, "protein")]
    result = scores(example_of(gold, gold[:1]))
    assert (result["p"], result["r"]) == (1.0, 0.5)
    assert result["unlabelled_f"] == 1.0
    # A span of the same tokens is not inside the other.
    assert result["outer_f"] == result["f"]


def test_scorers_repeated_predictions_count_once():
    assert scores(example_of([(0, 1, "A")], [(0, 1, "A")] * 2))["f"] == 1.0


# Other keys, and no gold.


def test_scorers_use_the_spans_key():
    example = example_of(GOLD, PREDICTED, key="other")
    assert scores(example, key="other")["f"] == 0.5


def test_scorers_without_gold_are_none_and_warn():  # I-03
    example = example_of(GOLD, PREDICTED, key="other")
    with pytest.warns(UserWarning, match=r"T101.*none of the 1 Docs.*\['other'\]"):
        result = scores(example)
    assert set(result.values()) == {None}


def test_scorers_of_no_examples_are_none():
    assert set(scores().values()) == {None}


def test_scorers_leave_out_docs_without_the_group():
    bare = example_of(None, PREDICTED)
    assert scores(example_of(GOLD, PREDICTED), bare)["f"] == 0.5


def test_scorers_prediction_without_a_group_misses_all():
    result = scores(example_of(GOLD, None))
    assert (result["p"], result["r"]) == (0.0, 0.0)


def test_scorers_empty_gold_and_no_prediction_is_zero():
    assert scores(example_of([], []))["f"] == 0.0


def test_scorers_empty_doc():
    assert scores(example_of([], [], words=[]))["f"] == 0.0


# Partial annotation.


@pytest.mark.parametrize(
    ("region", "precision"),
    [
        ((0, 6, ""), 1.0),  # all that is wrong lies inside
        ((0, 6, "E"), 2 / 3),  # only that label is not annotated
        ((0, 2, ""), 2 / 3),
        ((1, 1, ""), 0.5),
        ((5, 6, "D"), 0.5),
    ],
)
def test_scorers_missing_regions_hold_no_false_positives(region, precision):
    example = example_of(GOLD, PREDICTED, missing=[region])
    result = scores(example, missing_spans_key="missing")
    assert result["p"] == pytest.approx(precision)
    assert result["r"] == 0.5


def test_scorers_missing_key_may_be_given_to_the_scorer():
    example = example_of(GOLD, PREDICTED, missing=[(0, 6, "")])
    score = registry.scorers.get("spacy-treecrf.nested_scorer.v1")(
        missing_spans_key="missing"
    )
    assert score([example], spans_key="nested")["spans_nested_p"] == 1.0


def test_scorers_missing_key_of_the_pipe_comes_first():
    example = example_of(GOLD, PREDICTED, missing=[(0, 6, "")])
    score = registry.scorers.get("spacy-treecrf.nested_scorer.v1")(
        missing_spans_key="other"
    )
    result = score([example], spans_key="nested", missing_spans_key="missing")
    assert result["spans_nested_p"] == 1.0


def test_scorers_incorrect_span_is_wrong_in_a_missing_region_too():
    example = example_of(GOLD, PREDICTED, missing=[(0, 6, "")], incorrect=[(1, 2, "E")])
    keys = {"missing_spans_key": "missing", "incorrect_spans_key": "incorrect"}
    # A and C are right, E is wrong, B(5, 6) is open.
    assert scores(example, **keys)["p"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("spans", "precision"),
    [
        ([(1, 2, "GPE")], 1.0),  # `York` of the token `York-based`
        ([(1, 4, "X"), (2, 3, "X")], 1.0),
        ([(0, 1, "X")], 0.5),  # `New` is annotated
        ([(0, 2, "X")], 0.5),  # reaches beyond the region
        ([(3, 5, "X")], 0.5),
        ([], 1.0),
    ],
)
@pytest.mark.parametrize("source", ["spans", "ents"])
@pytest.mark.parametrize("score", [nested_score, muc_score])
def test_scorers_regions_hold_predictions_in_other_tokens(
    score, source, spans, precision
):
    words = ["New", "York-based", "in", "Ghent"]
    if source == "spans":
        reference = Doc(VOCAB, words=words)
        reference.spans["nested"] = [Span(reference, 3, 4, label="GPE")]
        reference.spans["missing"] = [Span(reference, 1, 2)]
    else:
        reference = Doc(VOCAB, words=words, ents=["O", "", "O", "B-GPE"])
        if any(e > 1 and s < 4 and not (s >= 1 and e <= 4) for s, e, _ in spans):
            precision = 1.0  # spaCy leaves out what touches an unknown tag
    words = ["New", "York", "-", "based", "in", "Ghent"]
    spaces = [True, False, False, True, True, True]
    predicted = Doc(VOCAB, words=words, spaces=spaces)
    predicted.spans["nested"] = [
        Span(predicted, s, e, label=label) for s, e, label in [*spans, (5, 6, "GPE")]
    ]
    result = score([Example(predicted, reference)], missing_spans_key="missing")
    wrong = {0.5: 1 / (1 + len(spans)), 1.0: 1.0}[precision]
    assert result["spans_nested_p"] == pytest.approx(wrong)
    assert result["spans_nested_r"] == 1.0


@pytest.mark.parametrize("score", [nested_score, muc_score])
@pytest.mark.parametrize(
    ("tags", "precision"),
    [
        (["B-X", "O", ""], 1.0),
        (["B-X", "O", "O"], 0.5),
        (["B-X", "", ""], 1.0),
    ],
)
def test_scorers_unknown_tags_hold_no_false_positives(score, tags, precision):
    reference = Doc(VOCAB, words=list("abc"), ents=tags)
    predicted = make_doc(VOCAB, "a b c", [(0, 1, "X"), (2, 3, "X")])
    result = score([Example(predicted, reference)])
    assert result["spans_nested_p"] == precision
    assert result["spans_nested_r"] == 1.0


def test_scorers_agree_with_spacy_on_unknown_tags():
    tags = ["B-X", "", "B-X", "", "O", ""]
    reference = Doc(VOCAB, words=list("abcdef"), ents=tags)
    spans = [(0, 1, "X"), (1, 2, "X"), (2, 4, "X"), (4, 5, "X"), (5, 6, "X")]
    predicted = make_doc(VOCAB, "a b c d e f", spans)
    predicted.ents = list(predicted.spans["nested"])
    examples = [Example(predicted, reference)]
    ours, theirs = nested_score(examples), get_ner_prf(examples)
    for name in "prf":
        assert ours[f"spans_nested_{name}"] == pytest.approx(theirs[f"ents_{name}"])


def test_scorers_docs_with_and_without_the_group_are_scored_together():
    in_ents = Example(
        make_doc(VOCAB, "a b", [(1, 2, "X")]),
        Doc(VOCAB, words=["a", "b"], ents=["B-X", "O"]),
    )
    result = scores(example_of([(0, 1, "A")], [(0, 1, "A")]), in_ents)
    assert (result["p"], result["r"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("gold", "predicted", "inner", "outer"),
    [
        ([(0, 1, "A")], [(0, 1, "A")], None, 1.0),
        ([(0, 1, "A")], [(1, 2, "A")], None, 0.0),
        ([(0, 3, "A")], [(0, 3, "A"), (1, 2, "B")], 0.0, 1.0),
        ([(0, 3, "A"), (1, 2, "B")], [(0, 3, "A")], 0.0, 1.0),
        ([(0, 3, "A"), (1, 2, "B")], [], 0.0, 0.0),
        ([], [], None, None),
    ],
)
def test_scorers_have_no_score_where_nothing_is_inner(gold, predicted, inner, outer):
    result = scores(example_of(gold, predicted))
    assert (result["inner_f"], result["outer_f"]) == (inner, outer)


# Other tokens.


def retokenized(spans):
    """An Example whose predicted Doc has the first two words in one token."""
    reference = Doc(VOCAB, words=["New-", "York", "is"], spaces=[False, True, False])
    reference.spans["nested"] = [Span(reference, 0, 2, label="GPE")]
    predicted = Doc(VOCAB, words=["New-York", "is"], spaces=[True, False])
    predicted.spans["nested"] = [
        Span(predicted, s, e, label=label) for s, e, label in spans
    ]
    return Example(predicted, reference)


def test_scorers_align_predictions_to_the_gold_tokens():
    gold, predicted = aligned_spans(retokenized([(0, 1, "GPE")]), "nested")
    assert gold == predicted == {(0, 2, "GPE")}


def test_scorers_prediction_that_fits_no_gold_token_counts_as_wrong():
    reference = Doc(VOCAB, words=["New-York", "is"], spaces=[True, False])
    reference.spans["nested"] = [Span(reference, 0, 1, label="GPE")]
    predicted = Doc(VOCAB, words=["New-", "York", "is"], spaces=[False, True, False])
    predicted.spans["nested"] = [
        Span(predicted, s, e, label="GPE") for s, e in ((0, 1), (1, 2), (0, 2))
    ]
    result = scores(Example(predicted, reference))
    assert result["p"] == pytest.approx(1 / 3)
    assert result["r"] == 1.0


def test_scorers_pickle():  # I-63
    score = registry.scorers.get("spacy-treecrf.nested_scorer.v1")()
    again = pickle.loads(pickle.dumps(score))
    example = example_of(GOLD, PREDICTED)
    assert again([example], spans_key="nested") == score([example], spans_key="nested")
