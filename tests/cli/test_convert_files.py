"""Files as they are: what `convert` repairs, counts, suggests, splits and refuses."""

import json
import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.cli.readers import make_language
from spacy_treecrf.problems import ConversionError

DOCS = Path(__file__).parent.parent.parent / "docs" / "api"
VOCAB = spacy.blank("en").vocab


def run(*args):
    return CliRunner().invoke(app, ["convert", *map(str, args)])


def said(result):
    """The output on one line, since headlines are wrapped."""
    return " ".join(result.output.split())


def read(path, key="nested"):
    docs = DocBin().from_disk(path).get_docs(VOCAB)
    return [[(s.text, s.label_) for s in doc.spans[key]] for doc in docs]


def convert(tmp_path, *args):
    out = tmp_path / "out.spacy"
    result = (
        run(*args[:-1], args[-1], out)
        if len(args) == 2
        else run(*args[:2], out, *args[2:])
    )
    return result, read(out) if out.exists() else None


def counts(output):
    return dict(re.findall(r"^(\w[^\n]*?)  +(\d+)", output, flags=re.M))


def write_brat(folder, name, text, annotations):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode())
    (folder / f"{name}.ann").write_bytes(annotations.encode())


BANK = "He joined the Bank of\nNorthern England last May.\n"


@pytest.mark.parametrize(
    ("text", "annotation", "covered"),
    [
        (BANK, "T1\tORG 14 21;22 38\tBank of Northern England", BANK[14:38]),
        ("Foo\n  Bar x", "T1\tORG 0 3;4 9\tFoo   Bar", "Foo\n  Bar"),
        ("Foo\n  Bar x", "T1\tORG 0 3;6 9\tFoo Bar", "Foo\n  Bar"),
        ("a b\nc\n\nd e", "T1\tX 2 3;4 5;7 8\tb c d", "b\nc\n\nd"),
        ("a b c", "T1\tX 0 1;2 3;4 5\ta b c", "a b c"),
        ("Foo\r\nBar x", "T1\tORG 0 3;5 8\tFoo Bar", "Foo\r\nBar"),
        # Offsets that count the line end as one character.
        ("x\r\nFoo\r\nBar x", "T1\tORG 2 5;6 9\tFoo Bar", "Foo\nBar"),
    ],
)
@pytest.mark.parametrize("has_text", [True, False])
def test_convert_brat_pieces_with_white_space_between_are_one_span(
    tmp_path, text, annotation, covered, has_text
):
    line = annotation if has_text else annotation.rsplit("\t", 1)[0]
    write_brat(tmp_path, "a", text, line + "\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann")
    assert result.exit_code == 0, result.output
    assert [text for text, _ in docs[0]] == [covered]
    assert "1 annotations in pieces with only white space between them" in said(result)
    assert counts(result.output)["Misaligned"] == "0"


def test_convert_brat_discontinuous_annotations_are_counted(tmp_path):
    write_brat(tmp_path, "a", "left and right arm", "T1\tX 0 4;15 18\tleft arm\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann")
    assert (result.exit_code, docs) == (0, [[]])
    assert "1 discontinuous annotations: left out" in said(result)
    assert "a.ann:1: X 'left arm'" in said(result)


