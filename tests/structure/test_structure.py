"""What every public function of the package promises, whatever it computes."""

import math

import pytest
import torch
from strategies import is_span, masks_of, random_batch
from torch.utils._python_dispatch import TorchDispatchMode

from spacy_treecrf.structure import (
    best_tree,
    entropy,
    log_partition,
    log_probability,
    marginals,
    masked_log_partition,
    mbr_tree,
)

RAGGED = [4, 1, 6, 3, 6, 2]
ENTITIES = [[(1, 3, 0)], [(0, 1, 1)], [(0, 6, 1), (2, 5, 0)], [], [(4, 5, 0)], []]


def masked(
    potentials, lengths, epsilon=0.0, function=masked_log_partition, max_width=None
):
    """Sum over the trees whose one entity, if any, is the first token."""
    size = potentials.shape[1]
    allowed = torch.zeros(potentials.shape, dtype=torch.bool, device=potentials.device)
    allowed[..., -1] = True
    allowed[:, 0, min(size - 1, 1), 0] = True
    return function(potentials, allowed, lengths, epsilon, max_width)


FUNCTIONS = {
    "log_partition": log_partition,
    "masked_log_partition": masked,
    "log_probability": lambda p, lengths: masked(p, lengths, 0.0, log_probability),
    "smoothed_log_partition": lambda p, lengths: masked(p, lengths, 0.01),
    "marginals": marginals,
    "best_tree": best_tree,
    "mbr_tree": mbr_tree,
    "entropy": entropy,
    "mbr_tree_threshold": lambda p, lengths: mbr_tree(p, lengths, 0.3),
    # Segments within the width limit, and beyond it.
    "log_partition_limited": lambda p, lengths: log_partition(p, lengths, 3),
    "masked_log_partition_limited": lambda p, lengths: masked(p, lengths, max_width=3),
    "log_probability_limited": lambda p, lengths: masked(
        p, lengths, 0.0, log_probability, max_width=3
    ),
    "marginals_limited": lambda p, lengths: marginals(p, lengths, 3),
    "best_tree_limited": lambda p, lengths: best_tree(p, lengths, 3),
    "mbr_tree_limited": lambda p, lengths: mbr_tree(p, lengths, max_width=3),
    "entropy_limited": lambda p, lengths: entropy(p, lengths, 3),
}
every_function = pytest.mark.parametrize(
    "function", FUNCTIONS.values(), ids=FUNCTIONS.keys()
)


def same(a, b, **tolerance):
    """Equal results: tensors within the tolerance, trees exactly."""
    if isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b, **tolerance)
    else:
        assert a == b


@every_function
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_structure_batch_equals_one_by_one(function, dtype):
    batch = random_batch(RAGGED, 3, scale=3.0, dtype=dtype)
    together = function(batch.potentials, RAGGED)
    for number, length in enumerate(RAGGED):
        own = batch.potentials[number : number + 1, : length + 1, : length + 1]
        alone = function(own, [length])[0]
        part = together[number]
        if isinstance(part, torch.Tensor) and part.dim():
            part = part[: length + 1, : length + 1]
        # Only the rounding of other shapes is at stake.
        tolerance = 1e-5 if dtype == torch.float32 else 1e-6
        same(part, alone, rtol=tolerance, atol=tolerance)


@every_function
@pytest.mark.parametrize("lengths", [[4, 4, 4], [6, 1, 3]])
def test_structure_equal_lengths_take_the_same_way_as_ragged_ones(function, lengths):
    batch = random_batch([6], 2)
    charts = batch.potentials.expand(3, -1, -1, -1)
    for number, length in enumerate(lengths):
        part = function(charts, lengths)[number]
        alone = function(charts[:1], [length])[0]
        same(part, alone, rtol=1e-6, atol=1e-6)


@every_function
@pytest.mark.parametrize("padding", [math.nan, math.inf, -math.inf, 1e30])
def test_structure_padding_changes_nothing(function, padding):
    batch = random_batch(RAGGED, 3)
    filled = random_batch(RAGGED, 3, padding=padding)
    expected = function(batch.potentials, RAGGED)
    same(function(filled.potentials, RAGGED), expected, rtol=0, atol=0)


@every_function
def test_structure_a_larger_chart_changes_nothing(function):
    batch = random_batch(RAGGED, 3)
    larger = torch.full((len(RAGGED), 10, 10, 3), math.nan, dtype=torch.float64)
    larger[:, :7, :7] = batch.potentials
    result, expected = function(larger, RAGGED), function(batch.potentials, RAGGED)
    if isinstance(result, torch.Tensor) and result.dim() == 4:
        assert result.shape == larger.shape
        result = result[:, :7, :7]
    same(result, expected, rtol=0, atol=0)


