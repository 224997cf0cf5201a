"""The reader of `.spacy` files: all that spaCy's does, codecs looked up once a file."""

import copy
import pickle

import numpy as np
import pytest
import spacy
import srsly.msgpack
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Corpus
from spacy.util import registry

from spacy_treecrf.data.corpus_reader import (
    FastCorpus,
    FastDocBin,
    codecs_looked_up_once,
    make_unpack,
)

VOCAB = spacy.blank("en").vocab


def full_doc():
    """A Doc with all that a file may hold: shared bytes, attributes, arrays, names."""
    words = ["The", "Bank", "of", "China", "👞", " ", "said", "so", "."]
    doc = Doc(
        VOCAB, words=words, spaces=[True] * 8 + [False], sent_starts=[1, *[0] * 8]
    )
    doc.cats = {"bank": 0.5}
    doc.ents = [Span(doc, 1, 4, "ORG", kb_id="Q1", span_id="one")]
    spans = [
        Span(doc, 1, 4, "ORG", kb_id="Q1", span_id="one"),
        Span(doc, 3, 4, "GPE"),
        Span(doc, 3, 4, ""),
    ]
    attrs = {
        "scores": np.array([0.5, 0.25, 1.0], dtype="float32"),
        "segments": np.array([[0, 9]], dtype="int32"),
        "nested": {"z": complex(1, 2), "list": [1, "ä", None, b"x"], 3: "number"},
    }
    doc.spans["nested"] = SpanGroup(doc, name="nested", spans=spans, attrs=attrs)
    doc.spans["empty"] = []
    # Two keys with one name are stored once.
    doc.spans["a"] = SpanGroup(doc, name="same", spans=spans[1:2])
    doc.spans["b"] = SpanGroup(doc, name="same", spans=spans[1:2])
    doc.user_data["doc"] = ("a", "tuple")
    return doc


def docs():
    plain = Doc(VOCAB, words=["no", "group"])
    tagged = Doc(VOCAB, words=["x", "y"], spaces=[False, False], tags=["A", "B"])
    return [full_doc(), plain, Doc(VOCAB, words=[]), tagged]


def state(doc):
    """All of a Doc that can be compared."""
    groups = {
        key: (
            group.name,
            srsly.msgpack_dumps(group.attrs),
            [
                (s.start, s.end, s.start_char, s.end_char, s.label, s.kb_id, s.id)
                for s in group
            ],
        )
        for key, group in doc.spans.items()
    }
    values = doc.to_dict(exclude=["span_groups"])
    return str(values), groups, doc.has_unknown_spaces


@pytest.mark.parametrize("store", [True, False])
def test_docbin_writes_the_bytes_of_spacy(store):
    made = docs()
    before = [state(doc) for doc in made]
    fast = FastDocBin(docs=made, store_user_data=store).to_bytes()
    assert fast == DocBin(docs=docs(), store_user_data=store).to_bytes()
    assert [state(doc) for doc in made] == before


@pytest.mark.parametrize("store", [True, False])
def test_docbin_reads_the_docs_of_spacy(store):
    data = DocBin(docs=docs(), store_user_data=store).to_bytes()
    for vocab in (VOCAB, spacy.blank("de").vocab):
        expected = list(DocBin().from_bytes(data).get_docs(vocab))
        found = list(FastDocBin().from_bytes(data).get_docs(vocab))
        assert [state(doc) for doc in found] == [state(doc) for doc in expected]
    scores = found[0].spans["nested"].attrs["scores"]
    assert isinstance(scores, np.ndarray)
    assert scores.dtype == np.float32


def test_docbin_groups_are_of_their_docs():
    (doc,) = (
        FastDocBin().from_bytes(DocBin(docs=[full_doc()]).to_bytes()).get_docs(VOCAB)
    )
    for group in doc.spans.values():
        assert group.doc is doc
    doc.spans["a"].append(doc[0:1])
    assert len(doc.spans["b"]) == 1


