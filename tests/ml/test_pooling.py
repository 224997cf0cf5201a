"""The highest token of each span, against its definition."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import few

from spacy_treecrf.ml.pooling import add_highest_score, highest_token
from spacy_treecrf.structure.spans import SpanIndex


def last_tokens(lengths, index):
    """Row of each span's last token, for segments that follow one another."""
    first = torch.tensor([sum(lengths[:number]) for number in range(len(lengths))])
    return first[index.segment], first[index.segment] + index.end - 1


@few
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 99),
    st.none() | st.integers(1, 6),
)
def test_pooling_finds_the_first_highest_token_of_each_span(
    lengths, dtype, seed, max_width
):
    generator = torch.Generator().manual_seed(seed)
    # Few distinct values: equal scores are frequent.
    scores = torch.randint(4, (sum(lengths), 3), generator=generator).to(dtype)
    index = SpanIndex.build(lengths, max_width=max_width)
    first, last = last_tokens(lengths, index)
    found = highest_token(scores, last, index)
    for span in range(index.n_spans):
        begin = int(first[span] + index.start[span])
        within = scores[begin : int(last[span]) + 1]
        assert found[:, span].tolist() == [
            begin + column.tolist().index(column.max()) for column in within.T
        ]


@few
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.integers(0, 99),
    st.none() | st.integers(1, 6),
)
def test_pooling_without_gradients_adds_the_same_to_the_digit(lengths, seed, max_width):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(sum(lengths), 3, generator=generator)
    index = SpanIndex.build(lengths, max_width=max_width)
    _, last = last_tokens(lengths, index)
    spans = torch.randn(3, index.n_spans, generator=generator)
    expected = spans + scores.T.gather(1, highest_token(scores, last, index))
    before = scores.clone()
    found = add_highest_score(spans, scores, last, index)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    torch.testing.assert_close(scores, before, rtol=0, atol=0)


def test_pooling_leaves_its_input_alone():
    scores = torch.randn(5, 2, requires_grad=True)
    before = scores.detach().clone()
    index = SpanIndex.build([5])
    assert not highest_token(scores, last_tokens([5], index)[1], index).requires_grad
    torch.testing.assert_close(scores.detach(), before, rtol=0, atol=0)
