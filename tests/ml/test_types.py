"""What passes between the pipe, the scorer and the losses: selection and chunks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import few

from spacy_treecrf.ml.types import Segments

some_lengths = st.lists(st.integers(1, 30), min_size=1, max_size=12)


def segments_of(lengths, max_width=None):
    sizes = np.array(lengths, dtype=np.int64)
    borders = np.ones(sizes.sum(), dtype=bool)
    return Segments(sizes.cumsum() - sizes, sizes, borders, max_width)


def cells(length, max_width=None):
    return sum(
        1
        for start in range(length)
        for end in range(start + 1, length + 1)
        if max_width is None or end - start <= max_width
    )


width_limits = st.none() | st.integers(1, 35)


@few
@given(some_lengths, st.integers(1, 600), width_limits)
def test_types_chunks_hold_each_segment_once(lengths, bound, max_width):
    chunks = list(segments_of(lengths, max_width).chunks(bound))
    assert sorted(np.concatenate(chunks).tolist()) == list(range(len(lengths)))


@few
@given(some_lengths, st.integers(1, 600), width_limits)
def test_types_chunks_keep_to_their_bound_unless_one_segment_is_larger(
    lengths, bound, max_width
):
    for chunk in segments_of(lengths, max_width).chunks(bound):
        total = sum(cells(lengths[number], max_width) for number in chunk)
        assert len(chunk)
        assert total <= bound or len(chunk) == 1


@few
@given(some_lengths, st.integers(1, 600))
def test_types_chunks_run_from_the_longest_segment_to_the_shortest(lengths, bound):
    order = np.concatenate(list(segments_of(lengths).chunks(bound)))
    ordered = [lengths[number] for number in order]
    assert ordered == sorted(lengths, reverse=True)


def test_types_chunks_are_as_few_as_the_order_allows():
    # 3 tokens have 6 spans.
    chunks = list(segments_of([3] * 5).chunks(12))
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]


def test_types_chunks_count_the_spans_within_the_width_limit():
    # 9 tokens have 9 + 8 spans of at most 2 tokens, and 45 in all.
    assert len(list(segments_of([9] * 4, max_width=2).chunks(34))) == 2
    assert len(list(segments_of([9] * 4).chunks(34))) == 4


def test_types_chunks_of_nothing_are_none():
    assert list(segments_of([]).chunks(10)) == []


@pytest.mark.parametrize("numbers", [[2, 0], [1], []])
def test_types_select_takes_segments_in_the_order_asked(numbers):
    segments = segments_of([2, 3, 4], max_width=3)
    chosen = segments.select(np.array(numbers, dtype=np.int64))
    assert len(chosen) == len(numbers)
    assert chosen.lengths.tolist() == [[2, 3, 4][number] for number in numbers]
    assert chosen.first.tolist() == [[0, 2, 5][number] for number in numbers]
    assert chosen.may_border is segments.may_border
    assert chosen.max_width == 3
