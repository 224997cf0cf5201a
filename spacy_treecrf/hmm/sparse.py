"""Sparse values that a batch asks for by key and adds to dense arrays."""

import numpy as np


class SparseRows:
    """Values at (key, columns), grouped by key.

    Keys below `n_keys` are found by place; without it they may be any numbers and are
    found by bisection.
    """

    def __init__(
        self,
        keys: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        n_keys: int | None = None,
    ):
        """Group the values.

        keys (np.ndarray): The key of each row, in any order. Shape: (m,).
        columns (np.ndarray): Positions behind the first in the dense result; the rows
            of one key have distinct ones. Shape: (m, k).
        values (np.ndarray): One value a row, or several. Shape: (m,) or (m, v).
        n_keys (Optional[int]): One more than the largest key.
        """
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        self._columns = tuple(np.ascontiguousarray(columns[order].T))
        self._values = np.asarray(values, dtype=np.float64)[order]
        self._keys: np.ndarray | None = None
        self._n_keys = n_keys
        if n_keys is None:
            self._keys, start = np.unique(keys, return_index=True)
            self._start = np.append(start, len(keys))
        else:
            self._start = np.searchsorted(keys, np.arange(n_keys + 1))

    def add_to(self, dense: np.ndarray, keys: np.ndarray) -> None:
        """Add the values of some keys to a dense array, in place.

        dense (np.ndarray): Its first index is the place in `keys`, then come the
            columns, then the values. Shape: (len(keys), ...).
        keys (np.ndarray): The keys; those without rows add nothing. Shape: (len(keys),).
        """
        if not len(self._values):
            return
        if self._keys is None:
            found = np.flatnonzero((keys >= 0) & (keys < self._n_keys))
            group = keys[found]
        else:
            group = np.searchsorted(self._keys, keys)
            group[group == len(self._keys)] = 0
            found = np.flatnonzero(self._keys[group] == keys)
            group = group[found]
        start = self._start[group]
        sizes = self._start[group + 1] - start
        ends = np.cumsum(sizes)
        target = np.repeat(found, sizes)
        source = np.arange(len(target)) + np.repeat(start - (ends - sizes), sizes)
        # Rows of one key have distinct columns: no position is written twice.
        place = (target, *(column[source] for column in self._columns))
        dense[place] += self._values[source]
