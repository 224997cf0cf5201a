"""`python -m spacy treecrf report`: one table from several evaluations."""

import json

import pytest
from typer.testing import CliRunner

from spacy_treecrf.cli import app

TREECRF = {
    "spans_nested_p": 0.5,
    "spans_nested_r": 1.0,
    "spans_nested_f": 0.6667,
    "spans_nested_inner_f": 0.25,
    "spans_nested_outer_f": None,
    "spans_nested_unlabelled_f": 0.75,
    "spans_nested_per_type": {
        "ORG": {"p": 1.0, "r": 1.0, "f": 1.0},
        "A|B": {"p": 0.0, "r": 0.0, "f": 0.0},
    },
    "speed": 100.0,
}
SPANCAT = {
    "spans_nested_p": 0.1,
    "spans_nested_r": 0.2,
    "spans_nested_f": 0.1333,
    "spans_nested_per_type": {"GPE": {"p": 0.5, "r": 0.5, "f": 0.5}},
}
MARKDOWN = """\
|  | P | R | F | Inner F | Outer F | Unlabelled F |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| treecrf | 50.00 | 100.00 | 66.67 | 25.00 |  | 75.00 |
| spancat | 10.00 | 20.00 | 13.33 |  |  |  |

| F by label | treecrf | spancat |
| --- | ---: | ---: |
| A\\|B | 0.00 |  |
| GPE |  | 50.00 |
| ORG | 100.00 |  |

"""


@pytest.fixture
def metrics(tmp_path):
    (tmp_path / "treecrf.json").write_text(json.dumps(TREECRF))
    (tmp_path / "spancat.json").write_text(json.dumps(SPANCAT))
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, ["report", *map(str, args)])


def test_report_markdown(metrics):
    paths = [metrics / "treecrf.json", metrics / "spancat.json"]
    result = run(*paths, "--format", "markdown")
    assert result.exit_code == 0, result.output
    assert result.output == MARKDOWN


def test_report_text_without_labels(metrics):
    result = run(metrics / "treecrf.json", "--no-per-label")
    rows = [line.split() for line in result.output.splitlines() if line.strip()]
    assert rows[-1] == ["treecrf", "50.00", "100.00", "66.67", "25.00", "75.00"]
    assert "ORG" not in result.output


def test_report_names_equal_files_by_their_folders(metrics):
    other = metrics / "other" / "treecrf.json"
    other.parent.mkdir()
    other.write_text(json.dumps(TREECRF))
    result = run(metrics / "treecrf.json", other, "--format", "markdown")
    assert f"| {metrics / 'treecrf'} |" in result.output
    assert f"| {metrics / 'other' / 'treecrf'} |" in result.output


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (None, [], "[T040]"),
        ("{", [], "[T116]"),
        ("[]", [], "[T116]"),
        ("{}", [], "[T117]"),
        (json.dumps(TREECRF), ["--spans-key", "sc"], "[T117]"),
    ],
)
def test_report_refuses(tmp_path, text, options, message):
    path = tmp_path / "m.json"
    if text is not None:
        path.write_text(text)
    result = run(path, *options)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())


def test_report_of_scores_by_component(tmp_path):
    part = {"spans_nested_p": 0.5, "spans_nested_r": 0.5, "spans_nested_f": 0.5}
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text(json.dumps({"tokenizer": {"token_acc": 1.0}, "treecrf": part}))
    two.write_text(json.dumps({"treecrf": part, "identifinder": part}))
    result = run(one, two, "--no-per-label")
    assert result.exit_code == 0, result.output
    names = [
        line.split("  ")[0] for line in result.output.splitlines() if "50.00" in line
    ]
    assert names == ["one", "two (treecrf)", "two (identifinder)"]
