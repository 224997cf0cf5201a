"""Hashes: the same everywhere, and different for different sequences."""

from itertools import product

import numpy as np
import pytest

from spacy_treecrf.rerank.hashing import hash_string, hash_strings, mix, to_numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 13020603013274838756),
        ("WE=", 15779534081792593132),
        ("\ud800", 7497787021708494914),
    ],
)
def test_hashing_strings_are_stable(text, expected):
    assert hash_string(text) == expected


def test_hashing_sequences_are_distinct():
    parts = hash_strings("abc")
    numbers = set()
    n_sequences = 0
    for length in range(6):
        for sequence in product(range(3), repeat=length):
            state = hash_strings(["seed"])
            for part in sequence:
                state = mix(state, parts[part])
            numbers.update(to_numbers(state).tolist())
            n_sequences += 1
    assert len(numbers) == n_sequences
    assert max(numbers) < 2**56


def test_hashing_uses_all_bits():
    numbers = to_numbers(mix(hash_strings(map(str, range(4096))), np.uint64(7)))
    for bit in range(56):
        share = ((numbers >> np.uint64(bit)) & np.uint64(1)).mean()
        assert 0.4 < share < 0.6


def test_hashing_does_not_write_its_arguments():
    state, part = hash_strings("ab"), hash_strings("cd")
    before = state.tolist(), part.tolist()
    to_numbers(mix(state, part))
    assert (state.tolist(), part.tolist()) == before
