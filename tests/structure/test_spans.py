"""The packed layout: every span of every segment once, in an order that is a promise."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, is_span, random_batch, seeds

from spacy_treecrf.structure.spans import SpanIndex, invert, read_lengths

ragged = st.lists(st.integers(1, 7), min_size=1, max_size=5)
RAGGED = [3, 1, 4, 4, 2]


def spans_of(index):
    return list(
        zip(
            index.segment.tolist(),
            index.start.tolist(),
            index.end.tolist(),
            strict=True,
        )
    )


@few
@given(ragged)
def test_spans_holds_every_span_of_every_segment_once(lengths):
    expected = [
        (segment, start, end)
        for segment, length in enumerate(lengths)
        for start in range(length)
        for end in range(start + 1, length + 1)
    ]
    index = SpanIndex.build(lengths)
    assert sorted(spans_of(index)) == expected
    assert index.n_spans == len(expected)
    assert index.n_tokens == sum(lengths)
    assert index.n_segments == len(lengths)
    assert index.longest == max(lengths)


@few
@given(ragged)
def test_spans_are_ordered_by_width_then_by_remaining_tokens(lengths):
    keys = [
        (end - start, -(lengths[segment] - start), segment, start)
        for segment, start, end in spans_of(SpanIndex.build(lengths))
    ]
    assert keys == sorted(keys)


@few
@given(ragged)
def test_spans_of_a_width_are_the_rows_between_its_offsets(lengths):
    index = SpanIndex.build(lengths)
    widths = index.end - index.start
    for width in range(1, index.longest + 1):
        rows = index.rows(width)
        assert rows.stop - rows.start == index.counts[width]
        assert (widths[rows] == width).all()


@few
@given(ragged)
def test_spans_of_a_width_start_at_a_prefix_of_the_start_order(lengths):
    index = SpanIndex.build(lengths)
    starts = list(zip(index.segment.tolist(), index.start.tolist(), strict=True))
    for width in range(1, index.longest + 1):
        rows = index.rows(width)
        assert starts[rows] == starts[: index.counts[width]]


@few
@given(ragged)
def test_spans_ends_point_at_the_token_that_a_span_ends_with(lengths):
    index = SpanIndex.build(lengths)
    # Tokens in end order: by position, then by segment.
    order = sorted(
        (position, segment)
        for segment, length in enumerate(lengths)
        for position in range(length)
    )
    for width in range(1, index.longest + 1):
        places = index.ends(width)
        if places is None:
            assert len(set(lengths)) == 1
            count = index.counts[width]
            places = range(index.n_tokens - count, index.n_tokens)
        rows = index.rows(width)
        expected = zip((index.end - 1)[rows], index.segment[rows], strict=True)
        assert [order[place] for place in places] == [
            (int(end), int(segment)) for end, segment in expected
        ]


@few
@given(ragged)
def test_spans_row_of_finds_each_span(lengths):
    index = SpanIndex.build(lengths)
    rows = index.row_of(index.segment, index.start, index.end)
    assert rows.tolist() == list(range(index.n_spans))


@few
@given(ragged)
def test_spans_roots_are_the_whole_segments(lengths):
    index = SpanIndex.build(lengths)
    found = [spans_of(index)[row] for row in index.roots().tolist()]
    assert found == [(number, 0, length) for number, length in enumerate(lengths)]


@few
@given(ragged.filter(lambda lengths: max(lengths) > 1))
def test_spans_right_places_are_those_of_the_split(lengths):
    index = SpanIndex.build(lengths)
    starts = spans_of(index)[: index.counts[1]]
    for width in range(2, index.longest + 1):
        places = torch.arange(index.counts[width])
        for left in range(1, width):
            found = index.right_places(places, torch.full_like(places, left))
            assert [starts[place][:2] for place in found.tolist()] == [
                (segment, start + left)
                for segment, start, _ in starts[: index.counts[width]]
            ]


@few
@given(ragged, seeds, st.sampled_from([0, 3]))
def test_spans_unpack_undoes_pack(lengths, seed, extra):
    batch = random_batch(lengths, 2, seed, extra=extra)
    index = SpanIndex.build(lengths)
    packed = index.pack(batch.potentials)
    assert packed.shape == (2, index.n_spans)
    size = max(lengths) + 1 + extra
    assert torch.equal(index.unpack(packed, size), batch.potentials)


def test_spans_unpack_writes_zeros_where_there_is_no_span():
    index = SpanIndex.build(RAGGED)
    chart = index.unpack(torch.ones(1, index.n_spans))[..., 0]
    assert torch.equal(chart.bool(), is_span(RAGGED))


def test_spans_pack_copies():
    batch = random_batch(RAGGED, 2)
    before = batch.potentials.clone()
    SpanIndex.build(RAGGED).pack(batch.potentials).fill_(7.0)
    assert torch.equal(batch.potentials, before)


@pytest.mark.parametrize(
    "shape",
    [
        (4, 5, 5, 2),
        (5, 4, 4, 2),
        (5, 6, 5, 2),
        (5, 5, 6, 2),
        (5, 5, 5),
        (5, 5, 5, 2, 1),
    ],
)
def test_spans_pack_refuses_a_chart_that_does_not_fit(shape):
    with pytest.raises(ValueError, match=r"expected a chart of shape \(5, 5, 5, 'L'\)"):
        SpanIndex.build(RAGGED).pack(torch.zeros(shape))


@pytest.mark.parametrize(
    "lengths", [RAGGED, tuple(RAGGED), torch.tensor(RAGGED), torch.tensor([3.0, 1.0])]
)
def test_spans_lengths_are_read_from_lists_and_tensors(lengths):
    numbers = read_lengths(lengths)
    assert numbers == [int(number) for number in lengths]
    assert all(type(number) is int for number in numbers)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 0, 3], "received 0 for segment 1"),
        ([2, -1], "received -1 for segment 1"),
        ([1.5], "received 1.5 for segment 0"),
        (torch.tensor([3, 3, 0]), "received 0 for segment 2"),
        ([], "received none"),
        (torch.zeros(0, dtype=torch.int64), "received none"),
    ],
)
def test_spans_refuses_lengths_that_have_no_tree(lengths, message):
    with pytest.raises(ValueError, match=message):
        read_lengths(lengths)


def token_numbers(lengths):
    """(segment, position) of the tokens of a batch, in order."""
    return [(b, position) for b, n in enumerate(lengths) for position in range(n)]


@few
@given(ragged)
def test_spans_tokens_are_numbered_through_the_batch(lengths):
    segment, position = torch.tensor(token_numbers(lengths)).T
    numbers = SpanIndex.build(lengths).tokens(segment, position)
    assert numbers.tolist() == list(range(sum(lengths)))


@few
@given(ragged)
def test_spans_later_finds_the_token_some_steps_after_a_start(lengths):
    index, numbers = SpanIndex.build(lengths), token_numbers(lengths)
    for width in range(1, index.longest + 1):
        rows = index.rows(width)
        spans = list(zip(index.segment[rows], index.start[rows], strict=True))
        for steps in range(width):
            found = [numbers[token] for token in index.later(width, steps).tolist()]
            assert found == [(int(b), int(start) + steps) for b, start in spans]


def test_spans_invert_undoes_a_permutation():
    order = torch.tensor([2, 0, 3, 1])
    assert torch.equal(order[invert(order)], torch.arange(4))
