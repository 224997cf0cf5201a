"""benchmarks/experiments.toml: what it says is what the results say; its calls parse."""

import json
import runpy
import sys
from pathlib import Path
from unittest import mock

import pytest
from test_project import assert_parses

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results" / "ner").glob("*.json"))


def load_script(name):
    with (
        mock.patch.dict(sys.modules),
        mock.patch.object(sys, "path", [str(BENCHMARKS), *sys.path]),
    ):
        return runpy.run_path(str(BENCHMARKS / f"{name}.py"))


COMPARE = load_script("compare_ner")
RERANK = load_script("rerank_experiments")
NER = COMPARE["load_experiments"]("ner")


def planned(name, monkeypatch, *options):
    """Settings and system of all that a call of compare_ner.py would run."""
    calls = []
    script_globals = COMPARE["main"].__globals__
    monkeypatch.setitem(script_globals, "run", lambda *call: calls.append(call))
    monkeypatch.setattr(sys, "argv", ["compare_ner.py", name, *options])
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    with mock.patch("torch.set_num_threads"):
        COMPARE["main"]()
    return calls


def test_experiments_are_those_of_the_results(monkeypatch):
    found = {}
    for name in NER:
        for settings, system in planned(name, monkeypatch, "--force"):
            key = f"{settings.name}.{system}"
            assert key not in found
            found[key] = settings
    for path in RESULTS:
        result = json.loads(path.read_text(encoding="utf8"))
        settings = found[path.stem]
        assert result["steps"] == settings.steps
        assert result["seed"] == settings.seed
        assert result["learning_rate"] in settings.rates
        searched = [float(rate) for rate in result["search_dev_f"]]
        assert searched == (settings.rates if len(settings.rates) > 1 else [])
        if searched:
            assert result["search_steps"] == settings.search_steps
        encoder = settings.encoder
        assert result["encoder"] == (Path(encoder).parent.name or encoder)


def test_experiments_with_results_are_skipped(monkeypatch, capsys):
    assert planned("genia_cnn", monkeypatch) == []
    shown = capsys.readouterr().out
    assert "genia_cnn.treecrf.json exists" in shown
    assert "genia_cnn_seed2.local.json exists" in shown


def test_experiments_of_one_seed_and_system(monkeypatch):
    options = ("--systems", "local", "--force")
    ((settings, system),) = planned("litbank_cnn_seed2", monkeypatch, *options)
    assert (settings.name, settings.seed, system) == ("litbank_cnn_seed2", 2, "local")
    assert settings.rates == [0.002]


def test_experiments_outside_the_table(monkeypatch):
    options = "--corpus corpus/mine --systems local spancat8 --rates 0.1 --steps 7"
    first, second = planned("mine", monkeypatch, *options.split())
    assert [first[1], second[1]] == ["local", "spancat8"]
    assert (first[0].encoder, first[0].seed, first[0].search_steps) == ("cnn", 0, 7)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("nothing", "", "No experiment 'nothing'"),
        ("genia_cnn", "--steps 3", "--steps needs --corpus"),
        ("genia_cnn", "--systems spancat16", "has no spancat16"),
        ("mine", "--corpus x", "needs --systems"),
    ],
)
def test_experiments_refused(monkeypatch, name, options, message):
    with pytest.raises(SystemExit, match=message):
        planned(name, monkeypatch, *options.split())


@pytest.mark.parametrize("name", RERANK["load_experiments"]("rerank"))
def test_experiments_of_rerankers_parse(name, tmp_path, monkeypatch):
    experiment = RERANK["read_table"]([name])[name]
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "corpus" / experiment["folder"]
    folder.mkdir(parents=True)
    for split in ("train", "dev"):
        (folder / f"{split}.spacy").touch()
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    (tmp_path / "training").mkdir()
    for _, words in RERANK["make_calls"](name, experiment):
        assert_parses(words, monkeypatch)


def test_experiments_of_rerankers_are_those_of_the_results():
    details = json.loads((BENCHMARKS / "results" / "rerank.json").read_text())[
        "details"
    ]
    table = RERANK["read_table"]([]).values()
    by_table = {(one["base"], one["corpus"]): one["settings"] for one in table}
    assert by_table == {(d["base"], d["corpus"]): d["settings"] for d in details}