def test_docbin_reads_what_spacy_loads_unseen():
    """Spans beyond the Doc, and the layouts of older versions, are left to spaCy."""
    doc, longer = Doc(VOCAB, words=["a"]), Doc(VOCAB, words=["a", "b", "c"])
    group = SpanGroup(longer, name="old", spans=[Span(longer, 1, 3, "X")]).to_bytes()
    for packed in (b"", srsly.msgpack_dumps([]), srsly.msgpack_dumps([group])):
        docbins = [cls(docs=[doc]) for cls in (DocBin, FastDocBin)]
        for docbin in docbins:
            docbin.span_groups = [packed]
        plain, fast = (next(docbin.get_docs(VOCAB)) for docbin in docbins)
        assert list(fast.spans) == list(plain.spans)
    docbins = [cls(docs=[doc]) for cls in (DocBin, FastDocBin)]
    for docbin in docbins:
        docbin.span_groups = [srsly.msgpack_dumps({group: ["old"]})]
    plain, fast = (next(docbin.get_docs(VOCAB)) for docbin in docbins)
    assert fast.spans["old"].to_bytes() == plain.spans["old"].to_bytes()


def test_docbin_merges_and_pickles():
    docbin = FastDocBin(docs=docs())
    docbin.merge(FastDocBin(docs=docs()))
    expected = DocBin(docs=[*docs(), *docs()])
    assert docbin.to_bytes() == expected.to_bytes()
    assert pickle.loads(pickle.dumps(docbin)).to_bytes() == expected.to_bytes()
    assert copy.deepcopy(docbin).to_bytes() == expected.to_bytes()


def test_docbin_looks_codecs_up_once(monkeypatch):
    calls = []
    for name in ("msgpack_decoders", "msgpack_encoders"):
        registered = getattr(srsly.msgpack, name).get_all
        monkeypatch.setattr(
            getattr(srsly.msgpack, name),
            "get_all",
            lambda f=registered, n=name: calls.append(n) or f(),
        )
    made = [full_doc() for _ in range(5)]
    calls.clear()
    data = FastDocBin(docs=made).to_bytes()
    # Once for the groups, once for the file.
    assert calls == ["msgpack_encoders"] * 2
    calls.clear()
    list(FastDocBin().from_bytes(data).get_docs(VOCAB))
    assert calls == ["msgpack_decoders"] * 2


def test_unpack_uses_decoders_of_other_packages(monkeypatch):
    def decode(obj, chain=None):
        if "of_a_test" in obj:
            return "decoded"
        return obj if chain is None else chain(obj)

    registered = srsly.msgpack.msgpack_decoders.get_all()
    monkeypatch.setattr(
        srsly.msgpack.msgpack_decoders,
        "get_all",
        lambda: {**registered, "of_a_test": decode},
    )
    value = {"x": [{"of_a_test": 1}], "y": np.arange(3)}
    data = srsly.msgpack_dumps(value)
    for unpacked in (make_unpack()(data), srsly.msgpack_loads(data)):
        assert unpacked["x"] == ["decoded"]
        np.testing.assert_array_equal(unpacked["y"], value["y"])


# The reader.


@pytest.fixture
def path(tmp_path):
    DocBin(docs=docs(), store_user_data=True).to_disk(tmp_path / "a.spacy")
    DocBin(docs=[full_doc()] * 3).to_disk(tmp_path / "b.spacy")
    return tmp_path


@pytest.mark.parametrize(
    "settings",
    [
        {"gold_preproc": False},
        {"gold_preproc": True},
        {"gold_preproc": False, "max_length": 3},
        {"gold_preproc": False, "limit": 1},
        {"gold_preproc": False, "limit": 2},
    ],
)
def test_reader_gives_the_examples_of_spacy(path, settings):
    nlp = spacy.blank("en")
    for where in (path, path / "a.spacy"):
        readers = (
            registry.readers.get(name)(where, **settings)
            for name in ("spacy.Corpus.v1", "spacy-treecrf.Corpus.v1")
        )
        expected, found = (
            [(state(e.predicted), state(e.reference)) for e in reader(nlp)]
            for reader in readers
        )
        assert found == expected


def test_reader_augments(path):
    def twice(nlp, example):
        yield example
        yield example

    nlp = spacy.blank("en")
    reader = registry.readers.get("spacy-treecrf.Corpus.v1")
    examples = list(reader(path / "a.spacy", False, augmenter=twice)(nlp))
    assert len(examples) == 2 * len(list(Corpus(path / "a.spacy")(nlp)))


