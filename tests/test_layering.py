"""The arrows of docs/architecture.md: which layer may import which."""

import ast
import subprocess
import sys
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
