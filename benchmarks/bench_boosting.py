"""Rounds of boosting with the efficient update, beside the naive loop, in one run.

    python benchmarks/bench_boosting.py [--data FILE.npz] [--rounds 2000] [--json FILE]

The naive loop moves the margins of the same pairs, but then adds up W+ and W- of all
features over all pairs anew. Both take the rounds in turn on the same pairs and must
choose the same features; times are medians in process time. The naive loop runs its
first rounds alone, since each costs the same; the efficient one gets cheaper as features
get rarer. Without a file of `RankingData` the data is made up, as sparse as 20 candidates
of a sentence are: features of a span lie in all candidates that hold it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from spacy_treecrf.rerank.boosting import PairSums, log_prob_weight, train_boosting
from spacy_treecrf.rerank.pairs import candidate_pairs
from spacy_treecrf.rerank.ranking_data import RankingData

EPSILON = 0.0025
# Strings that a template has made: few for shapes and flags, many for words.
VOCABULARIES = np.geomspace(2, 20_000, 60).astype(int)


def made_up_data(n_segments: int, seed: int) -> RankingData:
    """Candidates that add or drop one or two spans of the best one."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(VOCABULARIES)])
    n_features = int(offsets[-1])
    truth = random.normal(0, 1, n_features) * (random.random(n_features) < 0.2)
    indptr, indices, log_prob, borders = [0], [], [], [0]
    oracle, counts = [], []
    for _ in range(n_segments):
        n_spans = 2 + int(random.poisson(4))
        # Zipf's law within each template.
        rank = VOCABULARIES ** random.random((n_spans, len(VOCABULARIES))) - 1
        features = offsets[:-1] + rank.astype(int)
        worth = truth[features].sum(axis=1) / 5
        penalty = random.exponential(2, n_spans)
        base = random.random(n_spans) < 0.5
        gold = (worth + np.where(base, penalty, -penalty)) > 0
        flips = {()} | {(a, b) for a in range(n_spans) for b in range(a, n_spans)}
        order = sorted(flips, key=lambda flip: penalty[list(set(flip))].sum())[:20]
        rights = []
        for flip in order:
            spans = base.copy()
            spans[list(set(flip))] ^= True
            held = np.unique(features[spans])
            indices.append(held)
            indptr.append(indptr[-1] + len(held))
            log_prob.append(-penalty[list(set(flip))].sum())
            counts.append((int((spans & gold).sum()), int(spans.sum()), gold.sum()))
            total = counts[-1][1] + counts[-1][2]
            rights.append(2 * counts[-1][0] / total if total else 1.0)
        oracle.append(borders[-1] + int(np.argmax(rights)))
        borders.append(borders[-1] + len(order))
    return RankingData(
        indptr=np.array(indptr),
        indices=np.concatenate(indices).astype(np.int32),
        n_features=n_features,
        log_prob=np.array(log_prob),
        borders=np.array(borders),
        oracle=np.array(oracle),
        counts=np.array(counts),
    )


class NaiveSums(PairSums):
    """All sums anew after each step."""

    def update(self, feature: int, step: float) -> None:
        starts = self.pairs.pair_starts[2 * feature : 2 * feature + 3]
        rows = self.pairs.pairs[starts[0] : starts[2]]
        self.weights[rows] *= np.repeat(np.exp([-step, step]), np.diff(starts))
        self.recompute()


def timed_rounds(state: PairSums, rounds: int) -> tuple[list[float], list[int]]:
    """Seconds and feature of each round."""
    seconds, features = [], []
    for _ in range(rounds):
        start = time.process_time()
        feature = state.best()
        if feature is None:
            break
        state.update(feature, state.step(feature, EPSILON))
        seconds.append(time.process_time() - start)
        features.append(feature)
    return seconds, features


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="RankingData, as `to_disk` writes it")
    parser.add_argument("--segments", type=int, default=3000, help="of made-up data")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--naive-rounds", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.data:
        data = RankingData.from_disk(args.data)
    else:
        data = made_up_data(args.segments, args.seed)
    start = time.process_time()
    pairs = candidate_pairs(data)
    pairs_s = time.process_time() - start
    weight = log_prob_weight(pairs)
    naive_s, naive = timed_rounds(NaiveSums(pairs, weight), args.naive_rounds)
    efficient_s, efficient = timed_rounds(PairSums(pairs, weight), args.rounds)
    touched = np.diff(pairs.pair_starts[::2])[efficient]
    start = time.process_time()
    boosting = train_boosting(data, args.rounds, EPSILON)
    train_s = time.process_time() - start
    naive_median = statistics.median(naive_s)
    result: dict[str, Any] = {
        "data": args.data.name if args.data else f"made up, seed {args.seed}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, 1 thread used",
        "numpy": np.__version__,
        "segments": data.n_segments,
        "candidates": data.n_candidates,
        "features": data.n_features,
        "pairs": pairs.n_pairs,
        "differing_features": len(pairs.codes),
        "rounds": len(efficient),
        "pairs_s": round(pairs_s, 2),
        "train_s": round(train_s, 2),
        "naive_round_median_s": naive_median,
        "efficient_round_median_s": statistics.median(efficient_s),
        "efficient_round_mean_s": statistics.fmean(efficient_s),
        "pairs_touched_median": int(np.median(touched)),
        "passes_over_the_pairs": round(float(touched.sum() / pairs.n_pairs), 1),
        "same_features": naive == efficient[: len(naive)],
        "loss": [float(boosting.loss[0]), float(boosting.loss[-1])],
        "ratio_naive_to_efficient": {
            "median_round": naive_median / statistics.median(efficient_s),
            "mean_round": naive_median / statistics.fmean(efficient_s),
            "the_same_first_rounds": statistics.median(naive_s)
            / statistics.median(efficient_s[: len(naive_s)]),
        },
    }
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