def test_reader_shuffles_as_spacy(path):
    nlp = spacy.blank("en")
    assert isinstance(FastCorpus(path, shuffle=True), Corpus)
    assert len(list(FastCorpus(path, shuffle=True)(nlp))) == 6


def test_reader_wants_a_path():
    with pytest.raises(ValueError, match="E913"):
        registry.readers.get("spacy-treecrf.Corpus.v1")(None, False)


def test_reader_leaves_srsly_alone(path):
    before = srsly.msgpack.msgpack_decoders, srsly.msgpack.unpackb, srsly.msgpack_loads
    iterator = iter(FastCorpus(path)(spacy.blank("en")))
    next(iterator)
    assert before == (
        srsly.msgpack.msgpack_decoders,
        srsly.msgpack.unpackb,
        srsly.msgpack_loads,
    )


def test_docbin_part_is_as_if_made_of_some_docs():
    some = FastDocBin(docs=docs(), store_user_data=True).part(
        slice(2, None), slice(0, 1)
    )
    expected = DocBin(docs=[*docs()[2:], full_doc()], store_user_data=True)
    found = FastDocBin().from_bytes(some.to_bytes()).get_docs(VOCAB)
    assert [state(doc) for doc in found] == [
        state(doc) for doc in expected.get_docs(VOCAB)
    ]
    assert expected.strings <= some.strings


def parsed_doc(heads, deps):
    doc = Doc(VOCAB, words=["a", "b", "c", "d"], heads=heads, deps=deps)
    doc[1].ent_id_, doc[2].lemma_, doc[3].norm_ = "id", "lemma", "norm"
    return doc


@pytest.mark.parametrize("heads", [[1, 1, 3, 3], [0, 0, 0, 0], [0, 1, 2, 3]])
def test_docbin_reads_trees_and_what_differs_from_a_new_doc(heads):
    deps = ["ROOT" if head == at else "dep" for at, head in enumerate(heads)]
    made = [parsed_doc(heads, deps), Doc(VOCAB, words=["no", "tree"])]
    for given in (made, made[:1], made[1:]):
        data = DocBin(docs=given).to_bytes()
        assert FastDocBin(docs=given).to_bytes() == data
        expected, found = (
            list(cls().from_bytes(data).get_docs(VOCAB)) for cls in (DocBin, FastDocBin)
        )
        for x, y in zip(expected, found, strict=True):
            assert state(x) == state(y)
            assert [t.head.i for t in x] == [t.head.i for t in y]
            assert [t.left_edge.i for t in x] == [t.left_edge.i for t in y]
            assert [t.is_sent_start for t in x] == [t.is_sent_start for t in y]


def test_docbin_writes_the_strings_of_attributes_that_it_does_not_store():
    doc = parsed_doc([1, 1, 3, 3], ["dep", "ROOT", "dep", "ROOT"])
    found, expected = (
        cls(attrs=("SENT_START",), docs=[doc]) for cls in (FastDocBin, DocBin)
    )
    assert found.strings == expected.strings


def test_codecs_are_looked_up_once_within_the_block_alone(monkeypatch):
    calls = []
    decoders = srsly.msgpack.msgpack_decoders
    kind = type(decoders)
    get_all = kind.get_all
    monkeypatch.setattr(kind, "get_all", lambda self: calls.append(1) or get_all(self))
    data = full_doc().to_bytes()
    calls.clear()
    with codecs_looked_up_once():
        looked_up = len(calls)
        doc = Doc(VOCAB).from_bytes(data)
        assert doc.to_bytes() == data
        assert len(calls) == looked_up
    assert state(doc) == state(full_doc())
    Doc(VOCAB).from_bytes(data)
    assert len(calls) > looked_up


def test_codecs_are_given_back_after_an_error():
    with pytest.raises(KeyError), codecs_looked_up_once():
        raise KeyError
    assert "get_all" not in vars(srsly.msgpack.msgpack_decoders)
    assert "get_all" not in vars(srsly.msgpack.msgpack_encoders)
