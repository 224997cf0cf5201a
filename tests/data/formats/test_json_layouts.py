"""Label Studio, GLiNER and other layouts of JSON; offsets that JavaScript counted."""

import json

import pytest

from spacy_treecrf.data.alignment import LEFT_OUT
from spacy_treecrf.data.formats.json_layouts import (
    BAD_SPAN,
    NO_LABEL,
    NO_SPAN,
    OTHER_ANNOTATORS,
    PREDICTED,
    SKIPPED,
)
from spacy_treecrf.data.formats.json_records import BAD_JSON
from spacy_treecrf.data.formats.jsonl import BAD_RECORD, BAD_TOKENS, read_jsonl
from spacy_treecrf.data.offsets import LINE_ENDS, Offsets, OffsetUnit
from spacy_treecrf.problems import ConversionError, Problems

ROME = [(0, 1, "LOC")]


def tokenize(text):
    """Words between single spaces."""
    words = text.split(" ")
    return words, [True] * (len(words) - 1) + [False]


def read(tmp_path, content, problems=None, offsets=None, name="file.json"):
    path = tmp_path / name
    if not isinstance(content, str):
        content = json.dumps(content)
    path.write_bytes(content.encode("utf8"))
    problems = Problems() if problems is None else problems
    return list(read_jsonl(path, problems, tokenize, offsets=offsets))


def region(start, end, text, *labels):
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"value": value, "from_name": "label", "to_name": "text", "type": "labels"}


def task(*annotations, text="Rome is old .", **fields):
    return {"id": 7, "data": {"text": text}, "annotations": list(annotations), **fields}


ROME_REGION = region(0, 4, "Rome", "LOC")


@pytest.mark.parametrize(
    "write",
    [
        lambda records: json.dumps(records),
        lambda records: json.dumps(records, indent=2),
        lambda records: "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n",
        lambda records: "\n".join(map(json.dumps, records)),
        lambda records: "\n".join(json.dumps(r, indent=4) for r in records),
        lambda records: "\ufeff\n" + json.dumps(records, indent="\t") + "\r\n",
    ],
    ids=["one line", "pretty", "a line each", "lines", "pretty objects", "mark"],
)
def test_json_layouts_one_file_however_it_is_broken_into_lines(tmp_path, write):
    second = task({"result": []}, text="None here .")
    problems = Problems()
    content = write([task({"result": [ROME_REGION]}), second])
    first, last = read(tmp_path, content, problems)
    assert (first.tokens, first.spans) == (["Rome", "is", "old", "."], ROME)
    assert (last.text(), last.spans) == ("None here .", [])
    assert (first.id, first.own_tokens) == ("7", False)
    assert not problems.counts


def test_json_layouts_label_studio_json_min(tmp_path):
    record = {
        "text": "Rome is old.",
        "label": [{"start": 0, "end": 4, "text": "Rome", "labels": ["LOC"]}],
    }
    problems = Problems()
    (sentence,) = read(tmp_path, record, problems)
    assert sentence.spans == ROME
    assert not problems.counts


def test_json_layouts_json_min_under_other_names(tmp_path):
    regions = [{"start": 0, "end": 4, "text": "Rome", "labels": ["LOC", "CAPITAL"]}]
    fields = {"source": "a", "article": "Rome is old .", "sentiment": "Positive"}
    record = {"id": 1, **fields, "ner": regions, "annotator": 1, "annotation_id": 2}
    (sentence,) = read(tmp_path, [record])
    assert sentence.tokens == ["Rome", "is", "old", "."]
    assert sentence.spans == [(0, 1, "CAPITAL"), (0, 1, "LOC")]


def test_json_layouts_json_min_has_a_record_for_each_annotator(tmp_path):
    record = {"id": 1, "text": "Rome is old .", "annotator": 1}
    regions = [{"start": 0, "end": 4, "text": "Rome", "labels": ["LOC"]}]
    problems = Problems()
    records = [{**record, "label": regions}, {**record, "annotator": 2}]
    (sentence,) = read(tmp_path, records, problems)
    assert sentence.spans == ROME
    assert problems.counts == {OTHER_ANNOTATORS: 1}


