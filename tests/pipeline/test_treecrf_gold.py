"""What the treecrf pipe reads as gold: alignment, crossing, cuts, partial annotation."""

import warnings

import numpy as np
import pytest
import torch
from nested_toy import (
    SENTENCES,
    found,
    initialized,
    learn_until,
    make_doc,
    make_example,
    run,
    toy_examples,
    train_until,
    untrained,
)
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

from spacy_treecrf.pipeline.docs.label_prior import LabelPrior
from spacy_treecrf.pipeline.docs.segments import DocSegments
from spacy_treecrf.pipeline.docs.tree_gold import has_crossing
from spacy_treecrf.pipeline.docs.tree_gold_report import GoldReport
from spacy_treecrf.structure import marginals


def one(*sentence, **config):
    """A pipeline initialised with the toy sentences and one more, with all warnings."""
    nlp = untrained(**config)
    examples = [*toy_examples(nlp), make_example(nlp.vocab, *sentence)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp.initialize(lambda: examples)
    return nlp, examples[-1], [str(w.message) for w in caught]


def loss_of(nlp, *examples):
    return nlp.get_pipe("treecrf").update(list(examples))["treecrf"]


def split_example(vocab, predicted, reference, spans):
    """An Example of one text in two tokenisations, both given with spaces as `|`."""
    docs = []
    for text in (predicted, reference):
        pieces = [word for part in text.split(" ") for word in part.split("|")]
        ends = [
            at == len(part.split("|")) - 1
            for part in text.split(" ")
            for at in range(len(part.split("|")))
        ]
        docs.append(Doc(vocab, words=pieces, spaces=[*ends[:-1], False]))
    docs[1].spans["nested"] = [
        Span(docs[1], s, e, label=label) for s, e, label in spans
    ]
    return Example(*docs)


# Alignment.


def test_treecrf_gold_of_other_tokens_is_aligned_with_its_nesting():  # I-16
    nlp = initialized()
    example = split_example(
        nlp.vocab,
        "Bank of China fell",
        "Ba|nk of Chi|na fell",
        [(0, 5, "ORG"), (3, 5, "GPE")],
    )
    spans = [(0, 3, "ORG"), (2, 3, "GPE")]
    aligned = make_example(nlp.vocab, "Bank of China fell", spans)
    assert loss_of(nlp, example) == pytest.approx(loss_of(nlp, aligned))
    for other in (spans[:1], spans[1:], []):
        less = make_example(nlp.vocab, "Bank of China fell", other)
        assert loss_of(nlp, example) != pytest.approx(loss_of(nlp, less), abs=0.1)


def test_treecrf_misaligned_gold_is_counted_and_named():  # I-04, I-31
    nlp = untrained()
    bad = split_example(nlp.vocab, "New-York fell", "New-|York fell", [(1, 2, "GPE")])
    examples = [*toy_examples(nlp), bad, bad]
    with pytest.warns(UserWarning, match=r"T102.*do not fit the tokens") as caught:
        nlp.initialize(lambda: examples)
    assert len(caught) == 1
    message = str(caught[0].message)
    total = sum(len(spans) for _, spans in SENTENCES) + 2
    assert f"2 of {total} gold spans" in message
    assert "(1, 2, 'GPE') 'York' in 'New-York fell'" in message


def test_treecrf_gold_warns_once_for_a_kind():
    nlp = untrained()
    bad = split_example(nlp.vocab, "New-York fell", "New-|York fell", [(1, 2, "GPE")])
    examples = [*toy_examples(nlp), bad]
    with pytest.warns(UserWarning, match="T102"):
        nlp.initialize(lambda: examples)
    for _ in range(2):  # the suite turns a second warning into an error
        nlp.get_pipe("treecrf").update(examples)


def test_treecrf_gold_between_tokens_counts_as_misaligned():
    # `Span` allows spans without a token, and they align with nothing.
    nlp, _, messages = one("a b c", [(1, 1, "GPE")])
    assert len(messages) == 1
    assert "hold no token but white space" in messages[0]
    assert nlp.get_pipe("treecrf").labels


# White space.


def test_treecrf_gold_is_trimmed_of_white_space():  # I-34
    words = ["Bank", "\n ", "of", "China", "\n"]
    nlp, example, messages = one(words, [(0, 5, "ORG")])
    assert len(messages) == 1
    assert "start or end on white space (they were trimmed)" in messages[0]
    trimmed = make_example(nlp.vocab, words, [(0, 4, "ORG")])
    assert loss_of(nlp, example) == pytest.approx(loss_of(nlp, trimmed))


def test_treecrf_gold_of_white_space_alone_is_left_out():  # I-34
    nlp, example, messages = one(["a", "\n", "b"], [(1, 2, "ORG")])
    assert len(messages) == 1
    assert "hold no token but white space" in messages[0]
    empty = make_example(nlp.vocab, ["a", "\n", "b"], [])
    assert loss_of(nlp, example) == pytest.approx(loss_of(nlp, empty))


# Crossing.


def test_treecrf_crossing_gold_is_reduced_and_counted():  # I-37
    nlp, example, messages = one("a b c d", [(0, 3, "ORG"), (1, 4, "GPE")])
    assert len(messages) == 1
    assert "1 of 17 gold spans (5.9%)" in messages[0]
    assert "cross another gold span" in messages[0]
    assert "(0, 3, 'ORG') 'a b c' in 'a b c d'" in messages[0]
    assert 0 < loss_of(nlp, example) < 1e3


def test_treecrf_crossing_gold_keeps_the_largest_set():
    gold = [(0, 3, "ORG"), (2, 5, "ORG"), (2, 4, "GPE"), (4, 5, "GPE")]
    nlp, example, messages = one("a b c d e", gold)
    assert len(messages) == 1
    assert "(0, 3, 'ORG')" in messages[0]
    kept = make_example(nlp.vocab, "a b c d e", gold[1:])
    assert loss_of(nlp, example) == pytest.approx(loss_of(nlp, kept))


def test_treecrf_crossing_gold_still_counts_in_evaluation():
    nlp, example, _ = one("a b c d", [(0, 3, "ORG"), (1, 4, "GPE")])
    example.predicted.spans["nested"] = [Span(example.predicted, 0, 3, label="ORG")]
    assert nlp.get_pipe("treecrf").score([example])["spans_nested_r"] == 0.5


def test_treecrf_crossing_error_names_span_and_doc():
    nlp = untrained(crossing="error")
    bad = make_example(nlp.vocab, "a b c d", [(0, 3, "ORG"), (1, 4, "GPE")])
    with pytest.raises(ValueError, match=r"T003.*'a b c'.*starts 'a b c d'"):
        nlp.initialize(lambda: [bad])


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], False),
        ([(0, 3), (0, 2), (1, 2)], False),
        ([(0, 2), (2, 4)], False),
        ([(0, 3), (1, 4)], True),
        ([(0, 5), (1, 3), (2, 4)], True),
        ([(0, 5), (1, 2), (3, 6)], True),
    ],
)
def test_treecrf_gold_crossing_is_found(spans, expected):
    assert has_crossing(spans) is expected


