"""The outside pass: from log-sums to the probability that a span is in the tree."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .spans import SpanIndex

if TYPE_CHECKING:
    from .inside import Chart


def span_marginals(chart: "Chart", index: SpanIndex) -> Tensor:
    """Probability that each span is a node of the tree, labels summed out.

    chart (Chart): Log-sums of `inside_chart`.
    index (SpanIndex): The layout.
    RETURNS (Tensor): Probabilities, 2n - 1 in sum for a segment of n tokens.
        Shape: (S, K).

    Cost: O(n^3) time a segment, O(n^2) memory; one Python step a width. Split
    probabilities are computed again from the chart, not kept from the inside pass.
    """
    from .inside import MIN_EXPONENT, split_rectangles, split_scratch

    n, n_tokens, k = chart.by_start.shape
    # Mass that reaches a span as the left part of a split, and as the right part.
    as_left = torch.zeros_like(chart.by_start)
    as_right = torch.zeros_like(chart.by_end)
    mass = chart.by_start.new_zeros(index.n_spans, k)
    mass[index.roots()] = 1.0
    scratch = split_scratch(mass, index)
    for width in range(n, 0, -1):
        count, ends = index.counts[width], index.ends(width)
        right_row = as_right[n - width]
        here = mass[index.rows(width)]
        here.add_(as_left[width - 1, :count])
        here.add_(right_row[n_tokens - count :] if ends is None else right_row[ends])
        if width == 1:
            break
        left, right = split_rectangles(chart.by_start, chart.by_end, index, width)
        share = scratch[: left.numel()].view(left.shape)
        torch.add(left, right, out=share)
        share.sub_(chart.splits[width - 1, :count]).clamp_(min=MIN_EXPONENT)
        share.exp_().mul_(here)
        as_left[: width - 1, :count].add_(share)
        if ends is None:
            as_right[n - width + 1 :, n_tokens - count :].add_(share)
        else:
            as_right[n - width + 1 :].index_add_(1, ends, share)
    return mass
