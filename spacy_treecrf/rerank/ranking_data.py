"""Candidates as a learner sees them: binary features, log probabilities, span counts.

The candidates of all segments lie in one row after the other, those of a segment best
first by the base model. That order decides every tie, so that it is checked here.

Shape letters: S segments, C candidates of all segments, K kept features.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np

from .candidates import CandidateSegment, span_counts

# What the fields are called in a file; `oracle` and `counts` may be missing there.
_ARRAYS = ("indptr", "indices", "log_prob", "borders", "oracle", "counts")


@dataclass(frozen=True, eq=False)
class RankingData:
    """The candidates of some segments.

    indptr (np.ndarray): Where the features of each candidate begin. Shape: (C + 1,).
    indices (np.ndarray): Feature numbers of the candidates, sorted and distinct in each.
    n_features (int): One more than the largest feature number that may occur, K.
    log_prob (np.ndarray): Log probability by the base model, in nats. Shape: (C,).
    borders (np.ndarray): Where the candidates of each segment begin; a segment has at
        least one. Shape: (S + 1,).
    oracle (Optional[np.ndarray]): The candidate that training aims at, x_i1 of the
        paper, as a row of all candidates. Shape: (S,).
    counts (Optional[np.ndarray]): Right, predicted and gold spans of each candidate.
        Shape: (C, 3).
    RAISES (ValueError): If the arrays do not fit together.
    """

    indptr: np.ndarray
    indices: np.ndarray
    n_features: int
    log_prob: np.ndarray
    borders: np.ndarray
    oracle: np.ndarray | None = None
    counts: np.ndarray | None = None

    @classmethod
    def from_segments(
        cls,
        segments: Sequence[CandidateSegment],
        indptr: np.ndarray,
        indices: np.ndarray,
        n_features: int,
    ) -> "RankingData":
        """Set the candidates of segments beside their features.

        segments (Sequence[CandidateSegment]): The segments. Oracles and counts are found
            if the gold of all of them is known.
        indptr (np.ndarray): Where the features of each candidate begin, as
            `GlobalFeatures.transform` returns them.
        indices (np.ndarray): Their numbers.
        n_features (int): Number of features.
        RETURNS (RankingData): The data.
        """
        sizes = [len(segment.candidates) for segment in segments]
        borders = np.zeros(len(segments) + 1, dtype=np.int64)
        np.cumsum(sizes, out=borders[1:])
        log_prob = [c.log_prob for segment in segments for c in segment.candidates]
        data = cls(indptr, indices, n_features, np.array(log_prob, np.float64), borders)
        if any(segment.gold is None for segment in segments):
            return data
        counts = [
            span_counts(candidate, segment.gold or ())
            for segment in segments
            for candidate in segment.candidates
        ]
        data = replace(data, counts=np.array(counts, dtype=np.int64).reshape(-1, 3))
        # Candidates stand best first: of equal F, the first has the highest log_prob.
        return replace(data, oracle=first_maximum(data.f_scores(), borders))

    def __post_init__(self) -> None:
        n_candidates = len(self.log_prob)
        _check_starts("indptr", self.indptr, len(self.indices))
        _check_starts("borders", self.borders, n_candidates)
        if len(self.indptr) != n_candidates + 1:
            raise ValueError(
                f"expected indptr of {n_candidates + 1} numbers for {n_candidates} log "
                f"probabilities, received {len(self.indptr)}"
            )
        if (np.diff(self.borders) < 1).any():
            segment = int(np.argmax(np.diff(self.borders) < 1))
            raise ValueError(
                f"expected a candidate in every segment, received none in {segment}"
            )
        if not np.isfinite(self.log_prob).all():
            raise ValueError(
                "expected finite log probabilities, received "
                f"{self.log_prob[~np.isfinite(self.log_prob)][0]}"
            )
        rises = np.diff(self.log_prob) > 0
        rises[self.borders[1:-1] - 1] = False
        if rises.any():
            raise ValueError(
                "expected the candidates of a segment best first by log_prob, received "
                f"a better one in row {int(np.argmax(rises)) + 1}"
            )
        self._check_features()
        self._check_gold()

    def _check_features(self) -> None:
        if not len(self.indices):
            return
        low, high = int(self.indices.min()), int(self.indices.max())
        if low < 0 or high >= self.n_features:
            raise ValueError(
                f"expected feature numbers from 0 to {self.n_features - 1}, received "
                f"{low if low < 0 else high}"
            )
        falls = np.diff(self.indices) <= 0
        starts = self.indptr[1:-1]
        starts = starts[(starts > 0) & (starts < len(self.indices))]
        falls[starts - 1] = False
        if falls.any():
            row = int(np.searchsorted(self.indptr, int(np.argmax(falls)) + 1)) - 1
            raise ValueError(
                f"expected sorted, distinct features, received others in row {row}"
            )

    def _check_gold(self) -> None:
        if self.oracle is not None and not (
            len(self.oracle) == self.n_segments
            and (self.oracle >= self.borders[:-1]).all()
            and (self.oracle < self.borders[1:]).all()
        ):
            raise ValueError("expected one oracle row within each segment")
        if self.counts is not None and self.counts.shape != (self.n_candidates, 3):
            raise ValueError(
                f"expected counts of shape {(self.n_candidates, 3)}, received "
                f"{self.counts.shape}"
            )

    @property
    def n_segments(self) -> int:
        """RETURNS (int): Number of segments, S."""
        return len(self.borders) - 1

    @property
    def n_candidates(self) -> int:
        """RETURNS (int): Number of candidates of all segments, C."""
        return len(self.log_prob)

    def require_oracle(self) -> np.ndarray:
        """RETURNS (np.ndarray): The oracle's rows. Shape: (S,).
        RAISES (ValueError): If the data has none.
        """
        if self.oracle is None:
            raise ValueError("expected data with oracle candidates, received none")
        return self.oracle

    def require_counts(self) -> np.ndarray:
        """RETURNS (np.ndarray): Right, predicted and gold spans. Shape: (C, 3).
        RAISES (ValueError): If the data has none.
        """
        if self.counts is None:
            raise ValueError("expected data with span counts, received none")
        return self.counts

    def base(self) -> np.ndarray:
        """RETURNS (np.ndarray): The base model's choice in each segment. Shape: (S,)."""
        return self.borders[:-1]

    def f_scores(self) -> np.ndarray:
        """Span F of each candidate.

        RETURNS (np.ndarray): F in [0, 1]; 1 where there is nothing to find and nothing
            was found. Shape: (C,).
        """
        right, predicted, gold = self.require_counts().T
        total = predicted + gold
        return np.where(total > 0, 2 * right / np.maximum(total, 1), 1.0)

    def precision_recall_f(self, chosen: np.ndarray) -> tuple[float, float, float]:
        """Scores of a choice over all segments.

        chosen (np.ndarray): The row that is chosen in each segment. Shape: (S,).
        RETURNS (tuple[float, float, float]): Precision, recall and F over all spans,
            in [0, 1]; 0 where nothing was predicted or wanted.
        """
        right, predicted, gold = self.require_counts()[chosen].sum(axis=0).tolist()
        return (
            right / predicted if predicted else 0.0,
            right / gold if gold else 0.0,
            2 * right / (predicted + gold) if predicted + gold else 0.0,
        )

    def to_disk(self, path: str | PathLike[str]) -> None:
        """Write the data to a file that `from_disk` reads.

        path (Union[str, PathLike]): A file whose name ends in .npz.
        """
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        present = {name: array for name, array in arrays.items() if array is not None}
        with open(path, "wb") as file:
            np.savez(file, n_features=np.int64(self.n_features), **present)

    @classmethod
    def from_disk(cls, path: str | PathLike[str]) -> "RankingData":
        """Read data that `to_disk` wrote.

        path (Union[str, PathLike]): The file.
        RETURNS (RankingData): The data.
        """
        with np.load(path) as file:
            arrays = {name: file[name] for name in _ARRAYS if name in file}
            return cls(n_features=int(file["n_features"]), **arrays)


