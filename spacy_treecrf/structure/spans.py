"""The packed layout: every span of every segment once, no padding.

All recursions of this package run on *packed* arrays, with S the number of spans of the
batch, the sum over segments of n * (n + 1) / 2. Potentials are label-first, (L, S), so
that every step over labels runs along contiguous rows. Spans are ordered by
width; within a width by how many tokens the segment still has from the span's start,
most first. Both orders together have two useful consequences:

- the spans of width w are those that start at the first `counts[w]` tokens of
  *start order*, so that a chart row of one width is a prefix of a row of any smaller one;
- in a batch of equal lengths, their ends are the last `counts[w]` tokens of *end
  order*, in the same order, so that no look-up is needed at all.

In a ragged batch the ends are one gather away (`SpanIndex.ends`). Under a width limit the
rows of greater widths are left out: what remains is a prefix of the same arrays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Lengths = Sequence[int] | Tensor


def read_lengths(lengths: Lengths) -> list[int]:
    """Read tokens per segment to the host, once.

    lengths (Sequence[int] | Tensor): Tokens per segment. Shape: (B,).
    RETURNS (list[int]): The same as Python numbers.
    RAISES (ValueError): If a length is below 1 or there is none: a tree has a leaf.
    """
    numbers = lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)
    if not numbers:
        raise ValueError("expected at least one segment, received none")
    for position, number in enumerate(numbers):
        if number < 1 or number != int(number):
            raise ValueError(
                "expected lengths of at least 1 token, received "
                f"{number} for segment {position}"
            )
    return [int(number) for number in numbers]


@dataclass(frozen=True)
class SpanIndex:
    """Where each span of a batch of segments stands in the packed layout.

    lengths (list[int]): Tokens per segment. Shape: (B,).
    max_width (int | None): Width limit: wider spans are left out.
    counts (list[int]): `counts[w]` spans have width w, for w = 0 (none) to the widest.
    offsets (list[int]): Spans of width w are rows `offsets[w]:offsets[w + 1]`.
    segment (Tensor): Segment of each span. Shape: (S,), int64.
    start (Tensor): First token of each span, within its segment. Shape: (S,), int64.
    end (Tensor): One past the last token. Shape: (S,), int64.
    """

    lengths: list[int]
    max_width: int | None
    counts: list[int]
    offsets: list[int]
    segment: Tensor
    start: Tensor
    end: Tensor
    # Number of a token in the concatenated segments, by start order. Shape: (T,).
    _token: Tensor
    # Place in end order, by token number; None if all lengths are equal. Shape: (T,).
    _end_place: Tensor | None
    # Place in start order, by token number. Shape: (T,).
    _start_place: Tensor

    @classmethod
    def build(
        cls,
        lengths: Lengths,
        device: torch.device | None = None,
        max_width: int | None = None,
    ) -> "SpanIndex":
        """Lay out the spans of a batch.

        lengths (Sequence[int] | Tensor): Tokens per segment, at least 1. Shape: (B,).
        device (torch.device): Where the index tensors go. Default: the host.
        max_width (int): Width limit, W; None for none.
        RETURNS (SpanIndex): The layout. All its tensors are computed on the host and
            moved once.
        RAISES (ValueError): If a length or the width limit is below 1.
        """
        numbers = read_lengths(lengths)
        if max_width is not None and max_width < 1:
            raise ValueError(
                f"expected a max_width of at least 1, received {max_width}"
            )
        # Always named: a user may have set another default device.
        host = torch.device("cpu")
        device = host if device is None else device
        sizes = torch.tensor(numbers, device=host)
        longest = max(numbers)
        n_tokens = int(sizes.sum())
        tokens = torch.arange(n_tokens, device=host)
        segment = torch.repeat_interleave(
            torch.arange(len(numbers), device=host), sizes, output_size=n_tokens
        )
        position = tokens - (sizes.cumsum(0) - sizes)[segment]
        remaining = sizes[segment] - position
        start_order = torch.argsort(-remaining, stable=True)
        end_order = torch.argsort(position, stable=True)
        histogram = torch.bincount(remaining, minlength=longest + 1)
        widest = longest if max_width is None else min(longest, max_width)
        # counts[w] = tokens with at least w tokens left; none for w = 0.
        counts = histogram.flip(0).cumsum(0).flip(0)[: widest + 1]
        counts[0] = 0
        offsets = [0, 0, *counts.cumsum(0)[1:].tolist()]
        n_spans = offsets[-1]
        width = torch.repeat_interleave(
            torch.arange(widest + 1, device=host), counts, output_size=n_spans
        )
        place = (
            torch.arange(n_spans, device=host)
            - torch.tensor(offsets, device=host)[width]
        )
        token = start_order[place]
        start = position[token]
        ragged = min(numbers) < longest
        return cls(
            lengths=numbers,
            max_width=max_width,
            counts=counts.tolist(),
            offsets=offsets,
            segment=segment[token].to(device),
            start=start.to(device),
            end=(start + width).to(device),
            _token=start_order.to(device),
            _end_place=invert(end_order).to(device) if ragged else None,
            _start_place=invert(start_order).to(device),
        )

    @property
    def longest(self) -> int:
        """Tokens of the longest segment."""
        return max(self.lengths)

    @property
    def widest(self) -> int:
        """Width of the widest span."""
        return len(self.counts) - 1

    @property
    def n_tokens(self) -> int:
        """Tokens of the batch, T."""
        return self.counts[1]

    @property
    def n_spans(self) -> int:
        """Spans of the batch, S."""
        return self.offsets[-1]

    @property
    def n_segments(self) -> int:
        """Segments of the batch, B."""
        return len(self.lengths)

    def rows(self, width: int) -> slice:
        """Packed rows of the spans of one width, in start order."""
        return slice(self.offsets[width], self.offsets[width + 1])

    def ends(self, width: int) -> Tensor | None:
        """Place in end order of each span of a width, in start order.

        RETURNS (Tensor | None): Shape: (counts[width],). None in a batch of equal
            lengths, where they are the last `counts[width]` places.
        """
        if self._end_place is None:
            return None
        return self._end_place[self._token[: self.counts[width]] + (width - 1)]

    def later(self, width: int, steps: int) -> Tensor:
        """Number of the token some steps after the start of each span of a width.

        RETURNS (Tensor): In start order. Shape: (counts[width],), int64.
        """
        return self._token[: self.counts[width]] + steps

    def tokens(self, segment: Tensor, position: Tensor) -> Tensor:
        """Number in the batch of given tokens of segments. Shape: (E,), int64."""
        sizes = torch.tensor(self.lengths, device="cpu")
        return (sizes.cumsum(0) - sizes).to(segment.device)[segment] + position

    def segment_of_tokens(self) -> Tensor:
        """Segment of each token of the batch. Shape: (T,), int64."""
        sizes = torch.tensor(self.lengths, device="cpu")
        numbers = torch.arange(self.n_segments, device="cpu")
        return numbers.repeat_interleave(sizes).to(self.start.device)

    def right_places(self, places: Tensor, left: Tensor) -> Tensor:
        """Place in start order of the right parts of splits.

        places (Tensor): Places of the spans' starts, in start order. Shape: (A,).
        left (Tensor): Width of their left parts. Shape: (A,).
        RETURNS (Tensor): Shape: (A,).
        """
        return self._start_place[self._token[places] + left]

    @cached_property
    def chained(self) -> list[int]:
        """Segments longer than the width limit, longest first."""
        wide = [n for n, length in enumerate(self.lengths) if length > self.widest]
        return sorted(wide, key=lambda number: -self.lengths[number])

    @cached_property
    def on_host(self) -> tuple[Tensor, Tensor, Tensor]:
        """What places the spans of a segment, for loops over segments on the host.

        RETURNS (tuple[Tensor, Tensor, Tensor]): `offsets`; place in start order of each
            token, by its number, (T,); `lengths`. The span of width w that starts at a
            token stands at `offsets[w]` plus the token's place. int64.
        """
        offsets = torch.tensor(self.offsets, device="cpu")
        lengths = torch.tensor(self.lengths, device="cpu")
        return offsets, self._start_place.cpu().contiguous(), lengths

    def roots(self) -> Tensor:
        """Packed row of the whole span of each segment within the width limit.

        RETURNS (Tensor): Shape: (B - chained,).
        """
        sizes = torch.tensor(self.lengths, device="cpu")
        within = sizes <= self.widest
        first, sizes = (sizes.cumsum(0) - sizes)[within], sizes[within]
        offsets = torch.tensor(self.offsets, device="cpu")[sizes].to(self.start.device)
        return offsets + self._start_place[first.to(self.start.device)]

    def grid(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Width - 1 and place in start order of packed rows. Shape: (E,) each."""
        widths = self.end[rows] - self.start[rows]
        offsets = torch.tensor(self.offsets, device=rows.device)
        return widths - 1, rows - offsets[widths]

    def end_places(self, tokens: Tensor) -> Tensor:
        """Place in end order of tokens, given by their numbers. Shape: that of tokens."""
        if self._end_place is not None:
            return self._end_place[tokens]
        segment = tokens // self.longest
        return (tokens - segment * self.longest) * self.n_segments + segment

    def of_segment(self, segment: int) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Where the tokens and spans of one segment are; on the host.

        RETURNS (tuple[Tensor, Tensor, list[Tensor]]): Places of the tokens in start order
            and in end order, (n,) each; packed rows of the spans of each width, by start.
        """
        first, length = sum(self.lengths[:segment]), self.lengths[segment]
        tokens = torch.arange(first, first + length, device=self.start.device)
        starts, ends = self._start_place[tokens].cpu(), self.end_places(tokens).cpu()
        rows = [
            self.offsets[width] + starts[: length - width + 1]
            for width in range(1, min(length, self.widest) + 1)
        ]
        return starts, ends, rows

    def row_of(self, segment: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """Packed row of given spans.

        segment, start, end (Tensor): Spans as in the fields, on the index's device.
            Shape: (E,) each.
        RETURNS (Tensor): Shape: (E,).
        """
        device = self.start.device
        sizes = torch.tensor(self.lengths, device="cpu")
        first = (sizes.cumsum(0) - sizes).to(device)
        offsets = torch.tensor(self.offsets, device=device)
        return offsets[end - start] + self._start_place[first[segment] + start]

    def pack(self, dense: Tensor) -> Tensor:
        """Take the valid cells of a fence-post chart, label-first.

        dense (Tensor): Shape: (B, P, P, L).
        RETURNS (Tensor): Shape: (L, S).
        RAISES (ValueError): If the chart's shape does not fit the lengths.
        """
        expected = (self.n_segments, self.longest + 1, self.longest + 1)
        if (
            dense.dim() != 4
            or dense.shape[0] != expected[0]
            or dense.shape[1] < expected[1]
            or dense.shape[1] != dense.shape[2]
        ):
            raise ValueError(
                f"expected a chart of shape {(*expected, 'L')}, or equally larger in the "
                "second and third dimension, for these lengths, received "
                f"{tuple(dense.shape)}"
            )
        return _Pack.apply(dense, self)

    def unpack(self, packed: Tensor, size: int | None = None) -> Tensor:
        """Write packed values into a fence-post chart of zeros; `pack` undoes it.

        packed (Tensor): Shape: (L, S).
        size (int): P, by default the longest segment's length + 1.
        RETURNS (Tensor): Shape: (B, P, P, L).
        """
        size = self.longest + 1 if size is None else size
        dense = packed.new_zeros(self.n_segments * size * size, packed.shape[0])
        dense.index_copy_(0, self.cells(size), packed.t().contiguous())
        return dense.view(self.n_segments, size, size, -1)

    def cells(self, size: int) -> Tensor:
        """Cell of each span in a flattened chart with P = size. Shape: (S,), int64."""
        return (self.segment * size + self.start) * size + self.end


class _Pack(torch.autograd.Function):
    """`SpanIndex.pack`; its gradient is `unpack`, which no cell needs to be added up in."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, index: SpanIndex) -> Tensor:
        ctx.index, ctx.size = index, dense.shape[2]
        flat = dense.reshape(-1, dense.shape[3])
        return flat.index_select(0, index.cells(ctx.size)).t().contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.index.unpack(gradient, ctx.size), None


def invert(permutation: Tensor) -> Tensor:
    """The permutation that undoes another. Shape: (N,)."""
    inverse = torch.empty_like(permutation)
    inverse[permutation] = torch.arange(len(permutation), device=permutation.device)
    return inverse
