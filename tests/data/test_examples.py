"""Examples from character offsets, also where spaCy's own helper fails."""

import pytest
import spacy
from spacy.training import Example

from spacy_treecrf.data.examples import make_examples
from spacy_treecrf.problems import ConversionError

NLP = spacy.blank("en")


def spans_of(example, key="nested"):
    return [(span.text, span.label_) for span in example.reference.spans[key]]


def test_examples_nested_spans():
    (example,) = make_examples(
        NLP, [("Bank of China rose.", [(8, 13, "GPE"), (0, 13, "ORG")])], "sc"
    )
    assert spans_of(example, "sc") == [("Bank of China", "ORG"), ("China", "GPE")]
    assert list(example.reference.spans) == ["sc"]
    assert [t.text for t in example.predicted] == [t.text for t in example.reference]
    assert not example.predicted.spans


@pytest.mark.parametrize("text", ["", " ", "no spans"])
def test_examples_have_a_group_without_spans(text):
    (example,) = make_examples(NLP, [(text, [])])
    assert spans_of(example) == []


def test_examples_misaligned_spans_where_from_dict_raises():
    text, spans = "abcd efgh", [(0, 2, "X")]
    with pytest.raises(ValueError, match="E855"):
        Example.from_dict(NLP.make_doc(text), {"spans": {"nested": spans}})
    with pytest.warns(UserWarning, match=r"T060\] 1 of 1 spans"):
        (example,) = make_examples(NLP, [(text, spans)])
    assert spans_of(example) == []


def test_examples_warn_once_with_count_and_text():
    annotated = [("Hello from India", [(11, 15, "GPE"), (0, 5, "X")])] * 8
    with pytest.warns(UserWarning, match="T060") as record:
        make_examples(NLP, iter(annotated))
    (warning,) = record
    message = str(warning.message)
    assert "8 of 16 spans" in message
    assert "text 0: GPE (11, 15) 'Hello from ' >'Indi'< 'a'" in message
    assert message.endswith("... and 3 more")
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("mode", "text"), [("expand", "from India"), ("contract", "India")]
)
def test_examples_adjust_misaligned_spans(mode, text):
    with pytest.warns(UserWarning, match=f"{mode}ed"):
        (example,) = make_examples(
            NLP, [("Hello from India", [(7, 16, "GPE")])], alignment_mode=mode
        )
    assert spans_of(example) == [(text, "GPE")]


def test_examples_refuse_an_empty_label():
    with pytest.raises(ConversionError, match=r"text 0: .* has the label ''"):
        make_examples(NLP, [("a", [(0, 1, "")])])
