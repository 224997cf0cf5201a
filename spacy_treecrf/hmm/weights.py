"""The weight of a level of back-off.

Source: Bikel et al. 1999, Eq. 3.10.
"""

import numpy as np


def backoff_weight(
    c: np.ndarray | float, u: np.ndarray | float, old: np.ndarray | float = 0.0
) -> np.ndarray:
    """The weight lambda of a level, against all levels below it.

    c (np.ndarray): Sample size of the history.
    u (np.ndarray): Distinct outcomes seen after it.
    old (np.ndarray): Sample size of the level above for the same query, 0 at the top.
    RETURNS (np.ndarray): (1 - old / c) * c / (c + u), the first factor clipped to
        [0, 1]; 0 where c is 0.

    Source: Bikel et al. 1999, Eq. 3.10. The second factor is Witten-Bell's; the first
    switches a level off that knows no more than the level above it.
    """
    c = np.asarray(c, dtype=np.float64)
    seen = np.maximum(c, 1.0)
    return np.where(c > 0, np.clip(1 - old / seen, 0, 1) * (c / (seen + u)), 0.0)


def count_histories(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, ...]:
    """Sizes of histories, given the history of each distinct event.

    keys (np.ndarray): One number a history. Shape: (m,).
    counts (np.ndarray): Count of each event. Shape: (m,).
    RETURNS (tuple[np.ndarray, ...]): First event of each history, the history's place
        of each event, c and u of each history.
    """
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return first, place, np.bincount(place, counts), np.bincount(place)
