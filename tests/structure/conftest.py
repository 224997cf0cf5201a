"""The recursions are tested both ways: compiled, and in torch as on other devices."""

from contextlib import nullcontext

import pytest

MODULES = {
    "test_decode",
    "test_inside",
    "test_losses",
    "test_marginals",
    "test_precision",
    "test_sampling",
    "test_structure",
    "test_width_limit",
}


@pytest.fixture(scope="module")
def recursions(request):
    """Which recursions run: "compiled" or "torch"."""
    from spacy_treecrf.structure.compiled import recursions_in_torch

    with recursions_in_torch() if request.param == "torch" else nullcontext():
        yield request.param


def pytest_generate_tests(metafunc):
    if metafunc.module.__name__.split(".")[-1] in MODULES:
        metafunc.fixturenames.append("recursions")
        metafunc.parametrize(
            "recursions", ["compiled", "torch"], indirect=True, scope="module"
        )