# Cuts.


def test_treecrf_gold_across_a_sentence_start_is_counted():
    nlp = untrained()
    example = make_example(nlp.vocab, "a b c d", [(1, 3, "ORG"), (3, 4, "GPE")])
    example.predicted[2].is_sent_start = True
    examples = [*toy_examples(nlp), example]
    with pytest.warns(UserWarning, match=r"T102.*1 of .*cross a segment border"):
        nlp.initialize(lambda: examples)
    assert np.isfinite(loss_of(nlp, example))


def test_treecrf_windows_warn_once_with_their_number():
    nlp = untrained(max_length=4)
    examples = toy_examples(nlp, sentences=[(words, []) for words, _ in SENTENCES])
    first = examples[0].reference
    first.spans["nested"] = [Span(first, 0, 1, label="GPE")]
    with pytest.warns(UserWarning, match="T104") as caught:
        nlp.initialize(lambda: examples)
    messages = [str(w.message) for w in caught]
    n_long = sum(len(words.split(" ")) > 4 for words, _ in SENTENCES)
    assert len(messages) == 1
    assert f"[T104] Pipe 'treecrf' cut {n_long} Docs" in messages[0]
    assert "at most 4 tokens" in messages[0]
    assert "The Bank of China" in messages[0]
    nlp.get_pipe("treecrf").update(examples)
    run(nlp, "a b c d e f g")


