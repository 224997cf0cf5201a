"""Maximum-entropy estimation of the weights, with a Gaussian prior."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .features import WordBatch, WordPredicates, learn_lower_case
from .model import MaxEntModel, count_tags, history_numbers

# After so many iterations the objective on Spanish and English news is within 0.2% of
# its minimum, and the scores of held-out text no longer change.
MAX_ITERATIONS = 150
# Steps that L-BFGS remembers: 20 took a tenth fewer iterations than SciPy's 10.
MEMORY = 20

Progress = Callable[[int, float], None]


class TaggingObjective:
    """Negative log-likelihood of tags with a Gaussian prior, and its gradient.

    A feature is a pair of a predicate and a tag, and has a weight if it occurs often
    enough in the corpus.
    """

    def __init__(
        self,
        columns: np.ndarray,
        n_columns: int,
        tags: np.ndarray,
        lengths: np.ndarray,
        n_labels: int,
        cutoff: int,
        l2: float,
        known: np.ndarray | None = None,
    ):
        """Collect the distinct contexts of the corpus and count the features.

        columns (np.ndarray): Columns of each word's predicates, `n_columns` where it is
            not known. Shape: (T, 6).
        n_columns (int): Columns of predicates of words.
        tags (np.ndarray): Gold tags. Shape: (T,).
        lengths (np.ndarray): Words of each sentence. Shape: (S,).
        n_labels (int): Labels.
        cutoff (int): How often a feature must occur.
        l2 (float): Strength of the prior: l2 / 2 times the sum of the squared weights
            is added to the negative log-likelihood of the corpus.
        known (Optional[np.ndarray]): Whether the tag of each word is known; by default
            all are. Unknown ones are no events, and a history that holds one is seen
            as far as it is known: not at all, or the last tag alone. Shape: (T,), bool.
        """
        n_tags = count_tags(n_labels)
        known = np.ones(len(tags), dtype=bool) if known is None else known
        # One number more than those of tags and of "before the sentence": not known.
        unseen = n_tags + 1
        second_last, last = history_numbers(
            np.where(known, tags, unseen), lengths, n_tags
        )
        second_last = np.where(last == unseen, unseen, second_last)
        history = second_last * (n_tags + 2) + last
        rows = np.column_stack((columns, history.astype(np.int32)))[known]
        tags = tags[known]
        contexts, context = distinct_rows(rows)
        self.counts = np.bincount(context).astype(np.float64)
        n_contexts = len(contexts)
        of_tag = np.bincount(context * n_tags + tags, minlength=n_contexts * n_tags)
        second_last, last = np.divmod(contexts[:, -1], n_tags + 2)
        predicates = np.column_stack(
            (
                contexts[:, :-1],
                n_columns + last,
                n_columns + n_tags + 1 + second_last * (n_tags + 1) + last,
            )
        )
        is_known = predicates != n_columns
        is_known[:, -2] = last != unseen
        is_known[:, -1] = (last != unseen) & (second_last != unseen)
        n_predicates = n_columns + (n_tags + 1) + (n_tags + 1) ** 2
        self.by_context = _binary_rows(predicates, is_known, n_predicates)
        self.by_predicate = self.by_context.T.tocsr()
        observed = self.by_predicate @ of_tag.reshape(n_contexts, n_tags).astype(float)
        self.features = np.flatnonzero(observed >= cutoff)
        self.observed = observed.reshape(-1)[self.features]
        self.l2, self.n_words = l2, max(1, len(tags))
        self._table = np.zeros(observed.shape)

    def __call__(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective a word, and its gradient.

        weights (np.ndarray): The weight of each feature. Shape: (F,).
        RETURNS (tuple[float, np.ndarray]): Nats a word; shape: (F,).
        """
        self._table.reshape(-1)[self.features] = weights
        scores = self.by_context @ self._table
        highest = scores.max(axis=1)
        scores -= highest[:, None]
        np.exp(scores, out=scores)
        total = scores.sum(axis=1)
        value = self.counts @ (np.log(total) + highest) - self.observed @ weights
        scores *= (self.counts / total)[:, None]
        expected = (self.by_predicate @ scores).reshape(-1)[self.features]
        gradient = expected - self.observed + self.l2 * weights
        value += self.l2 / 2 * (weights @ weights)
        return value / self.n_words, gradient / self.n_words


