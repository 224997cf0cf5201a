"""The embedded corpus: well formed, nested, varied, and fair between its splits."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from spacy_treecrf.data.formats.bracketed import format_line, read_bracketed

CORPUS = Path(__file__).parent.parent / "assets" / "quickstart"
SIZES = {"train": 320, "dev": 60, "test": 70}
LABELS = {
    *("PER", "ORG", "GPE", "LOC", "FAC"),
    *("DATE", "EVENT", "WORK", "PRODUCT", "ROLE"),
}
SPLITS = {split: list(read_bracketed(CORPUS / f"{split}.txt")) for split in SIZES}
SENTENCES = list(chain.from_iterable(SPLITS.values()))


def contains(outer, inner):
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[:2] != inner[:2]


def depth(spans):
    """Spans over the most deeply nested token."""
    return max((sum(contains(o, s) for o in spans) + 1 for s in spans), default=0)


def nested_pairs(spans):
    return [(o, s) for o in spans for s in spans if contains(o, s)]


def entity_strings(sentences):
    return {tuple(t[start:end]) for _, t, spans in sentences for start, end, _ in spans}


def masked(tokens, spans):
    """The sentence with each outermost entity replaced by a gap."""
    inside = {i for start, end, _ in spans for i in range(start + 1, end)}
    starts = {start for start, _, _ in spans}
    return tuple(
        "_" if i in starts else token.lower()
        for i, token in enumerate(tokens)
        if i not in inside
    )


def repeated(items):
    return [item for item, count in Counter(items).items() if count > 1]


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_size(split):
    assert len(SPLITS[split]) == SIZES[split]


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_lines_round_trip(split):
    text = (CORPUS / f"{split}.txt").read_text(encoding="utf8")
    lines = [format_line(tokens, spans) for _, tokens, spans in SPLITS[split]]
    assert text == "\n".join(lines) + "\n"


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_has_every_label(split):
    assert {s[2] for _, _, spans in SPLITS[split] for s in spans} == LABELS


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_nests_three_deep(split):
    assert max(depth(spans) for _, _, spans in SPLITS[split]) >= 3


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_nests_same_label(split):
    pairs = chain.from_iterable(nested_pairs(spans) for _, _, spans in SPLITS[split])
    assert any(outer[2] == inner[2] for outer, inner in pairs)


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_share_of_nested_spans(split):
    nested = [set(chain.from_iterable(nested_pairs(s))) for _, _, s in SPLITS[split]]
    n_spans = sum(len(spans) for _, _, spans in SPLITS[split])
    assert 0.35 <= sum(map(len, nested)) / n_spans <= 0.45


@pytest.mark.parametrize("split", SIZES)
def test_quickstart_corpus_has_edge_cases(split):
    sentences = [(len(tokens), spans) for _, tokens, spans in SPLITS[split]]
    assert any(not spans for _, spans in sentences)
    assert any(end - start == 1 for _, spans in sentences for start, end, _ in spans)
    assert any(s[:2] == (0, n) for n, spans in sentences for s in spans)


def test_quickstart_corpus_depth_four_occurs():
    assert max(depth(spans) for _, _, spans in SENTENCES) == 4


def test_quickstart_corpus_spans_have_one_label():
    same = [repeated(s[:2] for s in spans) for _, _, spans in SENTENCES]
    assert not list(chain.from_iterable(same))


def test_quickstart_corpus_entity_strings_have_one_label():
    labels = {(*t[s:e], label) for _, t, spans in SENTENCES for s, e, label in spans}
    assert repeated(entity[:-1] for entity in labels) == []


def test_quickstart_corpus_repeats_no_sentence():
    assert repeated(" ".join(tokens).lower() for _, tokens, _ in SENTENCES) == []


def test_quickstart_corpus_repeats_no_sentence_after_masking_entities():
    skeletons = [masked(tokens, spans) for _, tokens, spans in SENTENCES]
    assert repeated(s for s in skeletons if s != ("_",)) == []


@pytest.mark.parametrize("split", ["dev", "test"])
def test_quickstart_corpus_half_of_entity_strings_are_unseen(split):
    entities = entity_strings(SPLITS[split])
    unseen = entities - entity_strings(SPLITS["train"])
    assert len(unseen) >= len(entities) / 2


def test_quickstart_corpus_sentences_have_up_to_45_tokens():
    assert max(len(tokens) for _, tokens, _ in SENTENCES) <= 45


def test_quickstart_corpus_quotation_marks_pair_up():
    odd = [t for _, t, _ in SENTENCES if t.count('"') % 2]
    assert odd == []