def test_treecrf_windows_are_counted_over_the_whole_corpus():
    nlp = untrained(max_length=2)
    examples = [make_example(nlp.vocab, "a b c", [(0, 1, "X")]) for _ in range(600)]
    with pytest.warns(UserWarning, match="cut 600 Docs"):
        nlp.initialize(lambda: examples)


def test_treecrf_segments_are_sentences_or_windows_of_equal_length():
    starts = [1, *[-1] * 3, 1, *[-1] * 15]
    doc = Doc(Vocab(), words=["w"] * 20, sent_starts=starts)
    cut = DocSegments([Doc(Vocab()), doc], 6)
    assert cut.lengths.tolist() == [4, 5, 5, 6]
    assert cut.start.tolist() == [0, 4, 9, 14]
    assert cut.end.tolist() == [4, 9, 14, 20]
    assert cut.doc.tolist() == [1] * 4
    assert cut.windowed == [1]


def test_treecrf_update_counts_the_gold_of_its_batch_alone():
    nlp = initialized()
    example = make_example(nlp.vocab, "a b c d", [(1, 3, "ORG"), (3, 4, "GPE")])
    example.predicted[2].is_sent_start = True
    with pytest.warns(UserWarning, match=r"T102.*1 of 2 gold spans"):
        loss_of(nlp, example)


# Groups that are not there.


def test_treecrf_examples_without_group_are_counted():  # I-07
    nlp = untrained()
    examples = [*toy_examples(nlp), *toy_examples(nlp, key="other")]
    with pytest.warns(UserWarning, match=r"T105.*8 of 16.*\['other'\]"):
        nlp.initialize(lambda: examples)


def test_treecrf_examples_without_group_have_no_entities():
    nlp = initialized()
    none = make_example(nlp.vocab, "a b c", None)
    empty = make_example(nlp.vocab, "a b c", [])
    assert loss_of(nlp, none) == pytest.approx(loss_of(nlp, empty))


# Several labels of one span.


def test_treecrf_unseen_combination_keeps_what_is_known():
    nlp = initialized()
    example = make_example(
        nlp.vocab, "p21ras", [(0, 1, "DNA"), (0, 1, "protein"), (0, 1, "ORG")]
    )
    with pytest.warns(UserWarning, match=r"T102.*set of labels not seen"):
        loss = loss_of(nlp, example)
    known = make_example(nlp.vocab, "p21ras", [(0, 1, "DNA"), (0, 1, "protein")])
    assert loss == pytest.approx(loss_of(nlp, known))


def test_treecrf_same_span_twice_is_learnt_once():
    nlp = initialized()
    once = make_example(nlp.vocab, "Rome", [(0, 1, "GPE")])
    twice = make_example(nlp.vocab, "Rome", [(0, 1, "GPE"), (0, 1, "GPE")])
    assert loss_of(nlp, twice) == pytest.approx(loss_of(nlp, once))


def test_treecrf_score_of_a_label_sums_its_combinations(unsure):
    words = "p21ras binds DNA"
    pipe = unsure.get_pipe("treecrf")
    docs = [Doc(unsure.vocab, words=words.split(" "))]
    (chunk,) = pipe.model.predict((docs, DocSegments(docs, 512).for_model()))
    chart = chunk.index.unpack(torch.from_numpy(chunk.data))
    chances = marginals(chart, [3])[0, 0, 1].tolist()
    numbers = pipe.label_set.numbers()
    both = chances[numbers["DNA", "protein"]]
    # Each of the three has a share, so that none may be left out of a sum.
    assert all(chances[numbers[label,]] > 0.1 for label in ("DNA", "protein"))
    assert both > 0.1
    doc = run(unsure, words)
    group = doc.spans["nested"]
    assert [span.label_ for span in group] == ["DNA", "protein"]
    for span, score in zip(group, group.attrs["scores"], strict=True):
        assert score == pytest.approx(chances[numbers[span.label_,]] + both, abs=1e-5)


