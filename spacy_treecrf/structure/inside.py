"""The inside algorithm over all trees, and over the trees that a mask allows.

Fu et al. (2021), Algorithms 2 and 3: because a tree's labels are independent given its
bracketing, labels are summed out first and one recursion over spans remains, the same
for the full and the masked sum. Both are stacked as two charts of one pass.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .chart import BITS, LOG_ZERO, LabelSums, gradient_precision
from .compiled import is_compiled
from .masks import border_potentials
from .spans import Lengths, SpanIndex
from .stacked import StackedSums


class LogPartitions(torch.autograd.Function):
    """Log-sums over the trees of K stacked charts; the gradients are their marginals.

    Takes the layout, what a border after each token adds (None, or shape (T, K), in
    nats) and K packed potentials of shape (L, S); returns log-sums of shape (B, K),
    float64: a log-probability is a small difference of large ones.
    """

    @staticmethod
    def forward(
        ctx: Any, index: SpanIndex, borders: Tensor | None, *potentials: Tensor
    ) -> Tensor:
        sums = [LabelSums.of(labelled) for labelled in potentials]
        stacked = torch.stack([each.bits() for each in sums], 1)
        dtype = potentials[0].dtype
        if dtype == torch.float32 and not is_compiled(stacked.device):
            stacked = stacked.to(gradient_precision(stacked, index))
        borders = None if borders is None else borders * BITS
        both = StackedSums(stacked, index, dtype, borders)
        if any(ctx.needs_input_grad):
            # Now, so that no chart is kept until then.
            ctx.index, mass = index, both.span_marginals
            parts = [part for each in sums for part in each]
            ctx.save_for_backward(mass, *potentials, *parts)
        return both.log_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        mass, *saved = ctx.saved_tensors
        k = mass.shape[1]
        potentials, parts = saved[:k], saved[k:]
        mass = mass * gradient.to(mass.dtype)[ctx.index.segment]
        return (
            None,
            None,
            *(
                LabelSums(*parts[2 * number : 2 * number + 2]).spread(
                    labelled, mass[:, number]
                )
                for number, labelled in enumerate(potentials)
            ),
        )


def at_least_float32(potentials: Tensor) -> Tensor:
    """The structure runs in float32 or float64 whatever the encoder's precision.

    RAISES (ValueError): If the potentials are no floating-point numbers.
    """
    if not potentials.is_floating_point():
        raise ValueError(
            f"expected floating-point potentials, received {potentials.dtype}"
        )
    if potentials.dtype in (torch.float32, torch.float64):
        return potentials
    return potentials.float()


def masked_potentials(
    potentials: Tensor, allowed: Tensor, epsilon: float = 0.0
) -> Tensor:
    """Potentials in which what is not allowed has log epsilon added (Eq. 8 and 10).

    potentials (Tensor): Shape: (L, S).
    allowed (Tensor): True = may be in the tree. Shape: (L, S), bool.
    epsilon (float): What a zero of the mask becomes, in [0, 1).
    RETURNS (Tensor): Shape: (L, S).
    RAISES (ValueError): If epsilon is outside [0, 1).
    """
    if not 0.0 <= epsilon < 1.0:
        raise ValueError(f"expected epsilon in [0, 1), received {epsilon}")
    if epsilon == 0.0:
        return torch.where(allowed, potentials, LOG_ZERO)
    return torch.where(allowed, potentials, potentials + math.log(epsilon))


def packed_log_partition(potentials: Tensor, index: SpanIndex) -> Tensor:
    """`log_partition` of packed potentials. (L, S) -> (B,)."""
    return LogPartitions.apply(index, None, potentials)[:, 0].to(potentials.dtype)


def packed_log_partitions(
    masked: Tensor,
    potentials: Tensor,
    index: SpanIndex,
    borders: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Masked and full log-sums of packed potentials, in one pass over stacked charts.

    masked (Tensor): Potentials with the mask applied. Shape: (L, S).
    potentials (Tensor): Shape: (L, S).
    borders (Tensor): Of `border_potentials`, for the masked sum. Shape: (T,).
    RETURNS (tuple[Tensor, Tensor]): Masked log-sum and log Z. Shape: (B,) each, float64.
    """
    if borders is not None:
        borders = torch.stack([borders, torch.zeros_like(borders)], 1)
    both = LogPartitions.apply(index, borders, masked, potentials)
    return both[:, 0], both[:, 1]


