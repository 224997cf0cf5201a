"""Gold of a Doc and of an example: its source, its regions, what fits other tokens."""

import pytest
import spacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from spacy_treecrf.gold import GoldKeys, aligned_gold, read_gold

VOCAB = spacy.blank("en").vocab
KEYS = GoldKeys("nested", "missing", "incorrect")


def make_doc(words, spaces=None, ents=None, **groups):
    """A Doc; `ents` are IOB tags, "" where a tag is unknown."""
    doc = Doc(VOCAB, words=words, spaces=spaces, ents=ents)
    for key, spans in groups.items():
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    return doc


def mail(**groups):
    """CASES: `@` and `foo.com` are one token of the pipeline."""
    words = ["mail", "@", "foo.com", "in", "Rome", "."]
    reference = make_doc(words, [True, False, True, True, False, False], **groups)
    predicted = make_doc(
        ["mail", "@foo.com", "in", "Rome", "."], [True, True, True, False, False]
    )
    return Example(predicted, reference)


# Where gold is.


def test_gold_is_under_the_key():
    doc = make_doc(["Rome", "fell"], ents=["B-GPE", "O"], nested=[(0, 2, "X")])
    gold = read_gold(doc, KEYS)
    assert (gold.source, gold.spans, gold.regions) == ("spans", [(0, 2, "X")], [])


def test_gold_of_an_empty_group_is_no_entity():
    doc = make_doc(["Rome", "fell"], ents=["B-GPE", "O"], nested=[])
    gold = read_gold(doc, KEYS)
    assert (gold.source, gold.spans) == ("spans", [])


def test_gold_is_in_the_entities_where_the_key_is_absent():
    gold = read_gold(make_doc(["Rome", "fell"], ents=["B-GPE", "O"]), KEYS)
    assert (gold.source, gold.spans, gold.unknown) == ("ents", [(0, 1, "GPE")], [])


def test_gold_may_be_entities_of_which_there_are_none():
    doc = make_doc(["It", "fell"])
    doc.ents = []
    assert read_gold(doc, KEYS).source == "ents"


@pytest.mark.parametrize("doc", [make_doc(["It", "fell"]), make_doc([])], ids=str)
def test_gold_of_a_bare_doc_has_no_source(doc):
    assert read_gold(doc, KEYS).source is None


# Unknown tags.


@pytest.mark.parametrize(
    ("tags", "runs"),
    [
        (["", "O", "B-X", "O"], [(0, 1)]),
        (["B-X", "O", "", ""], [(2, 4)]),
        (["", "B-X", "", "O"], [(0, 1), (2, 3)]),
        (["O", "", "", "O"], [(1, 3)]),
    ],
)
def test_gold_unknown_tags_are_runs(tags, runs):
    gold = read_gold(make_doc(list("abcd"), ents=tags), KEYS)
    assert gold.unknown == runs
    assert gold.regions == [(start, end, "") for start, end in runs]


@pytest.mark.parametrize(
    ("tags", "runs"),
    [(["", "O", "", "O"], [(0, 3)]), (["O", "", "O", "O"], [])],
)
def test_gold_tags_of_white_space_say_nothing(tags, runs):
    doc = make_doc(["a", "\n", "b", "c"], ents=tags)
    assert read_gold(doc, KEYS).unknown == runs


def test_gold_unknown_tags_count_only_where_gold_is_in_the_entities():
    doc = make_doc(["a", "b"], ents=["O", ""], nested=[])
    assert read_gold(doc, KEYS).regions == []


def test_gold_unknown_tags_of_from_dict():
    doc = make_doc(["Ann", "met", "Bo"])
    example = Example.from_dict(doc, {"entities": ["U-PER", "O", "-"]})
    gold = aligned_gold(example, KEYS)
    assert (gold.spans, gold.unknown) == ([(0, 1, "PER")], [(2, 3)])


# Regions in other tokens.


def test_gold_missing_region_widens_to_the_tokens_that_it_touches():
    gold = aligned_gold(mail(nested=[], missing=[(0, 2, "")]), KEYS)
    assert gold.missing == [(0, 2, "")]


@pytest.mark.parametrize(
    ("region", "widened"),
    [((1, 2, "A"), (1, 2, "A")), ((2, 3, ""), (1, 2, "")), ((2, 5, ""), (1, 4, ""))],
)
def test_gold_missing_region_may_begin_and_end_inside_a_token(region, widened):
    gold = aligned_gold(mail(nested=[], missing=[region]), KEYS)
    assert (gold.missing, gold.lost_missing) == ([widened], [])


def test_gold_unknown_tags_widen_too():
    example = mail(ents=["O", "", "O", "O", "B-GPE", "O"])
    gold = aligned_gold(example, KEYS)
    assert gold.unknown == [(1, 2)]
    assert gold.spans == [(3, 4, "GPE")]


def test_gold_incorrect_span_inside_a_token_is_lost():
    gold = aligned_gold(mail(nested=[], incorrect=[(1, 2, "X"), (4, 5, "Y")]), KEYS)
    assert gold.incorrect == [(3, 4, "Y")]
    assert gold.lost_incorrect == [(1, 2, "X")]


@pytest.mark.parametrize("same", [True, False])
def test_gold_region_without_a_token_is_lost(same):
    example = mail(nested=[], missing=[(1, 1, ""), (3, 4, "")])
    if same:
        words = [token.text for token in example.reference]
        example = Example(make_doc(words), example.reference)
    gold = aligned_gold(example, KEYS)
    assert gold.lost_missing == [(1, 1, "")]
    assert len(gold.missing) == 1


def test_gold_region_of_an_empty_doc_is_not_lost():
    gold = read_gold(make_doc([], nested=[], missing=[(0, 0, "")]), KEYS)
    assert (gold.missing, gold.lost_missing) == ([], [])


def test_gold_region_of_white_space_is_not_lost():
    reference = make_doc(["a", " ", "b"], nested=[], missing=[(1, 2, "")])
    for predicted in (reference.copy(), make_doc(["a", "b"], [True, False])):
        words = "".join(token.text_with_ws for token in predicted)
        assert words
        assert aligned_gold(Example(predicted, reference), KEYS).lost_missing == []


# What nobody can judge.


@pytest.mark.parametrize(
    ("span", "is_open"),
    [
        ((1, 2, "X"), True),
        ((0, 3, "X"), True),
        ((0, 4, "X"), False),  # reaches beyond the region
        ((0, 2, "GOLD"), False),
        ((0, 1, "WRONG"), False),  # nobody has annotated it, but this label is wrong
        ((0, 1, "X"), True),
        ((2, 3, "X"), False),  # no label is right
        ((4, 5, "X"), False),
        ((4, 5, "A"), True),
    ],
)
def test_gold_open_spans_are_inside_a_region_and_not_annotated(span, is_open):
    doc = make_doc(
        list("abcdef"),
        nested=[(0, 2, "GOLD")],
        missing=[(0, 3, ""), (4, 6, "A")],
        incorrect=[(0, 1, "WRONG"), (2, 3, "")],
    )
    assert read_gold(doc, KEYS).is_open(span) == is_open


@pytest.mark.parametrize(
    ("span", "is_open"),
    [((1, 2, "X"), True), ((0, 2, "X"), True), ((0, 1, "X"), False)],
)
def test_gold_open_spans_touch_an_unknown_tag(span, is_open):  # as in spaCy's scorer
    doc = make_doc(list("abc"), ents=["O", "", "B-X"])
    assert read_gold(doc, KEYS).is_open(span) == is_open