@pytest.mark.parametrize(
    ("covered", "n_joined"),
    [("Bank of\nNorthern England", 1), ("Bank\nof\nNorthern England", 2)],
)
def test_convert_brat_text_over_a_raw_line_break_costs_nothing(
    tmp_path, covered, n_joined
):
    # The second line of the text begins as an event does.
    lines = [f"T1\tORG 14 38\t{covered}", "T2\tDATE 39 47\tlast May", ""]
    write_brat(tmp_path / "in", "a", BANK, "\n".join(lines))
    write_brat(tmp_path / "in", "b", "Rome", "T1\tLOC 0 4\tRome\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "in")
    assert result.exit_code == 0, result.output
    assert docs == [[(BANK[14:38], "ORG"), ("last May", "DATE")], [("Rome", "LOC")]]
    assert f"{n_joined} annotation texts with a line break in the .ann" in said(result)
    result = run("brat", tmp_path / "in", tmp_path / "strict.spacy", "--strict")
    assert result.exit_code == 1
    assert "[T120]" in result.output
    assert "a.ann:2" in result.output
    assert not (tmp_path / "strict.spacy").exists()


def test_convert_brat_one_bad_line_or_file_does_not_cost_the_others(tmp_path):
    good = "T1\tLOC 0 4\tRome\n"
    folder = tmp_path / "in"
    write_brat(folder, "a", "Rome is", good + "T2 no annotation\n" + good)
    write_brat(folder, "b", "Rome is", good)
    (folder / "b.txt").unlink()
    write_brat(folder, "c", "Rome is", good)
    (folder / "c.txt").write_bytes(b"Rome \xe9")
    write_brat(folder, "d", "Rome is", good)
    write_brat(folder, "f", "Rome is", "no\nannotations\nat all\n")
    write_brat(folder, "g", "Rome is", good)
    result, docs = convert(tmp_path, "brat", folder)
    assert result.exit_code == 0, result.output
    assert docs == [[("Rome", "LOC")]] * 3
    output = said(result)
    # One of a.ann, three of f.ann.
    assert "4 lines that are no annotation: left out" in output
    assert "2 files that can't be read: left out" in output
    assert "b.txt" in output
    assert "c.txt:1: not UTF-8" in output
    assert "1 texts whose .ann file is none of brat's" in output


def test_convert_brat_line_ends_that_count_as_one_are_said(tmp_path):
    text = "one\r\ntwo\r\nRome is\r\n"
    write_brat(tmp_path, "a", text, "T1\tLOC 8 12\tRome\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann")
    assert (result.exit_code, docs) == (0, [[("Rome", "LOC")]])
    assert "1 texts with line ends \\r\\n that their offsets count as one" in said(
        result
    )
    result = run("brat", tmp_path / "a.ann", tmp_path / "s.spacy", "--strict")
    assert result.exit_code == 1
    assert "T120" in result.output


def test_convert_brat_byte_order_mark_that_is_counted(tmp_path):
    write_brat(tmp_path, "a", "\ufeffRome is", "T1\tLOC 1 5\tRome\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann")
    assert (result.exit_code, docs) == (0, [[("Rome", "LOC")]])
    assert "1 texts whose offsets count the byte order mark" in said(result)


@pytest.mark.parametrize("unit", ["utf-16", "bytes"])
def test_convert_brat_other_offsets_are_suggested_and_read(tmp_path, unit):
    text = "👞 é a b Rome"
    before = text[: text.index("Rome")]
    width = {"utf-16": len(before) + 1, "bytes": len(before.encode())}[unit]
    write_brat(tmp_path, "a", text, f"T1\tLOC {width} {width + 4}\tRome\n")
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann")
    assert (result.exit_code, docs) == (1, None)
    assert "[T050] 1 of 1 spans" in said(result)
    assert f"Try --offsets {unit}" in said(result)
    result, docs = convert(tmp_path, "brat", tmp_path / "a.ann", "--offsets", unit)
    assert (result.exit_code, docs) == (0, [[("Rome", "LOC")]])


def write_json(path, *records):
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf8")
    return path


RASA = {"text": "👞👞 a b c", "label": [[5, 6, "TIME"]]}


def test_convert_javascript_offsets(tmp_path):
    path = write_json(tmp_path / "in.jsonl", RASA)
    result, docs = convert(tmp_path, "jsonl", path)
    assert (result.exit_code, docs) == (0, [[("b", "TIME")]])
    assert "[T131] 1 spans stand behind characters" in said(result)
    assert "--offsets utf-16" in said(result)
    result, docs = convert(tmp_path, "jsonl", path, "--offsets", "utf-16")
    assert (result.exit_code, docs) == (0, [[("a", "TIME")]])
    assert "T131" not in result.output


def test_convert_json_of_label_studio(tmp_path):
    region = {"start": 0, "end": 4, "text": "Rome", "labels": ["LOC"]}
    tasks = [
        {"data": {"text": "Rome is."}, "annotations": [{"result": [{"value": region}]}]}
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(json.dumps(tasks, indent=2))
    write_json(tmp_path / "in" / "b.jsonl", {"text": "Rome is old.", "label": [region]})
    result, docs = convert(tmp_path, "jsonl", tmp_path / "in")
    assert (result.exit_code, docs) == (0, [[("Rome", "LOC")]] * 2)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        ({"sentence": "a b", "ents": [[0, 1, "X"]]}, "there are 'sentence', 'ents'"),
        (
            {"text": "a b", "spans": [{"begin": 0, "tag": "X"}]},
            '{"begin": 0, "tag": "X"}',
        ),
    ],
)
def test_convert_unknown_json_lists_the_layouts(tmp_path, record, shown):
    result, docs = convert(tmp_path, "jsonl", write_json(tmp_path / "in.jsonl", record))
    assert (result.exit_code, docs) == (1, None)
    assert "[T125]" in result.output
    assert shown in said(result)
    for layout in ("Prodigy", "doccano", "Label Studio", "GLiNER"):
        assert layout in said(result)


