"""Both project.yml: schema, paths, configs and calls; the quickstart runs end to end."""

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
# By the folder that each project is run in.
PROJECTS = {
    folder: load_project_config(ROOT / folder, interpolate=True)
    for folder in (".", "benchmarks")
}
COMMANDS = {
    (folder, command["name"]): command
    for folder, project in PROJECTS.items()
    for command in project["commands"]
}
each_command = pytest.mark.parametrize(("folder", "name"), COMMANDS)
CALLS = [
    pytest.param(folder, name, i, id=f"{folder}-{name}-{i}")
    for (folder, name), command in COMMANDS.items()
    for i, _ in enumerate(command["script"])
]
# Imported as its own commands would, without a package.
TRAIN = runpy.run_path(str(ROOT / "scripts" / "train.py"))
SPLITS = ("train", "dev", "test")


def made_by(folder, command):
    """What a command writes, seen from the root."""
    paths = [*command.get("outputs", []), *command.get("outputs_no_cache", [])]
    return {os.path.normpath(os.path.join(folder, path)) for path in paths}


def needs(folder, command):
    """What a command depends on, seen from the root."""
    return [os.path.normpath(os.path.join(folder, p)) for p in command.get("deps", [])]


def made_paths():
    """Everything that commands write or `project assets` fetches."""
    made = {asset["dest"] for asset in PROJECTS["."]["assets"]}
    for (folder, _), command in COMMANDS.items():
        made |= made_by(folder, command)
    return made


@pytest.mark.parametrize("folder", PROJECTS)
def test_project_fits_the_schema(folder):
    assert validate(ProjectConfigSchema, dict(PROJECTS[folder])) == []


def test_project_is_small():
    assert (ROOT / "project.yml").stat().st_size <= 16_000


def test_project_has_its_workflows():
    expected = {"quickstart", "nested", "identifinder", "maxent", "rerank", "all"}
    for corpus in ("litbank", "germeval", "genia", "gum"):
        expected |= {corpus, f"{corpus}-spancat", f"{corpus}-trf"}
    for corpus in ("litbank", "genia"):
        kinds = ("trf-spancat", "paper", "paper-spancat", "minilm")
        expected |= {f"{corpus}-{kind}" for kind in kinds}
    assert expected == set(PROJECTS["."]["workflows"])
    compared = {"compare-litbank", "compare-germeval", "compare-genia", "compare-gum"}
    compared |= {"compare-minilm", "identifinder", "speed"}
    assert compared == set(PROJECTS["benchmarks"]["workflows"])


@pytest.mark.parametrize("folder", PROJECTS)
def test_project_names_are_unique(folder):
    project = PROJECTS[folder]
    names = [command["name"] for command in project["commands"]]
    assert len(set(names)) == len(names)
    assert not set(project["workflows"]) & set(names)
    used = {name for names in project["workflows"].values() for name in names}
    assert used == set(names)


@pytest.mark.parametrize(
    ("folder", "workflow"),
    [(f, w) for f, project in PROJECTS.items() for w in sorted(project["workflows"])],
)
def test_project_workflow_makes_what_it_needs(folder, workflow):
    ready = {asset["dest"] for asset in PROJECTS["."]["assets"]}
    for name in PROJECTS[folder]["workflows"][workflow]:
        command = COMMANDS[folder, name]
        for path in needs(folder, command):
            assert path in ready or is_tracked(path), f"{name} needs {path} too early"
        ready |= made_by(folder, command)


def is_tracked(path):
    """Whether a path is part of the repository, and not only on this machine."""
    is_result = path.startswith("benchmarks/results/")
    return (ROOT / path).exists() and (is_result or path not in made_paths())


@each_command
def test_project_command_says_what_it_does(folder, name):
    command = COMMANDS[folder, name]
    assert command["help"]
    assert command["deps"]
    for path in needs(folder, command):
        assert path in made_paths() or is_tracked(path), path


@each_command
def test_project_configs_are_dependencies(folder, name):
    command = COMMANDS[folder, name]
    script = " ".join(command["script"])
    paths = re.findall(r"configs/\w+\.cfg", script)
    for line in command["script"]:
        _, path, *args = shlex.split(line)
        if path == "scripts/train.py":
            parsed = TRAIN["make_parser"]().parse_args(args)
            paths.append(f"configs/{parsed.config}.cfg")
            assert f"corpus/{parsed.corpus}" in command["deps"]
    for path in paths:
        assert (ROOT / path).is_file()
        assert path in command["deps"]


