"""The voted perceptron for ranking, its average, and voting with little book-keeping.

h(x) = (beta L(x), h_1(x) ... h_m(x)) and W^0 = 0, so that the weight of the log
probability is learnt too. Only mistakes change the weights: a model is the list of their
differences h(x_i1) - h(x_ij), with the number of segments that each vector survived.

Feature weights are sums of whole numbers, exact in doubles whatever the order. The part
of the log probability is kept apart from them, so that voting, averaging and training
agree to the last bit.

Source: Collins (2002), section 4.3, Figures 3 and 4.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from .linear_ranker import LinearRanker, check_features
from .ranking_data import RankingData, first_maximum, span_rows


@dataclass(frozen=True, eq=False)
class Perceptron:
    """What a run of the perceptron leaves behind, M mistakes.

    beta (float): Scale of the log probability in h(x).
    n_features (int): Number of features, K.
    indptr (np.ndarray): Where the features of each difference begin. Shape: (M + 1,).
    indices (np.ndarray): Features of the differences.
    signs (np.ndarray): 1 for a feature of the oracle, -1 for one of the wrong choice.
    log_prob_differences (np.ndarray): beta (L(x_i1) - L(x_ij)). Shape: (M,).
    survival (np.ndarray): Number of i with W^i = each vector, the zero vector first.
        Shape: (M + 1,).
    """

    beta: float
    n_features: int
    indptr: np.ndarray
    indices: np.ndarray
    signs: np.ndarray
    log_prob_differences: np.ndarray
    survival: np.ndarray

    @property
    def n_mistakes(self) -> int:
        """RETURNS (int): Number of mistakes, M."""
        return len(self.log_prob_differences)

    def last(self) -> LinearRanker:
        """RETURNS (LinearRanker): W^n, which is often worse than the base model."""
        return self._combine(np.ones(self.n_mistakes), 1)

    def averaged(self) -> LinearRanker:
        """The mean of W^1 ... W^n.

        RETURNS (LinearRanker): The averaged perceptron.

        A difference made at step i is part of the n - i + 1 vectors from there on: the
        same as W^n - A / n with A = sum (i - 1) (h(x_i1) - h(x_ij)), summed lazily.
        """
        total = int(self.survival.sum())
        return self._combine(total - np.cumsum(self.survival)[:-1], max(total, 1))

    def _combine(self, coefficients: np.ndarray, divisor: int) -> LinearRanker:
        """The sum of the differences times some numbers, divided at the end."""
        each = np.repeat(coefficients, np.diff(self.indptr)) * self.signs
        weights = np.bincount(self.indices, weights=each, minlength=self.n_features)
        log_prob = np.cumsum(coefficients * self.log_prob_differences)
        last = float(log_prob[-1]) if len(log_prob) else 0.0
        return LinearRanker(last / divisor * self.beta, weights / divisor)

    def voted(self) -> "VotedRanker":
        """RETURNS (VotedRanker): Every W^i, i = 1 ... n, votes for its candidate."""
        return VotedRanker(self)


@dataclass(frozen=True, eq=False)
class VotedRanker:
    """Choose the candidate with most votes of a perceptron's vectors.

    perceptron (Perceptron): The vectors.
    """

    perceptron: Perceptron

    method: ClassVar[str] = "voted"

    @property
    def n_features(self) -> int:
        """RETURNS (int): Number of features, K."""
        return self.perceptron.n_features

    @cached_property
    def _by_feature(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The differences feature by feature: starts, numbers of vectors, signs."""
        of = self.perceptron
        order = np.argsort(of.indices, kind="stable")
        # The first mistake made vector 1; vector 0 is zero.
        vector = np.repeat(np.arange(1, of.n_mistakes + 1), np.diff(of.indptr))[order]
        sizes = np.bincount(of.indices, minlength=of.n_features)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return starts, vector, of.signs[order].astype(np.float64)

    @cached_property
    def _log_prob_weights(self) -> np.ndarray:
        """The weight of L(x) in each vector. Shape: (M + 1,)."""
        learnt = np.cumsum(self.perceptron.log_prob_differences)
        return np.concatenate([[0.0], learnt]) * self.perceptron.beta

    def values(self, data: RankingData) -> np.ndarray:
        """The share of the votes that each candidate gets.

        data (RankingData): The candidates, with this ranker's features.
        RETURNS (np.ndarray): Shares, which sum to 1 in each segment; all are 0 if no
            vector was trained. Shape: (C,).
        RAISES (ValueError): If the data has another number of features.

        Cost: O(M k^2) time and O(M k) memory for a segment of k candidates.
        """
        check_features(data, self.n_features)
        total = max(int(self.perceptron.survival.sum()), 1)
        votes = np.empty(data.n_candidates)
        borders = data.borders.tolist()
        for first, last in pairwise(borders):
            votes[first:last] = self._votes(data, first, last)
        return votes / total

    def _votes(self, data: RankingData, first: int, last: int) -> np.ndarray:
        """Votes for the candidates of one segment, whole numbers."""
        n = last - first
        survival = self.perceptron.survival
        if n == 1:
            return survival.sum(keepdims=True)
        groups, members = self._feature_groups(data, first, last)
        # One sparse product for all vectors: what each difference adds to the features
        # of a group, then to a candidate, then summed up from mistake to mistake.
        starts, vector, signs = self._by_feature
        features, group = groups
        sizes = starts[features + 1] - starts[features]
        at = span_rows(starts[features], sizes)
        n_vectors = len(survival)
        added = np.bincount(
            np.repeat(group, sizes) * n_vectors + vector[at],
            weights=signs[at],
            minlength=len(members) * n_vectors,
        )
        scores = members.T @ added.reshape(len(members), n_vectors)
        np.cumsum(scores, axis=1, out=scores)
        scores += np.outer(data.log_prob[first:last], self._log_prob_weights)
        # The first maximum: candidates stand best first.
        return np.bincount(np.argmax(scores, axis=0), weights=survival, minlength=n)

    def _feature_groups(
        self, data: RankingData, first: int, last: int
    ) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Put features that the same candidates hold together: those of a span do.

        RETURNS: The features and the group of each, without those that all candidates
            hold, which decide nothing; and which candidates hold each group, as 0 or 1.
            Shape: (groups, candidates).
        """
        n = last - first
        held = data.indices[data.indptr[first] : data.indptr[last]]
        features, place = np.unique(held, return_inverse=True)
        holds = np.zeros((len(features), n), dtype=bool)
        sizes = np.diff(data.indptr[first : last + 1])
        holds[place, np.repeat(np.arange(n), sizes)] = True
        differ = ~holds.all(axis=1)
        patterns, group = np.unique(
            np.packbits(holds[differ], axis=1), axis=0, return_inverse=True
        )
        members = np.unpackbits(patterns, axis=1, count=n).astype(np.float64)
        return (features[differ].astype(np.int64), group.reshape(-1)), members

    def choose(self, data: RankingData) -> np.ndarray:
        """The candidate with most votes of each segment.

        data (RankingData): The candidates.
        RETURNS (np.ndarray): Rows; ties go to the base model's order. Shape: (S,).
        """
        return first_maximum(self.values(data), data.borders)

    def used_features(self) -> np.ndarray:
        """RETURNS (np.ndarray): Which features are of a mistake, bool. Shape: (K,)."""
        used = np.zeros(self.n_features, dtype=bool)
        used[self.perceptron.indices] = True
        return used

    def select(self, kept: np.ndarray) -> "VotedRanker":
        """The same ranker for data of some of the features.

        kept (np.ndarray): Which features stay, bool; all that are used. Shape: (K,).
        RETURNS (VotedRanker): The ranker; votes are the same.
        """
        of = self.perceptron
        columns = (np.cumsum(kept) - 1).astype(of.indices.dtype)
        indices = columns[of.indices]
        return VotedRanker(replace(of, indices=indices, n_features=int(kept.sum())))

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """RETURNS (tuple[dict, dict]): A header for JSON, and the arrays."""
        of = self.perceptron
        header = {"method": self.method, "beta": of.beta, "n_features": of.n_features}
        return header, {name: getattr(of, name) for name in _ARRAYS}

    @classmethod
    def from_arrays(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> "VotedRanker":
        """Build a ranker from what `to_arrays` returned.

        header (dict[str, Any]): The header.
        arrays (dict[str, np.ndarray]): The arrays.
        RETURNS (VotedRanker): The ranker.
        """
        return cls(
            Perceptron(
                beta=float(header["beta"]),
                n_features=int(header["n_features"]),
                **{name: arrays[name] for name in _ARRAYS},
            )
        )


_SIGNS = np.array([1, -1], dtype=np.int8)
_ARRAYS = ("indptr", "indices", "signs", "log_prob_differences", "survival")


def train_perceptron(
    data: RankingData,
    beta: float = 0.2,
    passes: int = 3,
    seed: int = 0,
    progress: Callable[[Iterable[int]], Iterable[int]] | None = None,
) -> Perceptron:
    """Train the perceptron for ranking.

    data (RankingData): Candidates with oracles.
    beta (float): Scale of the log probability beside the binary features.
    passes (int): Passes over the data. One goes in the order of the data, as published;
        of several, each has an order of its own.
    seed (int): Seed of the orders.
    progress (Optional[Callable]): Wraps the loop over all segments of all passes, for
        example `tqdm.tqdm`.
    RETURNS (Perceptron): Differences and survival counts.
    RAISES (ValueError): If there is no oracle, or beta or passes are out of range.

    A segment with one candidate teaches nothing but counts as a step.
    Source: Collins (2002), Figure 3.
    Deviates: several passes, shuffled.
    """
    if not (np.isfinite(beta) and beta >= 0):
        raise ValueError(f"expected beta of 0 or more, received {beta}")
    if passes < 1:
        raise ValueError(f"expected at least one pass, received {passes}")
    oracle = data.require_oracle().tolist()
    borders, indptr = data.borders.tolist(), data.indptr
    random = np.random.default_rng(seed)
    steps = np.arange(data.n_segments)
    if passes > 1:
        steps = np.concatenate([random.permutation(steps) for _ in range(passes)])
    weights = np.zeros(data.n_features)
    log_prob_weight = 0.0
    differences, signs, log_prob_differences, survival = [], [], [], []
    survived = 0
    order: Iterable[int] = steps.tolist()
    for segment in progress(order) if progress else order:
        first, last = borders[segment], borders[segment + 1]
        if last > first + 1:
            starts = indptr[first : last + 1]
            sums = np.zeros(starts[-1] - starts[0] + 1)
            np.cumsum(weights[data.indices[starts[0] : starts[-1]]], out=sums[1:])
            ends = sums[starts - starts[0]]
            values = ends[1:] - ends[:-1]
            values += (log_prob_weight * beta) * data.log_prob[first:last]
            chosen, right = first + int(values.argmax()), oracle[segment]
            if chosen != right:
                wanted = data.indices[indptr[right] : indptr[right + 1]]
                wrong = data.indices[indptr[chosen] : indptr[chosen + 1]]
                plus = np.setdiff1d(wanted, wrong, assume_unique=True)
                minus = np.setdiff1d(wrong, wanted, assume_unique=True)
                weights[plus] += 1
                weights[minus] -= 1
                difference = beta * float(data.log_prob[right] - data.log_prob[chosen])
                log_prob_weight += difference
                differences.append(np.concatenate([plus, minus]))
                signs.append(np.repeat(_SIGNS, [len(plus), len(minus)]))
                log_prob_differences.append(difference)
                survival.append(survived)
                survived = 0
        survived += 1
    survival.append(survived)
    return Perceptron(
        beta=float(beta),
        n_features=data.n_features,
        indptr=np.cumsum([0, *map(len, differences)]),
        indices=np.concatenate([np.zeros(0, data.indices.dtype), *differences]),
        signs=np.concatenate([np.zeros(0, np.int8), *signs]),
        log_prob_differences=np.array(log_prob_differences, dtype=np.float64),
        survival=np.array(survival, dtype=np.int64),
    )
