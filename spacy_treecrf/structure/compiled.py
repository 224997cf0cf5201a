"""Compiled recursions on the host, and where they stand aside for those in torch.

Numba is imported on the first call. Without it, as on a machine with a bare PyTorch, and
on any device but the host the recursions in torch run, with the same results.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from .spans import SpanIndex

_in_torch: ContextVar[bool] = ContextVar("_in_torch", default=False)


@contextmanager
def recursions_in_torch() -> Iterator[None]:
    """Run the recursions in torch on the host, too: what tests hold the others against."""
    token = _in_torch.set(True)
    try:
        yield
    finally:
        _in_torch.reset(token)


def is_compiled(device: torch.device) -> bool:
    """Whether the recursions over charts on a device are the compiled ones."""
    return device.type == "cpu" and not _in_torch.get() and has_numba()


@cache
def has_numba() -> bool:
    """Whether Numba is installed, and not told to leave functions as they are."""
    try:
        import numba
    except ModuleNotFoundError as error:
        # A broken one is reported: without it everything is slow.
        if error.name != "numba":
            raise
        return False
    return not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


class Sums(NamedTuple):
    """What `tree_sums` computes.

    log_sums (Tensor): In nats. Shape: (B, K), float64.
    mass (Tensor): Probability of each span. Shape: (S, K), float64.
    entropies (Tensor): In nats. Shape: (B, K), float64.
    """

    log_sums: Tensor
    mass: Tensor
    entropies: Tensor


def tree_sums(
    bits: Tensor,
    index: SpanIndex,
    borders: Tensor | None = None,
    choices: Tensor | None = None,
    marginals: bool = True,
) -> Sums:
    """Sums over the analyses of each segment, by `_sum_kernels.tree_sums`.

    bits (Tensor): Log-potential of each span, in bits. Shape: (S, K).
    index (SpanIndex): The layout.
    borders (Tensor): What a border after each token adds, in bits. Shape: (T, K).
    choices (Tensor): Where entropies are wanted, that of what is chosen at each node but
        its split, in nats. Shape: (S, K).
    marginals (bool): Whether probabilities are wanted.
    RETURNS (Sums): Empty where not wanted.

    Cost: O(n W^2) time a segment; beside the result the memory of one segment, O(n W).
    """
    from . import _sum_kernels as kernels

    k, longest = bits.shape[1], index.longest
    rows = kernels.SUM_ROWS if choices is None else kernels.ENTROPY_ROWS
    if borders is None:
        shape = (index.n_tokens if index.chained else 0, k)
        borders = torch.zeros(shape, dtype=torch.float64, device="cpu")
    if choices is None:
        choices = _room(0, k)
    log_sums, entropies = _room(index.n_segments, k), _room(index.n_segments, k)
    mass = _room(index.n_spans if marginals else 0, k)
    kernels.tree_sums(
        *(_as_numbers(each) for each in (bits, borders, choices)),
        *(each.numpy() for each in index.on_host),
        index.widest,
        _room(rows, longest * index.widest).numpy(),
        _room(kernels.BORDER_ROWS, longest + 1).numpy(),
        log_sums.numpy(),
        mass.numpy(),
        entropies.numpy(),
    )
    return Sums(log_sums.mul_(kernels.LN2), mass, entropies)


def best_rows(gains: Tensor, index: SpanIndex) -> Tensor:
    """`bracketing.best_bracketing` by `_best_kernels.best_nodes`. (S,) -> (N,)."""
    from . import _best_kernels as kernels

    longest = index.longest
    chosen = torch.zeros(index.n_spans, dtype=torch.uint8, device="cpu")
    stack = torch.empty((2, longest + 1), dtype=torch.int64, device="cpu")
    kernels.best_nodes(
        _as_numbers(gains),
        *(each.numpy() for each in index.on_host),
        index.widest,
        _room(kernels.BEST_ROWS, longest * index.widest).numpy(),
        _room(longest + 1).numpy(),
        stack.numpy(),
        chosen.numpy(),
    )
    return chosen.nonzero()[:, 0]


def _room(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float64, device="cpu")


def _as_numbers(values: Tensor):  # type: ignore[no-untyped-def]
    """As float64 side by side, without a copy where they are. RETURNS (ndarray)."""
    return values.detach().double().contiguous().numpy()
