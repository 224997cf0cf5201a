"""CoNLL-U: brackets in MISC, words and empty nodes, and errors that name the line."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.formats.conllu import BAD_TAG, OTHER_KEYS, read_conllu
from spacy_treecrf.data.formats.corefud import CUT, DISCONTINUOUS, UNTYPED, ZEROS
from spacy_treecrf.data.formats.iob_tags import BEGINS
from spacy_treecrf.problems import ConversionError, Problems

SAMPLE = Path(__file__).parents[2] / "samples" / "nested.conllu"
HEADER = "# global.Entity = GRP-etype-infstat"


def lines(*entities, start=1):
    """One word a line, w1, w2, ..., with these values of `Entity`."""
    return [
        "\t".join([str(i), f"w{i}", *"_" * 7, f"Entity={e}" if e else "_"])
        for i, e in enumerate(entities, start=start)
    ]


def read_raw(tmp_path, *rows, problems=None, **kwargs):
    path = tmp_path / "file.conllu"
    path.write_bytes(("\n".join(rows) + "\n").encode("utf8", "surrogateescape"))
    problems = Problems() if problems is None else problems
    return list(read_conllu(path, problems, **kwargs))


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
    ("rows", "message", "spans"),
    [
        (["1\ta"], ":1: expected 10 columns, received 2", []),
        (["x" + lines("")[0]], ":1: expected a word's number, not 'x1'", []),
        (
            [HEADER, *lines("", "1)")],
            r":3: '1\)' closes an entity that is not open",
            [[]],
        ),
        (
            [HEADER, *lines("(1-a-x"), "", "# newdoc id = b", *lines("1)")],
            ":5: '1.' closes an entity that is not open",
            None,
        ),
        (
            [HEADER, *lines("((1-a-x)", "(2-b-x)")],
            ":2: ill-formed brackets",
            [[(1, 2, "b")]],
        ),
        ([HEADER, *lines("()")], ":2: ill-formed brackets", [[]]),
        ([HEADER, *lines("1")], ":2: ill-formed brackets", [[]]),
        (
            [HEADER, *lines("(1)", "(2-b-)")],
            ":2: .1 'w1' has no etype",
            [[(1, 2, "b")]],
        ),
        ([HEADER, *lines("(1--x", "1)")], ":2: .1 'w1 w2' has no etype", [[]]),
        (["1\t" + "\t".join(["\udce9", *"________"])], "not UTF-8", []),
    ],
)
def test_conllu_what_is_ill_formed_costs_itself_alone(tmp_path, rows, message, spans):
    good = ["", "# newdoc id = good", *lines("(9-good-x)")]
    problems = Problems()
    *found, last = read_raw(tmp_path, *rows, *good, problems=problems)
    assert last.spans == [(0, 1, "good")]
    if spans is not None:
        assert [s.spans for s in found] == spans
    details = [d for kind in problems.repairs for d in problems.named[kind]]
    assert any(re.search(message, detail) for detail in details)
    with pytest.raises(ConversionError, match=r"T120.*file\.conllu:[123]: "):
        read_raw(tmp_path, *rows, *good, problems=Problems(strict=True))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("# global.Entity = GRP-x", ":1: no field etype or entity"),
        ("# global.Entity = etype", ":1: no field GRP or eid"),
    ],
)
def test_conllu_fields_that_are_not_named(tmp_path, header, message):
    with pytest.raises(ConversionError, match=rf"file\.conllu{message}"):
        read_raw(tmp_path, header, *lines(""))


COREFUD = "# global.Entity = eid-etype-head-other"


def node(number, entity=""):
    """A line of an empty node or of a word."""
    return lines(entity)[0].replace("1", number, 1)


@pytest.mark.parametrize(
    ("rows", "spans", "n_zeros"),
    [
        # Before the first word; it begins a mention.
        ([node("0.1", "(e1-person-1-"), node("1"), node("2", "e1)")], [(0, 2)], 0),
        # It ends one, in the sentence and behind the last word.
        (
            [node("1", "(e1-person-1-"), node("1.1", "e1)"), node("2")],
            [(0, 1)],
            0,
        ),
        ([node("1"), node("2", "(e1-person-1-"), node("2.1", "e1)")], [(1, 2)], 0),
        # It begins and another one ends a mention.
        (
            [node("0.1", "(e1-person-1-"), node("1"), node("1.1"), node("1.2", "e1)")],
            [(0, 1)],
            0,
        ),
        # A zero alone, two of them, and one inside a mention of words.
        ([node("0.1", "(e1-person-1-)"), node("1")], [], 1),
        ([node("1"), node("1.1", "(e1-person-1-"), node("1.2", "e1)")], [], 1),
        (
            [
                node("1", "(e2-place-1-"),
                node("1.1", "(e1-person-1-)"),
                node("2", "e2)"),
            ],
            [(0, 2)],
            1,
        ),
        # One closes and another begins on the same empty node.
        (
            [
                node("1", "(e1-person-1-"),
                node("1.1", "e1)(e2-person-1-"),
                node("2", "e2)"),
            ],
            [(0, 1), (1, 2)],
            0,
        ),
    ],
)
def test_conllu_empty_nodes_at_the_edges_of_mentions(tmp_path, rows, spans, n_zeros):
    problems = Problems(strict=True)
    (sentence,) = read_raw(tmp_path, COREFUD, *rows, problems=problems)
    assert [span[:2] for span in sentence.spans] == spans
    assert problems.counts == ({ZEROS: n_zeros} if n_zeros else {})


def test_conllu_a_later_mention_inherits_the_type(tmp_path):
    problems = Problems()
    rows = [COREFUD, *lines("(e1-person-1-)", "(e2--1-)", "(e1", "e1)")]
    rows += ["", *lines("(e1)", "(e2)", "(e3-place-1-)(e1--2-)")]
    first, second = read_raw(tmp_path, *rows, problems=problems)
    assert first.spans == [(0, 1, "person"), (2, 4, "person")]
    assert second.spans == [(0, 1, "person"), (2, 3, "person"), (2, 3, "place")]
    assert problems.counts == {UNTYPED: 2}
    assert "file.conllu:3: (e2 'w2' has no etype" in problems.named[UNTYPED][0]
    with pytest.raises(ConversionError, match=r"T120.*file\.conllu:3: .e2"):
        read_raw(tmp_path, *rows, problems=Problems(strict=True))


def test_conllu_types_are_of_one_document(tmp_path):
    rows = ["# newdoc id = a", COREFUD, *lines("(e1-person-1-)"), ""]
    rows += ["# newdoc id = b", *lines("(e1)")]
    problems = Problems()
    assert [s.spans for s in read_raw(tmp_path, *rows, problems=problems)] == [
        [(0, 1, "person")],
        [],
    ]
    assert problems.counts == {UNTYPED: 1}


def misc(*values):
    return [
        "\t".join([str(i), f"w{i}", *"_" * 7, value])
        for i, value in enumerate(values, start=1)
    ]


def test_conllu_keys_of_misc_hold_tags(tmp_path):
    problems = Problems()
    rows = misc("name=B-PER|SpaceAfter=No", "SpaceAfter=No|name=I-PER", "_", "name=O")
    (sentence,) = read_raw(tmp_path, *rows, problems=problems, misc_keys=["name"])
    assert sentence.spans == [(0, 2, "PER")]
    assert sentence.text() == "w1w2w3 w4"
    assert not problems.counts


def test_conllu_keys_of_misc_are_layers_and_are_repaired(tmp_path):
    problems = Problems()
    rows = misc("ne=B-ORG|in=O", "ne=I-ORG|in=B-LOC", "ne=O|in=I-PER", "ne=?")
    keys = {"misc_keys": ["ne", "in"]}
    (sentence,) = read_raw(tmp_path, *rows, problems=problems, **keys)
    assert sentence.spans == [(0, 2, "ORG"), (1, 2, "LOC"), (2, 3, "PER")]
    assert problems.counts == {BEGINS: 1, BAD_TAG: 1}
    assert "file.conllu:4, ne of 'w4': ne=?" in problems.named[BAD_TAG][0]
    with pytest.raises(ConversionError, match="T120"):
        read_raw(tmp_path, *rows, problems=Problems(strict=True), **keys)


def test_conllu_keys_of_misc_that_may_be_meant_are_named(tmp_path):
    problems = Problems()
    read_raw(tmp_path, *misc("name=B-PER|x=1", "name=O"), problems=problems)
    assert problems.counts == {OTHER_KEYS: 1}
    assert "Entity=" in OTHER_KEYS
    assert "--misc-key" in OTHER_KEYS
    assert problems.named[OTHER_KEYS][0].endswith("file.conllu: name=B-PER")


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
