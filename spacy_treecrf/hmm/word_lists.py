"""List membership as a word feature.

Source: Bikel et al. 1999, note 2, which names such features and not how they are built.
Deviates: a token that lies in an entry of list l has the feature "base feature, in l"
instead of losing its base feature, since the paper allows one feature a token.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

Entry = tuple[str, ...]


class WordLists:
    """Named lists of words and phrases, matched on tokens, longest entry first."""

    def __init__(self, lists: Mapping[str, Iterable[str]]):
        """Read the entries.

        lists (Mapping[str, Iterable[str]]): Name of each list and its entries; the
            tokens of an entry are separated by white space. Of an entry in several
            lists the first list counts.
        """
        self.names = tuple(lists)
        self._entries: dict[Entry, int] = {}
        for number, entries in enumerate(lists.values(), 1):
            for entry in entries:
                tokens = tuple(entry.split())
                if tokens:
                    self._entries.setdefault(tokens, number)
        self._longest: dict[str, int] = {}
        for tokens in self._entries:
            longest = max(self._longest.get(tokens[0], 0), len(tokens))
            self._longest[tokens[0]] = longest

    def to_dict(self) -> dict[str, list[str]]:
        """RETURNS (dict[str, list[str]]): The lists, as the constructor takes them."""
        lists: dict[str, list[str]] = {name: [] for name in self.names}
        for tokens, number in self._entries.items():
            lists[self.names[number - 1]].append(" ".join(tokens))
        return lists

    def match(
        self, types: Sequence[str], token_types: np.ndarray, lengths: np.ndarray
    ) -> np.ndarray:
        """Find the entries in sentences, left to right, the longest at each place.

        types (Sequence[str]): Distinct strings.
        token_types (np.ndarray): Type of each token, sentence after sentence.
            Shape: (T,).
        lengths (np.ndarray): Tokens of each sentence. Shape: (S,).
        RETURNS (np.ndarray): 0, or 1 + the place of the list that each token lies in.
            Shape: (T,).
        """
        member = np.zeros(len(token_types), dtype=np.int64)
        begins_entry = np.array([t in self._longest for t in types], dtype=bool)
        ends = np.repeat(np.cumsum(lengths), lengths)
        covered = 0
        for at in np.flatnonzero(begins_entry[token_types]):
            if at < covered:
                continue
            longest = self._longest[types[token_types[at]]]
            room = min(longest, int(ends[at]) - int(at))
            tokens = tuple(types[t] for t in token_types[at : at + room])
            for size in range(room, 0, -1):
                number = self._entries.get(tokens[:size])
                if number:
                    covered = int(at) + size
                    member[at:covered] = number
                    break
        return member
