"""Corpora in upper case and as speech."""

import pytest

from spacy_treecrf.data.modality import Modality, change_modality
from spacy_treecrf.data.records import Sentence
from spacy_treecrf.problems import ConversionError, Problems


def changed(modality, *sentences, lang="en", problems=None):
    return list(change_modality(sentences, modality, lang, problems or Problems()))


def record(tokens, spans=()):
    return Sentence(
        "s1", tokens.split(), list(spans), "d1", [True] * len(tokens.split())
    )


def test_modality_mixed_changes_nothing():
    sentence = record("On May 26", [(1, 3, "DATE")])
    assert changed(Modality.mixed, sentence) == [sentence]


def test_modality_upper_case_keeps_spans_and_spacing():
    (upper,) = changed(Modality.upper_case, record("On May 26", [(1, 3, "DATE")]))
    assert upper.tokens == ["ON", "MAY", "26"]
    assert upper.spans == [(1, 3, "DATE")]
    assert upper.spaces == [True] * 3


def test_modality_snor_moves_spans():
    (spoken,) = changed(Modality.snor, record("On May 26 .", [(1, 3, "DATE")]))
    assert spoken.tokens == ["ON", "MAY", "TWENTY", "SIX"]
    assert spoken.spans == [(1, 4, "DATE")]
    assert spoken.spaces is None
    assert spoken.doc == "d1"


def test_modality_snor_reports_what_is_lost():
    problems = Problems()
    assert changed(Modality.snor, record("--", [(0, 1, "X")]), problems=problems) == []
    assert sum(problems.counts.values()) == 2


def test_modality_snor_needs_conventions_for_the_language():
    with pytest.raises(ConversionError, match=r"s1.*T083"):
        changed(Modality.snor, record("a"), lang="tlh")