# Partial annotation.


def partial(**groups):
    """A pipeline that reads partial annotation, and an Example with these groups."""
    nlp = initialized(missing_spans_key="missing", incorrect_spans_key="incorrect")
    example = make_example(nlp.vocab, "Bank of Rome", groups.pop("gold", []))
    doc = example.reference
    for key, spans in groups.items():
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    return nlp, example


def test_treecrf_all_missing_has_no_loss():
    nlp, example = partial(missing=[(0, 3, "")])
    assert loss_of(nlp, example) == pytest.approx(0.0, abs=1e-5)


def test_treecrf_missing_label_frees_that_label_alone():
    nlp, example = partial(missing=[(0, 3, "GPE")])
    _, nothing = partial()
    assert 0 < loss_of(nlp, example) < loss_of(nlp, nothing)


def test_treecrf_missing_label_must_be_known():
    nlp, example = partial(missing=[(0, 3, "NEW")])
    with pytest.raises(ValueError, match=r"T004.*'NEW'"):
        loss_of(nlp, example)


def test_treecrf_missing_region_is_cut_at_sentence_starts():
    nlp, example = partial(missing=[(0, 3, "")])
    example.predicted[1].is_sent_start = True
    assert loss_of(nlp, example) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.trains
def test_treecrf_incorrect_label_is_learnt_against():
    nlp, example = partial(missing=[(0, 3, "")], incorrect=[(0, 3, "ORG")])
    assert loss_of(nlp, example) > 0
    learn_until(nlp, [example], nlp.create_optimizer(), loss=0.0, share=0.5)


def test_treecrf_incorrect_label_forbids_its_combinations():
    nlp, example = partial(missing=[(0, 3, "")], incorrect=[(0, 1, "DNA")])
    reader = nlp.get_pipe("treecrf")._reader()
    numbers = reader._label_numbers(example, "DNA")
    assert [reader.parts[number] for number in numbers] == [
        ("DNA",),
        ("DNA", "protein"),
    ]


def test_treecrf_gold_marked_incorrect_is_a_counted_contradiction():
    nlp, example = partial(gold=[(0, 3, "ORG")], incorrect=[(0, 3, "ORG")])
    with pytest.warns(UserWarning, match=r"T102.*marked incorrect.*'Bank of Rome'"):
        assert np.isfinite(loss_of(nlp, example))


def test_treecrf_labels_of_partial_annotation_are_collected():
    nlp = untrained(missing_spans_key="missing")
    examples = toy_examples(nlp)
    doc = examples[0].reference
    doc.spans["missing"] = [Span(doc, 0, 1, label="ONLY_THERE"), Span(doc, 0, 2)]
    nlp.initialize(lambda: examples)
    assert "ONLY_THERE" in nlp.get_pipe("treecrf").labels
    assert "" not in nlp.get_pipe("treecrf").labels


@pytest.mark.trains
def test_treecrf_learns_from_fragments():
    # Half of each sentence is annotated; the rest is marked as not annotated.
    nlp = untrained(missing_spans_key="missing")
    examples = []
    for words, spans in SENTENCES:
        doc = make_doc(nlp.vocab, words, spans[:1])
        doc.spans["missing"] = [Span(doc, 0, len(doc))]
        examples.append(Example(Doc(nlp.vocab, words=words.split(" ")), doc))
    train_until(nlp, examples, loss=0.001)
    for words, spans in SENTENCES:
        assert set(spans[:1]) <= set(found(run(nlp, words)))


# Other tokens, and what cannot be used.


def with_marks(text, reference, **groups):
    """A pipeline, and an Example in two tokenisations with partial annotation."""
    nlp = initialized(missing_spans_key="missing", incorrect_spans_key="incorrect")
    example = split_example(nlp.vocab, text, reference, groups.pop("gold", []))
    doc = example.reference
    for key, spans in groups.items():
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    return nlp, example


