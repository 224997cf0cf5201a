"""Written tokens as they are spoken: SNOR, "speech normalized orthographic representation".

Upper case, no punctuation, numbers as words. Source: Bikel et al. 1999, section 5.4,
whose example reads 26 as TWENTY SIX and 150 as ONE HUNDRED FIFTY, years as cardinals.
Deviates: abbreviations are not spelled out (the paper has Ltd. as LIMITED).
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spacy_treecrf.errors import Errors

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]


@dataclass(frozen=True)
class Speech:
    """What a language says for symbols and how it writes numbers.

    point (str): The word for the decimal mark.
    decimal, thousands (str): The marks within numbers.
    symbols (dict[str, str]): Words for currencies and the like; other symbols go.
    dropped (frozenset[str]): Words of the number library that are left out.
    """

    point: str
    decimal: str = ","
    thousands: str = "."
    symbols: dict[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()


def _symbols(words: str) -> dict[str, str]:
    return dict(zip("$€£¥%", words.split("/"), strict=True))


LANGUAGES = {
    "en": Speech(
        point="point",
        decimal=".",
        thousands=",",
        symbols=_symbols("dollars/euros/pounds/yen/percent"),
        dropped=frozenset(("and",)),
    ),
    "es": Speech("coma", symbols=_symbols("dólares/euros/libras/yenes/por ciento")),
    "de": Speech("Komma", symbols=_symbols("Dollar/Euro/Pfund/Yen/Prozent")),
    "nl": Speech("komma", symbols=_symbols("dollar/euro/pond/yen/procent")),
    "fr": Speech("virgule", symbols=_symbols("dollars/euros/livres/yens/pour cent")),
}
PIECES = re.compile(r"\d[\d.,]*\d|\d|[^\W\d_]+|.", re.DOTALL)
APOSTROPHES = frozenset("'’")


def speech_of(lang: str) -> Speech:
    """The conventions of a language.

    lang (str): Its code.
    RETURNS (Speech): Its conventions.
    RAISES (ValueError): If there are none, or the number library is not installed.
    """
    if lang not in LANGUAGES:
        raise ValueError(Errors.T083.format(lang=lang, known=sorted(LANGUAGES)))
    try:
        import num2words  # noqa: F401
    except ImportError as error:
        raise ValueError(Errors.T084) from error
    return LANGUAGES[lang]


def spoken_words(text: str, lang: str) -> list[str]:
    """The words that a token is spoken as, in upper case.

    text (str): The token.
    lang (str): Code of a language of `LANGUAGES`.
    RETURNS (list[str]): No word for punctuation, several for a number.
    """
    speech = speech_of(lang)
    words: list[str] = []
    letters = ""
    for piece in [*PIECES.findall(text), ""]:
        if piece and not piece[0].isdecimal() and _is_kept(piece):
            letters += piece
            continue
        # The end, a number or a symbol closes a word; other marks vanish within it.
        if not piece or piece[0].isdecimal() or piece in speech.symbols:
            if any(map(str.isalnum, letters)):
                words.append(letters)
            letters = ""
        if piece in speech.symbols:
            words.extend(speech.symbols[piece].split())
        elif piece and piece[0].isdecimal():
            words.extend(_number_words(piece, speech, lang))
    return [word.upper() for word in words]


def _is_kept(piece: str) -> bool:
    """Letters and their marks, number signs that are no digits, and apostrophes."""
    return piece in APOSTROPHES or unicodedata.category(piece[0])[0] in "LMN"


def _number_words(piece: str, speech: Speech, lang: str) -> list[str]:
    """Words of digits with marks between them, as "23,000.50" or "1.1.99"."""
    grouped = rf"\d{{1,3}}(?:{re.escape(speech.thousands)}\d{{3}})+"
    pattern = rf"({grouped}|\d+)(?:{re.escape(speech.decimal)}(\d+))?"
    match = re.fullmatch(pattern, piece)
    if match is None:
        return [word for run in re.findall(r"\d+", piece) for word in _read(run, lang)]
    whole, fraction = match.groups()
    words = _read(whole.replace(speech.thousands, ""), lang)
    if fraction is not None:
        words.append(speech.point)
        words.extend(word for digit in fraction for word in _read(digit, lang))
    return words


def _read(digits: str, lang: str) -> list[str]:
    """Words of a run of digits: a cardinal, or digit by digit after a leading zero."""
    from num2words import num2words

    if len(digits) > 1 and int(digits[0]) == 0:
        return [word for digit in digits for word in _read(digit, lang)]
    try:
        spoken = num2words(int(digits), lang=lang)
    except (OverflowError, ValueError):  # beyond the library's largest number
        return [word for digit in digits for word in _read(digit, lang)]
    dropped = LANGUAGES[lang].dropped
    return [word for word in re.findall(r"\w+", spoken) if word not in dropped]


@dataclass(frozen=True)
class Spoken:
    """A sentence as it is spoken.

    tokens (list[str]): The words.
    spans (list[LabelledSpan]): The spans that keep at least one word.
    offsets (list[int]): Words before each written token, and in all.
    lost (list[LabelledSpan]): The spans of which nothing is spoken, in written tokens.
    """

    tokens: list[str]
    spans: list[LabelledSpan]
    offsets: list[int]
    lost: list[LabelledSpan]


def to_snor(
    tokens: Sequence[str], spans: Iterable[LabelledSpan], lang: str = "en"
) -> Spoken:
    """Turn a written sentence and its spans into SNOR.

    tokens (Sequence[str]): The written tokens.
    spans (Iterable[LabelledSpan]): Half-open token offsets and labels.
    lang (str): Code of a language of `LANGUAGES`.
    RETURNS (Spoken): Words and spans: a token of k words stretches its spans, and one
        that is not spoken shrinks them.
    RAISES (ValueError): If the language has no conventions, or num2words is missing.
    """
    words: list[str] = []
    offsets = [0]
    for text in tokens:
        words.extend(spoken_words(text, lang))
        offsets.append(len(words))
    kept, lost = [], []
    for span in spans:
        start, end = offsets[span[0]], offsets[span[1]]
        if start < end:
            kept.append((start, end, span[2]))
        else:
            lost.append(span)
    return Spoken(words, kept, offsets, lost)
