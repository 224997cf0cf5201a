"""The compiled recursions give what those in torch give, also in threads, uncached."""

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import few, seeds

from spacy_treecrf.structure import log_probability
from spacy_treecrf.structure.bracketing import best_bracketing
from spacy_treecrf.structure.chart import LOG_ZERO
from spacy_treecrf.structure.compiled import (
    has_numba,
    is_compiled,
    recursions_in_torch,
    tree_sums,
)
from spacy_treecrf.structure.distribution import TreeDistribution
from spacy_treecrf.structure.inside import packed_log_partitions
from spacy_treecrf.structure.spans import SpanIndex
from spacy_treecrf.structure.stacked import StackedSums

HOST = torch.device("cpu")
pytestmark = pytest.mark.skipif(not has_numba(), reason="needs Numba")
layouts = st.tuples(
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
    st.sampled_from([None, 1, 2, 7, 39]),
)
scales = st.sampled_from([0.0, 1.0, 30.0, 1e4])


def case(lengths, max_width, seed, scale, k=1, zeros=0.0):
    """A layout, span potentials in bits, and what borders add; some are log zero."""
    index = SpanIndex.build(lengths, max_width=max_width)
    generator = torch.Generator().manual_seed(seed)

    def draw(n):
        values = torch.randn(n, k, generator=generator, dtype=torch.float64) * scale
        share = torch.rand(n, k, generator=generator)
        return values.masked_fill(share < zeros, LOG_ZERO)

    return index, draw(index.n_spans), draw(index.n_tokens) if index.chained else None


def in_torch(bits, index, borders=None):
    with recursions_in_torch():
        return StackedSums(bits, index, torch.float64, borders)


@few
@given(layouts, seeds, scales, st.sampled_from([1, 3]))
def test_compiled_sums_are_those_in_torch(layout, seed, scale, k):
    index, bits, borders = case(*layout, seed, scale, k)
    choices = torch.rand_like(bits)
    found, expected = (
        tree_sums(bits, index, borders, choices),
        in_torch(bits, index, borders),
    )
    torch.testing.assert_close(found.log_sums, expected.log_sums)
    torch.testing.assert_close(
        found.mass, expected.span_marginals, rtol=1e-8, atol=1e-8
    )
    torch.testing.assert_close(
        found.entropies, expected.entropies(choices), rtol=1e-6, atol=1e-6
    )
    alone = tree_sums(bits, index, borders, marginals=False)
    assert torch.equal(alone.log_sums, found.log_sums)


@few
@given(layouts, seeds, st.sampled_from([1.0, 1e4]))
def test_compiled_sums_under_hard_masks_are_those_in_torch(layout, seed, scale):
    index, bits, _ = case(*layout, seed, scale, zeros=0.4)
    # Single tokens and right branches are free, so that there is an analysis.
    length = torch.tensor(index.lengths)[index.segment]
    free = (index.end - index.start == 1) | (index.end == length)
    bits[free] = bits[free].clamp(min=-10.0)
    found, expected = tree_sums(bits, index), in_torch(bits, index)
    assert (found.log_sums > LOG_ZERO / 2).all()
    torch.testing.assert_close(found.log_sums, expected.log_sums)
    torch.testing.assert_close(
        found.mass, expected.span_marginals, rtol=1e-8, atol=1e-8
    )
    # What is impossible has no probability at all.
    assert not found.mass[bits < LOG_ZERO / 2].any()


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("max_width", [None, 33])
def test_compiled_sums_of_300_tokens_are_those_in_torch(scale, max_width):
    index, bits, borders = case([300, 1, 120], max_width, 0, scale)
    found, expected = tree_sums(bits, index, borders), in_torch(bits, index, borders)
    torch.testing.assert_close(found.log_sums, expected.log_sums)
    torch.testing.assert_close(
        found.mass, expected.span_marginals, rtol=1e-7, atol=1e-7
    )


def test_compiled_sums_find_the_largest_split_wherever_it_is():
    # All but one split of the whole are too small for a number: none of those that the
    # reference is taken from.
    index = SpanIndex.build([9])
    bits = torch.full((index.n_spans, 1), -3e3, dtype=torch.float64)
    bits[index.rows(1)] = 0.0
    rows = index.row_of(
        torch.tensor([0, 0, 0, 0]),
        torch.tensor([0, 0, 3, 0]),
        torch.tensor([3, 2, 9, 9]),
    )
    bits[rows] = 5e3
    found, expected = tree_sums(bits, index), in_torch(bits, index)
    torch.testing.assert_close(found.log_sums, expected.log_sums)
    torch.testing.assert_close(found.mass, expected.span_marginals)
    assert found.mass[rows].min() == pytest.approx(1.0)