def rows_of(nlp, example):
    """What is read: observed, missing and incorrect rows, labels as names; counts."""
    pipe = nlp.get_pipe("treecrf")
    reader, cut = pipe._reader(), pipe._cut([example.predicted])
    report = GoldReport(pipe.name, pipe.cfg)
    found = reader.read([example], cut, report)
    names = ["+".join(parts) for parts in reader.parts]
    tables = (found.observed, found.missing, found.incorrect)
    rows = [
        [(*row[:3], "" if row[3] < 0 else names[row[3]]) for row in table.tolist()]
        for table in tables
    ]
    return (*rows, dict(report.counts))


MAIL = ("mail @foo.com in Rome .", "mail @|foo.com in Rome .")


def test_treecrf_missing_region_widens_to_what_it_touches():
    nlp, example = with_marks(*MAIL, missing=[(0, 2, "")])
    assert rows_of(nlp, example) == ([], [(0, 0, 2, "")], [], {})
    whole = make_example(nlp.vocab, "mail @foo.com in Rome .", [])
    whole.reference.spans["missing"] = [Span(whole.reference, 0, 2)]
    assert loss_of(nlp, example) == pytest.approx(loss_of(nlp, whole))


def test_treecrf_incorrect_span_in_a_token_is_counted():
    nlp, example = with_marks(*MAIL, incorrect=[(1, 2, "ORG")])
    with pytest.warns(
        UserWarning,
        match=r"T102.*1 of 1 incorrect spans \(100.0%\) under the key 'incorrect' do not "
        r"fit the tokens.*\(1, 2, 'ORG'\) '@' in 'mail @foo.com in Rome .'",
    ) as caught:
        loss_of(nlp, example)
    assert "still count as gold" not in str(caught[0].message)


@pytest.mark.parametrize(
    ("incorrect", "rows", "counts"),
    [
        ((0, 3, "ORG"), [(0, 0, 2, "ORG")], {"incorrect_space": 1}),
        ((2, 3, "ORG"), [], {"incorrect_empty": 1}),
        ((1, 1, "ORG"), [], {"incorrect_empty": 1}),
        ((1, 4, "ORG"), [], {"incorrect_cut": 1}),
        ((3, 4, ""), [(1, 0, 1, "")], {}),
    ],
)
def test_treecrf_incorrect_spans_are_trimmed_or_counted(incorrect, rows, counts):
    nlp = initialized(incorrect_spans_key="incorrect")
    example = make_example(nlp.vocab, ["a", "b", "\n", "c"], [])
    reference = example.reference
    start, end, label = incorrect
    reference.spans["incorrect"] = [Span(reference, start, end, label=label)]
    example.predicted[3].is_sent_start = True
    assert rows_of(nlp, example) == ([], [], rows, counts)


def test_treecrf_missing_region_without_a_token_is_counted():
    nlp, example = partial(missing=[(1, 1, ""), (0, 1, "")])
    assert rows_of(nlp, example)[1:] == ([(0, 0, 1, "")], [], {"missing_empty": 1})
    with pytest.warns(UserWarning, match=r"T102.*1 of 2 missing regions.*'missing'"):
        loss_of(nlp, example)


def test_treecrf_missing_region_crosses_a_sentence_start():
    nlp, example = partial(missing=[(0, 2, "GPE")])
    example.predicted[1].is_sent_start = True
    assert rows_of(nlp, example)[1] == [(0, 0, 1, "GPE"), (1, 0, 1, "GPE")]


# Gold in `doc.ents`.


def in_ents(vocab, words, tags):
    doc = Doc(vocab, words=words.split(" "), ents=tags)
    return Example(Doc(vocab, words=words.split(" ")), doc)


