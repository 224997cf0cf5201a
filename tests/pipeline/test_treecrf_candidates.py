"""Candidate entity sets and entropies that `treecrf` writes."""

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc, DocBin
from table_scorer import scored, table_of

WORDS = [
    ["The", "Bank", "of", "China", "said", "so", "."],
    ["He", "met", "the", "president", "of", "France", "."],
]
SPANS = [[(1, 4, "ORG"), (3, 4, "GPE")], [(2, 6, "PER"), (5, 6, "GPE")]]
N_BEST = 6


@pytest.fixture(scope="module")
def nlp():
    """Sentences whose entities are likely, and others possible."""
    table = table_of(zip(map(tuple, WORDS), SPANS, strict=True), value=2.0)
    return scored(table, default=-4.0, n_best=N_BEST, entropy=True)


@pytest.fixture
def doc(nlp):
    """Two sentences and a token of white space."""
    starts = [True] + [False] * 6 + [True] + [False] * 6 + [False]
    words = [*WORDS[0], *WORDS[1], "\n"]
    return nlp(Doc(nlp.vocab, words=words, sent_starts=starts))


def sets_of(doc, rank):
    group = doc.spans[f"nested:{rank}"]
    return {
        tuple(segment): {
            (span.start, span.end, span.label_)
            for span in group
            if segment[0] <= span.start and span.end <= segment[1]
        }
        for segment in group.attrs["segments"].tolist()
    }


def test_treecrf_candidates_have_segments_and_log_probabilities(doc):
    for rank in range(N_BEST):
        group = doc.spans[f"nested:{rank}"]
        assert group.name == f"nested:{rank}"
        assert group.attrs["segments"].dtype == np.int32
        assert group.attrs["segments"].tolist() == [[0, 7], [7, 15]]
        assert group.attrs["log_prob"].dtype == np.float64
        assert group.attrs["log_prob"].shape == (2,)


def test_treecrf_candidates_are_sorted_distinct_and_probabilities(doc):
    log_probs = np.stack(
        [doc.spans[f"nested:{rank}"].attrs["log_prob"] for rank in range(N_BEST)]
    )
    assert (np.diff(log_probs, axis=0) <= 0).all()
    assert (np.exp(log_probs).sum(0) <= 1 + 1e-6).all()
    for segment in ((0, 7), (7, 15)):
        sets = [frozenset(sets_of(doc, rank)[segment]) for rank in range(N_BEST)]
        assert len(set(sets)) == N_BEST


def test_treecrf_candidates_never_border_on_white_space(doc):
    for rank in range(N_BEST):
        for span in doc.spans[f"nested:{rank}"]:
            assert not span[0].is_space
            assert not span[-1].is_space


def test_treecrf_candidates_of_short_segments_are_absent_from_later_groups(nlp):
    doc = nlp(Doc(nlp.vocab, words=["China"]))
    counts = [len(doc.spans[f"nested:{rank}"].attrs["segments"]) for rank in range(6)]
    # One token: no entity, or one of three labels.
    assert counts == [1, 1, 1, 1, 0, 0]


def test_treecrf_candidates_groups_exist_for_empty_docs(nlp):
    doc = nlp("")
    for rank in range(N_BEST):
        assert len(doc.spans[f"nested:{rank}"]) == 0
        assert doc.spans[f"nested:{rank}"].attrs["segments"].shape == (0, 2)


def test_treecrf_candidates_survive_docbin(nlp, doc):
    stored = DocBin(docs=[doc]).to_bytes()
    (loaded,) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    for rank in range(N_BEST):
        one, other = doc.spans[f"nested:{rank}"], loaded.spans[f"nested:{rank}"]
        assert one.attrs["log_prob"].tolist() == other.attrs["log_prob"].tolist()
        assert sets_of(doc, rank) == sets_of(loaded, rank)


def test_treecrf_entropy_is_one_number_a_segment(doc):
    attrs = doc.spans["nested"].attrs
    assert attrs["entropy"].dtype == np.float64
    assert attrs["segments"].tolist() == [[0, 7], [7, 15]]
    assert (attrs["entropy"] >= 0).all()


def test_treecrf_writes_no_candidates_unless_asked(nlp):
    pipe = nlp.get_pipe("treecrf")
    pipe.cfg.update(n_best=1, entropy=False)
    try:
        doc = nlp("The Bank of China")
    finally:
        pipe.cfg.update(n_best=N_BEST, entropy=True)
    assert list(doc.spans) == ["nested"]
    assert set(doc.spans["nested"].attrs) == {"scores"}


@pytest.mark.parametrize("setting", [{"n_best": 2}, {"entropy": True}])
def test_treecrf_refuses_candidates_of_the_local_objective(setting):
    nlp = spacy.blank("en")
    with pytest.raises(ValueError, match="T002"):
        nlp.add_pipe("treecrf", config={"objective": "local", **setting})
