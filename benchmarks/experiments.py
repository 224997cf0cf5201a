"""The table of experiments, experiments.toml."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).parent / "experiments.toml"


def load_experiments(kind):
    """The experiments of a kind by name; RETURNS (dict[str, dict])."""
    with TABLE.open("rb") as file:
        return tomllib.load(file)[kind]


def unknown(name, known):
    """What to say of a name that is not in the table."""
    return f"No experiment {name!r} in {TABLE.name}. Known: {', '.join(sorted(known))}."
