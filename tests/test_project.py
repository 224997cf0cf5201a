"""project.yml: its schema, paths, configs and calls; the quickstart runs end to end."""

import argparse
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import spacy
import typer
from spacy.cli._util import app as spacy_app
from spacy.util import load_config, load_model_from_config
from weasel.schemas import ProjectConfigSchema, validate
from weasel.util import load_project_config

from spacy_treecrf.cli import app as treecrf_app

ROOT = Path(__file__).parent.parent
PROJECT = load_project_config(ROOT, interpolate=True)
COMMANDS = {command["name"]: command for command in PROJECT["commands"]}
CALLS = [
    pytest.param(name, i, id=f"{name}-{i}")
    for name, command in COMMANDS.items()
    for i, _ in enumerate(command["script"])
]


def call(name, i):
    """Words of one call of a command."""
    return shlex.split(COMMANDS[name]["script"][i])


def made_paths():
    """Everything that commands write or `project assets` fetches."""
    made = {asset["dest"] for asset in PROJECT["assets"]}
    for command in COMMANDS.values():
        made.update(command.get("outputs", []))
        made.update(command.get("outputs_no_cache", []))
    return made


def test_project_fits_the_schema():
    assert validate(ProjectConfigSchema, dict(PROJECT)) == []


def test_project_has_its_workflows():
    expected = "quickstart litbank germeval genia gum identifinder rerank"
    assert set(expected.split()) < set(PROJECT["workflows"])
    assert not set(PROJECT["workflows"]) & set(COMMANDS)


def test_project_names_are_unique():
    assert len(COMMANDS) == len(PROJECT["commands"])


@pytest.mark.parametrize("workflow", sorted(PROJECT["workflows"]))
def test_project_workflow_makes_what_it_needs(workflow):
    ready = {asset["dest"] for asset in PROJECT["assets"]}
    for name in PROJECT["workflows"][workflow]:
        command = COMMANDS[name]
        for path in command.get("deps", []):
            assert path in ready or is_tracked(path), f"{name} needs {path} too early"
        ready.update(command.get("outputs", []))
        ready.update(command.get("outputs_no_cache", []))


def is_tracked(path):
    """Whether a path is part of the repository, and not only on this machine."""
    return (ROOT / path).exists() and path not in made_paths()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_project_command_says_what_it_does(name):
    command = COMMANDS[name]
    assert command["help"]
    assert command["deps"]
    for path in command["deps"]:
        assert path in made_paths() or is_tracked(path), path


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_project_configs_are_dependencies(name):
    command = COMMANDS[name]
    for path in re.findall(r"configs/\w+\.cfg", " ".join(command["script"])):
        assert (ROOT / path).is_file()
        assert path in command["deps"]


def test_project_assets_are_pinned_and_extra():
    for asset in PROJECT["assets"]:
        # A commit, not a branch: the data do not change under a workflow.
        assert re.search(r"/[0-9a-f]{40}(/|$)", asset["url"]), asset["url"]
        # weasel rewrites other addresses of this host.
        assert not asset["url"].startswith("https://github.com")
        assert asset["extra"] is True
        assert asset["description"]


def stub_inputs(folder):
    """Empty files in place of everything that is made, real ones otherwise."""
    for path in made_paths():
        path = folder / path
        if path.suffix:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        else:
            path.mkdir(parents=True, exist_ok=True)
    for name in ("configs", "benchmarks", "assets/quickstart"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True, symlinks=True)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    stub_inputs(folder)
    return folder


class Parsed(Exception):
    """Raised instead of running a script whose arguments parse."""


@pytest.mark.parametrize(("name", "i"), CALLS)
def test_project_calls_parse(stubs, monkeypatch, name, i):
    monkeypatch.chdir(stubs)
    python, *words = call(name, i)
    assert python == "python"
    if words[:2] == ["-m", "pip"]:
        return
    if words[:2] != ["-m", "spacy"]:
        parse_script(words[0], words[1:], monkeypatch)
        return
    # spaCy adds the sub-commands of entry points only when it runs.
    is_ours = words[2] == treecrf_app.info.name
    app, words = (treecrf_app, words[3:]) if is_ours else (spacy_app, words[2:])
    command, context = typer.main.get_command(app), None
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
        context = command.context_class(
            command, parent=context, info_name=command.name, **command.context_settings
        )
    # The parser eats the list.
    first = words[0]
    command.parse_args(context, words)
    check_overrides(first, context.args)


def check_overrides(path, overrides):
    """Overrides of a config, which click does not know, must be in the config."""
    if not overrides:
        return
    config = load_config(ROOT / path, interpolate=False)
    assert len(overrides) % 2 == 0
    for option in overrides[::2]:
        assert option.startswith("--"), option
        section = config
        for part in option[2:].split("."):
            assert part in section, option
            section = section[part]


def parse_script(path, args, monkeypatch):
    script = ROOT / path
    if "argparse" not in script.read_text(encoding="utf8"):
        assert not args
        return
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(self, *given):
        parse(self, *given)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
    monkeypatch.setattr(sys, "argv", [str(script), *args])
    monkeypatch.syspath_prepend(str(script.parent))
    with mock.patch.dict(sys.modules), pytest.raises(Parsed):
        runpy.run_path(str(script), run_name="__main__")


def test_project_gpu_id_reaches_the_commands():
    overridden = load_project_config(
        ROOT, interpolate=True, overrides={"vars.gpu_id": 3}
    )
    count = 0
    for command in overridden["commands"]:
        for line in command["script"]:
            # The flat pipes have no use for a GPU.
            if re.search(r"identifinder|-flat", command["name"]):
                assert "--gpu-id" not in line
            elif re.search(
                r"spacy (train|evaluate)|treecrf visualize|compare_ner", line
            ):
                assert "--gpu-id 3" in line
                count += 1
    assert count > 10


@pytest.mark.parametrize("name", ["treecrf_paper", "spancat_paper"])
def test_project_paper_configs_fill(name):
    pytest.importorskip("spacy_transformers")
    config = load_config(ROOT / "configs" / f"{name}.cfg")
    nlp = load_model_from_config(config, auto_fill=True, validate=True)
    pipe = nlp.pipe_names[-1]
    assert nlp.get_pipe(pipe).cfg["spans_key"] == "nested"
    if pipe == "treecrf":
        settings = nlp.get_pipe(pipe).cfg
        assert settings["potential_normalization"] is True
        assert settings["structure_smoothing"] == 0.02
        assert settings["temperature"] == "learned"


@pytest.mark.slow
def test_project_quickstart_runs(tmp_path):
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(ROOT / "assets" / "quickstart", tmp_path / "assets" / "quickstart")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "spacy", "project", "run", "quickstart"),
            *(str(tmp_path), "--vars.quickstart_steps", "12"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    scores = json.loads((tmp_path / "metrics" / "quickstart.json").read_text())
    assert scores["spans_nested_f"] is not None
    nlp = spacy.load(tmp_path / "training" / "quickstart" / "model-best")
    assert nlp.pipe_names == ["tok2vec", "treecrf"]
    # The sentence of the last command, whatever entities its brackets mark.
    assert "mayor of" in re.sub(r"\[\S+ |\]", "", done.stdout)
