"""How the recursions on the host are compiled; imports Numba, see `compiled.py`."""

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be taken in any order. Never "nnan" or "ninf": a NaN must stay one.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call; keep the code on disk where that can be."""
    options: dict[str, Any] = {"nogil": True, "fastmath": FLAGS, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError as error:
        # No folder for the code can be written to: neither beside the package nor at home.
        if "no locator available" not in str(error):
            raise
        return njit(**options)(function)
