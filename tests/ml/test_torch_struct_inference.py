"""torch-struct, the paper's implementation, agrees with ours on ragged batches."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, random_batch, seeds

from spacy_treecrf.ml import torch_struct_inference
from spacy_treecrf.structure.decode import packed_best_tree, trees_as_lists
from spacy_treecrf.structure.inside import LOG_ZERO, packed_log_partition
from spacy_treecrf.structure.losses import smoothed_potentials
from spacy_treecrf.structure.marginals import packed_marginals
from spacy_treecrf.structure.masks import packed_masks
from spacy_treecrf.structure.spans import SpanIndex

pytest.importorskip("torch_struct")
# torch-struct's charts begin at two tokens; ours, and its by batching, at one.
ragged = st.lists(st.integers(1, 9), min_size=1, max_size=4).filter(
    lambda n: max(n) > 1
)


def packed(lengths, n_labels=3, seed=0, dtype=torch.float64):
    index = SpanIndex.build(lengths)
    return index, index.pack(random_batch(lengths, n_labels, seed).potentials.to(dtype))


@few
@given(ragged, st.integers(1, 3), seeds)
def test_torch_struct_inference_log_partitions_agree(lengths, n_labels, seed):
    index, potentials = packed(lengths, n_labels, seed)
    torch.testing.assert_close(
        torch_struct_inference.log_partitions(potentials, index),
        packed_log_partition(potentials, index),
    )


@few
@given(ragged, st.integers(1, 3), seeds)
def test_torch_struct_inference_marginals_agree(lengths, n_labels, seed):
    index, potentials = packed(lengths, n_labels, seed)
    torch.testing.assert_close(
        torch_struct_inference.packed_marginals(potentials, index),
        packed_marginals(potentials, index),
    )


@few
@given(ragged, st.integers(1, 3), seeds)
def test_torch_struct_inference_best_trees_agree(lengths, n_labels, seed):
    index, potentials = packed(lengths, n_labels, seed)
    theirs = torch_struct_inference.packed_best_tree(potentials, index)
    ours = packed_best_tree(potentials, index)
    assert trees_as_lists(*theirs, index) == trees_as_lists(*ours, index)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_struct_inference_masked_sums_and_gradients_agree(dtype):
    index, potentials = packed([5, 2, 7], dtype=dtype)
    observed = torch.tensor([(0, 0, 3, 1), (0, 1, 2, 0), (2, 2, 6, 0)])
    allowed, _ = packed_masks(index, 2, 3, observed)
    results = []
    for function in (torch_struct_inference.log_partitions, packed_log_partition):
        leaf = potentials.clone().requires_grad_()
        value = function(smoothed_potentials(leaf, allowed), index)
        value.sum().backward()
        results.append((value.detach(), leaf.grad))
    tolerance = 1e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(*results, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("value", [LOG_ZERO, -math.inf])
def test_torch_struct_inference_gradients_are_finite_at_log_zero(value):
    index, potentials = packed([4])
    # A rejected span: no label is left.
    potentials[:, index.row_of(*torch.tensor([[0], [1], [3]]))] = value
    leaf = potentials.requires_grad_()
    torch_struct_inference.log_partitions(leaf, index).sum().backward()
    assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("name", ["packed_marginals", "packed_best_tree"])
def test_torch_struct_inference_runs_in_inference_mode(name):
    function = getattr(torch_struct_inference, name)
    index, potentials = packed([4, 3])
    expected = function(potentials, index)
    with torch.inference_mode():
        result = function(potentials.clone(), index)
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("name", ["log_partitions", "packed_marginals"])
def test_torch_struct_inference_leaves_its_input_alone(name):
    index, potentials = packed([4, 3])
    before = potentials.clone()
    getattr(torch_struct_inference, name)(potentials, index)
    assert torch.equal(potentials, before)
    assert not potentials.requires_grad


def test_torch_struct_inference_of_single_words_agrees():
    index, potentials = packed([1, 1])
    torch.testing.assert_close(
        torch_struct_inference.log_partitions(potentials, index),
        packed_log_partition(potentials, index),
    )


@pytest.mark.parametrize(
    "name", ["log_partitions", "packed_marginals", "packed_best_tree"]
)
def test_torch_struct_inference_refuses_segments_beyond_the_width_limit(name):
    index = SpanIndex.build([4, 3], max_width=3)
    with pytest.raises(ValueError, match="received 4 tokens under max_width 3"):
        getattr(torch_struct_inference, name)(torch.zeros(2, index.n_spans), index)
