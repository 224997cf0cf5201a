"""The modules of a span scorer: feed-forward layers, a biaffine form a label, pooling."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from spacy_treecrf.structure.spans import SpanIndex

from .pieces import Pieces, TakeCells, pieces_of
from .placing import Cells, Layout, PlaceScores, place_scores, span_kernels
from .pooling import add_highest_score, highest_token
from .types import Segments

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "identity": nn.Identity,
}
# Standard deviation of the biaffine tensors at the start: near 0, so that all trees begin
# about equally probable, but not 0, so that the two views get different gradients.
INITIAL_DEVIATION = 0.01
# Tokens that the feed-forward layers get at a time in prediction, and cells of a product:
# arrays beyond 32 MB are taken from the system anew each time, which costs as much as what
# is computed in them.
TOKENS_AT_A_TIME = 2048
PRODUCT_CELLS = 1 << 20


class SpanScorer(nn.Module):
    """Feed-forward layers and a biaffine form a label.

    views (int): 2 for separate start and end views, else 1.
    linear (bool): Whether the form has linear and constant terms.
    pooling (str): "max" to score the tokens within a span too, or None.
    The other arguments are those of `build_biaffine_span_scorer`.
    """

    def __init__(
        self,
        nI: int,
        nO: int,
        *,
        hidden_width: int | None,
        depth: int,
        dropout: float,
        views: int,
        activation: str,
        linear: bool,
        pooling: str | None,
    ) -> None:
        super().__init__()
        self.settings = {
            "hidden_width": hidden_width,
            "depth": depth,
            "dropout": dropout,
            "views": views,
            "activation": activation,
            "linear": linear,
            "pooling": pooling,
        }
        hidden = hidden_width or nI
        widths = [nI, *([hidden] * (depth - 1)), max(1, hidden // 2)]
        self.input_dropout = nn.Dropout(dropout)
        self.views = nn.ModuleList(
            _feed_forward(widths, dropout, ACTIVATIONS[activation])
            for _ in range(views)
        )
        width = widths[-1]
        self.bilinear = nn.Parameter(torch.randn(nO, width, width) * INITIAL_DEVIATION)
        self.start = self.end = self.bias = None
        if linear:
            self.end = nn.Parameter(torch.zeros(nO, width))
            # One view for both ends shares U2 between them, as printed in Eq. 2.
            self.start = (
                nn.Parameter(torch.zeros(nO, width)) if views == 2 else self.end
            )
            self.bias = nn.Parameter(torch.zeros(nO))
        self.inner: nn.Sequential | None = None
        if pooling is not None:
            last = nn.Linear(width, nO)
            nn.init.normal_(last.weight, std=INITIAL_DEVIATION)
            nn.init.zeros_(last.bias)
            layers = _feed_forward(widths, dropout, ACTIVATIONS[activation])
            self.inner = nn.Sequential(*layers, last)

    def set_bias(self, bias: Sequence[float]) -> None:
        """Set the constant term of each label, where the form has one.

        bias (Sequence[float]): Potentials of spans that nothing else is known of, e.g.
            log odds. Length: L.
        """
        if self.bias is not None:
            with torch.no_grad():
                self.bias.copy_(torch.tensor(bias))

    def label_parameters(self) -> list[nn.Parameter]:
        """The parameters that have a row for each label."""
        last = [] if self.inner is None else [*self.inner[-1].parameters()]
        found = [self.bilinear, self.start, self.end, self.bias, *last]
        return [parameter for parameter in found if parameter is not None]

    def forward(self, X: Tensor, segments: Segments, index: SpanIndex) -> Tensor:
        """X (Tensor): Token vectors. Shape: (T, nI). RETURNS (Tensor): Shape: (L, S)."""
        X, segments = _own_tokens(X, segments)
        starts, ends, inner = self._views(X)
        if X.device.type != "cpu" or span_kernels() is None:
            return self._gathered(starts, ends, inner, segments, index)
        layout = Layout.of(index)
        n_labels = len(self.bilinear)
        # One row a label, so that a span's tokens stand together.
        pooled = X.new_empty(n_labels, 0) if inner is None else inner.T.contiguous()
        groups = pieces_of(segments.lengths, index.widest)
        if torch.is_grad_enabled():
            taken, products = [], []
            for pieces in groups:
                for cells, product in self._products(starts, ends, pieces, segments):
                    taken.append(cells)
                    products.append(product)
            return PlaceScores.apply(pooled, layout, taken, *products)
        scores = X.new_empty(n_labels, index.n_spans)
        for pieces in groups:
            for cells, product in self._products(
                starts, ends, pieces, segments, PRODUCT_CELLS
            ):
                place_scores(product, cells, layout, pooled, scores)
        return scores

    def _views(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Tokens as starts, as ends, and inside of spans; by blocks in prediction."""
        if torch.is_grad_enabled() or len(X) <= TOKENS_AT_A_TIME:
            return self._views_of(X)
        found = [self._views_of(block) for block in X.split(TOKENS_AT_A_TIME)]
        starts = torch.cat([view for view, _, _ in found])
        ends = torch.cat([view for _, view, _ in found])
        inner = [view for *_, view in found if view is not None]
        return starts, ends, torch.cat(inner) if inner else None

    def _views_of(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        layers = [cast(nn.Sequential, view) for view in self.views]
        if self.inner is not None:
            layers.append(self.inner)
        # The first layers in one product: their input is the same.
        first = [cast(nn.Linear, each[0]) for each in layers]
        weight = torch.cat([linear.weight for linear in first])
        bias = torch.cat([linear.bias for linear in first])
        hidden = nn.functional.linear(self.input_dropout(X), weight, bias)
        _, activation, dropout, *_ = layers[0]
        parts = dropout(activation(hidden)).split(first[0].out_features, 1)
        found = [each[3:](part) for each, part in zip(layers, parts, strict=True)]
        inner = None if self.inner is None else found.pop()
        return found[0], found[-1], inner

    def _products(
        self,
        starts: Tensor,
        ends: Tensor,
        pieces: Pieces,
        segments: Segments,
        max_cells: int | None = None,
        in_columns: bool = True,
    ) -> Iterator[tuple[Cells, Tensor]]:
        """All starts by all ends of each piece, for each label.

        max_cells (int): Bound on the size of a product, where one piece is within it.
        in_columns (bool): Whether the first pieces of all segments come first, then the
            second ones: as their spans stand in the packed layout. Else by segment.
        YIELDS (tuple[Cells, Tensor]): Some pieces, and their product. Shape: (pieces,
            n_starts, L, n_ends).
        """
        n_labels, width = self.bilinear.shape[:2]
        # Row l * width + e holds U1_l[:, e]: one product gives e_i^T U1_l for all labels.
        weight = self.bilinear.transpose(1, 2).reshape(n_labels * width, width)
        bias = None if self.end is None else self.end.reshape(-1)
        start_tokens, end_tokens = pieces.tokens(segments)
        numbers, room = pieces.begins(segments)
        if in_columns and len(numbers) > len(pieces.segments):
            order = np.argsort(pieces.begin, kind="stable")
            numbers, room = numbers[order], room[order]
            start_tokens, end_tokens = start_tokens[order], end_tokens[order]
        step = len(numbers)
        if max_cells is not None:
            step = max(1, max_cells // (pieces.n_starts * pieces.n_ends * n_labels))
        for begin in range(0, len(numbers), step):
            some = slice(begin, begin + step)
            start = starts[start_tokens[some].to(starts.device)]
            shape = (len(start), pieces.n_starts * n_labels, width)
            left = nn.functional.linear(start, weight, bias).view(shape)
            right = ends[end_tokens[some].to(ends.device)].transpose(1, 2)
            if self.start is None or self.bias is None:
                product = torch.bmm(left, right)
            else:
                constant = nn.functional.linear(start, self.start, self.bias)
                product = torch.baddbmm(constant.view(*shape[:2], 1), left, right)
            product = product.view(len(start), pieces.n_starts, n_labels, pieces.n_ends)
            yield Cells(numbers[some], room[some]), product

    def _gathered(
        self,
        starts: Tensor,
        ends: Tensor,
        inner: Tensor | None,
        segments: Segments,
        index: SpanIndex,
    ) -> Tensor:
        """The potentials by calls of torch alone. Shape: (L, S)."""
        n_labels, device = len(self.bilinear), starts.device
        taken, rows = [], []
        for pieces in pieces_of(segments.lengths, index.widest):
            cells, where = pieces.cells(index, n_labels)
            ((_, product),) = self._products(
                starts, ends, pieces, segments, in_columns=False
            )
            taken.append(
                TakeCells.apply(product.view(-1), cells, pieces.n_ends, n_labels)
            )
            rows.append(where)
        # Its memory is as large as that of the scores.
        del product
        if len(rows) == 1:
            scores = taken.pop()
        else:
            scores = torch.cat(taken, dim=1)
            order = torch.empty(index.n_spans, dtype=torch.int64, device=device)
            order[torch.cat(rows)] = torch.arange(index.n_spans, device=device)
            scores = scores.index_select(1, order)
        if inner is None:
            return scores
        first = torch.from_numpy(segments.first).to(device)
        last = first[index.segment] + index.end - 1
        if not torch.is_grad_enabled():
            return add_highest_score(scores, inner, last, index)
        return scores + inner.T.gather(1, highest_token(inner, last, index))


def _own_tokens(X: Tensor, segments: Segments) -> tuple[Tensor, Segments]:
    """The tokens of some segments, side by side in their order."""
    lengths = segments.lengths
    first = lengths.cumsum() - lengths
    if len(X) == lengths.sum() and np.array_equal(first, segments.first):
        return X, segments
    tokens = np.arange(lengths.sum()) + (segments.first - first).repeat(lengths)
    rows = torch.from_numpy(tokens).to(X.device)
    return X.index_select(0, rows), replace(segments, first=first)


def _feed_forward(
    widths: list[int], dropout: float, activation: Callable[[], nn.Module]
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for nI, nO in pairwise(widths):
        linear = nn.Linear(nI, nO)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, activation(), nn.Dropout(dropout)]
    return nn.Sequential(*layers)
