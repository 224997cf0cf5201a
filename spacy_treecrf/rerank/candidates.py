"""The candidates of a segment: what a reranker chooses from, and how good each is.

Source: Collins (2002), section 2.3; the oracle by span F in place of correct tags.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, isfinite, isnan, log
from typing import NamedTuple

# Half-open word offsets within the segment, and a label.
LabelledSpan = tuple[int, int, str]


class Candidate(NamedTuple):
    """One analysis of a segment.

    log_prob (float): log p(entity set | words) by the base model, in nats.
    spans (tuple[LabelledSpan, ...]): Its entities, sorted and distinct.
    """

    log_prob: float
    spans: tuple[LabelledSpan, ...]


@dataclass(frozen=True)
class CandidateSegment:
    """A segment with the candidates of a base model.

    words (tuple[str, ...]): The words.
    candidates (tuple[Candidate, ...]): At least one, best first by `log_prob`.
    document (int): Number of the document; segments of one document are neighbours.
    gold (Optional[tuple[LabelledSpan, ...]]): All gold entities, or None if unknown.
    RAISES (ValueError): If there is no candidate, a span lies outside the words, spans
        are not sorted and distinct, or the order is not by `log_prob`.
    """

    words: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    document: int = 0
    gold: tuple[LabelledSpan, ...] | None = None

    def __post_init__(self) -> None:
        if not self.candidates:
            raise ValueError("expected at least one candidate, received none")
        n_words = len(self.words)
        best = self.candidates[0].log_prob
        for rank, (log_prob, spans) in enumerate(self.candidates):
            if isnan(log_prob) or log_prob > best:
                raise ValueError(
                    "expected candidates sorted best first by log_prob, received "
                    f"{log_prob} at rank {rank} after {best}"
                )
            best = log_prob
            before: LabelledSpan | None = None
            for span in spans:
                if not 0 <= span[0] < span[1] <= n_words:
                    raise ValueError(
                        f"expected spans within {n_words} words, received {span} in "
                        f"the candidate of rank {rank}"
                    )
                if before is not None and not before < span:
                    raise ValueError(
                        f"expected sorted, distinct spans, received {before} before "
                        f"{span} in the candidate of rank {rank}"
                    )
                before = span


def merge_duplicates(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Merge candidates with one entity set, adding up their probabilities.

    candidates (Iterable[Candidate]): In any order; spans may be unsorted or repeated.
    RETURNS (tuple[Candidate, ...]): One candidate a set of spans, best first; equal
        log probabilities stay in the order of first occurrence.
    RAISES (ValueError): If a log probability is not a number or is plus infinity.

    Log probabilities of k-best trees that project onto one entity set (the choice C-14).
    """
    merged: dict[tuple[LabelledSpan, ...], list[float]] = {}
    for log_prob, spans in candidates:
        if isnan(log_prob) or log_prob == float("inf"):
            raise ValueError(f"expected a log probability, received {log_prob}")
        merged.setdefault(tuple(sorted(set(spans))), []).append(log_prob)
    sums = [Candidate(_log_sum_exp(logs), spans) for spans, logs in merged.items()]
    return tuple(sorted(sums, key=lambda candidate: -candidate.log_prob))


def _log_sum_exp(logs: Sequence[float]) -> float:
    top = max(logs)
    # A single value passes unchanged, to the last bit.
    if len(logs) == 1 or not isfinite(top):
        return top
    return top + log(sum(exp(value - top) for value in logs))


def span_counts(
    candidate: Candidate, gold: Iterable[LabelledSpan]
) -> tuple[int, int, int]:
    """Count the spans of a candidate against gold.

    candidate (Candidate): The candidate.
    gold (Iterable[LabelledSpan]): All gold entities of the segment.
    RETURNS (tuple[int, int, int]): Right, predicted and gold spans.
    """
    predicted, expected = set(candidate.spans), set(gold)
    return len(predicted & expected), len(predicted), len(expected)


def f_score(right: int, predicted: int, gold: int) -> float:
    """Span F of some counts.

    right (int): Predicted spans that are gold.
    predicted (int): Predicted spans.
    gold (int): Gold spans.
    RETURNS (float): F in [0, 1]; 1 if there was nothing to find and nothing was found.
    """
    if predicted + gold == 0:
        return 1.0
    return 2 * right / (predicted + gold)


def oracle_index(segment: CandidateSegment) -> int:
    """The candidate that training aims at, x_i1 of the paper.

    segment (CandidateSegment): A segment with gold.
    RETURNS (int): Index of the candidate with the highest span F against all gold; ties
        go to the higher `log_prob`, then to the lower index.
    RAISES (ValueError): If the gold is unknown.

    Source: Collins (2002), section 2.3.
    Deviates: span F in place of the number of correct tags, which has no meaning for
        nested spans.
    """
    if segment.gold is None:
        raise ValueError("expected a segment with gold, received one without")
    gold = set(segment.gold)
    best, key = 0, (-1.0, 0.0)
    for index, candidate in enumerate(segment.candidates):
        here = (f_score(*span_counts(candidate, gold)), candidate.log_prob)
        if here > key:
            best, key = index, here
    return best