def _binary_rows(columns: np.ndarray, is_known: np.ndarray, n_columns: int) -> Any:
    """A sparse matrix with ones at the known columns of each row."""
    from scipy.sparse import csr_array

    indices = columns[is_known]
    indptr = np.concatenate(([0], np.cumsum(is_known.sum(axis=1))))
    ones = np.ones(len(indices))
    return csr_array((ones, indices, indptr), shape=(len(columns), n_columns))


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of a table, and the number of each row's own.

    rows (np.ndarray): Shape: (T, D).
    RETURNS (tuple[np.ndarray, np.ndarray]): Shapes: (R, D) and (T,).
    """
    order = np.lexsort(rows.T)
    is_new = np.ones(len(rows), dtype=bool)
    is_new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    return rows[order[is_new]], number


def train(
    batch: WordBatch,
    tags: np.ndarray,
    n_labels: int,
    *,
    cutoff: int = 5,
    l2: float = 0.1,
    lower_case: Iterable[str] | None = None,
    max_iterations: int = MAX_ITERATIONS,
    progress: Progress | None = None,
    known: np.ndarray | None = None,
) -> MaxEntModel:
    """Estimate a model from tagged text, gold tags being the history.

    batch (WordBatch): The text.
    tags (np.ndarray): The tag of each word. Shape: (T,).
    n_labels (int): Labels, at least 1.
    cutoff (int): How often a feature, a predicate with a tag, must occur.
    l2 (float): Strength of the Gaussian prior.
    lower_case (Optional[Iterable[str]]): Words that are often in lower case; by default
        learnt from the text.
    max_iterations (int): Iterations at most.
    progress (Optional[Callable[[int, float], None]]): Is called after each iteration
        with its number and the objective in nats a word.
    known (Optional[np.ndarray]): Whether the tag of each word is known; by default all
        are. Shape: (T,), bool.
    RETURNS (MaxEntModel): The model.

    Source: Collins (2002), section 2.2.
    Deviates: the same likelihood is maximised by L-BFGS, and with a prior, in place of
    Generalized Iterative Scaling.
    """
    from scipy.optimize import minimize

    if lower_case is None:
        lower_case = learn_lower_case(batch)
    predicates = WordPredicates.learn(batch, cutoff, lower_case)
    columns = predicates.encode(batch)
    objective = TaggingObjective(
        columns, predicates.n_columns, tags, batch.lengths, n_labels, cutoff, l2, known
    )
    iteration = 0
    # Frequent features have far larger second derivatives than rare ones. Weights that
    # are scaled by the root of their root (no scaling and the full root, as in
    # Newton's method, are both worse) take half the iterations.
    scale = objective.observed**-0.25

    def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(scale * x)
        return value, scale * gradient

    def report(intermediate_result: Any) -> None:
        nonlocal iteration
        iteration += 1
        if progress is not None:
            progress(iteration, float(intermediate_result.fun))

    best = minimize(
        scaled,
        np.zeros(len(scale)),
        jac=True,
        method="L-BFGS-B",
        callback=report,
        # The objective is in nats a word: a relative change of 1e-7 is far below what
        # any decision hangs on.
        options={
            "maxiter": max_iterations,
            "maxcor": MEMORY,
            "ftol": 1e-7,
            "gtol": 1e-7,
        },
    )
    weights = (scale * best.x).astype(np.float32)
    return MaxEntModel(predicates, n_labels, objective.features, weights)
