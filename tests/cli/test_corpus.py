"""`python -m spacy treecrf corpus`: both sources of each corpus give the same Docs."""

import gzip
import json
import shutil
import zipfile

import pytest
import spacy
from spacy.tokens import DocBin
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.data.public_corpora import CORPORA, SPLITS, VARIABLE

VOCAB = spacy.blank("en").vocab
# What each fake corpus holds, in the layout of each source.
COLUMNS = "Bank\tB-ORG\tO\nof\tI-ORG\tO\nChina\tI-ORG\tB-GPE\n\nNothing\tO\tO\n\n"
CONLLU = (
    "# newdoc id = {name}\n# global.Entity = GRP-etype-infstat\n"
    "1\tBank\t_\t_\t_\t_\t_\t_\t_\tEntity=(1-ORG-new\n"
    "2\tof\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "3\tChina\t_\t_\t_\t_\t_\t_\t_\tEntity=(2-GPE-new)1)\n\n"
    "1\tNothing\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
EXPECTED = [
    ("Bank of China", [(0, 3, "ORG"), (2, 3, "GPE")]),
    ("Nothing", []),
]


def make_zip(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def fake_litbank(folder):
    make_zip(
        folder / "litbank.zip",
        {f"litbank-0/entities/tsv/{s}_brat.tsv": COLUMNS for s in (*SPLITS, "other")}
        | {f"litbank-0/other/{s}_brat.tsv": "broken" for s in SPLITS},
    )
    for split in SPLITS:
        (folder / f"{split}.ids").write_text(f"{split}_brat.tsv\n")


def fake_germeval(folder):
    members = {f"GermEval2014/germ.{split}.iob2": COLUMNS for split in SPLITS}
    make_zip(folder / "GermEval2014.zip", {"GermEval2014/": "", **members})


def fake_genia(folder):
    folder.mkdir(parents=True)
    for split in SPLITS:
        (folder / f"genia.{split}.iob2").write_text(COLUMNS)


def fake_gum(folder):
    names = {split: f"GUM_news_{split}" for split in SPLITS}
    table = "".join(
        f"## {split}\n\n  * {name}\n  * GUM_reddit_{split}\n\n"
        for split, name in [*names.items(), ("test2", "GENTLE_x")]
    )
    members = {f"gum-0/dep/{n}.conllu": CONLLU.format(name=n) for n in names.values()}
    make_zip(folder / "gum.zip", {"gum-0/splits.md": f"# Splits\n{table}", **members})


# The same names without the nested one; GMB has its words in one table.
FLAT = [("Bank of China", [(0, 3, "ORG")]), ("Nothing", [])]
TAGS = {"Bank": "B-ORG", "of": "I-ORG", "China": "I-ORG", "Nothing": "O"}


def fake_gmb(folder):
    words = "".join(
        f"{'' if i else 'Sentence: 1'},{word},NN,{TAGS.get(word, 'O')}\n"
        for text, _ in FLAT
        for i, word in enumerate([*text.split(), " "])
    )
    table = "Sentence #,Word,POS,Tag\n" + 10 * words
    make_zip(folder / "ner_dataset.csv.zip", {"ner_dataset.csv": table})


def fake_conll2002_es(folder):
    text = "\n".join(
        "".join(f"{word} NC {TAGS[word]}\n" for word in text.split())
        for text, _ in FLAT
    )
    names = ("esp.train", "esp.testa", "esp.testb", "ned.train")
    make_zip(folder / "conll2002.zip", {f"conll2002/{n}": text for n in names})


FAKES = {
    "gmb": fake_gmb,
    "conll2002_es": fake_conll2002_es,
    "litbank": fake_litbank,
    "germeval": fake_germeval,
    "genia": fake_genia,
    "gum": fake_gum,
}


def fake_local_copy(folder):
    folder.mkdir(parents=True)
    for split in SPLITS:
        with gzip.open(folder / f"{split}.jsonl.gz", "wt") as file:
            for text, spans in EXPECTED:
                print(json.dumps({"tokens": text.split(), "spans": spans}), file=file)


def run(*args, copy=None):
    environ = {VARIABLE: None if copy is None else str(copy)}
    return CliRunner().invoke(app, ["corpus", *map(str, args)], env=environ)


def read(path, key="nested"):
    return [
        (doc.text.strip(), [(s.start, s.end, s.label_) for s in doc.spans[key]])
        for doc in DocBin().from_disk(path).get_docs(VOCAB)
    ]


def read_ents(path):
    docs = list(DocBin().from_disk(path).get_docs(VOCAB))
    assert not any(doc.spans for doc in docs)
    # What is outside an entity is annotated as such.
    assert all(token.ent_iob_ for doc in docs for token in doc)
    return [
        (doc.text.strip(), [(e.start, e.end, e.label_) for e in doc.ents])
        for doc in docs
    ]


def assert_expected(name, folder, n_train=1):
    """Each split has the sentences of the fakes, the training set so many times."""
    for split in SPLITS:
        path = folder / f"{split}.spacy"
        times = n_train if split == "train" else 1
        if CORPORA[name].is_flat:
            assert read_ents(path) == FLAT * times
        else:
            assert read(path) == EXPECTED * times


def flat(output):
    return " ".join(output.split())


def test_corpus_fakes_cover_all_corpora():
    assert set(FAKES) == set(CORPORA)


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_corpus_from_original_files(tmp_path, name):
    assets, out = tmp_path / "assets", tmp_path / "out"
    FAKES[name](assets / name)
    result = run(name, out, "--assets", assets)
    assert result.exit_code == 0, result.output
    assert "original files in" in flat(result.output)
    assert_expected(name, out, n_train=8 if name == "gmb" else 1)


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_corpus_from_local_copy(tmp_path, name):
    copy, out = tmp_path / "copy", tmp_path / "out"
    fake_local_copy(copy / CORPORA[name].folder)
    # The variable goes before original files.
    FAKES[name](tmp_path / "assets" / name)
    result = run(name, out, "--assets", tmp_path / "assets", copy=copy)
    assert result.exit_code == 0, result.output
    assert f"(from {VARIABLE})" in flat(result.output)
    assert_expected(name, out)


def test_corpus_local_copy_in_a_folder_of_its_kind(tmp_path):
    copy, out = tmp_path / "copy", tmp_path / "out"
    fake_local_copy(copy / "research_only" / "conll2002_es")
    (copy / "raw" / "conll2002_es").mkdir(parents=True)
    result = run("conll2002_es", out, copy=copy)
    assert result.exit_code == 0, result.output
    assert_expected("conll2002_es", out)


@pytest.mark.parametrize("name", ["gmb", "conll2002_es"])
def test_corpus_flat_numbers_documents(tmp_path, name):
    folder = tmp_path / "copy" / name
    folder.mkdir(parents=True)
    lines = 41 * [json.dumps({"tokens": ["Bank"], "spans": [], "doc": None}) + "\n"]
    for split in SPLITS:
        (folder / f"{split}.jsonl.gz").write_bytes(
            gzip.compress("".join(lines).encode())
        )
    result = run(name, tmp_path / "out", "--keep-ids", copy=tmp_path / "copy")
    assert result.exit_code == 0, result.output
    docs = DocBin().from_disk(tmp_path / "out" / "dev.spacy").get_docs(VOCAB)
    names = [doc.user_data["doc"] for doc in docs]
    assert names == 40 * ["dev-0"] + ["dev-1"]


def test_corpus_flat_on_demand(tmp_path):
    fake_genia(tmp_path / "genia")
    result = run("genia", tmp_path / "out", "--assets", tmp_path, "--flat")
    assert result.exit_code == 0, result.output
    assert read_ents(tmp_path / "out" / "test.spacy") == FLAT


def test_corpus_limit_is_of_training_sentences(tmp_path):
    fake_genia(tmp_path / "genia")
    out = tmp_path / "out"
    result = run("genia", out, "--assets", tmp_path, "--limit", 1, "--spans-key", "sc")
    assert result.exit_code == 0, result.output
    sizes = [len(read(out / f"{split}.spacy", "sc")) for split in SPLITS]
    assert sizes == [1, 2, 2]


@pytest.mark.parametrize("name", ["gum", "litbank"])
def test_corpus_keeps_documents_on_demand(tmp_path, name):
    FAKES[name](tmp_path / name)
    out = tmp_path / "out"
    result = run(name, out, "--assets", tmp_path, "--keep-ids")
    assert result.exit_code == 0, result.output
    docs = DocBin().from_disk(out / "dev.spacy").get_docs(VOCAB)
    names = {doc.user_data["doc"] for doc in docs}
    assert len(names) == 1
    assert names.pop() is not None


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_corpus_merges_documents_on_demand(tmp_path, name):
    FAKES[name](tmp_path / name)
    out = tmp_path / "out"
    result = run(name, out, "--assets", tmp_path, "--merge-docs")
    assert result.exit_code == 0, result.output
    expected = FLAT if CORPORA[name].is_flat else EXPECTED
    (doc,) = DocBin().from_disk(out / "dev.spacy").get_docs(VOCAB)
    assert [sentence.text.strip() for sentence in doc.sents] == [t for t, _ in expected]
    spans = doc.ents if CORPORA[name].is_flat else doc.spans["nested"]
    assert [(s.start, s.end, s.label_) for s in spans] == expected[0][1]


def test_corpus_merges_no_more_than_the_limit_of_sentences(tmp_path):
    fake_genia(tmp_path / "genia")
    out = tmp_path / "out"
    args = ("--assets", tmp_path, "--merge-docs", "--limit", 1)
    assert run("genia", out, *args).exit_code == 0
    docs = [
        next(DocBin().from_disk(out / f"{s}.spacy").get_docs(VOCAB)) for s in SPLITS
    ]
    assert [len(doc) for doc in docs] == [3, 4, 4]


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("genia", lambda f: (f / "genia.dev.iob2").unlink(), "[T110]"),
        ("litbank", lambda f: (f / "dev.ids").unlink(), "[T110]"),
        ("litbank", lambda f: (f / "litbank.zip").unlink(), "[T110]"),
        ("litbank", lambda f: (f / "dev.ids").write_text("x\n"), "no file for 'x'"),
        ("germeval", lambda f: (f / "GermEval2014.zip").write_text("404"), "[T112]"),
        ("gum", lambda f: make_zip(f / "gum.zip", {"a": ""}), "no member matches"),
        (
            "gum",
            lambda f: make_zip(f / "gum.zip", {"g/splits.md": "## dev\n"}),
            "no documents under '## train'",
        ),
        ("genia", lambda f: (f / "genia.dev.iob2").write_text(""), "[T049]"),
    ],
)
def test_corpus_names_what_is_missing(tmp_path, name, spoil, message):
    FAKES[name](tmp_path / name)
    spoil(tmp_path / name)
    result = run(name, tmp_path / "out", "--assets", tmp_path)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in flat(result.output)


