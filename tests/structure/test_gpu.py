"""A CUDA device gives the results of the host; imports torch and pytest alone."""

import pytest
import torch

from spacy_treecrf.structure import (
    best_tree,
    entropy,
    log_partition,
    marginals,
    masked_log_partition,
    mbr_tree,
    observed_mask,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
LENGTHS = [12, 30, 1, 30, 7]


def potentials(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(5, 31, 31, 4, generator=generator, dtype=torch.float64).to(dtype)


def masked(chart, lengths):
    allowed = torch.zeros(chart.shape, dtype=torch.bool)
    for number, length in enumerate(LENGTHS):
        own = observed_mask([(0, (length + 1) // 2, 1)], length, 3, 4)
        allowed[number, : length + 1, : length + 1] = own
    return masked_log_partition(chart, allowed.to(chart.device), lengths)


def gradient(chart, lengths):
    leaf = chart.clone().requires_grad_()
    (log_partition(leaf, lengths) - masked(leaf, lengths)).sum().backward()
    return leaf.grad


def limited(function):
    """A function under a width limit: segments within it, and beyond it."""
    return lambda chart, lengths: function(chart, lengths, max_width=9)


FUNCTIONS = [
    log_partition,
    masked,
    marginals,
    gradient,
    best_tree,
    mbr_tree,
    entropy,
    *map(limited, [log_partition, marginals, best_tree, mbr_tree, entropy]),
]
every_function = pytest.mark.parametrize("function", FUNCTIONS)


def same(on_device, on_host, tolerance):
    if isinstance(on_host, torch.Tensor):
        assert on_device.is_cuda
        on_device = on_device.cpu()
        torch.testing.assert_close(on_device, on_host, rtol=tolerance, atol=tolerance)
    else:
        assert on_device == on_host


@every_function
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("lengths", [LENGTHS, torch.tensor(LENGTHS)])
def test_gpu_equals_the_host(function, dtype, lengths):
    chart = potentials(dtype)
    tolerance = 1e-4 if dtype == torch.float32 else 1e-10
    same(function(chart.cuda(), lengths), function(chart, lengths), tolerance)


@every_function
def test_gpu_takes_lengths_on_the_device(function):
    chart = potentials().cuda()
    expected = function(chart.cpu(), LENGTHS)
    same(function(chart, torch.tensor(LENGTHS).cuda()), expected, 1e-10)


@every_function
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gpu_half_precision_is_computed_in_float32(function, dtype):
    chart = potentials(dtype).cuda()
    expected = function(chart.float(), LENGTHS)
    result = function(chart, LENGTHS)
    if isinstance(result, torch.Tensor):
        result, expected = result.float(), expected.to(result.dtype).float()
    same(result, expected.cpu() if hasattr(expected, "cpu") else expected, 1e-4)


def test_gpu_ties_go_where_they_go_on_the_host():
    chart = torch.zeros(2, 6, 6, 3)
    assert best_tree(chart.cuda(), [5, 4]) == best_tree(chart, [5, 4])