def log_partition(
    potentials: Tensor, lengths: Lengths, max_width: int | None = None
) -> Tensor:
    """Log of the summed exponentiated scores of all labelled trees of each segment.

    potentials (Tensor): Log-potential of each labelled span, in nats. Cells beyond a
        segment's length and below the diagonal are not read. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    max_width (int): Width limit, W: the sum goes over chains of trees of at most that
        width, in segments that are longer. None: over trees, whatever the length.
    RETURNS (Tensor): log Z, in nats. Shape: (B,). Its gradient is `marginals`.
    RAISES (ValueError): If a length or the limit is below 1 or the shapes do not fit.

    Cost: O(n W^2 + n W L) time, O(n W) memory a segment, W = n without a limit.
    Source: Fu et al. (2021), Algorithm 3 without mask; INSIDE(s) of Eq. 7.
    Deviates: labels are summed before splits.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    return packed_log_partition(index.pack(at_least_float32(potentials)), index)


def masked_log_partition(
    potentials: Tensor,
    allowed: Tensor,
    lengths: Lengths,
    epsilon: float = 0.0,
    max_width: int | None = None,
) -> Tensor:
    """Log of the summed exponentiated scores of the trees that a mask allows.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    allowed (Tensor): True = may be in the tree. Shape: (B, P, P, L), bool.
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    epsilon (float): Structure smoothing, in [0, 1): what a zero of the mask becomes.
    max_width (int): Width limit, W, as in `log_partition`. A border between stretches
        strictly inside an observed span is a zero of the mask, see `border_potentials`.
    RETURNS (Tensor): The log-sum, in nats, at most `log_partition`. Shape: (B,).
    RAISES (ValueError): If no tree is allowed in a segment and epsilon is 0, a length
        or the limit is below 1, or the shapes do not fit.

    Cost: O(n W^2 + n W L) time, O(n W) memory a segment, W = n without a limit.
    Source: Fu et al. (2021), Algorithm 3, Eq. 8; Eq. 10 for epsilon.
    Deviates: labels are summed before splits.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials))
    mask = pack_mask(allowed, packed, index)
    packed = masked_potentials(packed, mask, epsilon)
    borders = border_potentials(index, mask, epsilon)
    borders = None if borders is None else borders[:, None]
    result = LogPartitions.apply(index, borders, packed)[:, 0]
    check_possible(result)
    return result.to(packed.dtype)


def log_probability(
    potentials: Tensor,
    allowed: Tensor,
    lengths: Lengths,
    epsilon: float = 0.0,
    max_width: int | None = None,
) -> Tensor:
    """Log-probability of the trees that a mask allows: masked log-sum minus log Z.

    Arguments and errors are those of `masked_log_partition`.
    RETURNS (Tensor): log p, in nats, at most 0. Shape: (B,).

    Cost: less than `masked_log_partition` and `log_partition`, whose two charts are
    stacked in one pass.
    Source: Fu et al. (2021), Eq. 6-8.
    """
    index = SpanIndex.build(lengths, potentials.device, max_width)
    packed = index.pack(at_least_float32(potentials))
    mask = pack_mask(allowed, packed, index)
    masked = masked_potentials(packed, mask, epsilon)
    borders = border_potentials(index, mask, epsilon)
    numerator, denominator = packed_log_partitions(masked, packed, index, borders)
    check_possible(numerator)
    # Rounding may carry the log-probability of all but certain trees above 0.
    return (numerator - denominator).clamp(max=0.0).to(packed.dtype)


def pack_mask(allowed: Tensor, potentials: Tensor, index: SpanIndex) -> Tensor:
    """Pack a mask that goes with packed potentials. (B, P, P, L) -> (L, S), bool.

    RAISES (ValueError): If the mask is not boolean or its shape does not fit.
    """
    n_labels = potentials.shape[0]
    if allowed.dtype != torch.bool or allowed.shape[-1] != n_labels:
        raise ValueError(
            f"expected a mask of torch.bool for {n_labels} labels, received "
            f"{allowed.dtype} of shape {tuple(allowed.shape)}"
        )
    return index.pack(allowed)


def check_possible(masked: Tensor) -> None:
    """Refuse masks that allow no tree.

    masked (Tensor): Masked log-sums. Shape: (B,).
    RAISES (ValueError): If one is log zero.
    """
    impossible = (masked < LOG_ZERO / 2).nonzero()[:, 0]
    if len(impossible):
        raise ValueError(
            "expected masks that allow at least one tree, received masks that allow "
            f"none for segments {impossible.tolist()}"
        )
