"""Rankers as headers and arrays, whatever their method."""

from typing import Any

import numpy as np

from .linear_ranker import LinearRanker
from .voted_perceptron import VotedRanker

Ranker = LinearRanker | VotedRanker

_RANKERS: dict[str, type[Ranker]] = {
    ranker.method: ranker for ranker in (LinearRanker, VotedRanker)
}


def load_ranker(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Ranker:
    """Build the ranker that a header names.

    header (dict[str, Any]): The header that `to_arrays` returned.
    arrays (dict[str, np.ndarray]): The arrays that it returned.
    RETURNS (Ranker): The ranker.
    RAISES (ValueError): If no ranker has the header's method.
    """
    method = header.get("method")
    if method not in _RANKERS:
        raise ValueError(
            f"expected a ranker of method {sorted(_RANKERS)}, received {method!r}"
        )
    return _RANKERS[method].from_arrays(header, arrays)
