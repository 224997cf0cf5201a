"""Labelled binary trees over tokens of segments; needs torch alone, faster with Numba.

Shape letters, here and in docs/notation.md:

- B: segments (sentences or windows) of the batch
- n: tokens of a segment
- P: fence posts, tokens of the longest segment + 1; `chart[b, start, end]` is half-open
- L: labels; entity labels first, latent labels last
- W: width limit, the largest width of a node; the longest segment without one
- S: spans of the batch, n * (n + 1) / 2 a segment without a limit
- T: tokens of the batch
- K: charts stacked in one pass
- E, M, I, N: observed, missing, incorrect spans; nodes

Under a width limit (`max_width`) a longer segment is a chain of trees over consecutive
stretches of at most W tokens. `TreeDistribution` has all quantities of one batch.
"""

from .decode import best_tree, mbr_tree
from .distribution import TreeDistribution
from .entity_sets import k_best_entity_sets
from .inside import log_partition, log_probability, masked_log_partition
from .kbest import k_best_trees
from .marginals import marginals
from .masks import observed_mask
from .sampling import entropy, sample

__all__ = [
    "TreeDistribution",
    "best_tree",
    "entropy",
    "k_best_entity_sets",
    "k_best_trees",
    "log_partition",
    "log_probability",
    "marginals",
    "masked_log_partition",
    "mbr_tree",
    "observed_mask",
    "sample",
]
