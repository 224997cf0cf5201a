"""Rank candidates by one weight vector: F(x, W) = w_0 L(x) + sum_s w_s h_s(x)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .ranking_data import RankingData, first_maximum


@dataclass(frozen=True, eq=False)
class LinearRanker:
    """A weight for the log probability and one for each feature.

    log_prob_weight (float): w_0, the weight of L(x).
    weights (np.ndarray): The weights of the features. Shape: (K,).
    RAISES (ValueError): If a weight is not finite.

    Source: Collins (2002), section 4.1.
    """

    log_prob_weight: float
    weights: np.ndarray

    method: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.log_prob_weight) and np.isfinite(self.weights).all()):
            raise ValueError("expected finite weights")

    @property
    def n_features(self) -> int:
        """RETURNS (int): Number of features, K."""
        return len(self.weights)

    def values(self, data: RankingData) -> np.ndarray:
        """F(x, W) of each candidate.

        data (RankingData): The candidates, with this ranker's features.
        RETURNS (np.ndarray): The values. Shape: (C,).
        RAISES (ValueError): If the data has another number of features.
        """
        check_features(data, self.n_features)
        # Added up in the order of the features, so that equal candidates tie exactly.
        rows = np.repeat(np.arange(data.n_candidates), np.diff(data.indptr))
        features = np.bincount(
            rows, weights=self.weights[data.indices], minlength=data.n_candidates
        )
        return self.log_prob_weight * data.log_prob + features

    def choose(self, data: RankingData) -> np.ndarray:
        """The candidate with the highest value of each segment.

        data (RankingData): The candidates.
        RETURNS (np.ndarray): Rows; ties go to the base model's order. Shape: (S,).
        """
        return first_maximum(self.values(data), data.borders)

    @classmethod
    def mean(cls, rankers: Sequence["LinearRanker"]) -> "LinearRanker":
        """The ranker whose values are the means of those of others.

        rankers (Sequence[LinearRanker]): At least one, of the same features.
        RETURNS (LinearRanker): The ranker.
        """
        return cls(
            float(np.mean([ranker.log_prob_weight for ranker in rankers])),
            np.mean([ranker.weights for ranker in rankers], axis=0),
        )

    def used_features(self) -> np.ndarray:
        """RETURNS (np.ndarray): Which features have a weight, bool. Shape: (K,)."""
        return self.weights != 0

    def select(self, kept: np.ndarray) -> "LinearRanker":
        """The same ranker for data of some of the features.

        kept (np.ndarray): Which features stay, bool. Shape: (K,).
        RETURNS (LinearRanker): The ranker; values are the same, to the bit, if all that
            are used stay.
        """
        return LinearRanker(self.log_prob_weight, self.weights[kept])

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """RETURNS (tuple[dict, dict]): A header for JSON, and the arrays."""
        header = {"method": self.method, "log_prob_weight": self.log_prob_weight}
        return header, {"weights": self.weights}

    @classmethod
    def from_arrays(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> "LinearRanker":
        """Build a ranker from what `to_arrays` returned.

        header (dict[str, Any]): The header.
        arrays (dict[str, np.ndarray]): The arrays.
        RETURNS (LinearRanker): The ranker.
        """
        return cls(float(header["log_prob_weight"]), arrays["weights"])


def check_features(data: RankingData, n_features: int) -> None:
    """Make sure that a ranker and data number the same features.

    data (RankingData): The candidates.
    n_features (int): Features of the ranker.
    RAISES (ValueError): If the numbers differ.
    """
    if data.n_features != n_features:
        raise ValueError(
            f"expected data with {n_features} features, those of the ranker, received "
            f"{data.n_features}"
        )