@few
@given(layouts, seeds, st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_compiled_best_bracketings_are_those_in_torch(layout, seed, ties, dtype):
    index, gains, _ = case(*layout, seed, 3.0)
    # Whole numbers tie often, and are exact in either precision.
    gains = (gains[:, 0].round() if ties else gains[:, 0]).to(dtype)
    found = best_bracketing(gains, index)
    with recursions_in_torch():
        expected = best_bracketing(gains.double(), index)
    assert torch.equal(found, expected)


@few
@given(layouts, seeds, scales, st.sampled_from([torch.float32, torch.float64]))
def test_compiled_gradients_are_those_in_torch(layout, seed, scale, dtype):
    index, bits, _ = case(*layout, seed, scale, k=3)
    results = []
    for torch_only in (False, True):
        potentials = bits.t().to(dtype).clone().requires_grad_()
        masked = potentials[:2] - 1.0
        if torch_only:
            with recursions_in_torch():
                sums = packed_log_partitions(masked, potentials, index)
                (sums[1] - sums[0]).sum().backward()
        else:
            sums = packed_log_partitions(masked, potentials, index)
            (sums[1] - sums[0]).sum().backward()
        assert potentials.grad.dtype == dtype
        results.append((torch.stack(sums).detach(), potentials.grad.double()))
    (sums, gradients), (expected, expected_gradients) = results
    loose = 1e-3 if dtype == torch.float32 else 1e-7
    torch.testing.assert_close(sums, expected, rtol=1e-6, atol=loose)
    torch.testing.assert_close(gradients, expected_gradients, rtol=0, atol=loose)


def test_compiled_impossible_masks_are_refused():
    allowed = torch.ones(2, 6, 6, 2, dtype=torch.bool)
    allowed[1, :, 1] = False
    with pytest.raises(ValueError, match=r"none for segments \[1\]"):
        log_probability(torch.zeros(2, 6, 6, 2), allowed, [5, 5])


def test_compiled_numbers_that_are_none_stay_so():
    index, bits, _ = case([8, 6], None, 0, 1.0)
    bits[index.row_of(*torch.tensor([[0], [2], [5]]))] = math.nan
    found = tree_sums(bits, index)
    assert found.log_sums[0].isnan().all()
    assert found.log_sums[1].isfinite().all()
    assert len(best_bracketing(bits[:, 0], index)) == 15 + 11


@pytest.mark.parametrize("make", ["strided", "inference", "gradient"])
def test_compiled_takes_any_tensor(make):
    index, bits, _ = case([7, 12], 5, 0, 1.0)
    potentials = torch.cat([bits, bits * 0.5], 1).t()
    assert not potentials.is_contiguous()
    expected = TreeDistribution(potentials.contiguous(), index)
    if make == "inference":
        with torch.inference_mode():
            potentials = potentials.clone()
            found = TreeDistribution(potentials, index)
            marginals, tree = found.marginals, found.best_tree()
    else:
        if make == "gradient":
            potentials = potentials.clone().requires_grad_()
        found = TreeDistribution(potentials, index)
        marginals, tree = found.marginals, found.best_tree()
    # Labels are summed by torch, whose rounding is another along strides.
    torch.testing.assert_close(marginals, expected.marginals)
    two = torch.cat([bits, bits * 0.5], 1).t().contiguous().t()
    assert not two.is_contiguous()
    strided, dense = tree_sums(two, index), tree_sums(two.contiguous(), index)
    assert all(map(torch.equal, strided, dense))
    assert all(map(torch.equal, tree, expected.best_tree()))


def test_compiled_gives_the_same_in_eight_threads_at_once():
    cases = [case([5 + seed, 30, 17], 9, seed, 2.0) for seed in range(8)]

    def run(number):
        index, bits, borders = cases[number % 8]
        sums = tree_sums(bits, index, borders, bits.abs())
        return [*sums, best_bracketing(bits[:, 0], index)]

    expected = [run(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(run, range(64))):
            assert all(map(torch.equal, found, expected[number % 8]))


def test_compiled_is_the_choice_of_device_and_switch():
    assert is_compiled(HOST)
    assert not is_compiled(torch.device("cuda"))
    with recursions_in_torch():
        assert not is_compiled(HOST)
    assert is_compiled(HOST)


# In processes of their own.


def run_python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_imports_numba_on_first_use():
    run_python(
        "import sys, torch\n"
        "import spacy_treecrf.structure as structure\n"
        "import spacy_treecrf.ml.treecrf\n"
        "assert 'numba' not in sys.modules\n"
        "structure.log_partition(torch.zeros(1, 3, 3, 1), [2])\n"
        "assert 'numba' in sys.modules\n"
    )


def test_compiled_runs_where_no_cache_can_be_written():
    # What Numba raises where neither the package's folder nor a home can be written to.
    # (Root can write anywhere, so that folders without the right to would prove nothing.)
    run_python(
        "import torch\n"
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from spacy_treecrf.structure import best_tree\n"
        "from spacy_treecrf.structure import _jit\n"
        "@_jit.compiled\n"
        "def double(x):\n"
        "    return 2 * x\n"
        "assert double(2) == 4 and double.stats.cache_path is None\n"
        "assert len(best_tree(torch.zeros(1, 3, 3, 1), [2])[0]) == 3\n"
    )


@pytest.mark.parametrize("how", ["absent", "disabled"])
def test_compiled_stands_aside_without_numba(how):
    absent = "import sys; sys.modules['numba'] = None\n" if how == "absent" else ""
    code = (
        f"{absent}import torch\n"
        "from spacy_treecrf.structure import best_tree\n"
        "from spacy_treecrf.structure.compiled import is_compiled\n"
        "assert not is_compiled(torch.device('cpu'))\n"
        "assert len(best_tree(torch.zeros(1, 3, 3, 1), [2])[0]) == 3\n"
    )
    run_python(code, NUMBA_DISABLE_JIT="1" if how == "disabled" else "0")
