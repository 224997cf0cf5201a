"""Registered names: setup.cfg lists them all, and each one resolves."""

import ast
import configparser
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from spacy.util import registry

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "spacy_treecrf"


def listed():
    """(group, name, target) of each entry point of setup.cfg."""
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str
    parser.read(ROOT / "setup.cfg", encoding="utf8")
    for group, lines in parser["options.entry_points"].items():
        for line in lines.strip().splitlines():
            name, _, target = line.partition(" = ")
            yield group, name.strip(), target.strip()


LISTED = list(listed())
MODULES = sorted(path.relative_to(ROOT) for path in PACKAGE.rglob("*.py"))


def decorated(module):
    """(group, name) of what the decorators of a module register."""
    for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf8"))):
        for call in getattr(node, "decorator_list", []):
            if not (isinstance(call, ast.Call) and call.args):
                continue
            owner = ast.unparse(call.func)
            if owner.startswith("registry."):
                yield f"spacy_{owner.split('.')[1]}", ast.literal_eval(call.args[0])
            elif owner == "Language.factory":
                yield "spacy_factories", ast.literal_eval(call.args[0])


@pytest.mark.parametrize(("group", "name", "target"), LISTED)
def test_registry_target_exists(group, name, target):
    module, _, attribute = target.partition(":")
    assert callable(getattr(import_module(module), attribute))


@pytest.mark.parametrize(("group", "name", "target"), LISTED)
def test_registry_installed_as_listed(group, name, target):
    (point,) = entry_points(group=group, name=name)
    assert point.value == target, "install the package again: `pip install -e .`"


@pytest.mark.parametrize(
    ("group", "name"), [entry[:2] for entry in LISTED if entry[0] != "spacy_factories"]
)
def test_registry_spacy_resolves_the_name(group, name):
    assert name in getattr(registry, group.removeprefix("spacy_"))


@pytest.mark.parametrize(
    ("group", "name"), [entry[:2] for entry in LISTED if entry[0] != "spacy_factories"]
)
def test_registry_names_have_prefix_and_version(group, name):
    if group != "spacy_cli":
        assert name.startswith("spacy-treecrf.")
        assert name.rpartition(".v")[2].isdigit()


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_registry_every_module_imports(module):  # I-86
    import_module(".".join(module.with_suffix("").parts).removesuffix(".__init__"))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_registry_decorated_names_are_listed(module):
    names = {entry[:2] for entry in LISTED}
    assert set(decorated(module)) <= names


def test_registry_names_in_the_code_are_listed():
    # Default configs and messages name what is registered.
    used = set()
    for module in MODULES:
        for node in ast.walk(ast.parse((ROOT / module).read_text(encoding="utf8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = node.value.replace('"', " ").replace("`", " ").split()
                used |= {w.strip(".,") for w in words if w.startswith("spacy-treecrf.")}
    # A name in one piece: other words may follow the prefix in prose.
    used = {name for name in used if name.rpartition(".v")[2].isdigit()}
    assert used
    assert used <= {name for _, name, _ in LISTED}


def in_fresh_process(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


def test_registry_factories_need_no_import_of_ours():  # I-09
    code = (
        "import spacy\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('treecrf')\n"
        "nlp.add_pipe('identifinder')\n"
        "nlp.add_pipe('maxent_ner')\n"
        "print(nlp.pipe_names)\n"
    )
    done = in_fresh_process(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['treecrf', 'identifinder', 'maxent_ner']"


def test_registry_without_torch_spacy_still_works():  # I-10
    # spacy-transformers cannot be imported without torch: it stands aside here.
    code = (
        "import sys\n"
        "from importlib.metadata import EntryPoint\n"
        "sys.modules['torch'] = None\n"
        "load = EntryPoint.load\n"
        "EntryPoint.load = lambda point: (\n"
        "    None if point.value.startswith('spacy_transformers') else load(point))\n"
        "import spacy\n"
        "nlp = spacy.blank('en')\n"
        "nlp.add_pipe('identifinder')\n"
        "try:\n"
        "    nlp.add_pipe('treecrf')\n"
        "except ImportError as error:\n"
        "    print(nlp.pipe_names, error)\n"
    )
    done = in_fresh_process(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("['identifinder']")
    assert "torch" in done.stdout
