"""Boosting for ranking: one feature a round, and only its pairs are touched.

The loss is sum_ij exp(F(x_ij) - F(x_i1)), an upper bound of the number of candidates
that are ranked above their oracle. Each round takes the feature whose best step lowers
it most; after the step, weights of pairs without that feature stand as they were, and so
do the sums over features that occur in none of the pairs that have it.

Source: Collins (2002), section 4.2, Figure 2; Collins & Koo (2005), sections 4.4-4.5.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .linear_ranker import LinearRanker, check_features
from .pairs import CandidatePairs, candidate_pairs, codes_of
from .ranking_data import RankingData

# Collins & Koo (2005) tried each w_0 of 0.001, 0.002 ... 10.
LOG_PROB_WEIGHTS = (0.001, 10.0)
# Sums that are only added to drift by rounding; they are made anew after as many rounds,
_RECOMPUTE_ROUNDS = 10_000
# and when the loss has fallen to this share, because rounding is relative to old values.
_RECOMPUTE_LOSS = 0.1
# Every oracle is far ahead long before; smaller losses, and their smoothing, underflow.
_LEAST_LOSS = 1e-280
# A gain of less than this share of the loss is lost in the rounding of doubles.
_LEAST_GAIN = 1e-15
# Differing features that are added up at a time: 100 MB of temporary arrays.
_BLOCK_CODES = 2**22


@dataclass(frozen=True, eq=False)
class Boosting:
    """The rounds of a run; the first n of them are a model too.

    log_prob_weight (float): w_0, found before the first round.
    n_features (int): Number of features, K.
    features (np.ndarray): The feature of each round. Shape: (N,).
    steps (np.ndarray): What its weight changed by. Shape: (N,).
    loss (np.ndarray): The loss before the first round and after each. Shape: (N + 1,).
    """

    log_prob_weight: float
    n_features: int
    features: np.ndarray
    steps: np.ndarray
    loss: np.ndarray

    @property
    def n_rounds(self) -> int:
        """RETURNS (int): Number of rounds, N."""
        return len(self.features)

    def ranker(self, n_rounds: int | None = None) -> LinearRanker:
        """The model after some rounds.

        n_rounds (Optional[int]): How many; None for all. None of them is the base.
        RETURNS (LinearRanker): The model.
        RAISES (ValueError): If there are fewer rounds.
        """
        n = self.n_rounds if n_rounds is None else n_rounds
        if not 0 <= n <= self.n_rounds:
            raise ValueError(f"expected 0 to {self.n_rounds} rounds, received {n}")
        weights = np.bincount(
            self.features[:n], weights=self.steps[:n], minlength=self.n_features
        )
        return LinearRanker(self.log_prob_weight, weights)


class PairSums:
    """The weight of each pair, and its sums W+ and W- over the pairs of each feature."""

    def __init__(self, pairs: CandidatePairs, log_prob_weight: float):
        """Weigh the pairs by the log probability alone.

        pairs (CandidatePairs): The pairs.
        log_prob_weight (float): w_0.
        """
        self.pairs = pairs
        # e^{-m_ij}, times the importance of the pair. Shape: (P,).
        self.weights = pairs.importance * np.exp(
            log_prob_weight * pairs.log_prob_difference
        )
        # W+ and W- of each feature. Shape: (2 K,).
        self.sums = np.zeros(2 * pairs.n_features)
        # G. Shape: (K,).
        self.gains = np.zeros(pairs.n_features)
        # Z.
        self.loss = 0.0
        self.recompute()

    def recompute(self) -> None:
        """Make all sums anew from the weights of the pairs."""
        self.sums[:] = 0
        starts = self.pairs.code_starts
        sizes = np.diff(starts)
        for first, last in _blocks(starts[1:]):
            codes = self.pairs.codes[starts[first] : starts[last]]
            each = np.repeat(self.weights[first:last], sizes[first:last])
            self.sums += np.bincount(codes, each, minlength=len(self.sums))
        self.loss = float(self.weights.sum())
        self._update_gains()

    def update(self, feature: int, step: float) -> None:
        """Add to the weight of a feature.

        feature (int): The feature.
        step (float): What is added.
        """
        starts = self.pairs.pair_starts[2 * feature : 2 * feature + 3]
        rows = self.pairs.pairs[starts[0] : starts[2]]
        before = self.weights[rows]
        after = before * np.repeat(np.exp([-step, step]), np.diff(starts))
        self.weights[rows] = after
        change = after - before
        self.loss += float(change.sum())
        self._update_gains(self._add(rows, change))

    def _add(self, rows: np.ndarray, change: np.ndarray) -> np.ndarray | None:
        """Add changes of pairs to the sums.

        RETURNS: The numbers 2 k (+ 1) met, repeated, or None if they are many.
        """
        starts = self.pairs.code_starts
        blocks = _blocks(np.cumsum(starts[rows + 1] - starts[rows]))
        codes = None
        for first, last in blocks:
            codes, sizes = codes_of(self.pairs, rows[first:last])
            each = np.repeat(change[first:last], sizes)
            if len(codes) > len(self.sums):
                self.sums += np.bincount(codes, each, minlength=len(self.sums))
            else:
                np.add.at(self.sums, codes, each)
        if len(blocks) == 1 and codes is not None and len(codes) <= len(self.gains):
            return codes
        return None

    def _update_gains(self, codes: np.ndarray | None = None) -> None:
        """Compute G of the features of some numbers 2 k (+ 1), or of all."""
        if codes is None:
            np.maximum(self.sums, 0.0, out=self.sums)
            roots = np.sqrt(self.sums)
            self.gains = np.abs(roots[::2] - roots[1::2])
            return
        features = codes >> 1
        # Rounding can leave a sum just below zero.
        plus = np.sqrt(np.maximum(self.sums[2 * features], 0.0))
        minus = np.sqrt(np.maximum(self.sums[2 * features + 1], 0.0))
        self.gains[features] = np.abs(plus - minus)

    def best(self) -> int | None:
        """RETURNS (Optional[int]): The feature of the highest gain, the first of equal
        ones; None if no step lowers the loss any more.
        """
        if not len(self.gains):
            return None
        feature = int(self.gains.argmax())
        gain = self.gains[feature] ** 2
        is_worth_it = gain > _LEAST_GAIN * self.loss and self.loss > _LEAST_LOSS
        return feature if is_worth_it else None

    def step(self, feature: int, epsilon: float) -> float:
        """The step that lowers the loss most, smoothed.

        feature (int): The feature.
        epsilon (float): Share of the loss that is added to W+ and W-.
        RETURNS (float): 1/2 log((W+ + epsilon Z) / (W- + epsilon Z)).
        RAISES (ValueError): If the step is infinite, which needs epsilon = 0.
        """
        plus, minus = np.maximum(self.sums[2 * feature : 2 * feature + 2], 0.0).tolist()
        plus, minus = plus + epsilon * self.loss, minus + epsilon * self.loss
        if not (plus and minus):
            raise ValueError(
                f"expected epsilon above 0: feature {feature} separates all of its pairs "
                "and its best step is infinite"
            )
        return 0.5 * float(np.log(plus / minus))


def _blocks(ends: np.ndarray) -> list[tuple[int, int]]:
    """Cut rows into parts of about `_BLOCK_CODES` numbers, given where each row ends."""
    total = int(ends[-1]) if len(ends) else 0
    cuts = np.searchsorted(ends, np.arange(_BLOCK_CODES, total, _BLOCK_CODES))
    return list(pairwise([0, *cuts.tolist(), len(ends)]))


def log_prob_weight(pairs: CandidatePairs) -> float:
    """w_0 = argmin_w sum_ij exp(w (L(x_ij) - L(x_i1))), within `LOG_PROB_WEIGHTS`.

    pairs (CandidatePairs): The pairs.
    RETURNS (float): The weight. The function is convex: its slope is bisected.

    Source: Collins & Koo (2005), section 4.4, who stress that this step is crucial.
    """
    low, high = LOG_PROB_WEIGHTS
    counted = pairs.importance > 0
    difference = pairs.log_prob_difference[counted]
    if not len(difference):
        return 1.0
    importance = pairs.importance[counted] * difference
    # Divides the slope by something positive, so that no power overflows.
    difference = difference - difference.max()

    def rises(weight: float) -> bool:
        return float(importance @ np.exp(weight * difference)) >= 0

    if rises(low):
        return low
    if not rises(high):
        return high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if rises(middle):
            high = middle
        else:
            low = middle
    return high


def train_boosting(
    data: RankingData,
    rounds: int,
    epsilon: float = 0.0025,
    weighted: bool = False,
    progress: Callable[[Iterable[int]], Iterable[int]] | None = None,
) -> Boosting:
    """Boost features for ranking.

    data (RankingData): Candidates with oracles.
    rounds (int): Number of rounds at most; training ends when no step lowers the loss.
    epsilon (float): Smoothing of the steps. It must be above 0 unless each feature
        speaks both for and against an oracle.
    weighted (bool): Weigh pairs by how much better the oracle is; see `candidate_pairs`.
    progress (Optional[Callable]): Wraps the loop over the rounds, e.g. `tqdm.tqdm`.
    RETURNS (Boosting): The rounds.
    RAISES (ValueError): If there is no oracle, a setting is out of range or a step is
        infinite.

    Cost: a pass over the features for the highest gain, and the differing features of
        the pairs that hold it, each round.
    Source: Collins (2002), Figure 2.
    """
    if rounds < 0:
        raise ValueError(f"expected rounds of 0 or more, received {rounds}")
    if not (np.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"expected epsilon of 0 or more, received {epsilon}")
    pairs = candidate_pairs(data, weighted)
    weight = log_prob_weight(pairs)
    state = PairSums(pairs, weight)
    features: list[int] = []
    steps: list[float] = []
    loss = [state.loss]
    recomputed_at, recomputed_loss = 0, state.loss
    for number in progress(range(rounds)) if progress else range(rounds):
        if (
            number - recomputed_at >= _RECOMPUTE_ROUNDS
            or state.loss <= _RECOMPUTE_LOSS * recomputed_loss
        ):
            state.recompute()
            recomputed_at, recomputed_loss = number, state.loss
        feature = state.best()
        if feature is None:
            break
        step = state.step(feature, epsilon)
        state.update(feature, step)
        features.append(feature)
        steps.append(step)
        loss.append(state.loss)
    return Boosting(
        log_prob_weight=weight,
        n_features=data.n_features,
        features=np.array(features, dtype=np.int64),
        steps=np.array(steps, dtype=np.float64),
        loss=np.array(loss, dtype=np.float64),
    )


def f_by_rounds(boosting: Boosting, dev: RankingData) -> np.ndarray:
    """Span F after each number of rounds.

    boosting (Boosting): The rounds.
    dev (RankingData): Development candidates with span counts.
    RETURNS (np.ndarray): F over all spans in [0, 1], before the first round and after
        each. Shape: (N + 1,).
    RAISES (ValueError): If the data has other features or no counts.

    Only the candidates that hold the feature of a round change, and only their segments
    choose again.
    """
    check_features(dev, boosting.n_features)
    counts = dev.require_counts()
    sizes = np.diff(dev.borders)
    segment = np.repeat(np.arange(dev.n_segments), sizes)
    rank = np.arange(dev.n_candidates) - np.repeat(dev.borders[:-1], sizes)
    values = np.full((dev.n_segments, int(sizes.max(initial=1))), -np.inf)
    values[segment, rank] = boosting.log_prob_weight * dev.log_prob
    used = np.zeros(dev.n_features, dtype=bool)
    used[boosting.features] = True
    held = used[dev.indices]
    indices = dev.indices[held]
    row = np.repeat(np.arange(dev.n_candidates), np.diff(dev.indptr))[held]
    row = row[np.argsort(indices, kind="stable")]
    starts = np.zeros(dev.n_features + 1, dtype=np.int64)
    np.cumsum(np.bincount(indices, minlength=dev.n_features), out=starts[1:])
    chosen = dev.base().copy()
    totals = counts[chosen].sum(axis=0)
    scores = [_f(totals)]
    for feature, step in zip(boosting.features, boosting.steps, strict=True):
        rows = row[starts[feature] : starts[feature + 1]]
        touched = segment[rows]
        values[touched, rank[rows]] += step
        touched = touched[np.diff(touched, prepend=-1) > 0]
        new = dev.borders[touched] + values[touched].argmax(axis=1)
        totals = totals + (counts[new] - counts[chosen[touched]]).sum(axis=0)
        chosen[touched] = new
        scores.append(_f(totals))
    return np.array(scores)


def _f(totals: np.ndarray) -> float:
    right, predicted, gold = totals.tolist()
    return 2 * right / (predicted + gold) if predicted + gold else 0.0


def choose_rounds(boosting: Boosting, dev: RankingData) -> int:
    """The number of rounds with the best span F on development data.

    boosting (Boosting): The rounds.
    dev (RankingData): Development candidates with span counts.
    RETURNS (int): From 0 to N; the fewest of equally good numbers.
    """
    return int(f_by_rounds(boosting, dev).argmax())