@every_function
def test_structure_lengths_may_be_a_tensor(function):
    potentials = random_batch(RAGGED, 2).potentials
    expected = function(potentials, RAGGED)
    same(function(potentials, torch.tensor(RAGGED)), expected, rtol=0, atol=0)


@every_function
def test_structure_refuses_length_0(function):
    lengths = [2, 0]
    with pytest.raises(ValueError, match="received 0 for segment 1"):
        function(torch.zeros(2, 3, 3, 2), lengths)


@every_function
def test_structure_refuses_lengths_beyond_the_chart(function):
    with pytest.raises(ValueError, match="expected a chart of shape"):
        function(torch.zeros(1, 3, 3, 2), [3])


@every_function
def test_structure_refuses_integers(function):
    with pytest.raises(ValueError, match=r"floating-point potentials, received .*int"):
        function(torch.zeros(1, 3, 3, 2, dtype=torch.int64), [2])


@every_function
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_structure_half_precision_is_computed_in_float32(function, dtype):
    # 3 tokens at 3e4 sum to more than half precision holds.
    half = random_batch([3, 2], 2, scale=1e4).potentials.to(dtype)
    result = function(half, [3, 2])
    if isinstance(result, torch.Tensor):
        assert result.dtype == torch.float32
        assert result.isfinite().all()
    same(result, function(half.float(), [3, 2]), rtol=0, atol=0)


@every_function
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_structure_keeps_the_precision(function, dtype):
    result = function(random_batch(RAGGED, 2, dtype=dtype).potentials, RAGGED)
    assert not isinstance(result, torch.Tensor) or result.dtype == dtype


@every_function
@pytest.mark.parametrize("requires_grad", [True, False])
def test_structure_leaves_its_input_alone(function, requires_grad):
    potentials = random_batch(RAGGED, 2).potentials.requires_grad_(requires_grad)
    before, version = potentials.detach().clone(), potentials._version
    function(potentials, RAGGED)
    assert torch.equal(potentials, before)
    assert potentials._version == version
    assert potentials.requires_grad is requires_grad
    assert potentials.grad is None


@every_function
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_structure_runs_without_gradients(function, mode):
    potentials = random_batch(RAGGED, 2).potentials
    expected = function(potentials, RAGGED)
    with mode():
        same(function(potentials, RAGGED), expected, rtol=0, atol=0)


@every_function
@pytest.mark.parametrize("lengths", [[5, 5], RAGGED])
def test_structure_creates_nothing_on_the_default_device(function, lengths):
    potentials = random_batch(lengths, 2).potentials
    expected = function(potentials, lengths)
    with torch.device("meta"):
        result = function(potentials, lengths)
    same(result, expected, rtol=0, atol=0)


class CountOps(TorchDispatchMode):
    """Counts the operations that torch runs."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def operations(function, lengths):
    potentials = torch.zeros(len(lengths), max(lengths) + 1, max(lengths) + 1, 2)
    with CountOps() as counter:
        function(potentials, lengths)
    return counter.count


@every_function
def test_structure_work_does_not_loop_over_segments(function):
    # Decoding skips widths that no node has, so that the numbers differ a little.
    few, many = operations(function, [6, 2]), operations(function, [6, 2] * 16)
    assert many <= 1.1 * few


@every_function
def test_structure_work_does_not_loop_over_cells(function):
    # Linear in the longest width; the number of cells grows by 4.
    assert operations(function, [32, 1]) <= 2.2 * operations(function, [16, 1])


@every_function
def test_structure_scores_of_any_size_stay_finite(function):
    charts = torch.zeros(2, 5, 5, 2)
    charts[is_span([4, 3], 5)] = torch.tensor([1e4, -1e4])
    charts[0, 1, 3] = torch.tensor([-1e4, 1e4])
    result = function(charts, [4, 3])
    if isinstance(result, torch.Tensor):
        assert result.isfinite().all()
    else:
        # Full trees: one, or under the limit one and a single token.
        sizes = [7, 5] if (0, 4) in {node[:2] for node in result[0]} else [6, 5]
        assert [len(tree) for tree in result] == sizes


def test_structure_masks_of_a_batch_are_those_of_its_segments():
    batch = random_batch(RAGGED, 3)
    allowed = masks_of(batch, 2, ENTITIES)
    together = masked_log_partition(batch.potentials, allowed, RAGGED)
    for number, length in enumerate(RAGGED):
        one = slice(number, number + 1)
        alone = masked_log_partition(batch.potentials[one], allowed[one], [length])
        torch.testing.assert_close(together[one], alone, rtol=1e-9, atol=1e-9)
