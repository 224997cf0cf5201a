"""JSON Lines: the uniform format and character offsets of annotation tools."""

import gzip
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_treecrf.data.alignment import LEFT_OUT
from spacy_treecrf.data.formats.jsonl import UNANNOTATED, read_jsonl
from spacy_treecrf.data.records import Sentence
from spacy_treecrf.data.statistics import SpanCounts
from spacy_treecrf.problems import ConversionError, Problems

SAMPLES = Path(__file__).parents[2] / "samples"
NEWS = ["Bank", "of", "China", "rose", "."]
NEWS_SPACES = [True, True, True, False, False]
NEWS_SPANS = [(0, 3, "ORG"), (2, 3, "GPE")]


def tokenize(text):
    """Words between single spaces; a full stop is a token."""
    words, spaces = [], []
    for word in text.split(" "):
        stem = word.removesuffix(".")
        words += [stem] + ["."] * (stem != word)
        spaces += [False] * (stem != word) + [True]
    return words, [*spaces[:-1], False]


def read(path, problems=None, **kwargs):
    problems = Problems() if problems is None else problems
    return list(read_jsonl(Path(path), problems, tokenize, **kwargs))


def write(tmp_path, *records):
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf8")
    return path


def test_jsonl_uniform():
    first, second, third = read(SAMPLES / "uniform.jsonl")
    assert first == Sentence("s1", NEWS, NEWS_SPANS, "d1", NEWS_SPACES)
    assert second == Sentence("s2", ["Nothing", "here", "."], [], "d1")
    assert third.tokens == ["cafe\u0301", "\n ", "🚀", "\u200b", "a\0b", "\ufeffBank"]
    assert third.spans == [(0, 3, "X Y"), (1, 2, "X Y"), (5, 6, "Z")]


def test_jsonl_prodigy_takes_accepted_examples():
    problems = Problems()
    first, second = read(SAMPLES / "prodigy.jsonl", problems)
    assert first == Sentence(
        "prodigy-0", NEWS, NEWS_SPANS, None, NEWS_SPACES, False, given_tokens=True
    )
    assert second.spans == [(0, 3, "GREETING"), (2, 3, "GPE")]
    assert problems.counts == {
        "examples with the answer 'reject': left out": 1,
        "examples with the answer 'ignore': left out": 1,
    }


def test_jsonl_doccano_spellings_agree():
    sentences = read(SAMPLES / "doccano.jsonl")
    assert sentences == [
        Sentence(name, NEWS, NEWS_SPANS, None, NEWS_SPACES, False) for name in "789"
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "\n", "🚀", "\u200b"]), st.booleans()),
        min_size=1,
    ),
    st.data(),
)
def test_jsonl_prodigy_tokens_keep_the_text(tmp_path_factory, pieces, data):
    text = "".join(word + " " * space for word, space in pieces)
    bounds, position = [], 0
    for word, space in pieces:
        bounds.append((position, position + len(word)))
        position += len(word) + space
    # Prodigy may leave out tokens, e.g. white space; the text is kept all the same.
    kept = data.draw(st.sets(st.sampled_from(bounds), min_size=1))
    tokens = [{"start": s, "end": e, "text": text[s:e]} for s, e in sorted(kept)]
    first, last = tokens[0], tokens[-1]
    span = {"start": first["start"], "end": last["end"], "label": "X"}
    path = write(
        tmp_path_factory.mktemp("jsonl"),
        {"text": text, "tokens": tokens, "spans": [span]},
    )
    problems = Problems()
    (sentence,) = read(path, problems)
    spelt = zip(sentence.tokens, sentence.spaces, strict=True)
    assert "".join(word + " " * space for word, space in spelt) == text
    assert not problems.counts[LEFT_OUT]
    (aligned,) = sentence.spans
    assert sentence.text(*aligned[:2]) == text[first["start"] : last["end"]]


def test_jsonl_misaligned_spans_are_counted_and_named(tmp_path):
    spans = [[11, 15, "GPE"], [0, 5, "X"], [10, 16, "GPE"]]
    path = write(tmp_path, {"text": "Hello from India", "label": spans})
    problems = Problems()
    (sentence,) = read(path, problems)
    assert sentence.spans == [(0, 1, "X")]
    assert problems.counts == {LEFT_OUT: 2}
    assert ">'Indi'<" in problems.messages()[0][1]


def test_jsonl_misaligned_spans_can_be_expanded(tmp_path):
    path = write(tmp_path, {"text": "Hello from India", "label": [[11, 15, "GPE"]]})
    (sentence,) = read(path, mode="expand")
    assert sentence.spans == [(2, 3, "GPE")]


