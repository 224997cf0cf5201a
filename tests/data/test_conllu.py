"""CoNLL-U: brackets in MISC, words and empty nodes, and errors that name the line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.conllu import CUT, DISCONTINUOUS, read_conllu
from spacy_treecrf.data.records import ConversionError, Problems

SAMPLE = Path(__file__).parent.parent / "samples" / "nested.conllu"
HEADER = "# global.Entity = GRP-etype-infstat"


def lines(*entities, start=1):
    """One word a line, w1, w2, ..., with these values of `Entity`."""
    return [
        "\t".join([str(i), f"w{i}", *"_" * 7, f"Entity={e}" if e else "_"])
        for i, e in enumerate(entities, start=start)
    ]


def read_raw(tmp_path, *rows, problems=None):
    path = tmp_path / "file.conllu"
    path.write_text("\n".join(rows) + "\n", encoding="utf8")
    return list(read_conllu(path, Problems() if problems is None else problems))


def test_conllu_sample():
    first, second = read_conllu(SAMPLE, Problems())
    assert (first.id, first.doc) == ("harbour-1", "harbour")
    assert first.text() == "The bank of Norway's dock workers don't strike (yet."
    assert len(first.tokens) == 13
    assert first.spans == [
        (0, 4, "organization"),
        (3, 5, "place"),
        (3, 4, "person"),
        (5, 7, "person"),
        (5, 6, "place"),
    ]
    assert (second.id, second.spans, second.spaces) == ("harbour-2", [], [False])


def test_conllu_closes_the_mention_opened_last(tmp_path):
    rows = lines("(1-a-x", "(1-b-x", "1)", "1)")
    (sentence,) = read_raw(tmp_path, HEADER, *rows)
    assert sentence.spans == [(0, 4, "a"), (1, 3, "b")]


def test_conllu_closes_any_open_entity(tmp_path):
    problems = Problems()
    rows = lines("(1-a-x(2-b-x", "1)", "2)")
    (sentence,) = read_raw(tmp_path, HEADER, *rows, problems=problems)
    assert sentence.spans == [(0, 3, "b"), (0, 2, "a")]
    assert not problems.counts


@pytest.mark.parametrize(
    ("header", "opened", "closed"),
    [
        ("# global.Entity = GRP-etype-infstat", "(7-place-new", "7)"),
        ("# global.Entity = eid-etype-head-other", "(e7-place-1-x-y", "e7)"),
        ("# global.Entity = etype-GRP-identity", "(place-7-United_States", "place-7)"),
        ("# global.Entity = entity-GRP", "(place-7", "place-7)"),
        ("# text = no header", "(7-place-new", "7)"),
    ],
)
def test_conllu_fields_are_named_by_the_header(tmp_path, header, opened, closed):
    (sentence,) = read_raw(tmp_path, header, *lines(opened, closed))
    assert sentence.spans == [(0, 2, "place")]


def test_conllu_counts_discontinuous_entities_once(tmp_path):
    problems = Problems()
    rows = lines("(5[1/2]-a-x)", "(1-b-x", "1)(5[2/2]-a-x", "5[2/2])")
    (sentence,) = read_raw(tmp_path, HEADER, *rows, problems=problems)
    assert sentence.spans == [(1, 3, "b")]
    assert problems.counts == {DISCONTINUOUS: 1}
    assert "file.conllu:2: a 'w1'" in problems.named[DISCONTINUOUS][0]


def test_conllu_counts_entities_that_leave_their_sentence(tmp_path):
    problems = Problems()
    rows = [HEADER, *lines("(1-a-x(2-b-x)"), "", *lines("(3-c-x)", "1)")]
    first, second = read_raw(tmp_path, *rows, problems=problems)
    assert (first.spans, second.spans) == ([(0, 1, "b")], [(0, 1, "c")])
    assert problems.counts == {CUT: 1}
    assert "file.conllu:2: a 'w1' ..." in problems.named[CUT][0]


def test_conllu_documents(tmp_path):
    rows = [*lines(""), "", "# newdoc id = a", *lines(""), "", *lines("")]
    assert [(s.id, s.doc) for s in read_raw(tmp_path, *rows)] == [
        ("file-0", "file"),
        ("file-1", "a"),
        ("file-2", "a"),
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1\ta"], ":1: expected 10 columns, received 2"),
        (["x" + lines("")[0]], ":1: expected a word's number, not 'x1'"),
        ([HEADER, *lines("", "1)")], r":3: '1\)' closes an entity that is not open"),
        ([HEADER, *lines("(1-a-x"), "# newdoc id = b", "", *lines("1)")], None),
        (
            [HEADER, *lines("(1-a-x"), "", "# newdoc id = b", *lines("1)")],
            ":5: '1.' closes an entity that is not open",
        ),
        ([HEADER, *lines("((1-a-x)")], ":2: ill-formed brackets"),
        ([HEADER, *lines("()")], ":2: ill-formed brackets"),
        ([HEADER, *lines("1")], ":2: ill-formed brackets"),
        ([HEADER, *lines("(1)")], ":2: .1 has no etype"),
        ([HEADER, *lines("(1--x)")], ":2: .1--x has no etype"),
        (["# global.Entity = GRP-x"], ":1: no field etype or entity"),
        (["# global.Entity = etype"], ":1: no field GRP or eid"),
    ],
)
def test_conllu_ill_formed(tmp_path, rows, message):
    if message is None:
        assert len(read_raw(tmp_path, *rows)) == 2
        return
    with pytest.raises(ConversionError, match=rf"file\.conllu{message}"):
        read_raw(tmp_path, *rows)


@given(st.data())
def test_conllu_round_trip(tmp_path_factory, data):
    length = data.draw(st.integers(1, 6))
    edges = st.tuples(st.integers(0, length - 1), st.integers(1, length))
    spans = data.draw(st.sets(edges.filter(lambda b: b[0] < b[1])))
    entities = [""] * length
    for number, (start, end) in enumerate(sorted(spans)):
        entities[start] += f"({number}-X-new" + ")" * (end - start == 1)
        if end - start > 1:
            entities[end - 1] = f"{number})" + entities[end - 1]
    (sentence,) = read_raw(tmp_path_factory.mktemp("c"), HEADER, *lines(*entities))
    assert sorted(sentence.spans) == [(s, e, "X") for s, e in sorted(spans)]
