"""Fixtures and settings that several layers' tests share."""

import os
from pathlib import Path

import pytest
from seeds import seed_all

try:
    from hypothesis import HealthCheck, settings
except ImportError:
    # Tests marked `gpu` also run where there is no more than torch and pytest.
    pass
else:
    # A machine may be busy: an example that takes long is no failure. CI draws the same
    # examples each time, so that a change is judged by itself; elsewhere they are new.
    patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    settings.register_profile("local", **patient)
    settings.register_profile("ci", derandomize=True, **patient)
    settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora that SPACY_TREECRF_CORPORA names."""
    folder = os.environ.get("SPACY_TREECRF_CORPORA")
    if not folder:
        pytest.skip("SPACY_TREECRF_CORPORA names no folder of real corpora")
    return Path(folder)


@pytest.fixture(autouse=True)
def seeded():
    """Whatever a test draws is the same in each run, alone or among others."""
    seed_all()