def test_treecrf_reads_entities_where_the_key_is_absent_and_says_so():
    nlp = untrained()
    examples = [
        *toy_examples(nlp)[:2],
        in_ents(nlp.vocab, "Ann left", ["B-PER", "O"]),
        in_ents(nlp.vocab, "It rained", ["O", "O"]),
    ]
    with pytest.warns(UserWarning, match="T145") as caught:
        nlp.initialize(lambda: examples)
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "2 of 4 examples have no span group 'nested'" in message
    assert "1 entities" in message
    assert "PER" in nlp.get_pipe("treecrf").labels
    assert rows_of(nlp, examples[2])[0] == [(0, 0, 1, "PER")]
    nlp.update(examples)  # says it no more


def test_treecrf_learns_from_entities_alone():
    nlp = untrained()
    examples = [in_ents(nlp.vocab, "Ann left", ["B-PER", "O"])]
    with pytest.warns(UserWarning, match=r"T145.*1 of 1"):
        nlp.initialize(lambda: examples)
    assert nlp.get_pipe("treecrf").labels == ("PER",)


def test_treecrf_entities_do_not_count_beside_the_group():
    nlp = initialized()
    example = in_ents(nlp.vocab, "Ann left", ["B-PER", "O"])
    example.reference.spans["nested"] = []
    assert rows_of(nlp, example)[0] == []


def test_treecrf_says_that_it_reads_entities_after_loading_too():
    nlp = initialized()
    nlp.get_pipe("treecrf")._report = None
    with pytest.warns(UserWarning, match="T145"):
        nlp.update([in_ents(nlp.vocab, "Ann left", ["B-PER", "O"])])


def test_treecrf_unknown_tags_are_missing_regions():
    nlp = initialized()
    example = in_ents(nlp.vocab, "Ann left Rome .", ["B-PER", "O", "", ""])
    observed, missing, _, _ = rows_of(nlp, example)
    assert observed == [(0, 0, 1, "PER")]
    assert missing == [(0, 2, 4, "")]


def test_treecrf_docs_without_any_annotation_are_counted():
    nlp = untrained()
    bare = in_ents(nlp.vocab, "Ann left", ["", ""])
    with pytest.warns(UserWarning, match=r"T105.*1 of 9"):
        nlp.initialize(lambda: [*toy_examples(nlp), bare])


def test_treecrf_refuses_a_corpus_without_spans_and_entities():
    nlp = untrained()
    examples = [in_ents(nlp.vocab, "Ann left", ["O", "O"])]
    with pytest.raises(ValueError, match=r"T001.*no entities in `doc.ents`"):
        nlp.initialize(lambda: examples)


def test_treecrf_scores_by_the_gold_that_it_learns():
    nlp = initialized()
    example = in_ents(nlp.vocab, "Ann left Rome", ["B-PER", "O", ""])
    doc = example.predicted
    doc.spans["nested"] = [Span(doc, 0, 1, label="PER"), Span(doc, 2, 3, label="GPE")]
    result = nlp.get_pipe("treecrf").score([example])
    assert (result["spans_nested_p"], result["spans_nested_r"]) == (1.0, 1.0)


# The labels' prior.


def test_label_prior_leaves_regions_out():
    # Two segments of 3 tokens, 5 nodes and 6 spans each; the second is not annotated.
    prior = LabelPrior()
    observed = np.array([(0, 0, 1, 0), (1, 0, 2, 0)])
    prior.add_annotated(np.array([3, 3]), observed, np.array([(1, 0, 3, -1)]))
    alone = LabelPrior()
    alone.add(np.array([3]), np.array([0]))
    for objective in ("treecrf", "local"):
        np.testing.assert_allclose(
            prior.log_odds(2, objective, 1), alone.log_odds(2, objective, 1)
        )


def test_label_prior_leaves_the_regions_of_a_label_out_for_it_alone():
    prior = LabelPrior()
    missing = np.array([(0, 0, 2, 1), (0, 1, 3, -1)])
    prior.add_annotated(np.array([4]), np.zeros((0, 4), dtype=np.int64), missing)
    # 7 nodes; 3 of them in the region of any label, 5 in both regions together.
    expected = np.log(0.5) - np.log([7 - 3 + 0.5, 7 - 5 + 0.5])
    np.testing.assert_allclose(prior.log_odds(2, "treecrf", 1), expected)
