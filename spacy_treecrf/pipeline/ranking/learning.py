"""The learning of `ner_reranker`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spacy.util import logger
from tqdm import tqdm

from spacy_treecrf.rerank.candidates import (
    CandidateSegment,
)
from spacy_treecrf.rerank.features import GlobalFeatures
from spacy_treecrf.rerank.model import Ranker
from spacy_treecrf.rerank.ranking_data import RankingData

from .corpus import LOST, RankingCorpus


def learn(
    corpus: RankingCorpus, development: RankingCorpus | None, cfg: dict[str, Any]
) -> tuple[GlobalFeatures, Ranker, int | None]:
    """Learn the features and the ranker.

    corpus (RankingCorpus): Training segments.
    development (Optional[RankingCorpus]): What boosting's rounds are chosen on.
    cfg (dict[str, Any]): Settings of the pipe.
    RETURNS (tuple[GlobalFeatures, Ranker, Optional[int]]): The features, the ranker, and
        the number of rounds of boosting.
    """
    features = GlobalFeatures(typed=cfg["typed"], min_sentences=cfg["min_sentences"])
    # Candidates of a single one teach no ranker, but their words and features count.
    with _bar("Features", len(corpus.segments)) as bar:
        features.fit(corpus.segments, progress=bar.update)
    with _bar("Candidates", len(corpus.segments)) as bar:
        data = ranking_data(corpus.segments, features, gold=True, progress=bar.update)
    logger.info("%d features, %d candidates", data.n_features, data.n_candidates)
    if cfg["method"] != "boosting":
        from spacy_treecrf.rerank.linear_ranker import LinearRanker
        from spacy_treecrf.rerank.voted_perceptron import Perceptron, train_perceptron

        def train(run: int) -> Perceptron:
            return train_perceptron(
                data,
                beta=cfg["beta"],
                passes=cfg["passes"],
                seed=cfg["seed"] + run,
                progress=_wrap(f"Segments, run {run + 1} of {cfg['runs']}"),
            )

        learnt: Ranker
        if cfg["method"] == "voted_perceptron":
            learnt = train(0).voted()
        else:
            runs = (train(run).averaged() for run in range(cfg["runs"]))
            learnt = LinearRanker.mean(list(runs))
        return features, _drop_unused(features, learnt), None
    from spacy_treecrf.rerank.boosting import choose_rounds, train_boosting

    boosting = train_boosting(
        data,
        cfg["rounds"],
        epsilon=cfg["epsilon"],
        weighted=cfg["weighted"],
        progress=_wrap("Rounds"),
    )
    rounds = boosting.n_rounds
    if development is not None:
        dev = ranking_data(development.segments, features, gold=True)
        if dev.counts is not None:
            # Gold that no candidate has is missed, whatever is chosen.
            dev.counts[: dev.borders[1], 2] += development.problems.counts[LOST]
        rounds = choose_rounds(boosting, dev)
        logger.info("%d of %d rounds", rounds, boosting.n_rounds)
    return features, _drop_unused(features, boosting.ranker(rounds)), rounds


def _drop_unused(features: GlobalFeatures, ranker: Ranker) -> Ranker:
    """Forget the features that change no value: a smaller and faster model."""
    used = ranker.used_features()
    features.select(used)
    logger.info("%d of %d features are used", features.n_features, len(used))
    return ranker.select(used)


def ranking_data(
    segments: Sequence[CandidateSegment],
    features: GlobalFeatures,
    gold: bool = False,
    progress: Callable[[int], object] | None = None,
) -> RankingData:
    """Segments as a ranker sees them.

    segments (Sequence[CandidateSegment]): The segments.
    features (GlobalFeatures): The features.
    gold (bool): Whether to learn or score: adds oracles and span counts, and leaves out
        features that all candidates of a segment share, as they change no choice.
    progress (Optional[Callable[[int], object]]): As in `GlobalFeatures.transform`.
    RETURNS (RankingData): The data.
    """
    rows = features.transform(segments, drop_shared=gold, progress=progress)
    return RankingData.from_segments(
        segments, rows.indptr, rows.indices, features.n_features
    )


def _bar(name: str, total: int) -> "tqdm[Any]":
    # Only in a terminal: nobody reads bars in a log.
    return tqdm(desc=name, total=total, leave=False, disable=None)


def _wrap(name: str) -> Callable[[Iterable[int]], Iterable[int]]:
    return lambda items: tqdm(items, desc=name, leave=False, disable=None)
