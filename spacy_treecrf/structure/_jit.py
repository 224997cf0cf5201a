"""How the recursions on the host are compiled; imports Numba, see `compiled.py`."""

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be taken in any order. Never "nnan" or "ninf": a NaN must stay one.
FLAGS = {"reassoc", "contract", "nsz", "arcp"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FLAGS, "error_model": "numpy"}


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call; keep the code on disk where that can be."""
    try:
        return njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:
        # No folder for the code can be written to: neither beside the package nor at home.
        if "no locator available" not in str(error):
            raise
        return njit(**OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function into those that call it: a call costs as much as a short loop."""
    return njit(inline="always", **OPTIONS)(function)
