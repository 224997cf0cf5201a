"""The maxent_ner pipe: tags, settings, candidates, what its scores are."""

import numpy as np
import pytest
import spacy
from flat_toy import (
    CITIES,
    ENTITIES,
    PEOPLE,
    TEXT,
    examples_of,
    found,
    make_doc,
    run,
    sentence,
    trained,
    untrained,
)
from spacy.tokens import Doc
from spacy.training import Example

from spacy_treecrf.maxent.features import WordBatch
from spacy_treecrf.maxent.model import tag_entities

NESTED_SCORER = {"@scorers": "spacy-treecrf.nested_scorer.v1"}


def tagger(**config):
    return trained("maxent_ner", **config)


def candidates(doc, n):
    return [found(doc, f"nested:{rank}") for rank in range(n)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("tagging", "iob"),
        ("cutoff", 0),
        ("l2", -0.1),
        ("beam", 0),
        ("n_best", 0),
        ("n_best", 21),
    ],
)
def test_maxent_ner_refuses_a_setting_without_meaning(setting, value):
    with pytest.raises(ValueError, match=f"T002.*'{setting}'"):
        untrained("maxent_ner", **{setting: value})


def test_maxent_ner_takes_as_many_candidates_as_the_beam_has():
    assert untrained("maxent_ner", beam=2, n_best=2).pipe_names == ["maxent_ner"]


@pytest.mark.parametrize(
    "config", [{"l2": 1.0}, {"l2": 0}, {"beam": 1}, {"lower_case": ["in"]}]
)
def test_maxent_ner_options_train_and_round_trip(config):
    nlp = tagger(**config)
    expected = run(nlp, TEXT)
    assert found(expected) == ENTITIES
    again = untrained("maxent_ner", **config).from_bytes(nlp.to_bytes())
    np.testing.assert_array_equal(
        run(again, TEXT).spans["nested"].attrs["scores"],
        expected.spans["nested"].attrs["scores"],
    )


def test_maxent_ner_learns_its_words_in_lower_case():
    model = tagger().get_pipe("maxent_ner").maxent_model
    assert model.predicates.lower_case == {"in", "lives"}


def test_maxent_ner_words_in_lower_case_may_come_with_initialize():
    nlp = untrained("maxent_ner")
    pipe = nlp.get_pipe("maxent_ner")
    pipe.initialize(lambda: examples_of(nlp), nlp=nlp, lower_case=["rome"])
    again = untrained("maxent_ner").get_pipe("maxent_ner").from_bytes(pipe.to_bytes())
    assert again.maxent_model.predicates.lower_case == {"rome"}


def test_maxent_ner_cutoff_leaves_rare_predicates_out():
    kept = tagger(cutoff=5).get_pipe("maxent_ner").maxent_model.predicates.kept
    # First names occur 4 times, cities 6 times.
    assert "Ann" not in kept[0]
    assert "Paris" in kept[0]


def test_maxent_ner_refuses_a_model_of_another_pipe():
    data = trained("identifinder").get_pipe("identifinder").to_bytes()
    with pytest.raises(ValueError, match="T073"):
        untrained("maxent_ner").get_pipe("maxent_ner").from_bytes(data)


# Tags without labels.


def test_maxent_ner_segment_finds_entities_without_their_labels():
    nlp = tagger(tagging="segment")
    assert nlp.get_pipe("maxent_ner").labels == ("ENTITY",)
    assert found(run(nlp, TEXT)) == [(1, 3, "ENTITY"), (5, 6, "ENTITY")]


def test_maxent_ner_segment_writes_the_label_that_is_set():
    nlp = tagger(tagging="segment", segment_label="NAME")
    assert {label for *_, label in found(run(nlp, TEXT))} == {"NAME"}


def test_maxent_ner_segment_writes_the_only_label_of_a_corpus():
    nlp = untrained("maxent_ner", tagging="segment")
    words, spans = sentence(PEOPLE[0], CITIES[0])
    reference = make_doc(nlp.vocab, words, spans=spans[:1])
    nlp.initialize(lambda: [Example(Doc(nlp.vocab, words=words), reference)] * 3)
    assert found(run(nlp, words)) == spans[:1]


def test_maxent_ner_segment_is_scored_without_labels():
    nlp = tagger(tagging="segment", scorer=NESTED_SCORER)
    scores = nlp.evaluate(examples_of(nlp))
    assert scores["spans_nested_unlabelled_f"] == 1.0
    assert scores["spans_nested_f"] == 0.0


def test_maxent_ner_segment_round_trips():
    nlp = tagger(tagging="segment")
    again = spacy.blank("en")
    again.add_pipe("maxent_ner", config={"tagging": "segment"})
    again.from_bytes(nlp.to_bytes())
    assert found(run(again, TEXT)) == found(run(nlp, TEXT))


# Candidates and scores.


@pytest.mark.parametrize("tagging", ["typed", "segment"])
def test_maxent_ner_candidates_are_distinct_sets_of_entities(tagging):
    doc = run(tagger(tagging=tagging, n_best=20), TEXT)
    sets = [tuple(spans) for spans in candidates(doc, 20)]
    assert len(set(sets)) == 20


def test_maxent_ner_candidates_end_where_there_are_no_more():
    nlp = tagger(n_best=5)
    doc = nlp(Doc(nlp.vocab, words=["Rome", "fell"], sent_starts=[1, 1]))
    counts = [len(doc.spans[f"nested:{r}"].attrs["segments"]) for r in range(5)]
    assert counts == [2, 2, 2, 0, 0]  # N, S-LOC and S-PER of each
    assert candidates(doc, 5)[3:] == [[], []]


def test_maxent_ner_log_prob_is_that_of_the_model():
    nlp = tagger(n_best=4)
    pipe = nlp.get_pipe("maxent_ner")
    doc = run(nlp, TEXT)
    for rank, spans in enumerate(candidates(doc, 4)):
        columns = zip(*[(s, e, pipe.labels.index(x)) for s, e, x in spans], strict=True)
        start, end, labels = (np.array(column) for column in columns)
        batch = WordBatch(TEXT, np.arange(len(TEXT)), np.array([len(TEXT)]))
        tags = tag_entities(len(TEXT), start, end, labels)
        np.testing.assert_allclose(
            doc.spans[f"nested:{rank}"].attrs["log_prob"],
            pipe.maxent_model.log_prob(batch, tags),
        )


def test_maxent_ner_scores_are_shares_of_the_beam():
    doc = run(tagger(n_best=20), TEXT)
    groups = [doc.spans[f"nested:{rank}"] for rank in range(20)]
    weights = np.exp([group.attrs["log_prob"][0] for group in groups])
    weights /= weights.sum()
    sets = candidates(doc, 20)
    for spans, group in zip(sets, groups, strict=True):
        holds = np.array([[span in other for other in sets] for span in spans])
        expected = holds.reshape(-1, 20) @ weights
        np.testing.assert_allclose(group.attrs["scores"], expected, rtol=1e-6)


def test_maxent_ner_n_best_does_not_change_the_scores():
    np.testing.assert_array_equal(
        run(tagger(), TEXT).spans["nested"].attrs["scores"],
        run(tagger(n_best=20), TEXT).spans["nested"].attrs["scores"],
    )


def test_maxent_ner_logs_its_progress(caplog):
    with caplog.at_level("INFO", logger="spacy"):
        tagger()
    assert "maxent_ner: read 24 documents" in caplog.text
    assert "maxent_ner: iteration 10, " in caplog.text
    assert "maxent_ner: learnt the weights of" in caplog.text
