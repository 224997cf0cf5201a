"""What global features see of a word: itself, its character types, its case.

Source: Collins (2002), section 3: w_i, f_i, g_i and l_i. Affixes and the word in lower
case are for the templates beyond the paper.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .hashing import hash_string

# Between the parts of a feature, and outside of the segment. Words that hold one of
# them are escaped, so that two different sequences never make one string.
SEPARATOR = "\x1f"
NULL = "\x00"
_ESCAPES = str.maketrans({NULL: "\x100", SEPARATOR: "\x101", "\x10": "\x102"})
# A label is followed by "|", the name of a template by "=".
_LABEL_ESCAPES = _ESCAPES | str.maketrans({"|": "\x103", "=": "\x104"})

# Rows of the hashes of words: word, types, types with flag, begins lower-case; the word in
# lower case, its last 2, 3 and 4 characters and its first 3 and 4.
W, F, G, L, LOWER, SUFFIX_2, SUFFIX_3, SUFFIX_4, PREFIX_3, PREFIX_4 = range(10)
# Words whose hashes are kept; beyond, the table starts anew, as text never ends.
_CACHE_SIZE = 200_000


class WordTexts(NamedTuple):
    """What the templates print of one word; all NULL outside of the segment."""

    w: str
    f: str
    g: str
    begins_lower: str
    lower: str
    suffix_2: str
    suffix_3: str
    suffix_4: str
    prefix_3: str
    prefix_4: str


N_TEXTS = len(WordTexts._fields)
NULL_TEXTS = WordTexts(*[NULL] * N_TEXTS)


def escape(text: str) -> str:
    """A word as a part of a feature.

    text (str): The word.
    RETURNS (str): The same, unless it holds a control character of ours.
    """
    return text.translate(_ESCAPES)


def escape_label(label: str) -> str:
    """A label as a part of a feature.

    label (str): The label.
    RETURNS (str): The same, unless it holds a character that ends a label or a name.
    """
    return label.translate(_LABEL_ESCAPES)


def character_type(character: str) -> str:
    """The type of a character.

    character (str): One character.
    RETURNS (str): "A" for upper-case (title-case letters too), "a" for lower-case, "0"
        for a digit, else the character itself.
    """
    if character.isupper() or character.istitle():
        return "A"
    if character.islower():
        return "a"
    return "0" if character.isdigit() else character


def collapsed_types(word: str) -> str:
    """The character types of a word, runs of one type once: f_i of the paper.

    word (str): The word.
    RETURNS (str): "Aa" for "Animal", "A.A." for "G.M.".
    """
    types: list[str] = []
    for kind in map(character_type, word):
        if not types or types[-1] != kind:
            types.append(kind)
    return "".join(types)


def begins_lower(word: str) -> bool:
    """Whether a word begins with a lower-case letter.

    word (str): The word.
    RETURNS (bool): True for "iPod".
    """
    return word[:1].islower()


def begins_upper(word: str) -> bool:
    """Whether a word begins with an upper-case letter.

    word (str): The word.
    RETURNS (bool): True for "Animal".
    """
    return word[:1].isupper() or word[:1].istitle()


def learn_lower_case(segments: Iterable[Sequence[str]]) -> frozenset[str]:
    """The words that are seen more often in lower case than capitalised.

    segments (Iterable[Sequence[str]]): Words of segments, as much text as there is.
    RETURNS (frozenset[str]): The words, in lower case.

    Source: Collins (2002), section 2.2. Capitalised words at the start of a segment do
    not count, as any word is capitalised there.
    """
    lower: Counter[str] = Counter()
    capitalised: Counter[str] = Counter()
    for words in segments:
        lower.update(w for w in words if begins_lower(w) and w == w.lower())
        capitalised.update(w.lower() for w in words[1:] if begins_upper(w))
    return frozenset(w for w, count in lower.items() if count > capitalised[w])


class WordTable:
    """Texts and hashes of words under one lower-case list, each computed once."""

    def __init__(self, lower_case: frozenset[str]):
        """Make an empty table.

        lower_case (frozenset[str]): Words that are mostly lower-case; looked up in
            lower case.
        """
        self.lower_case = lower_case
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[WordTexts] = []
        self._hashes = np.zeros((N_TEXTS, 1024), dtype=np.uint64)
        self._append(NULL_TEXTS)

    def _append(self, texts: WordTexts) -> int:
        number = len(self._texts)
        if number == self._hashes.shape[1]:
            self._hashes = np.concatenate(
                [self._hashes, np.zeros_like(self._hashes)], axis=1
            )
        self._texts.append(texts)
        self._hashes[:, number] = [hash_string(text) for text in texts]
        return number

    def _make_texts(self, word: str) -> WordTexts:
        types = escape(collapsed_types(word))
        lower = word.lower()
        flag = "1" if lower in self.lower_case else "0"
        begins = "1" if begins_lower(word) else "0"
        affixes = (lower[-2:], lower[-3:], lower[-4:], lower[:3], lower[:4])
        return WordTexts(
            escape(word),
            types,
            types + flag,
            begins,
            escape(lower),
            *map(escape, affixes),
        )

    def number(self, word: str) -> int:
        """The column of a word in `hashes`; 0 is NULL.

        word (str): The word.
        RETURNS (int): A number that holds until `make_room`.
        """
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = self._append(self._make_texts(word))
        return number

    def texts(self, word: str) -> WordTexts:
        """The texts of a word.

        word (str): The word.
        RETURNS (WordTexts): What templates print of it.
        """
        return self._texts[self.number(word)]

    @property
    def hashes(self) -> np.ndarray:
        """RETURNS (np.ndarray): Hashes of the texts. Shape: (texts, words or more)."""
        return self._hashes

    def make_room(self) -> None:
        """Forget all words if there are too many; call it between batches only."""
        if len(self._texts) > _CACHE_SIZE:
            self._clear()


class SegmentWords:
    """The texts of a segment's words by position; NULL outside of it."""

    def __init__(self, words: Sequence[str], table: WordTable):
        """Look at a segment.

        words (Sequence[str]): Its words.
        table (WordTable): Where texts are looked up.
        """
        self.words = words
        self._table = table

    def __getitem__(self, position: int) -> WordTexts:
        if 0 <= position < len(self.words):
            return self._table.texts(self.words[position])
        return NULL_TEXTS

    def between(self, start: int, end: int) -> list[str]:
        """The words of a range, as parts of a feature.

        start (int): First position.
        end (int): One past the last position.
        RETURNS (list[str]): The words, escaped.
        """
        return [self._table.texts(word).w for word in self.words[start:end]]