def test_convert_of_another_format_is_refused(tmp_path):
    path = tmp_path / "in.conllu"
    path.write_text("a\tO\nb\tO\n\nc\tO\n")
    result, docs = convert(tmp_path, "conllu", path)
    assert (result.exit_code, docs) == (1, None)
    assert "[T121] 2 of 2 sentences" in said(result)
    assert "expected 10 columns, received 2" in said(result)


def test_convert_character_tokens_say_what_training_makes_of_them(tmp_path):
    text = "Hello Rome"
    tokens = [
        {"text": c, "start": i, "end": i + 1} for i, c in enumerate(text) if c != " "
    ]
    span = {"start": 7, "end": 9, "label": "X"}
    whole = {"start": 6, "end": 10, "label": "LOC"}
    record = {"text": text, "tokens": tokens, "spans": [span, whole]}
    result, docs = convert(tmp_path, "jsonl", write_json(tmp_path / "in.jsonl", record))
    # Kept, so that debug-data can list it with the pipeline that it is for.
    assert (result.exit_code, docs) == (0, [[("Rome", "LOC"), ("om", "X")]])
    assert counts(result.output)["Misaligned"] == "1"
    assert "1 spans lost in training" in said(result)
    assert "--lang en" in said(result)
    assert "X (7, 9) 'Hello R' >'om'< 'e'" in said(result)


DANPLUS = "Anna\tB-PER\tO\nlæser\tO\tO\nPolitiken\tI-MISC\tB-ORG\n"


