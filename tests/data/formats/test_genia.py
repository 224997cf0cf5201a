"""Blocks of four or three lines, some of them empty."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.formats.genia import BAD_BLOCK, NO_TAGS, read_genia
from spacy_treecrf.data.records import Sentence
from spacy_treecrf.data.statistics import SpanCounts
from spacy_treecrf.problems import ConversionError, Problems

SAMPLES = Path(__file__).parents[2] / "samples"
WORDS = st.sampled_from(["IL", "-", "2,3", "gene", "α", "a\u00a0b", "|"])


@st.composite
def sentences(draw):
    tokens = draw(st.lists(WORDS, min_size=1, max_size=5))
    bounds = st.tuples(*[st.integers(0, len(tokens))] * 2).filter(lambda b: b[0] < b[1])
    labels = st.sampled_from(["DNA", "cell_type", "cell type", "a-b"])
    spans = draw(st.sets(st.tuples(bounds, labels), max_size=3))
    return tokens, sorted((*b, label) for b, label in spans)


def written(sentences, has_tags, separator=" "):
    lines = []
    for tokens, spans in sentences:
        lines.append(separator.join(tokens))
        if has_tags:
            lines.append(" ".join("NN" for _ in tokens))
        lines.append("|".join(f"{s},{e} G#{label}" for s, e, label in spans))
        lines.append("")
    return lines


def read(path, problems=None):
    return list(read_genia(path, Problems() if problems is None else problems))


def read_lines(tmp_path, *lines, problems=None):
    path = tmp_path / "file.data"
    path.write_text("\n".join(lines), encoding="utf8")
    return read(path, problems)


def test_genia_four_lines():
    gene, none, cells = read(SAMPLES / "four_line.data")
    assert gene == Sentence(
        "four_line-0",
        ["expression", "of", "the", "IL", "-", "2", "gene"],
        [(3, 7, "DNA"), (3, 6, "protein")],
    )
    assert (none.tokens, none.spans) == (["None", "here", "."], [])
    assert cells.spans == [(0, 2, "cell_type")]


def test_genia_three_lines():
    gene, none, cells = read(SAMPLES / "three_line.data")
    assert gene.spans == [(3, 7, "DNA"), (3, 6, "protein")]
    assert (none.tokens, none.spans) == (["None", "here", "."], [])
    assert cells.spans == [(0, 2, "cell type")]


@pytest.mark.parametrize("has_tags", [True, False])
@pytest.mark.parametrize("separator", [" ", "  "])
@given(records=st.lists(sentences(), min_size=1, max_size=4), n_cut=st.integers(0, 2))
def test_genia_round_trip(tmp_path_factory, has_tags, separator, records, n_cut):
    lines = written(records, has_tags, separator)
    # The last blank line, and an empty line of spans before it, may be missing.
    while n_cut and not lines[-1]:
        lines.pop()
        n_cut -= 1
    got = read_lines(tmp_path_factory.mktemp("genia"), *lines)
    assert [(s.tokens, sorted(s.spans)) for s in got] == records


@given(st.lists(sentences(), min_size=3, max_size=5), st.data())
def test_genia_a_lost_line_costs_its_block_alone(tmp_path_factory, records, data):
    lines = written(records, has_tags=True)
    # A blank last line may be missing, and so may a lost one before it.
    lost = data.draw(st.integers(0, len(lines) - 5))
    rest = lines[:lost] + lines[lost + 1 :]
    folder = tmp_path_factory.mktemp("genia")
    problems = Problems()
    got = [
        (s.tokens, sorted(s.spans))
        for s in read_lines(folder, *rest, problems=problems)
    ]
    others = records[: lost // 4] + records[lost // 4 + 1 :]
    block = records[lost // 4]
    assert got in (others, records)
    # Only a line of tags or a blank one can be done without.
    assert got == others or (lost % 4 in (1, 3) and block in got)
    assert problems.n_repairs == 1
    with pytest.raises(ConversionError, match="T120"):
        read_lines(folder, *rest, problems=Problems(strict=True))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a b", "N N", "", "", "a", "0,1 X", "", ""], ":6: expected part-of-speech"),
        (["a b", "0,1 X", "", "a", "N", "", ""], ":2: expected part-of-speech"),
        (["a b", "N N", "0-1 X", ""], ":3: expected spans .* received '0-1 X'"),
        (["a b", "N N", "0,1 X", "c"], ":4: expected nothing"),
        (["a b", "N N", "0,1", ""], ":3: expected spans"),
        (["a b", "N N", f"0,{'9' * 5_000} X", ""], ":3: expected spans"),
        (["a b", "N N", "0,1 X|", ""], ":3: expected spans"),
        (["a b", "N N", "0,3 X", ""], r":3: span \(0, 3, 'X'\) of 2 tokens"),
        (["a b", "N N", "1,1 X", ""], r":3: span \(1, 1, 'X'\)"),
        (["a b", "N N", "0,1 G#", ""], ":3: .* label ''"),
    ],
)
def test_genia_names_the_bad_line(tmp_path, lines, message):
    with pytest.raises(ConversionError, match=rf"T120.*file\.data{message}"):
        read_lines(tmp_path, *lines, problems=Problems(strict=True))
    good = ["c d", "N N", "1,2 X", ""]
    problems = Problems()
    more = [] if not lines[-1] else [""]
    *_, last = read_lines(tmp_path, *lines, *more, *good * 3, problems=problems)
    assert (last.tokens, last.spans) == (["c", "d"], [(1, 2, "X")])
    assert problems.n_repairs


def test_genia_blocks_without_tags_among_others_are_read(tmp_path):
    problems = Problems()
    lines = ["a b", "N V", "0,1 X", ""] * 3 + ["b a", "1,2 Y", "", "N V", "0,1 Z", ""]
    *_, first, second = read_lines(tmp_path, *lines, problems=problems)
    assert (first.spans, second.spans) == ([(0, 1, "X")], [(1, 2, "Y")])
    # The tags of a block whose tokens are lost are not taken for tokens.
    assert problems.counts == {NO_TAGS: 1, BAD_BLOCK: 1}
    assert "file.data:14: expected part-of-speech tags" in problems.named[NO_TAGS][0]
    assert "file.data:17: expected" in problems.named[BAD_BLOCK][0]


@pytest.mark.parametrize("lines", [[], ["", "", ""]])
def test_genia_empty_file(tmp_path, lines):
    assert read_lines(tmp_path, *lines) == []


def test_genia_original_file(corpora):
    counts, problems = SpanCounts(), Problems()
    sentences = read(corpora / "raw" / "genia" / "dev.data", problems)
    for sentence in sentences:
        counts.add(len(sentence.tokens), sentence.spans)
    assert (counts.sentences, counts.tokens, counts.spans) == (1855, 54117, 5006)
    assert problems.counts == {"repeated spans: kept once": 8}
    # Of a sentence with a double space, whose offsets do not count it.
    cells = next(s for s in sentences if " T - cell mitogens ." in s.text())
    assert [cells.text(s, e) for s, e, _ in cells.spans] == [
        "HIV - 1 - encoded Nef protein",
        "NF - kappa B",
        "T - cell mitogens",
    ]
