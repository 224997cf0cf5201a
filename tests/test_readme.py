"""The code and the links of README.md and docs/ are true."""

import json
import re
import runpy
import shlex
from pathlib import Path

import pytest
import spacy
import srsly
from table_scorer import scored, table_of
from typer.main import get_command

from spacy_treecrf.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
# A file or folder of the repository, in back quotes; capitals stand for something.
NAMED = re.compile(
    r"`((?:spacy_treecrf|configs|docs|benchmarks|tests|assets)/[a-z_./\d-]+)`"
)


def blocks(page, language):
    found = BLOCK.findall(page.read_text(encoding="utf8"))
    return [code for name, code in found if name == language]


@pytest.fixture(scope="module")
def model():
    """Stands in for the model of the quickstart."""
    words = "The Bank of China opened an office in Lyon ."
    return scored(table_of([(words, [(1, 4, "ORG"), (3, 4, "GPE"), (8, 9, "GPE")])]))


def test_readme_code_prints_the_entities(model, monkeypatch, capsys):
    monkeypatch.setattr(spacy, "load", lambda path: model)
    (code,) = blocks(ROOT / "README.md", "python")
    exec(compile(code, "README.md", "exec"), {})
    rows = [line.rsplit(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [
        ["Bank of China", "ORG"],
        ["China", "GPE"],
        ["Lyon", "GPE"],
    ]


def test_readme_config_is_that_of_the_pipe():
    (text,) = blocks(ROOT / "README.md", "ini")
    shipped = spacy.util.load_config(ROOT / "configs" / "treecrf.cfg")
    example = spacy.util.load_config_from_str(text, interpolate=False)
    scorer = example["components"]["treecrf"]["model"]["span_scorer"]
    expected = shipped["components"]["treecrf"]["model"]["span_scorer"]
    assert scorer["@architectures"] == expected["@architectures"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_files_named_exist(page):
    for name in NAMED.findall(page.read_text(encoding="utf8")):
        assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_readme_commands_of_ours_have_known_names_and_options():
    commands = get_command(app).commands
    text = (ROOT / "README.md").read_text(encoding="utf8")
    lines = [line for line in text.splitlines() if "-m spacy treecrf" in line]
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)
        if "treecrf" not in words:
            continue
        name, *arguments = words[words.index("treecrf") + 1 :]
        known = {option for p in commands[name].params for option in p.opts}
        assert {a for a in arguments if a.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_readme_workflows_exist(page):
    text = page.read_text(encoding="utf8")
    for name, folder in re.findall(r"project run ([a-z][\w-]*)(?: (\w+|\.))?", text):
        project = srsly.read_yaml(ROOT / (folder or ".") / "project.yml")
        assert name in project["workflows"], f"{page.name}: {name}"


def test_readme_table_of_the_rerankers_is_that_of_the_results():
    report = runpy.run_path(str(ROOT / "benchmarks" / "report_rerank.py"))
    rows = json.loads(report["RESULTS"].read_text(encoding="utf8"))["rows"]
    page = (ROOT / "docs" / "api" / "ner_reranker.md").read_text(encoding="utf8")
    table = page.split(report["BEGIN"])[1].split(report["END"])[0]
    assert table.strip() == report["make_table"](rows).strip()


def test_readme_results_of_the_rerankers_have_the_agreed_form():
    path = ROOT / "benchmarks" / "results" / "rerank.json"
    rows = json.loads(path.read_text(encoding="utf8"))["rows"]
    figures = {"p", "r", "f", "relative_error_reduction", "seconds"}
    methods = ["base", "oracle", "boosting", "voted_perceptron", "averaged_perceptron"]
    assert {row["base"] for row in rows} == {"maxent_ner", "identifinder", "treecrf"}
    for row in rows:
        assert set(row) == {"base", "corpus", "method", *figures}
        assert row["method"] in methods
        assert all(0 <= row[name] <= 1 for name in ("p", "r", "f"))
