"""What is written to a Doc, beside what is there already."""

import numpy as np
import pytest
import reranker_toy
import spacy
from candidate_toy import add_rank
from flat_toy import TEXT, trained
from nested_toy import TOK2VEC, add_treecrf, copy_of, found, run, toy_examples
from spacy.tokens import Doc, Span

from spacy_treecrf.pipeline.docs.analyses import Analyses, drop_candidates, write
from spacy_treecrf.pipeline.docs.entities import write_ents
from spacy_treecrf.pipeline.docs.segments import DocSegments

WORDS = "The Bank of China said so ."


def doc_of(words="a b c d e f"):
    return Doc(spacy.blank("en").vocab, words=words.split(" "))


def ents_of(doc):
    return [(ent.start, ent.end, ent.label_) for ent in doc.ents]


def write_own(doc, rows):
    entities = np.array([(segment, -1, *rest) for segment, *rest in rows])
    found = Analyses(
        DocSegments([doc]),
        ("A", "B"),
        entities,
        np.full(len(rows), 0.5),
        np.zeros((1, 0)),
    )
    write([doc], "k", found, ents=True)


# `doc.ents`.


def test_analyses_outermost_become_entities():
    doc = doc_of()
    write_ents(doc, [(0, 3, "A"), (1, 2, "B"), (4, 5, "C")])
    assert ents_of(doc) == [(0, 3, "A"), (4, 5, "C")]


def test_analyses_entities_that_are_there_are_kept():
    doc = doc_of()
    doc.set_ents([Span(doc, 1, 2, label="RULE")])
    write_ents(doc, [(0, 3, "A"), (2, 3, "B"), (4, 6, "C"), (1, 2, "D")])
    # (0, 3) holds the rule's entity, and (2, 3) is then the outermost.
    assert ents_of(doc) == [(1, 2, "RULE"), (2, 3, "B"), (4, 6, "C")]


def test_analyses_blocked_tokens_stay_out():
    doc = doc_of()
    doc.set_ents([], blocked=[doc[1:2]])
    for _ in range(2):
        write_ents(doc, [(0, 3, "A"), (4, 5, "C")])
        assert ents_of(doc) == [(4, 5, "C")]
        assert doc[1].ent_iob_ == "B"
        assert not doc[1].ent_type_


def test_analyses_own_entities_of_an_earlier_run_are_replaced():
    doc = doc_of()
    doc.set_ents([Span(doc, 5, 6, label="RULE")])
    write_own(doc, [(0, 0, 2, 0), (0, 3, 4, 1)])
    write_own(doc, [(0, 1, 3, 0)])
    assert ents_of(doc) == [(1, 3, "A"), (5, 6, "RULE")]


def test_analyses_entity_ruler_is_kept_by_a_flat_pipe(factory):
    nlp = trained(factory)
    ruler = nlp.add_pipe("entity_ruler", first=True)
    ruler.add_patterns([{"label": "NAME", "pattern": "Holt"}])
    doc = run(nlp, TEXT)
    assert [(e.text, e.label_) for e in doc.ents] == [("Holt", "NAME"), ("Rome", "LOC")]
    assert found(doc) == [(1, 3, "PER"), (5, 6, "LOC")]


def test_analyses_a_reranker_replaces_the_base_pipe_s_entities():
    nlp = reranker_toy.trained(annotate_ents=True)
    doc = reranker_toy.toy_doc(nlp.vocab, "in", "Gus")
    reranker_toy.set_gold(doc, [(3, 4, "PER")])
    doc.set_ents([Span(doc, 3, 4, label="PER"), Span(doc, 0, 1, label="RULE")])
    assert ents_of(nlp(doc)) == [(0, 1, "RULE"), (3, 4, "LOC")]


# Candidates of an earlier run.


