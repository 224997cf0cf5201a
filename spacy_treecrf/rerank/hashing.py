"""Stable hashes of features: of one string, and of sequences of hashed parts.

The same feature has the same number in every process, on every machine: Python's own
`hash` is salted. Numbers have 56 bits, so that the low byte of a 64-bit word is free to
carry a count or a segment while they are sorted; among 30 million distinct features two
share a number with a probability below 1%.
"""

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b

import numpy as np

# The fractional part of the golden ratio, odd: multiplication by it is a bijection that
# spreads low bits upwards (Knuth 1973, section 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_SPARE_BITS = np.uint64(8)
# Bits of a feature's number that are in use.
HASH_BITS = 56


# Most strings that are hashed come again: labels, counts, short patterns.
@lru_cache(maxsize=1 << 16)
def hash_string(text: str) -> int:
    """Hash one string to 64 bits.

    text (str): Any string; lone surrogates, which broken input may hold, pass too.
    RETURNS (int): A number in [0, 2 ** 64).
    """
    encoded = text.encode("utf8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "little")


def hash_strings(texts: Iterable[str]) -> np.ndarray:
    """Hash strings to 64 bits each.

    texts (Iterable[str]): The strings.
    RETURNS (np.ndarray): uint64.
    """
    return np.array([hash_string(text) for text in texts], dtype=np.uint64)


def mix(state: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Append a part to hashed sequences.

    state (np.ndarray): Hashes of the sequences so far, uint64.
    part (np.ndarray): Hashes of what comes next, uint64; shapes broadcast.
    RETURNS (np.ndarray): Hashes of the longer sequences; the order of parts matters.
    """
    mixed = state ^ part
    mixed *= _MULTIPLIER
    # The product of a word depends on its lower bits alone: bring upper bits down.
    mixed ^= mixed >> _HALF
    return mixed


def to_numbers(hashes: np.ndarray) -> np.ndarray:
    """The numbers of features, from their 64-bit hashes.

    hashes (np.ndarray): uint64.
    RETURNS (np.ndarray): uint64 below 2 ** 56.
    """
    # One more product, so that the bits kept depend on all bits of the last part.
    return (hashes * _MULTIPLIER) >> _SPARE_BITS
