"""The word features of IdentiFinder: one deterministic feature a token.

Source: Bikel, Schwartz & Weischedel (1999), Table 3.1 (fourteen features) and section
5.3 (the five of the ablation). Tests run in the order of the names, first hit wins.
They are the only part of the model that depends on the language.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

FOURTEEN = (
    "twoDigitNum",
    "fourDigitNum",
    "containsDigitAndAlpha",
    "containsDigitAndDash",
    "containsDigitAndSlash",
    "containsDigitAndComma",
    "containsDigitAndPeriod",
    "otherNum",
    "allCaps",
    "capPeriod",
    "firstWord",
    "initCap",
    "lowerCase",
    "other",
)
FIVE = ("number", "allCaps", "firstWord", "lowerCase", "other")

_FOURTEEN = {name: number for number, name in enumerate(FOURTEEN)}
_FIVE = {name: number for number, name in enumerate(FIVE)}


def _is_upper(character: str) -> bool:
    """Whether a character is upper-case; title-case letters (category Lt) count."""
    return character.isupper() or character.istitle()


def _all_caps(text: str) -> bool:
    return all(c.isalpha() and _is_upper(c) for c in text)


def fourteen_features(text: str, is_first: bool) -> int:
    """The feature of a token, as a position in `FOURTEEN`.

    text (str): The token.
    is_first (bool): Whether it is the first token of its sentence.
    RETURNS (int): The number of the feature.

    Source: Bikel et al. 1999, Table 3.1.
    """
    if not text:
        return _FOURTEEN["other"]
    if any(map(str.isdigit, text)):
        name = _digit_feature(text)
    elif _all_caps(text):
        name = "allCaps"
    elif len(text) == 2 and text[1] == "." and text[0].isalpha() and _is_upper(text[0]):
        name = "capPeriod"
    elif _is_upper(text[0]):
        name = "firstWord" if is_first else "initCap"
    elif text[0].islower():
        name = "lowerCase"
    else:
        name = "other"
    return _FOURTEEN[name]


def _digit_feature(text: str) -> str:
    """The feature of a token with a digit."""
    if len(text) in (2, 4) and all(map(str.isdigit, text)):
        return "twoDigitNum" if len(text) == 2 else "fourDigitNum"
    if any(map(str.isalpha, text)):
        return "containsDigitAndAlpha"
    for mark, name in (("-", "Dash"), ("/", "Slash"), (",", "Comma"), (".", "Period")):
        if mark in text:
            return f"containsDigitAnd{name}"
    return "otherNum"


def five_features(text: str, is_first: bool) -> int:
    """The feature of a token in the small set, as a position in `FIVE`.

    text (str): The token.
    is_first (bool): Whether it is the first token of its sentence.
    RETURNS (int): The number of the feature.

    Source: Bikel et al. 1999, section 5.3.
    """
    if not text:
        return _FIVE["other"]
    if any(map(str.isdigit, text)):
        return _FIVE["number"]
    if _all_caps(text):
        return _FIVE["allCaps"]
    if is_first and _is_upper(text[0]):
        return _FIVE["firstWord"]
    if all(c.isalpha() and c.islower() for c in text):
        return _FIVE["lowerCase"]
    return _FIVE["other"]


def is_acronym(text: str) -> bool:
    """Whether a token is upper-case letters with a period after each, as "U.S.".

    text (str): The token.
    RETURNS (bool): True for "U.S." and "M.", False for "Mr." and "a.m.".
    """
    letters, periods = text[::2], text[1::2]
    return (
        len(letters) == len(periods) > 0
        and set(periods) == {"."}
        and _all_caps(letters)
    )


@dataclass(frozen=True)
class WordFeatures:
    """A feature function and the names of its values.

    names (Sequence[str]): One name a value.
    function (Callable[[str, bool], int]): Token and "is it the first of its sentence"
        to a position in `names`.
    """

    names: Sequence[str]
    function: Callable[[str, bool], int]

    def __call__(self, text: str, is_first: bool) -> int:
        """The feature of a token.

        text (str): The token.
        is_first (bool): Whether it is the first token of its sentence.
        RETURNS (int): A position in `names`.
        RAISES (ValueError): If the function returns no position in `names`.
        """
        feature = self.function(text, is_first)
        if not 0 <= feature < len(self.names):
            raise ValueError(
                f"expected a feature number from 0 to {len(self.names) - 1} for "
                f"{text[:50]!r}, received {feature!r}"
            )
        return feature


@dataclass(frozen=True)
class WithAcronyms:
    """A feature function under which "U.S." is `capPeriod` instead of `initCap`."""

    function: Callable[[str, bool], int]
    cap_period: int

    def __call__(self, text: str, is_first: bool) -> int:
        return self.cap_period if is_acronym(text) else self.function(text, is_first)


def make_word_features(
    feature_set: str = "fourteen", *, acronym_periods: bool = False
) -> WordFeatures:
    """Build one of the two published feature sets.

    feature_set (str): "fourteen" (Table 3.1) or "five" (section 5.3).
    acronym_periods (bool): Whether tokens like "U.S." are `capPeriod`; fourteen only.
    RETURNS (WordFeatures): The set.
    RAISES (ValueError): If there is no such set, or the set lacks `capPeriod`.
    """
    sets = {
        "fourteen": WordFeatures(FOURTEEN, fourteen_features),
        "five": WordFeatures(FIVE, five_features),
    }
    if feature_set not in sets:
        raise ValueError(f"expected one of {sorted(sets)}, received {feature_set!r}")
    chosen = sets[feature_set]
    return with_acronyms(chosen) if acronym_periods else chosen


def with_acronyms(features: WordFeatures) -> WordFeatures:
    """The same features, with "U.S." read as `capPeriod`.

    features (WordFeatures): A set that has `capPeriod`.
    RETURNS (WordFeatures): The changed set.
    RAISES (ValueError): If the set has no `capPeriod`.
    """
    if "capPeriod" not in features.names:
        raise ValueError(
            "expected a feature set with 'capPeriod' for acronym_periods, received "
            f"{list(features.names)}"
        )
    position = list(features.names).index("capPeriod")
    return WordFeatures(features.names, WithAcronyms(features.function, position))
