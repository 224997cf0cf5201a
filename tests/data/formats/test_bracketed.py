"""Inline brackets: round trips of any tokens and spans, and errors that say where."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.formats.bracketed import format_line, parse_line, read_bracketed

# Half the characters are those that the format treats specially.
TEXT = st.text(
    st.sampled_from("[]\\# \t#a🚀\u00a0\u2028\u0301\x00")
    | st.characters(codec="utf-8", exclude_characters=" \t\r\n"),
    min_size=1,
    max_size=6,
).filter(lambda text: not set(text) & set(" \t\r\n"))


@st.composite
def sentences(draw):
    """Tokens and laminar spans, sorted as `parse_line` promises."""
    tokens = draw(st.lists(TEXT, max_size=8))
    spans = []

    def fill(start, end, depth):
        while start < end:
            stop = draw(st.integers(start + 1, end))
            n_labels = draw(st.integers(0, 2))
            spans.extend((start, stop, draw(TEXT)) for _ in range(n_labels))
            if depth < 3 and n_labels:
                fill(start, stop, depth + 1)
            start = stop

    fill(0, len(tokens), 0)
    return tokens, sorted(spans, key=lambda s: (s[0], -s[1]))


def test_bracketed_parse_nested():
    tokens, spans = parse_line("[ORG Bank of [GPE China]] said [DATE Monday]")
    assert tokens == ["Bank", "of", "China", "said", "Monday"]
    assert spans == [(0, 3, "ORG"), (2, 3, "GPE"), (4, 5, "DATE")]


@pytest.mark.parametrize(
    ("line", "tokens", "spans"),
    [
        ("", [], []),
        (" \t ", [], []),
        ("a\tb   c ", ["a", "b", "c"], []),
        ("[X [Y a]]", ["a"], [(0, 1, "X"), (0, 1, "Y")]),
        ("[X a [Y b]] [X [Y c] d]", list("abcd"),
         [(0, 2, "X"), (1, 2, "Y"), (2, 4, "X"), (2, 3, "Y")]),
        (r"[L\[0\] a\]] \\", ["a]", "\\"], [(0, 1, "L[0]")]),
        (r"\# a#b #", ["#", "a#b", "#"], []),
        ("1\u00a0000 [X a\u2028b]", ["1\u00a0000", "a\u2028b"], [(1, 2, "X")]),
    ],
)  # fmt: skip
def test_bracketed_parse_line(line, tokens, spans):
    assert parse_line(line) == (tokens, spans)


@given(sentences())
def test_bracketed_format_then_parse_is_identity(sentence):
    tokens, spans = sentence
    assert parse_line(format_line(tokens, spans)) == (tokens, spans)


@given(sentences())
def test_bracketed_parse_then_format_is_identity(sentence):
    line = format_line(*sentence)
    assert format_line(*parse_line(line)) == line


@given(st.lists(sentences(), max_size=4))
def test_bracketed_file_round_trip(tmp_path_factory, corpus):
    path = tmp_path_factory.mktemp("bracketed") / "corpus.txt"
    text = "".join(f"# comment\n{format_line(*sentence)}\n" for sentence in corpus)
    path.write_text(text, encoding="utf8", newline="")
    expected = [
        (2 * i + 2, *sentence) for i, sentence in enumerate(corpus) if sentence[0]
    ]
    assert list(read_bracketed(path)) == expected


@given(sentences(), st.randoms(use_true_random=False))
def test_bracketed_format_sorts_spans(sentence, random):
    tokens, spans = sentence
    spans = list({span[:2]: span for span in spans}.values())
    shuffled = random.sample(spans, len(spans))
    assert format_line(tokens, shuffled) == format_line(tokens, spans)


@given(st.text(st.sampled_from("[]\\ aX#\t"), max_size=12))
def test_bracketed_any_line_parses_or_raises_value_error_with_column(line):
    try:
        tokens, spans = parse_line(line)
    except ValueError as error:
        assert str(error).startswith("column ")  # noqa: PT017
    else:
        assert parse_line(format_line(tokens, spans)) == (tokens, spans)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("said [ORG Bank of [GPE China] .", "column 6: bracket 'ORG' is never closed"),
        ("[ORG Bank of [GPE China", "column 14: bracket 'GPE' is never closed"),
        ("Bank of China] said", "column 14: closing bracket without an opening"),
        ("[GPE China]] said", "column 12: closing bracket without an opening"),
        ("Bank ] said", "column 6: closing bracket without an opening"),
        ("in [ China] .", "column 4: empty label"),
        ("in [] .", "column 4: empty label"),
        ("in [", "column 4: empty label"),
        ("in [GPE] .", "column 4: empty span 'GPE'"),
        ("in [GPE ] .", "column 4: empty span 'GPE'"),
        ("in [ORG Bank [GPE ]] .", "column 14: empty span 'GPE'"),
        ("in [GPE", "column 4: empty span 'GPE'"),
        ("a \\b", "column 3: stray backslash"),
        ("a b\\", "column 4: stray backslash"),
        ("[L\\x a]", "column 3: stray backslash"),
        ("[GPE China]s .", "column 12: 's' is glued to a closing bracket"),
        ("[GPE China]\\] .", "column 12: .* is glued to a closing bracket"),
        ("[A a][B b]", "column 6: opening bracket inside the token"),
        ("a[0 b", "column 2: opening bracket inside the token"),
        ("[OR[G a]]", "column 4: opening bracket inside the label 'OR'"),
        ("[ORG Bank of China ] .", "column 20: closing bracket with a space before it"),
    ],
)
def test_bracketed_parse_errors_name_the_column(line, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        parse_line(line)


def test_bracketed_format_names_crossing_spans():
    with pytest.raises(ValueError, match=r"\(0, 2, 'A'\) 'a b' .*\(1, 3, 'B'\) 'b c'"):
        format_line(["a", "b", "c"], [(1, 3, "B"), (0, 2, "A")])


@pytest.mark.parametrize("span", [(0, 0, "A"), (1, 0, "A"), (-1, 1, "A"), (0, 3, "A")])
def test_bracketed_format_rejects_span_out_of_range(span):
    with pytest.raises(ValueError, match="0 <= start < end <= 2"):
        format_line(["a", "b"], [span])


@pytest.mark.parametrize("text", ["", " ", "a b", "a\tb", "a\n", "\r"])
def test_bracketed_format_rejects_token_with_separator(text):
    with pytest.raises(ValueError, match="token 1"):
        format_line(["a", text], [])


@pytest.mark.parametrize("text", ["", "A B", "A\n"])
def test_bracketed_format_rejects_label_with_separator(text):
    with pytest.raises(ValueError, match="the label of span"):
        format_line(["a"], [(0, 1, text)])


def test_bracketed_read_skips_comments_and_keeps_line_numbers(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"\xef\xbb\xbf# title\r\n\r\n#\n[X a]\r\n \t\n\\# b\n#c\n # d")
    assert list(read_bracketed(path)) == [
        (4, ["a"], [(0, 1, "X")]),
        (6, ["#", "b"], []),
        (7, ["#c"], []),
        (8, ["#", "d"], []),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[X b", "column 1: bracket 'X' is never closed"),
        (b"\xff", "'utf-8' codec can't decode byte 0xff"),
        (b"a\rb", "column 2: carriage return inside the line"),
    ],
)
def test_bracketed_read_errors_name_path_and_line(tmp_path, line, message):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"# title\na\n" + line + b"\n")
    with pytest.raises(ValueError, match=f"corpus.txt:3: {message}"):
        list(read_bracketed(path))