@pytest.mark.parametrize(
    ("record", "counts", "spans"),
    [
        (task({"result": [ROME_REGION]}, {"result": []}), {OTHER_ANNOTATORS: 1}, ROME),
        (
            task({"result": []}, {"result": [ROME_REGION], "ground_truth": True}),
            {OTHER_ANNOTATORS: 1},
            ROME,
        ),
        (
            task({"result": [], "was_cancelled": True}, {"result": [ROME_REGION]}),
            {},
            ROME,
        ),
        (task({"result": [ROME_REGION], "was_cancelled": True}), {SKIPPED: 1}, None),
        (task(), {SKIPPED: 1}, None),
        (task(predictions=[{"result": [ROME_REGION]}]), {PREDICTED: 1}, ROME),
        (
            task({"result": []}, predictions=[{"result": [ROME_REGION]}]),
            {},
            [],
        ),
        (
            {"data": {"text": "Rome is"}, "completions": [{"result": [ROME_REGION]}]},
            {},
            ROME,
        ),
        (
            {"data": {"body": "Rome is"}, "annotations": [{"result": [ROME_REGION]}]},
            {},
            ROME,
        ),
        (
            task(
                {
                    "result": [
                        ROME_REGION,
                        {"type": "relation", "from_id": "a", "to_id": "b"},
                        {"type": "choices", "value": {"choices": ["yes"]}},
                        {"type": "textarea", "value": {"text": ["a note"]}},
                        region(5, 7, "is"),
                    ]
                }
            ),
            {NO_SPAN: 2, NO_LABEL: 1},
            ROME,
        ),
        (task({"result": [region(0, 4, "Roma", "LOC")]}), {LEFT_OUT: 1}, []),
        (
            task(
                {
                    "result": [
                        {
                            "value": {
                                "start": "/p[1]/text()[1]",
                                "end": "/p[1]/text()[1]",
                                "globalOffsets": {"start": 0, "end": 4},
                                "hypertextlabels": ["LOC"],
                            }
                        }
                    ]
                }
            ),
            {},
            ROME,
        ),
    ],
    ids=[
        *("two annotators", "ground truth", "cancelled", "all cancelled", "none"),
        *("predictions", "corrected to none", "completions", "other field"),
        *("other results", "other text", "hypertext"),
    ],
)
def test_json_layouts_label_studio_tasks(tmp_path, record, counts, spans):
    problems = Problems()
    sentences = read(tmp_path, [record], problems)
    assert [s.spans for s in sentences] == ([] if spans is None else [spans])
    assert problems.counts == counts


@pytest.mark.parametrize("label", ["person", ["person"]])
def test_json_layouts_gliner_ends_are_inclusive(tmp_path, label):
    label = label if isinstance(label, str) else label[0]
    records = [
        {
            "tokenized_text": ["Bank", "of", "China"],
            "ner": [[0, 2, "org"], [2, 2, label]],
        },
        {"tokenized_text": ["x"], "ner": [], "negatives": ["a"]},
    ]
    problems = Problems()
    first, second = read(tmp_path, records, problems)
    assert first.spans == [(0, 3, "org"), (2, 3, "person")]
    assert (second.tokens, second.spans, second.own_tokens) == (["x"], [], True)
    assert not problems.counts


def test_json_layouts_gliner_spans_out_of_bounds_cost_themselves_alone(tmp_path):
    problems = Problems()
    record = {"tokenized_text": ["a", "b"], "ner": [[0, 0, "X"], [1, 2, "Y"], ["0", 1]]}
    (sentence,) = read(tmp_path, [record], problems)
    assert sentence.spans == [(0, 1, "X")]
    assert problems.n_repairs == 2


def test_json_layouts_spacy_pairs(tmp_path):
    pair = ["Rome is old .", {"entities": [[0, 4, "LOC"]]}]
    for content in ([pair, pair], json.dumps(pair) + "\n" + json.dumps(pair)):
        assert [s.spans for s in read(tmp_path, content)] == [ROME, ROME]


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"sentence": "a", "ents": []}, "there are 'sentence', 'ents'"),
        ({"tokens": ["a"], "ner_tags": [1]}, "there are 'tokens', 'ner_tags'"),
        ({"tokenized_text": ["a"], "entities": []}, "'tokenized_text', 'entities'"),
        ({"data": {"image": 1}, "annotations": [{"result": []}]}, "there are 'image'"),
    ],
)
def test_json_layouts_messages_show_what_is_there(tmp_path, record, shown):
    problems = Problems()
    assert read(tmp_path, [record], problems) == []
    assert shown in problems.named[BAD_RECORD][0]


def test_json_layouts_bad_spans_are_shown_as_they_are(tmp_path):
    problems = Problems()
    read(tmp_path, [{"text": "a b", "spans": [{"begin": 0, "tag": "X"}]}], problems)
    assert problems.counts == {BAD_SPAN: 1}
    assert problems.named[BAD_SPAN][0].endswith('not {"begin": 0, "tag": "X"}')