def test_project_assets_are_pinned_and_extra():
    for asset in PROJECTS["."]["assets"]:
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
    for corpus in (folder / "corpus").iterdir():
        for split in SPLITS:
            (corpus / f"{split}.spacy").touch()
    for name in ("configs", "benchmarks", "assets/quickstart"):
        shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True, symlinks=True)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stubs")
    stub_inputs(folder)
    return folder


class Parsed(Exception):
    """Raised instead of running a script whose arguments parse."""


@pytest.mark.parametrize(("folder", "name", "i"), CALLS)
def test_project_calls_parse(stubs, monkeypatch, folder, name, i):
    monkeypatch.chdir(stubs / folder)
    python, *words = shlex.split(COMMANDS[folder, name]["script"][i])
    assert python == "python"
    assert_parses(words, monkeypatch, folder)


def assert_parses(words, monkeypatch, folder="."):
    """The words of a call behind the interpreter, in the folder that it is run in."""
    if words[:2] == ["-m", "pip"]:
        return
    if words[:2] != ["-m", "spacy"]:
        parse_script(ROOT / folder / words[0], words[1:], monkeypatch)
        return
    if words[2:4] == ["project", "run"]:
        target = os.path.normpath(os.path.join(folder, words[5]))
        assert (target, words[4]) in COMMANDS
        assert not words[6:]
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


def parse_script(script, args, monkeypatch):
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


@each_command
def test_project_training_runs_what_spacy_knows(stubs, monkeypatch, folder, name):
    monkeypatch.chdir(stubs)
    command = COMMANDS[folder, name]
    for line in command["script"]:
        _, path, *args = shlex.split(line)
        if path != "scripts/train.py":
            continue
        train, evaluate, report = TRAIN["make_calls"](
            TRAIN["make_parser"]().parse_args(args)
        )
        # Its scores are what the workflow says that it makes.
        output = evaluate[evaluate.index("--output") + 1]
        assert command.get("outputs", [output]) == [output]
        model = Path(evaluate[3])
        assert model.parent == Path(train[train.index("--output") + 1])
        model.mkdir(parents=True, exist_ok=True)
        Path(output).touch()
        for words in (train, evaluate, report):
            assert_parses(words, monkeypatch)


@pytest.mark.parametrize(
    ("words", "expected", "absent"),
    [
        ("treecrf germeval", ["--nlp.lang de"], ["initial_rate", "total_steps"]),
        ("treecrf mine", [], ["nlp.lang"]),
        ("spancat_trf genia --encoder x/y --rate 2e-5 --steps 9 --gpu-id 1", [
            "--components.transformer.model.name x/y",
            "--training.optimizer.learn_rate.initial_rate 2e-5",
            "--training.optimizer.learn_rate.total_steps 9",
            "--components.spancat.spans_key nested",
            "--gpu-id 1",
        ], []),
        ("identifinder conll2002_es --gpu-id 1", ["--nlp.lang es"], ["--gpu-id"]),
    ],
)  # fmt: skip
def test_project_training_takes_settings(words, expected, absent):
    train, *_ = TRAIN["make_calls"](TRAIN["make_parser"]().parse_args(words.split()))
    line = " ".join(train)
    assert all(part in line for part in expected)
    assert not any(part in line for part in absent)


@pytest.mark.parametrize(
    "words", ["treecrf genia --encoder x", "maxent_ner gmb --rate 1"]
)
def test_project_training_refuses_what_a_config_lacks(words):
    args = TRAIN["make_parser"]().parse_args(words.split())
    with pytest.raises(SystemExit, match="has none to set"):
        TRAIN["make_calls"](args)


@pytest.mark.parametrize("folder", PROJECTS)
def test_project_gpu_id_reaches_the_commands(folder):
    overridden = load_project_config(
        ROOT / folder, interpolate=True, overrides={"vars.gpu_id": 3}
    )
    pattern = r"spacy (train|evaluate)|treecrf visualize|compare_ner|scripts/train.py"
    lines = [line for command in overridden["commands"] for line in command["script"]]
    trained = [line for line in lines if re.search(pattern, line)]
    assert trained
    assert all("--gpu-id 3" in line for line in trained)


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