def test_convert_i_that_begins_an_entity(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text(DANPLUS, encoding="utf8")
    result, docs = convert(tmp_path, "iob-layers", path)
    assert result.exit_code == 0, result.output
    assert docs == [[("Anna", "PER"), ("Politiken", "MISC"), ("Politiken", "ORG")]]
    assert "1 tags that continue no entity: read as its first" in said(result)
    assert "in.tsv:3, column 2, 'Politiken': I-MISC as B-MISC" in said(result)
    assert counts(result.output)["Repairs"] == "1"
    result = run("iob-layers", path, tmp_path / "strict.spacy", "--strict")
    assert result.exit_code == 1
    assert "[T120]" in result.output
    assert not (tmp_path / "strict.spacy").exists()


def test_convert_conll_2003(tmp_path):
    path = tmp_path / "eng.testa"
    path.write_text("-DOCSTART- -X- -X- O\n\nU.N. NNP I-NP I-ORG\nman NN I-NP O\n")
    result, docs = convert(tmp_path, "iob-layers", path)
    assert (result.exit_code, docs) == (1, None)
    assert "[T122]" in result.output
    assert "--tag-columns 4" in said(result)
    result, docs = convert(tmp_path, "iob-layers", path, "--tag-columns", "4")
    assert (result.exit_code, docs) == (0, [[("U.N.", "ORG")]])


@pytest.mark.parametrize("columns", ["x", "0", "4,", "-1", ""])
def test_convert_refuses_columns_that_are_no_numbers(tmp_path, columns):
    path = tmp_path / "in.tsv"
    path.write_text(DANPLUS, encoding="utf8")
    result, _ = convert(tmp_path, "iob-layers", path, "--tag-columns", columns)
    assert result.exit_code == 1
    assert "expected numbers of columns" in said(result)


def test_convert_keys_of_misc(tmp_path):
    rows = [
        f"{i}\tw{i}" + "\t_" * 7 + f"\tname={t}"
        for i, t in enumerate(["B-PER", "O"], 1)
    ]
    path = tmp_path / "in.conllu"
    path.write_text("\n".join(rows) + "\n")
    result, docs = convert(tmp_path, "conllu", path)
    assert (result.exit_code, docs) == (0, [[]])
    assert "Entity=" in said(result)
    assert "--misc-key" in said(result)
    assert "name=B-PER" in said(result)
    result, docs = convert(tmp_path, "conllu", path, "--misc-key", "name")
    assert (result.exit_code, docs) == (0, [[("w1", "PER")]])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("ja", "SudachiPy"),
        ("ko", "mecab-ko"),
        ("th", "PyThaiNLP"),
        ("vi", "Pyvi"),
    ],
)
def test_convert_languages_say_what_their_tokenizer_needs(code, reason):
    try:
        spacy.blank(code)
    except ImportError:
        pass
    else:
        pytest.skip(f"the tokenizer of '{code}' is installed")
    with pytest.raises(ConversionError, match=rf"T123.*'{code}'.*{reason}") as error:
        make_language(code)
    assert "no language" not in str(error.value)


def test_convert_files_of_a_folder_are_apart(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    write_json(folder / "a.jsonl", RASA)
    (folder / "b.jsonl").write_text("no JSON")
    write_json(folder / "c.jsonl", RASA)
    result = run("jsonl", folder, tmp_path / "out")
    assert result.exit_code == 1
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "a.spacy",
        "c.spacy",
    ]


def splits(folder):
    return {path.stem: read(path) for path in sorted(folder.iterdir())}


def write_documents(path, n_documents, n_sentences=2):
    records = [
        {"doc": f"d{i}", "tokens": [f"d{i}", str(j)], "spans": [[0, 1, "X"]]}
        for i in range(n_documents)
        for j in range(n_sentences)
    ]
    return write_json(path, *records)


@pytest.mark.parametrize(
    ("n_documents", "shares", "expected"),
    [
        (3, "0.8/0.1/0.1", {"train": 1, "dev": 1, "test": 1}),
        (10, "0.8/0.1/0.1", {"train": 8, "dev": 1, "test": 1}),
        (20, "0.5/0.25/0.25", {"train": 10, "dev": 5, "test": 5}),
        (7, "0.8/0.2", {"train": 6, "dev": 1}),
        (4, "0.1/0.1/0.8", {"train": 1, "dev": 1, "test": 2}),
    ],
)
def test_convert_split_is_by_document(tmp_path, n_documents, shares, expected):
    path = write_documents(tmp_path / "in.jsonl", n_documents)
    result = run("jsonl", path, tmp_path / "out", "--split", shares)
    assert result.exit_code == 0, result.output
    found = splits(tmp_path / "out")
    names = {
        split: {text for spans in docs for text, _ in spans}
        for split, docs in found.items()
    }
    assert {split: len(own) for split, own in names.items()} == expected
    # No document in two of them, and each one whole.
    assert len(set().union(*names.values())) == n_documents
    assert all(len(found[split]) == 2 * n for split, n in expected.items())
    for split, n in expected.items():
        assert f"{split}: {n} documents" in said(result)


def test_convert_split_depends_on_the_seed_alone(tmp_path):
    path = write_documents(tmp_path / "in.jsonl", 30)
    found = []
    for i, seed in enumerate(("0", "0", "1")):
        out = tmp_path / f"out{i}"
        run("jsonl", path, out, "--split", "0.8/0.1/0.1", "--seed", seed)
        found.append(splits(out))
    assert found[0] == found[1] != found[2]