def test_jsonl_text_without_annotation_is_kept_and_counted(tmp_path):
    problems = Problems()
    path = write(tmp_path, {"text": "Hello"}, {"text": "Hello", "spans": []})
    assert [s.spans for s in read(path, problems)] == [[], []]
    assert problems.counts == {UNANNOTATED: 1}


def test_jsonl_blank_lines_and_names(tmp_path):
    path = tmp_path / "some.name.jsonl.gz"
    line = b'{"tokens": ["a"], "spans": []}'
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + line + b"\r\n\r\n" + line))
    assert [s.id for s in read(path)] == ["some.name-0", "some.name-2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("9" * 5_000, "not JSON"),
        ('{"a": NaN}', "expected 'tokens'"),
        ("[1]", r"expected an object, received \[1\]"),
        ("{}", "expected 'tokens'"),
        ('{"tokens": ["a", 1], "spans": []}', "expected 'tokens'"),
        ('{"tokens": ["a"]}', "expected 'spans', a list, not null"),
        ('{"tokens": ["a"], "spans": {}}', "expected 'spans', a list"),
        ('{"tokens": ["a"], "spans": [[0, 1]]}', "expected a span"),
        ('{"tokens": ["a"], "spans": [[0, true, "X"]]}', "expected a span"),
        ('{"tokens": ["a"], "spans": [["0", 1, "X"]]}', "expected a span"),
        ('{"tokens": ["a"], "spans": [[0, 1, 7]]}', "expected a span"),
        ('{"tokens": ["a"], "spans": [[0, 2, "X"]]}', r"span \(0, 2, 'X'\)"),
        ('{"tokens": ["a"], "spans": [], "spaces": [1]}', "list of booleans"),
        ('{"tokens": ["a"], "spans": [], "spaces": []}', "0 spaces for 1 tokens"),
        ('{"tokens": ["a", ""], "spans": []}', "token 1 is ''"),
        ('{"text": "a", "spans": [{"start": 0, "end": 1}]}', "start, end and label"),
        ('{"text": "a", "label": ["X"]}', "start, end and label"),
        ('{"text": "a", "label": "X"}', "expected 'label', a list"),
        ('{"text": "a", "tokens": [{"start": 0}], "spans": []}', "does not fit"),
        (
            '{"text": "ab", "tokens": [{"start": 0, "end": 2, "text": "aa"}]}',
            "does not fit",
        ),
        (
            '{"text": "ab", "tokens": [{"start": 0, "end": 2}, {"start": 1, "end": 2}]}',
            "does not fit",
        ),
        ('{"text": "ab", "tokens": {"start": 0}}', "does not fit"),
    ],
)
def test_jsonl_broken_lines_are_named(tmp_path, line, message):
    path = tmp_path / "file.jsonl"
    good = '{"tokens": ["good"], "spans": [[0, 1, "X"]]}\n'
    path.write_text(good + line + "\n" + good, encoding="utf8")
    with pytest.raises(ConversionError, match=rf"T120.*file\.jsonl:2: .*{message}"):
        read(path, Problems(strict=True))
    problems = Problems()
    sentences = read(path, problems)
    # What is wrong costs itself alone: the span, or the record.
    assert len(sentences) == 3 - problems.lost_records
    assert [s.spans for s in sentences if s.tokens == ["good"]] == [[(0, 1, "X")]] * 2
    assert [s.spans for s in sentences if s.tokens != ["good"]] in ([], [[]])
    (named,) = (problems.named[kind] for kind in problems.repairs)
    assert re.search(rf"file\.jsonl:2: .*{message}", named[0])


# Documents' counts stand in the corpora's own tables: sentences, tokens, spans, inner
# spans, spans in any nesting, depth, crossing pairs, spans with several labels.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("litbank/train", (6892, 168787, 11164, 1760, 3211, 4, 0, 1)),
        ("litbank/test", (818, 20943, 1326, 173, 303, 4, 0, 0)),
        ("genia/dev", (1669, 48932, 4337, 373, 727, 2, 0, 0)),
        ("germeval2014/dev", (2200, 41653, 2886, 212, 407, 2, 0, 0)),
        ("gum/dev", (1575, 28119, 7897, 2994, 4451, 6, 0, 0)),
    ],
)
def test_jsonl_corpora_counts(corpora, name, expected):
    counts, problems = SpanCounts(), Problems()
    for sentence in read(corpora / f"{name}.jsonl.gz", problems):
        counts.add(len(sentence.tokens), sentence.spans)
    assert not problems.counts
    assert expected == (
        counts.sentences,
        counts.tokens,
        counts.spans,
        counts.inner,
        counts.nested,
        counts.max_depth,
        counts.crossing,
        counts.multi_label,
    )
