"""The highest score of a token within each span, for all spans of some segments."""

from collections.abc import Iterator

import torch
from torch import Tensor

from spacy_treecrf.structure.spans import SpanIndex


def highest_token(scores: Tensor, last: Tensor, index: SpanIndex) -> Tensor:
    """Find the token with the highest score of each label in each span.

    scores (Tensor): Score of each token for each label. Shape: (T, L).
    last (Tensor): Row of `scores` of each span's last token. Shape: (S,), int64.
    index (SpanIndex): The spans.
    RETURNS (Tensor): Row of `scores`, the first of equal ones. Shape: (L, S), int64.

    Cost: O(L S): a span is the span that ends a token earlier, and one more token.
    """
    with torch.no_grad():
        found = last.expand(scores.shape[1], -1).clone()
        values = scores.detach().T.index_select(1, last)
        # In place, so that no width needs memory of its own.
        for before, here in _widths(index):
            keep = values[:, before] >= values[:, here]
            values[:, here] = torch.where(keep, values[:, before], values[:, here])
            found[:, here] = torch.where(keep, found[:, before], found[:, here])
    return found


def add_highest_score(
    spans: Tensor, scores: Tensor, last: Tensor, index: SpanIndex
) -> Tensor:
    """Add to each span the highest score of one of its tokens; without gradients.

    spans (Tensor): What is added to. Shape: (L, S).
    The other arguments are those of `highest_token`.
    RETURNS (Tensor): `spans`, changed in place, to the digit what a gather of the
        highest tokens would add. Shape: (L, S).
    """
    values = scores.T.index_select(1, last)
    for before, here in _widths(index):
        rows = values[:, here]
        torch.maximum(values[:, before], rows, out=rows)
    return spans.add_(values)


def _widths(index: SpanIndex) -> Iterator[tuple[slice, slice]]:
    """Rows of the spans of each width, and of those that end a token earlier.

    The spans of a width are in the order of the first so many of the width before.
    """
    for width in range(2, index.widest + 1):
        count, before = index.counts[width], index.offsets[width - 1]
        yield slice(before, before + count), index.rows(width)
