"""The common record: checks, order, and the list of problems."""

import pytest

from spacy_treecrf.data.records import Sentence, checked_sentence
from spacy_treecrf.problems import N_NAMED, ConversionError, Problems


@pytest.mark.parametrize(
    ("tokens", "spaces", "spans", "message"),
    [
        (["a", ""], None, [], "token 1 is ''"),
        (["\ud800"], None, [], "token 0 is '.ud800'"),
        (["a"], [True, False], [], "2 spaces for 1 tokens"),
        (["a"], None, [(0, 2, "X")], r"span \(0, 2, 'X'\) of 1 tokens"),
        (["a"], None, [(-1, 1, "X")], r"span \(-1, 1, 'X'\)"),
        (["a"], None, [(0, 0, "X")], r"span \(0, 0, 'X'\)"),
        (["a", "b"], None, [(1, 0, "X")], r"span \(1, 0, 'X'\)"),
        (["a"], None, [(0, 1, "")], "label ''"),
    ],
)
def test_records_refuse_what_no_doc_can_hold(tokens, spaces, spans, message):
    sentence = Sentence("s", tokens, spans, spaces=spaces)
    with pytest.raises(ConversionError, match=f"f:3: .*{message}"):
        checked_sentence(sentence, "f:3", Problems())


def test_records_sort_outer_spans_first():
    spans = [(1, 2, "B"), (0, 1, "A"), (1, 3, "C"), (1, 2, "A")]
    checked = checked_sentence(Sentence("s", list("abc"), spans), "f:1", Problems())
    assert checked.spans == [(0, 1, "A"), (1, 3, "C"), (1, 2, "A"), (1, 2, "B")]


def test_records_keep_repeated_spans_once():
    problems = Problems()
    spans = [(0, 1, "A")] * 3
    checked = checked_sentence(Sentence("s", ["a"], spans), "f:1", problems)
    assert checked.spans == [(0, 1, "A")]
    assert problems.counts == {"repeated spans: kept once": 2}


@pytest.mark.parametrize(
    ("span", "n"), [((0, 3, "X"), 0), ((0, 2, "X"), 1), ((1, 3, "X"), 1)]
)
def test_records_report_white_space_at_an_edge(span, n):
    problems = Problems()
    sentence = Sentence("s", ["Bank", "\n ", "of"], [span])
    assert checked_sentence(sentence, "f:1", problems).spans == [span]
    assert problems.counts.total() == n


@pytest.mark.parametrize(
    ("spaces", "text"), [(None, "b c"), ([True, False, True], "bc")]
)
def test_records_text_of_a_span(spaces, text):
    assert Sentence("s", list("abc"), [], spaces=spaces).text(1, 3) == text


def test_records_problems_name_the_first_and_count_the_rest():
    problems = Problems()
    for i in range(N_NAMED + 2):
        problems.add("odd things", f"thing {i}")
    problems.add("other things", "one")
    (headline, details), other = problems.messages()
    assert headline == f"{N_NAMED + 2} odd things"
    assert details.splitlines()[-2:] == [f"thing {N_NAMED - 1}", "... and 2 more"]
    assert other == ("1 other things", "one")
