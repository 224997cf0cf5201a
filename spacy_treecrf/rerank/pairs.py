"""Pairs of an oracle and another candidate, and the features in which they differ.

A feature and a sign make one number, 2 k for h_k(x_i1) - h_k(x_ij) = 1 and 2 k + 1 for
-1: the sets B+ and B- of a pair are one row of these, A+ and A- of a feature two rows
of pairs that follow one another. Features that both candidates hold are never stored.

Source: Collins (2002), section 4.2; Collins & Koo (2005), section 4.5.
"""

from dataclasses import dataclass

import numpy as np

from .ranking_data import RankingData, span_rows

# Pairs that are subtracted at a time: some 20 MB of features.
_BLOCK_PAIRS = 2**14


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """The P pairs (x_i1, x_ij), j >= 2, in the order of the candidates.

    n_features (int): Number of features, K.
    log_prob_difference (np.ndarray): L(x_ij) - L(x_i1). Shape: (P,).
    importance (np.ndarray): Weight of each pair in the loss. Shape: (P,).
    code_starts (np.ndarray): Where the numbers 2 k (+ 1) of a pair begin. Shape: (P + 1,).
    codes (np.ndarray): B+ and B- of all pairs.
    pair_starts (np.ndarray): Where the pairs of a number 2 k (+ 1) begin. Shape:
        (2 K + 1,).
    pairs (np.ndarray): A+ and A- of all features.
    """

    n_features: int
    log_prob_difference: np.ndarray
    importance: np.ndarray
    code_starts: np.ndarray
    codes: np.ndarray
    pair_starts: np.ndarray
    pairs: np.ndarray

    @property
    def n_pairs(self) -> int:
        """RETURNS (int): Number of pairs, P."""
        return len(self.log_prob_difference)


def candidate_pairs(data: RankingData, weighted: bool = False) -> CandidatePairs:
    """Set every candidate against its oracle.

    data (RankingData): Candidates with oracles.
    weighted (bool): Weigh a pair by S_ij = Score(x_i1) - Score(x_ij), the score being F
        times the number of gold spans; otherwise by 1. Needs span counts.
    RETURNS (CandidatePairs): The pairs.
    RAISES (ValueError): If there are no oracles, or no counts but weights.

    Source: Collins & Koo (2005), section 4.4.
    Deviates: a segment without gold spans counts as one with a single one, otherwise
        what is wrongly found there would cost nothing.
    """
    from scipy.sparse import csr_matrix

    oracle = data.require_oracle()
    is_other = np.ones(data.n_candidates, dtype=bool)
    is_other[oracle] = False
    other = np.flatnonzero(is_other)
    target = np.repeat(oracle, np.diff(data.borders) - 1)
    importance = np.ones(len(other))
    if weighted:
        score = data.f_scores() * np.maximum(data.require_counts()[:, 2], 1)
        importance = score[target] - score[other]
        if (importance < 0).any():
            raise ValueError("expected oracles of the highest F in their segments")
    shape = (data.n_candidates, data.n_features)
    held = np.ones(len(data.indices), dtype=np.int8)
    features = csr_matrix((held, data.indices, data.indptr), shape=shape)
    blocks = [
        features[target[at : at + _BLOCK_PAIRS]]
        - features[other[at : at + _BLOCK_PAIRS]]
        for at in range(0, len(other), _BLOCK_PAIRS)
    ]
    n_codes = 2 * data.n_features
    if not blocks:
        blocks = [csr_matrix((0, data.n_features), dtype=np.int8)]
    sizes = np.concatenate([np.diff(block.indptr) for block in blocks])
    code_starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    codes = np.concatenate([2 * block.indices + (block.data < 0) for block in blocks])
    del blocks, features
    pair_major = csr_matrix(
        (np.ones(len(codes), dtype=np.int8), codes, code_starts),
        shape=(len(other), n_codes),
    )
    by_code = pair_major.tocsc()
    return CandidatePairs(
        n_features=data.n_features,
        log_prob_difference=data.log_prob[other] - data.log_prob[target],
        importance=importance,
        code_starts=code_starts,
        codes=codes,
        pair_starts=by_code.indptr.astype(np.int64),
        pairs=by_code.indices,
    )


def codes_of(pairs: CandidatePairs, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The differing features of some pairs.

    pairs (CandidatePairs): All pairs.
    rows (np.ndarray): Numbers of the pairs.
    RETURNS (tuple[np.ndarray, np.ndarray]): Their numbers 2 k (+ 1), pair after pair, and
        how many each has.
    """
    starts = pairs.code_starts[rows]
    sizes = pairs.code_starts[rows + 1] - starts
    return pairs.codes[span_rows(starts, sizes)], sizes
