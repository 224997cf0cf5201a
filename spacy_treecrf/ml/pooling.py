"""The highest score of a token within each span, for all spans of some segments."""

import torch
from torch import Tensor

from spacy_treecrf.structure.spans import SpanIndex


def highest_token(scores: Tensor, last: Tensor, index: SpanIndex) -> Tensor:
    """Find the token with the highest score of each label in each span.

    scores (Tensor): Score of each token for each label. Shape: (T, L).
    last (Tensor): Row of `scores` of each span's last token. Shape: (S,), int64.
    index (SpanIndex): The spans.
    RETURNS (Tensor): Row of `scores`, the first of equal ones. Shape: (L, S), int64.

    Cost: O(L S): a span is the span that ends a token earlier, and one more token. The
        spans of a width are in the order of the first so many of the width before.
    """
    with torch.no_grad():
        found = last.expand(scores.shape[1], -1).clone()
        values = scores.detach().T.index_select(1, last)
        before = slice(index.offsets[1], index.offsets[2])
        for width in range(2, index.widest + 1):
            first = index.offsets[width]
            here = slice(first, first + index.counts[width])
            before = slice(before.start, before.start + index.counts[width])
            # In place, so that no width needs memory of its own.
            keep = values[:, before] >= values[:, here]
            values[:, here] = torch.where(keep, values[:, before], values[:, here])
            found[:, here] = torch.where(keep, found[:, before], found[:, here])
            before = here
    return found
