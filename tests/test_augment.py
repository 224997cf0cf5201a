"""The augmenters of modalities."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus, Example
from spacy.util import registry

from spacy_treecrf.augment import snor_doc, upper_case_doc

WORDS = ["On", "May", "26", ",", "Eric", "paid", "Ruß", "."]


@pytest.fixture
def nlp():
    return spacy.blank("en")


def gold_doc(nlp, words=WORDS):
    doc = Doc(nlp.vocab, words=words, sent_starts=[1, 0, 0, 0, 1, 0, 0, 0])
    doc.ents = [Span(doc, 1, 3, label="DATE"), Span(doc, 4, 5, label="PER")]
    spans = [Span(doc, 1, 4, label="DATE"), Span(doc, 2, 3, label="DAY")]
    attrs = {"scores": np.array([0.5, 0.25], dtype=np.float32)}
    doc.spans["nested"] = SpanGroup(doc, name="nested", spans=spans, attrs=attrs)
    return doc


def labelled(spans):
    return [(s.start, s.end, s.label_) for s in spans]


def test_augment_upper_case_keeps_annotation(nlp):
    doc = gold_doc(nlp)
    doc[1].tag_ = "NNP"
    upper = upper_case_doc(doc)
    assert [t.text for t in upper] == [
        "ON",
        "MAY",
        "26",
        ",",
        "ERIC",
        "PAID",
        "RUSS",
        ".",
    ]
    assert labelled(upper.ents) == labelled(doc.ents)
    assert labelled(upper.spans["nested"]) == labelled(doc.spans["nested"])
    assert upper.spans["nested"].attrs["scores"].tolist() == [0.5, 0.25]
    assert [t.is_sent_start for t in upper] == [t.is_sent_start for t in doc]
    assert upper[1].tag_ == "NNP"
    assert upper.has_unknown_spaces == doc.has_unknown_spaces


def test_augment_upper_case_keeps_a_parse(nlp):
    doc = Doc(
        nlp.vocab,
        words=["It", "is"],
        heads=[1, 1],
        deps=["nsubj", "ROOT"],
        tags=["P", "V"],
    )
    upper = upper_case_doc(doc)
    assert [t.head.i for t in upper] == [1, 1]
    assert [t.dep_ for t in upper] == ["nsubj", "ROOT"]


def test_augment_upper_case_of_an_empty_doc(nlp):
    assert len(upper_case_doc(Doc(nlp.vocab))) == 0


def test_augment_upper_case_example_aligns(nlp):
    example = Example(nlp.make_doc("Bank of China fell"), gold_doc_of_text(nlp))
    augment = registry.augmenters.get("spacy-treecrf.upper_case.v1")()
    (upper,) = augment(nlp, example)
    assert upper.predicted.text == "BANK OF CHINA FELL"
    found = upper.get_aligned_spans_y2x(upper.reference.spans["nested"])
    assert labelled(found) == [(0, 3, "ORG")]


def gold_doc_of_text(nlp):
    doc = nlp.make_doc("Bank of China fell")
    doc.spans["nested"] = [Span(doc, 0, 3, label="ORG")]
    return doc


def test_augment_snor_moves_annotation(nlp):
    doc, lost = snor_doc(gold_doc(nlp), "en")
    assert [t.text for t in doc] == [
        "ON",
        "MAY",
        "TWENTY",
        "SIX",
        "ERIC",
        "PAID",
        "RUSS",
    ]
    assert labelled(doc.ents) == [(1, 4, "DATE"), (4, 5, "PER")]
    assert labelled(doc.spans["nested"]) == [(1, 4, "DATE"), (2, 4, "DAY")]
    assert doc.spans["nested"].name == "nested"
    assert [s.start for s in doc.sents] == [0, 4]
    assert lost == []


def test_augment_snor_example_has_the_same_words_on_both_sides(nlp):
    augment = registry.augmenters.get("spacy-treecrf.snor.v1")()
    doc = gold_doc(nlp)
    (example,) = augment(nlp, Example(Doc(nlp.vocab, words=WORDS), doc))
    assert [t.text for t in example.predicted] == [t.text for t in example.reference]


def test_augment_snor_counts_and_warns_once_of_lost_spans(nlp):
    augment = registry.augmenters.get("spacy-treecrf.snor.v1")()
    doc = Doc(nlp.vocab, words=["Yahoo", "!"])
    doc.spans["nested"] = [Span(doc, 1, 2, label="MISC")]
    example = Example(Doc(nlp.vocab, words=["Yahoo", "!"]), doc)
    with pytest.warns(UserWarning, match=r"T085.*\(1, 2, 'MISC'\)") as caught:
        augmented = [list(augment(nlp, example)) for _ in range(3)]
    assert len(augmented) == 3
    assert len(caught) == 1
    assert augment.n_lost == 3


def test_augment_snor_leaves_out_what_is_not_spoken(nlp):
    augment = registry.augmenters.get("spacy-treecrf.snor.v1")()
    doc = Doc(nlp.vocab, words=["--"])
    assert list(augment(nlp, Example(doc.copy(), doc))) == []


def test_augment_snor_reads_in_the_language_of_the_pipeline():
    nlp = spacy.blank("es")
    augment = registry.augmenters.get("spacy-treecrf.snor.v1")()
    doc = Doc(nlp.vocab, words=["26"])
    (example,) = augment(nlp, Example(doc.copy(), doc))
    assert example.reference.text.strip() == "VEINTISÉIS"


@pytest.mark.parametrize("name", ["upper_case", "snor"])
def test_augment_level_zero_changes_nothing(nlp, name):
    augment = registry.augmenters.get(f"spacy-treecrf.{name}.v1")(level=0.0)
    example = Example(Doc(nlp.vocab, words=WORDS), gold_doc(nlp))
    assert list(augment(nlp, example)) == [example]


@pytest.mark.parametrize("name", ["upper_case", "snor"])
def test_augment_refuses_a_level_outside_the_unit_interval(name):
    with pytest.raises(ValueError, match="level"):
        registry.augmenters.get(f"spacy-treecrf.{name}.v1")(level=1.5)


@pytest.mark.parametrize("name", ["upper_case", "snor"])
def test_augment_pickles(name):
    augment = registry.augmenters.get(f"spacy-treecrf.{name}.v1")()
    assert pickle.loads(pickle.dumps(augment)).level == 1.0


@pytest.mark.parametrize("name", ["upper_case", "snor"])
def test_augment_serves_a_corpus(nlp, name, tmp_path):
    DocBin(docs=[gold_doc(nlp)]).to_disk(tmp_path / "a.spacy")
    augment = registry.augmenters.get(f"spacy-treecrf.{name}.v1")()
    (example,) = Corpus(tmp_path / "a.spacy", augmenter=augment)(nlp)
    assert example.reference[0].text == "ON"
    assert len(example.reference.spans["nested"]) == 2
