"""Random ranking data, small enough for definitions written as plain loops."""

import numpy as np
from hypothesis import strategies as st

from spacy_treecrf.rerank.ranking_data import RankingData


def build(segments, n_features):
    """Data from (log_prob, features, counts) of each candidate of each segment."""
    rows = [candidate for segment in segments for candidate in segment]
    borders = np.cumsum([0, *map(len, segments)])
    data = RankingData(
        indptr=np.cumsum([0, *(len(features) for _, features, _ in rows)]),
        indices=np.array([k for _, f, _ in rows for k in sorted(f)], dtype=np.int32),
        n_features=n_features,
        log_prob=np.array([log_prob for log_prob, _, _ in rows], dtype=np.float64),
        borders=borders,
        counts=np.array([c for _, _, c in rows], dtype=np.int64).reshape(-1, 3),
    )
    f_scores = data.f_scores()
    oracle = [a + int(np.argmax(f_scores[a:b])) for a, b in bounds(data)]
    return RankingData(
        data.indptr,
        data.indices,
        n_features,
        data.log_prob,
        borders,
        np.array(oracle, dtype=np.int64),
        data.counts,
    )


def bounds(data):
    """First and last row of each segment, half-open."""
    return list(zip(data.borders[:-1].tolist(), data.borders[1:].tolist(), strict=True))


def feature_sets(data):
    """The features of each candidate as a set."""
    return [
        set(data.indices[a:b].tolist())
        for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)
    ]


def random_data(seed, n_segments=8, n_features=10, density=0.3, ties=False):
    """Data of segments with 1 to 6 candidates.

    ties (bool): Draw log probabilities from few values, so that candidates tie.
    """
    random = np.random.default_rng(seed)
    segments = []
    for _ in range(n_segments):
        n = int(random.integers(1, 7))
        log_prob = -random.exponential(4.0, n)
        if ties:
            log_prob = np.round(log_prob / 4) * 2
        gold = int(random.integers(0, 4))
        segment = []
        for value in np.sort(log_prob)[::-1]:
            features = np.flatnonzero(random.random(n_features) < density)
            predicted = int(random.integers(0, 4))
            right = int(random.integers(0, min(gold, predicted) + 1))
            segment.append((value, set(features.tolist()), (right, predicted, gold)))
        segments.append(segment)
    return build(segments, n_features)


def data_sets(**settings):
    """RETURNS (SearchStrategy): Random data of many shapes."""
    return st.builds(
        random_data,
        seed=st.integers(0, 2**32 - 1),
        n_segments=st.integers(0, 12),
        n_features=st.sampled_from([0, 1, 4, 12]),
        density=st.sampled_from([0.1, 0.4, 0.9]),
        ties=st.booleans(),
        **settings,
    )
