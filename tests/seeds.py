"""The one seed of the suite; the environment variable puts another in its place."""

import os
import random
import sys

BASE_SEED = int(os.environ.get("SPACY_TREECRF_TEST_SEED", "0"))


def seed_all() -> None:
    """Seed the generators that are in use; imports none of their packages.

    Thinc draws from NumPy's generator, span scorers from torch's.
    """
    random.seed(BASE_SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(BASE_SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(BASE_SEED)