def test_corpus_local_copy_without_the_corpus(tmp_path):
    fake_genia(tmp_path / "genia")
    result = run("genia", tmp_path / "out", "--assets", tmp_path, copy=tmp_path / "no")
    assert result.exit_code == 1
    assert "[T111]" in result.output


def test_corpus_unknown_name(tmp_path):
    result = run("ace", tmp_path)
    assert result.exit_code == 1
    assert "Known: conll2002_es, genia, germeval, gmb, gum, litbank" in flat(
        result.output
    )


def test_corpus_archives_write_nowhere_else(tmp_path):
    folder = tmp_path / "genuine" / "germeval"
    members = {f"../../../germ.{split}.iob2": COLUMNS for split in SPLITS}
    make_zip(folder / "GermEval2014.zip", members)
    result = run("germeval", tmp_path / "out", "--assets", folder.parent)
    assert result.exit_code == 0, result.output
    assert {p.name for p in tmp_path.iterdir()} == {"genuine", "out"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["litbank", "germeval"])
def test_corpus_published_files_equal_the_local_copy(corpora, tmp_path, name):
    folder = tmp_path / "assets" / name
    folder.mkdir(parents=True)
    raw = corpora / "raw" / CORPORA[name].folder
    if name == "germeval":
        shutil.copy(raw / "GermEval2014.zip", folder)
    else:
        tsv = sorted((raw / "entities" / "tsv").iterdir())
        members = {f"litbank-0/entities/tsv/{p.name}": p.read_text() for p in tsv}
        make_zip(folder / "litbank.zip", members)
        for split in SPLITS:
            with gzip.open(corpora / name / f"{split}.jsonl.gz", "rt") as file:
                docs = dict.fromkeys(json.loads(line)["doc"] for line in file)
            names = "".join(f"{doc}_brat.tsv\n" for doc in docs)
            (folder / f"{split}.ids").write_text(names)
    for out, copy in (("originals", None), ("copy", corpora)):
        args = ["--assets", folder.parent, "--limit", 500]
        result = run(name, tmp_path / out, *args, copy=copy)
        assert result.exit_code == 0, result.output
    for split in SPLITS:
        originals = (tmp_path / "originals" / f"{split}.spacy").read_bytes()
        assert originals == (tmp_path / "copy" / f"{split}.spacy").read_bytes()
