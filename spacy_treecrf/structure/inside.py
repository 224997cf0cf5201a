"""The inside algorithm over all trees, and over the trees that a mask allows.

Fu et al. (2021), Algorithms 2 and 3: because a tree's labels are independent given its
bracketing, labels are summed out first and one recursion over spans remains, the same
for the full and the masked sum. Both are stacked as two charts of one pass.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from .outside import span_marginals
from .spans import Lengths, SpanIndex

# Log of zero. Finite, since -inf has no gradient; a chart of 10,000 tokens adds up to
# 2e34 of it, within float32.
LOG_ZERO = -1e30
# exp(-43) = 2e-19 vanishes beside a maximum's exp(0) = 1 in float64, and keeps `exp` off
# the denormal numbers, where it is some 40 times slower.
MIN_EXPONENT = -43.0


class Chart(NamedTuple):
    """Log-sums of a batch, in two alignments, so that the splits of all spans of one
    width are two rectangles. Row and place are those of `SpanIndex`; K charts are
    stacked in the last dimension.

    by_start (Tensor): Row w - 1, place in start order. Shape: (n, T, K).
    by_end (Tensor): Row n - w, place in end order. Shape: (n, T, K).
    splits (Tensor): As `by_start`, without the span's own potential.
    """

    by_start: Tensor
    by_end: Tensor
    splits: Tensor


def split_rectangles(
    by_start: Tensor, by_end: Tensor, index: SpanIndex, width: int
) -> tuple[Tensor, Tensor]:
    """Left and right part of every split of every span of a width.

    RETURNS (tuple[Tensor, Tensor]): Row k - 1 is the split whose left part has width k.
        Shape: (width - 1, counts[width], K) each.
    """
    n, count = index.longest, index.counts[width]
    left = by_start[: width - 1, :count]
    right = by_end[n - width + 1 :]
    ends = index.ends(width)
    if ends is None:
        return left, right[:, index.n_tokens - count :]
    return left, right.index_select(1, ends)


def store(chart: Chart, index: SpanIndex, width: int, values: Tensor) -> None:
    """Write the log-sums of all spans of a width in both alignments."""
    n, count = index.longest, index.counts[width]
    chart.by_start[width - 1, :count] = values
    ends = index.ends(width)
    if ends is None:
        chart.by_end[n - width, index.n_tokens - count :] = values
    else:
        chart.by_end[n - width].index_copy_(0, ends, values)


def inside_chart(span_potentials: Tensor, index: SpanIndex) -> Chart:
    """Sum over the bracketings of every span, by increasing width.

    span_potentials (Tensor): Log-potential of each span, labels summed out, K charts.
        Shape: (S, K).
    index (SpanIndex): The layout.
    RETURNS (Chart): The log-sums.

    Cost: O(n^3) time a segment, O(n^2) memory; one Python step a width.
    Source: Fu et al. (2021), Algorithms 2 and 3, without the loop over cells.
    """
    n, k = index.longest, span_potentials.shape[1]
    shape = (n, index.n_tokens, k)
    chart = Chart(*(span_potentials.new_empty(shape) for _ in range(3)))
    store(chart, index, 1, span_potentials[index.rows(1)])
    scratch = split_scratch(span_potentials, index)
    for width in range(2, n + 1):
        left, right = split_rectangles(chart.by_start, chart.by_end, index, width)
        sums = scratch[: left.numel()].view(left.shape)
        torch.add(left, right, out=sums)
        best = sums.amax(0)
        sums.sub_(best).clamp_(min=MIN_EXPONENT).exp_()
        total = sums.sum(0).log_().add_(best)
        chart.splits[width - 1, : index.counts[width]] = total
        store(chart, index, width, total.add_(span_potentials[index.rows(width)]))
    return chart


def split_scratch(like: Tensor, index: SpanIndex) -> Tensor:
    """One buffer that holds the splits of any width. Shape: (max splits * K,)."""
    largest = max(
        (width - 1) * count for width, count in enumerate(index.counts) if width
    )
    return like.new_empty(largest * like.shape[1])


def root_values(chart: Chart, index: SpanIndex) -> Tensor:
    """Log-sum of each segment's whole span. Shape: (B, K)."""
    device = index.start.device
    widths = torch.tensor(index.lengths, device=device)
    places = index.roots() - torch.tensor(index.offsets, device=device)[widths]
    return chart.by_start[widths - 1, places]