def _check_starts(name: str, starts: np.ndarray, end: int) -> None:
    if (
        not len(starts)
        or starts[0] != 0
        or starts[-1] != end
        or (np.diff(starts) < 0).any()
    ):
        raise ValueError(f"expected {name} to rise from 0 to {end}")


def first_maximum(values: np.ndarray, borders: np.ndarray) -> np.ndarray:
    """The first candidate with the highest value of each segment.

    values (np.ndarray): A finite value for each candidate. Shape: (C,).
    borders (np.ndarray): Where the candidates of each segment begin. Shape: (S + 1,).
    RETURNS (np.ndarray): Rows of the candidates. Shape: (S,).

    Candidates stand best first, so that ties go to the base model's order. The oracle
    has no place of its own: an argmax that fell on it in ties would never learn.
    """
    if len(borders) < 2:
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(values, borders[:-1])
    rows = np.flatnonzero(values == np.repeat(best, np.diff(borders)))
    return rows[np.searchsorted(rows, borders[:-1])]


def span_rows(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Concatenate the ranges `start .. start + size`.

    starts (np.ndarray): First number of each range. Shape: (n,).
    sizes (np.ndarray): Numbers in each range. Shape: (n,).
    RETURNS (np.ndarray): The numbers, range after range. Shape: (sum of sizes,).
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