def test_analyses_candidates_beyond_the_last_are_dropped():
    doc = doc_of()
    for rank in range(12):
        add_rank(doc, rank, [(0, 6)], [-1.0], [])
    others = ["nested", "nested:x", "nested:1:2", "nestedx:3", "other:5"]
    for key in others:
        doc.spans[key] = []
    drop_candidates(doc, "nested", 2)
    assert set(doc.spans) == {"nested:0", "nested:1", *others}


@pytest.mark.parametrize("n_best", [1, 2])
def test_analyses_treecrf_removes_candidates_of_an_earlier_run(unsure, n_best):
    nlp = copy_of(unsure, n_best=n_best)
    doc = Doc(nlp.vocab, words=WORDS.split(" "))
    for rank in range(20):
        add_rank(doc, rank, [(0, 7)], [-1.0], [])
    doc = nlp(doc)
    ranks = {f"nested:{rank}" for rank in range(n_best if n_best > 1 else 0)}
    assert set(doc.spans) == {"nested", *ranks}


@pytest.mark.parametrize("n_best", [1, 2])
def test_flat_pipe_removes_candidates_of_an_earlier_run(factory, n_best):
    nlp = trained(factory, n_best=n_best)
    doc = Doc(nlp.vocab, words=TEXT)
    for rank in range(20):
        add_rank(doc, rank, [(0, 7)], [-1.0], [])
    doc = nlp(doc)
    ranks = {f"nested:{rank}" for rank in range(n_best if n_best > 1 else 0)}
    assert set(doc.spans) == {"nested", *ranks}


def test_ner_reranker_keeps_the_candidates():
    doc = reranker_toy.reranked(reranker_toy.trained())
    assert {"nested:0", "nested:1", "nested:2"} <= set(doc.spans)


# Attributes do not depend on what else is in a batch.


@pytest.mark.parametrize("n_best", [1, 3])
def test_analyses_treecrf_attributes_do_not_depend_on_the_batch(unsure, n_best):
    nlp = copy_of(unsure, entropy=True, n_best=n_best)
    docs = list(nlp.pipe(["Bank of Rome", "", " "]))
    for doc, text in zip(docs, ["Bank of Rome", "", " "], strict=True):
        alone = nlp(text)
        assert set(alone.spans) == set(doc.spans)
        for key in doc.spans:
            attrs, others = doc.spans[key].attrs, alone.spans[key].attrs
            assert set(attrs) == set(others)
            for name in attrs:
                assert np.shape(attrs[name]) == np.shape(others[name])
    assert set(docs[1].spans["nested"].attrs) == {"scores", "segments", "entropy"}


# Two pipes, one key.


def tree():
    return {"model": {"tok2vec": TOK2VEC}}


@pytest.mark.parametrize(
    ("first", "config"),
    [
        ("identifinder", {}),
        ("span_ruler", {"spans_key": "nested"}),
        ("spancat", {"spans_key": "nested"}),
    ],
)
def test_two_pipes_on_one_key_warn(first, config):
    nlp = spacy.blank("en")
    nlp.add_pipe(first, config=config)
    with pytest.warns(UserWarning, match=rf"T107.*'treecrf' and '{first}'") as caught:
        nlp.add_pipe("treecrf", config=tree())
    assert len(caught) == 1


def test_two_pipes_on_one_key_warn_once_in_all():
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    nlp.add_pipe("spancat", config={"spans_key": "nested"})
    examples = toy_examples(nlp)
    # The later pipe is not ours, so that nothing was said when it was added.
    with pytest.warns(UserWarning, match="T107") as caught:
        nlp.initialize(lambda: examples)
    assert len([w for w in caught if "T107" in str(w.message)]) == 1
    nlp.initialize(lambda: examples)


def test_two_pipes_on_keys_of_their_own_do_not_warn():
    nlp = spacy.blank("en")
    nlp.add_pipe("identifinder", config={"spans_key": "flat"})
    nlp.add_pipe("treecrf", config=tree())
    nlp.add_pipe("ner_reranker")