@pytest.mark.parametrize("indent", [None, 2])
def test_json_layouts_a_broken_member_costs_itself_alone(tmp_path, indent):
    good = {"text": "Rome is", "label": [[0, 4, "LOC"]], "more": [{"a": 1}]}
    members = [json.dumps(good, indent=indent), '{"text": "a" "b"}']
    members += [json.dumps(good, indent=indent)]
    problems = Problems()
    content = "[\n" + ",\n".join(members) + "\n]"
    assert [s.spans for s in read(tmp_path, content, problems)] == [ROME, ROME]
    assert problems.counts == {BAD_JSON: 1}
    line = content.split('{"text": "a" "b"}')[0].count("\n") + 1
    assert f"file.json:{line}: not JSON" in problems.named[BAD_JSON][0]
    with pytest.raises(ConversionError, match=f"T120.*file.json:{line}"):
        read(tmp_path, content, Problems(strict=True))


def test_json_layouts_a_cut_array_keeps_what_came_before(tmp_path):
    good = {"text": "Rome is", "label": [[0, 4, "LOC"]]}
    content = json.dumps([good, good], indent=1)[:-30]
    problems = Problems()
    assert [s.spans for s in read(tmp_path, content, problems)] == [ROME]
    assert problems.counts == {BAD_JSON: 1}


def test_json_layouts_tokens_that_do_not_fit_are_made_anew(tmp_path):
    problems = Problems()
    tokens = [{"text": "Rame", "start": 0, "end": 4}]
    record = {"text": "Rome is", "tokens": tokens, "spans": [[0, 4, "LOC"]]}
    (sentence,) = read(tmp_path, [record], problems)
    assert (sentence.tokens, sentence.spans) == (["Rome", "is"], ROME)
    assert (sentence.given_tokens, problems.counts) == (False, {BAD_TOKENS: 1})


SHOES = "👞👞 a b c"


def offsets_of(text, word, unit):
    """Where a word stands, by the definition of each unit."""
    before, covered = text[: text.index(word)], word
    length = {
        "code-points": len,
        "utf-16": lambda s: len(s.encode("utf-16-le")) // 2,
        "bytes": lambda s: len(s.encode()),
    }[unit]
    return length(before), length(before) + length(covered)


@pytest.mark.parametrize("unit", list(OffsetUnit))
@pytest.mark.parametrize("text", [SHOES, "é ñ a ß", "👨‍👩‍👧 🇩🇪 a ä", "x a"])
def test_json_layouts_offsets_in_any_unit(tmp_path, unit, text):
    start, end = offsets_of(text, "a", unit.value)
    offsets = Offsets(unit)
    record = {"text": text, "label": [[start, end, "X"]]}
    problems = Problems()
    (sentence,) = read(tmp_path, [record], problems, offsets)
    assert [sentence.text(s, e) for s, e, _ in sentence.spans] == ["a"]
    assert not problems.counts
    assert offsets.messages() == [] or unit is OffsetUnit.code_points


def test_json_layouts_javascript_offsets_that_fit_other_words_are_named(tmp_path):
    offsets = Offsets()
    (sentence,) = read(
        tmp_path, [{"text": SHOES, "label": [[5, 6, "T"]]}], None, offsets
    )
    assert [sentence.text(s, e) for s, e, _ in sentence.spans] == ["b"]
    ((headline, details),) = offsets.messages()
    assert "T131" in headline
    assert "--offsets utf-16" in headline
    assert details.endswith("file.json:1: T (5, 6) is 'b', or 'a'")


@pytest.mark.parametrize(("unit", "text"), [("utf-16", SHOES), ("bytes", "é a b")])
@pytest.mark.parametrize("known", [False, True])
def test_json_layouts_another_unit_is_suggested(tmp_path, unit, text, known):
    start, end = offsets_of(text, "b", unit)
    span = {"start": start, "end": end, "label": "X"} | ({"text": "b"} if known else {})
    offsets, problems = Offsets(), Problems()
    (sentence,) = read(
        tmp_path, [{"text": text + " x", "spans": [span]}], problems, offsets
    )
    ((headline, _),) = offsets.messages()
    assert f"--offsets {unit}" in headline
    if known:
        # The offsets are those of another word; the file says which is meant.
        assert problems.counts == {LEFT_OUT: 1}
        assert sentence.spans == []


def test_json_layouts_offsets_inside_a_character(tmp_path):
    problems = Problems()
    record = {"text": SHOES, "label": [[1, 6, "X"]]}
    (sentence,) = read(tmp_path, [record], problems, Offsets(OffsetUnit.utf_16))
    assert (sentence.spans, problems.counts) == ([], {LEFT_OUT: 1})
    assert "(1, 6) counted in utf-16" in problems.named[LEFT_OUT][0]


def test_json_layouts_line_ends_that_count_as_one(tmp_path):
    text = "a\r\n\r\n Rome is"
    start = text.replace("\r\n", "\n").index("Rome")
    problems = Problems()
    record = {"text": text, "label": [[start, start + 4, "LOC"]]}
    (sentence,) = read(tmp_path, [record], problems)
    assert [sentence.text(s, e) for s, e, _ in sentence.spans] == ["Rome"]
    assert problems.counts == {LINE_ENDS: 1}
