"""The kept features: counted over segments, then looked up by their numbers."""

import numpy as np

from .hashing import HASH_BITS

# A count or a segment rides in the byte that the numbers of features leave free.
_BYTE = np.uint64(64 - HASH_BITS)
_BYTE_MASK = np.uint64(255)
# Counts stop here, so that the cut-off can be no greater.
MAX_COUNT = 255
# Segments of which the features can be counted together.
MAX_SEGMENTS = 256
# Distinct features after which pending counts are merged: 128 MB.
_MERGE_SIZE = 1 << 24
# Entries of the index by leading bits for each feature: most unknown features then meet
# an empty bucket.
_BUCKETS_PER_FEATURE = 4


class FeatureCounts:
    """Counts in how many segments each feature occurs, in bounded memory."""

    def __init__(self) -> None:
        self._pending: list[np.ndarray] = []
        self._n_pending = 0
        self._merged = np.empty(0, dtype=np.uint64)

    def add(self, features: np.ndarray, segments: np.ndarray) -> None:
        """Count the features of some segments that were not seen before.

        features (np.ndarray): Numbers of features, in any order, repeated or not.
        segments (np.ndarray): The segment of each, below `MAX_SEGMENTS`.
        """
        keys = (features << _BYTE) | segments.astype(np.uint64)
        keys.sort()
        keys = keys[_is_first(keys)]
        # A feature's segments now follow one another: a run is as long as its count.
        numbers = keys >> _BYTE
        starts = np.flatnonzero(_is_first(numbers))
        counts = np.diff(np.append(starts, len(numbers)))
        self._pending.append(_pack(numbers[starts], counts))
        self._n_pending += len(starts)
        if self._n_pending >= max(_MERGE_SIZE, len(self._merged)):
            self._merge()

    def _merge(self) -> None:
        keys = np.concatenate([self._merged, *self._pending])
        self._pending, self._n_pending = [], 0
        keys.sort()
        numbers = keys >> _BYTE
        starts = np.flatnonzero(_is_first(numbers))
        counts = (keys & _BYTE_MASK).astype(np.int64)
        if len(starts):
            counts = np.add.reduceat(counts, starts)
        self._merged = _pack(numbers[starts], counts)

    def frequent(self, minimum: int) -> np.ndarray:
        """The features that occur in so many segments or more.

        minimum (int): 1 to `MAX_COUNT`.
        RETURNS (np.ndarray): Their numbers, sorted.
        """
        self._merge()
        counts = (self._merged & _BYTE_MASK).astype(np.int64)
        return self._merged[counts >= minimum] >> _BYTE


def _is_first(values: np.ndarray) -> np.ndarray:
    """Which sorted values differ from the one before."""
    first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _pack(numbers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return (numbers << _BYTE) | np.minimum(counts, MAX_COUNT).astype(np.uint64)


class FeatureTable:
    """Finds the column of a feature."""

    def __init__(self, numbers: np.ndarray):
        """Index some features.

        numbers (np.ndarray): Numbers of the features, sorted and distinct, uint64.
        """
        self.numbers = numbers
        # Hashes are uniform: their leading bits tell where to look.
        n_bits = max(len(numbers) * _BUCKETS_PER_FEATURE, 1).bit_length()
        self._shift = np.uint64(HASH_BITS - n_bits)
        buckets = (numbers >> self._shift).astype(np.int64)
        self._starts = np.zeros((1 << n_bits) + 1, dtype=np.int32)
        np.cumsum(np.bincount(buckets, minlength=1 << n_bits), out=self._starts[1:])

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, features: np.ndarray) -> np.ndarray:
        """Look features up.

        features (np.ndarray): Numbers of features.
        RETURNS (np.ndarray): The column of each, -1 for an unknown one, int32.
        """
        columns = np.full(len(features), -1, dtype=np.int32)
        buckets = (features >> self._shift).astype(np.int64)
        place, stop = self._starts[buckets], self._starts[buckets + 1]
        open_ = np.flatnonzero(place < stop)
        place, stop, sought = place[open_], stop[open_], features[open_]
        while len(open_):
            found = self.numbers[place] == sought
            columns[open_[found]] = place[found]
            place = place + 1
            rest = np.flatnonzero(~found & (place < stop))
            open_, place, stop, sought = (
                open_[rest],
                place[rest],
                stop[rest],
                sought[rest],
            )
        return columns