class LogPartitions(torch.autograd.Function):
    """Log-sums over the trees of K stacked charts; the gradients are their marginals.

    Takes the layout and K packed potentials of shape (L, S); returns log-sums of shape
    (B, K).
    """

    @staticmethod
    def forward(ctx: Any, index: SpanIndex, *potentials: Tensor) -> Tensor:
        stacked = potentials[0].new_empty(index.n_spans, len(potentials))
        for number, labelled in enumerate(potentials):
            stacked[:, number] = sum_labels(labelled)
        chart = inside_chart(stacked, index)
        ctx.index = index
        ctx.save_for_backward(stacked, *chart, *potentials)
        return root_values(chart, index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        stacked, by_start, by_end, splits, *potentials = ctx.saved_tensors
        mass = span_marginals(Chart(by_start, by_end, splits), ctx.index)
        mass.mul_(gradient[ctx.index.segment])
        return None, *(
            label_shares(labelled, stacked[:, number]).mul_(mass[:, number])
            for number, labelled in enumerate(potentials)
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


def sum_labels(potentials: Tensor) -> Tensor:
    """Sum labels out of packed potentials, with log zero as floor. (L, S) -> (S,)."""
    best = potentials.amax(0).clamp_(min=LOG_ZERO)
    total = (potentials - best).clamp_(min=MIN_EXPONENT).exp_().sum(0)
    return total.log_().add_(best)


def label_shares(potentials: Tensor, sums: Tensor) -> Tensor:
    """Probability of each label given that the span is in the tree. (L, S) -> (L, S)."""
    return (potentials - sums).clamp_(min=MIN_EXPONENT).exp_()


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
    return LogPartitions.apply(index, potentials)[:, 0]


def packed_log_partitions(
    masked: Tensor, potentials: Tensor, index: SpanIndex
) -> tuple[Tensor, Tensor]:
    """Masked and full log-sums of packed potentials, in one pass over stacked charts.

    masked (Tensor): Potentials with the mask applied. Shape: (L, S).
    potentials (Tensor): Shape: (L, S).
    RETURNS (tuple[Tensor, Tensor]): Masked log-sum and log Z. Shape: (B,) each.
    """
    both = LogPartitions.apply(index, masked, potentials)
    return both[:, 0], both[:, 1]


def log_partition(potentials: Tensor, lengths: Lengths) -> Tensor:
    """Log of the summed exponentiated scores of all labelled trees of each segment.

    potentials (Tensor): Log-potential of each labelled span, in nats. Cells beyond a
        segment's length and below the diagonal are not read. Shape: (B, P, P, L).
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    RETURNS (Tensor): log Z, in nats. Shape: (B,). Its gradient is `marginals`.
    RAISES (ValueError): If a length is below 1 or the shapes do not fit.

    Cost: O(P^3 + P^2 L) time, O(P^2) memory a segment.
    Source: Fu et al. (2021), Algorithm 3 without mask; INSIDE(s) of Eq. 7.
    Deviates: labels are summed before splits.
    """
    index = SpanIndex.build(lengths, potentials.device)
    return packed_log_partition(index.pack(at_least_float32(potentials)), index)


def masked_log_partition(
    potentials: Tensor, allowed: Tensor, lengths: Lengths, epsilon: float = 0.0
) -> Tensor:
    """Log of the summed exponentiated scores of the trees that a mask allows.

    potentials (Tensor): Log-potential of each labelled span, in nats. Shape: (B, P, P, L).
    allowed (Tensor): True = may be in the tree. Shape: (B, P, P, L), bool.
    lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
    epsilon (float): Structure smoothing, in [0, 1): what a zero of the mask becomes.
    RETURNS (Tensor): The log-sum, in nats, at most `log_partition`. Shape: (B,).
    RAISES (ValueError): If no tree is allowed in a segment and epsilon is 0, a length
        is below 1, or the shapes do not fit.

    Cost: O(P^3 + P^2 L) time, O(P^2) memory a segment.
    Source: Fu et al. (2021), Algorithm 3, Eq. 8; Eq. 10 for epsilon.
    Deviates: labels are summed before splits.
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials))
    packed = masked_potentials(packed, pack_mask(allowed, packed, index), epsilon)
    result = packed_log_partition(packed, index)
    check_possible(result)
    return result


def log_probability(
    potentials: Tensor, allowed: Tensor, lengths: Lengths, epsilon: float = 0.0
) -> Tensor:
    """Log-probability of the trees that a mask allows: masked log-sum minus log Z.

    Arguments and errors are those of `masked_log_partition`.
    RETURNS (Tensor): log p, in nats, at most 0 up to rounding. Shape: (B,).

    Cost: less than `masked_log_partition` and `log_partition`, whose two charts are
    stacked in one pass.
    Source: Fu et al. (2021), Eq. 6-8.
    """
    index = SpanIndex.build(lengths, potentials.device)
    packed = index.pack(at_least_float32(potentials))
    masked = masked_potentials(packed, pack_mask(allowed, packed, index), epsilon)
    numerator, denominator = packed_log_partitions(masked, packed, index)
    check_possible(numerator)
    return numerator - denominator


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
