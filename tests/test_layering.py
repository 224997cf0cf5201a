"""The arrows of docs/architecture.md: which layer may import which."""

import ast
import subprocess
import sys
from configparser import ConfigParser
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "spacy_treecrf"
ROOT = "spacy_treecrf"

# Leaves of the pipeline layer that live at the top of the package.
LEAVES = {"errors", "labels", "gold", "problems", "scorers", "muc_scorer"}
LEAVES |= {"augment", "speech"}
MAY_IMPORT = {
    "structure": set(),
    "hmm": set(),
    "maxent": set(),
    "rerank": set(),
    "ml": {"structure"},
    "data": LEAVES,
    "pipeline": {"ml", "structure", "hmm", "maxent", "rerank"} | LEAVES,
    "cli": {"pipeline", "data", "ml", "structure", "hmm", "maxent", "rerank"} | LEAVES,
    **{
        leaf: {"errors", "labels", "gold", "scorers", "speech"} - {leaf}
        for leaf in LEAVES
    },
    "__init__": set(),
}
# Third-party packages that a layer must never import.
FORBIDDEN = {
    "structure": {"spacy", "thinc", "numpy", "scipy", "sklearn", "transformers"},
    "pipeline": {"torch"},
    "hmm": {"torch", "spacy", "thinc"},
    "maxent": {"torch", "spacy", "thinc"},
    "rerank": {"torch", "spacy", "thinc"},
}
MODULES = sorted(p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py"))


def imported_modules(path):
    """Absolute names of all that a module imports; relative ones start with a dot."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_layering_arrows_point_down(module):
    layer = module.parts[0].removesuffix(".py")
    for name in imported_modules(PACKAGE / module):
        if name.startswith("."):
            level = len(name) - len(name.lstrip("."))
            assert level < len(module.parts), (
                f"{module} imports across layers by {name}"
            )
            continue
        parts = name.split(".")
        if parts[0] == ROOT and len(parts) > 1:
            target = parts[1]
            assert target != layer or len(module.parts) == 1, (
                f"{module}: import {name} relatively, it is of the same layer"
            )
            assert target in MAY_IMPORT[layer], f"{module} must not import {name}"
        assert parts[0] not in FORBIDDEN.get(layer, set()), (
            f"{module}: layer '{layer}' must not import {parts[0]}"
        )


def test_layering_factories_load_without_heavy_packages():
    # Thinc and spacy-transformers import torch themselves, so that looking for it in
    # `sys.modules` would blame them: here the packages cannot be imported at all.
    code = (
        "import sys\n"
        "for name in ('torch', 'scipy', 'sklearn', 'transformers', 'torch_struct'):\n"
        "    sys.modules[name] = None\n"
        "from importlib.metadata import entry_points\n"
        "points = [p for p in entry_points(group='spacy_factories')\n"
        "          if p.value.startswith('spacy_treecrf.')]\n"
        "assert points, 'the package is not installed'\n"
        "for point in points:\n"
        "    point.load()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def names_of(module):
    """Dotted name of a module of the package, and of the package that it is in."""
    parts = (ROOT, *module.with_suffix("").parts)
    package = parts[:-1]
    return ".".join(package if parts[-1] == "__init__" else parts), package


def imported_by(module):
    """Modules of the package that one imports, also in its functions."""
    name, package = names_of(module)
    known = {names_of(other)[0] for other in MODULES}
    tree = ast.parse((PACKAGE / module).read_text(encoding="utf8"))
    types = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
    ]
    skipped = {inner for node in types for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in skipped:
            up = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*up, *([node.module] if node.module else [])))
            modules = {f"{base}.{alias.name}" for alias in node.names} & known
            yield from (modules or {base} & known) - {name}


def test_layering_no_module_imports_itself_by_a_detour():
    graph = {names_of(module)[0]: set(imported_by(module)) for module in MODULES}
    assert any(graph.values())
    TopologicalSorter(graph).prepare()  # raises for a circle, and names it


def test_layering_all_that_is_imported_is_declared():
    config = ConfigParser()
    config.read(PACKAGE.parent / "setup.cfg")
    groups = [config["options"]["install_requires"]]
    groups += config["options.extras_require"].values()
    lines = [line.strip() for group in groups for line in group.splitlines()]
    names = (line.split(";")[0].split(">")[0].split("=")[0].strip() for line in lines)
    declared = {name.replace("-", "_") for name in names if name and name[0] != "#"}
    imported = {
        name.split(".")[0]
        for module in MODULES
        for name in imported_modules(PACKAGE / module)
        if not name.startswith(".")
    }
    own = {ROOT, *sys.stdlib_module_names}
    assert not imported - own - declared