def test_convert_split_of_columns(tmp_path):
    path = tmp_path / "in.tsv"
    path.write_text("\n\n".join(f"w{i}\tB-X" for i in range(10)))
    result = run("iob-layers", path, tmp_path / "out", "--split", "0.8/0.1/0.1")
    assert result.exit_code == 0, result.output
    assert "sentences are split" in said(result)
    assert [len(docs) for docs in splits(tmp_path / "out").values()] == [1, 1, 8]
    # Files that say where documents begin are split there.
    blocks = ["-DOCSTART-\tO\n\na\tB-X\n\nb\tO\n\n"] * 2
    path.write_text("".join(blocks))
    result = run("iob-layers", path, tmp_path / "out2", "--split", "0.5/0.5")
    assert result.exit_code == 0, result.output
    assert splits(tmp_path / "out2") == {
        "dev": [[("a", "X")], []],
        "train": [[("a", "X")], []],
    }


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("0.8/0.1/0.2", "the shares add to 1.1, not to 1"),
        ("80/10/10", "the share of train is 80"),
        ("0.9/0.1/0", "the share of test is 0, so that a split is empty"),
        ("1", "expected 2 or 3 shares"),
        ("0.8/0.1/0.05/0.05", "expected 2 or 3 shares"),
        ("a/b", "expected shares of train, dev and test"),
        ("nan/0.5/0.5", "the share of train is nan"),
        ("0.4/0.3/0.3", "2 documents can't be cut into 3 splits"),
    ],
)
def test_convert_refuses_splits(tmp_path, split, message):
    path = write_documents(tmp_path / "in.jsonl", 2)
    result = run("jsonl", path, tmp_path / "out", "--split", split)
    assert result.exit_code == 1
    assert "[T124]" in result.output
    assert message in said(result)
    assert not (tmp_path / "out").exists()


def test_convert_split_needs_a_folder(tmp_path):
    path = write_documents(tmp_path / "in.jsonl", 5)
    result = run("jsonl", path, tmp_path / "out.spacy", "--split", "0.8/0.2")
    assert result.exit_code == 1
    assert "expected OUT to be a folder" in said(result)


def test_convert_split_limits_misaligned_spans_of_the_whole(tmp_path):
    path = write_json(
        tmp_path / "in.jsonl", *[{"text": "Rome is", "label": [[1, 4, "X"]]}] * 9
    )
    result = run("jsonl", path, tmp_path / "out", "--split", "0.8/0.2")
    assert result.exit_code == 1
    assert "[T050] 9 of 9 spans" in said(result)
    assert not (tmp_path / "out").exists()


def test_convert_reads_the_records_of_its_page(tmp_path):
    page = (DOCS / "cli-convert.md").read_text(encoding="utf8")
    (block,) = re.findall(r"^```json\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "in.jsonl"
    path.write_text(block, encoding="utf8")
    result, docs = convert(tmp_path, "jsonl", path, "--strict")
    assert result.exit_code == 0, result.output
    whole, inner = ("Bank of China", "ORG"), ("China", "GPE")
    assert docs == [[whole, inner], [whole], [whole, inner], [inner], [whole, inner]]


EXAMPLES = {
    "iob-layers": [("Bank of China", "ORG"), ("China", "GPE")],
    "genia": [("IL - 2 gene", "DNA"), ("IL - 2", "protein")],
    "bracketed": [("Bank of China", "ORG"), ("China", "GPE")],
    "sgml": [("Ann Lee", "ENAMEX/PERSON"), ("Monday", "TIMEX/DATE")],
    "conllu": [("Bank of China", "organization"), ("China", "place")],
}


@pytest.mark.parametrize("format", list(EXAMPLES))
def test_convert_reads_the_examples_of_its_page(tmp_path, format):
    page = (DOCS / "cli-convert.md").read_text(encoding="utf8")
    section = page.split(f"### `{format}`")[1].split("\n### ")[0]
    (block,) = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    path = tmp_path / "in.txt"
    path.write_text(block, encoding="utf8")
    result, docs = convert(tmp_path, format, path, "--strict")
    assert result.exit_code == 0, result.output
    assert docs == [EXAMPLES[format]]
