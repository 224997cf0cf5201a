"""Counting features over segments, and finding them again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_treecrf.rerank import feature_table
from spacy_treecrf.rerank.feature_table import FeatureCounts, FeatureTable

numbers = st.integers(0, 2**56 - 1) | st.integers(0, 5)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 6), st.integers(0, 255)), max_size=30),
        max_size=5,
    ),
    st.integers(1, 5),
    st.integers(1, 30),
)
def test_feature_table_counts_distinct_segments(batches, minimum, merge_size):
    counts = FeatureCounts()
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_table, "_MERGE_SIZE", merge_size)
        for number, batch in enumerate(batches):
            features = np.array([f for f, _ in batch], dtype=np.uint64)
            counts.add(features, np.array([s for _, s in batch], dtype=np.int64))
            for found, segment in batch:
                seen.setdefault(found, set()).add((number, segment))
        frequent = counts.frequent(minimum)
    assert frequent.tolist() == sorted(f for f, s in seen.items() if len(s) >= minimum)


def test_feature_table_counts_saturate():
    counts = FeatureCounts()
    for _ in range(3):
        counts.add(np.zeros(200, dtype=np.uint64), np.arange(200))
    assert counts.frequent(255).tolist() == [0]


@settings(deadline=None, max_examples=50)
@given(st.sets(numbers, max_size=40), st.lists(numbers, max_size=40))
def test_feature_table_finds_what_it_holds(kept, others):
    known = sorted(kept)
    table = FeatureTable(np.array(known, dtype=np.uint64))
    asked = np.array([*known, *others], dtype=np.uint64)
    expected = [known.index(f) if f in kept else -1 for f in (*known, *others)]
    assert table.find(asked).tolist() == expected
    assert len(table) == len(known)
