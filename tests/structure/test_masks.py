"""Masks by their definition: which trees they allow, and which kind of span wins."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import crosses, entity_set, labelled_trees
from strategies import entity_sets, few

from spacy_treecrf.structure import masked_log_partition, observed_mask
from spacy_treecrf.structure.masks import (
    ANY_LABEL,
    crossing_spans,
    largest_compatible,
    packed_masks,
    spans_inside,
)
from spacy_treecrf.structure.spans import SpanIndex

# Labels of most tests: two of entities, two latent.
ENTITY, LABELS = 2, 4


def spans(length):
    return [
        (start, end) for start in range(length) for end in range(start + 1, length + 1)
    ]


def masks(length, observed=(), missing=(), incorrect=()):
    """Allowed labels of each span of one segment, as a dict of sets."""
    index = SpanIndex.build([length])
    tables = (
        torch.tensor([(0, *row) for row in rows], dtype=torch.int64).reshape(-1, 4)
        for rows in (observed, missing, incorrect)
    )
    allowed, rejected = packed_masks(index, ENTITY, LABELS, *tables)
    columns = (index.start.tolist(), index.end.tolist(), allowed.T, rejected)
    return {
        (start, end): ({*free.nonzero()[:, 0].tolist()}, bool(refused))
        for start, end, free, refused in zip(*columns, strict=True)
    }


def allowed_labels(*args, **annotation):
    return {span: labels for span, (labels, _) in masks(*args, **annotation).items()}


@few
@given(st.data(), st.integers(1, 4), st.integers(1, 2))
def test_masks_allow_exactly_the_trees_with_these_entities(data, length, n_entity):
    entities = data.draw(entity_sets(length, n_entity))
    n_labels = 2 if length == 4 else 3
    n_entity = min(n_entity, n_labels - 1)
    entities = [
        (start, end, min(label, n_entity - 1)) for start, end, label in entities
    ]
    mask = observed_mask(entities, length, n_entity, n_labels)
    for tree in labelled_trees(length, n_labels):
        is_allowed = all(mask[node] for node in tree)
        assert is_allowed == (entity_set(tree, n_entity) == set(entities))


def test_masks_force_an_entity_by_rejecting_not_by_masking_its_labels():
    mask = observed_mask([(0, 2, 0)], 3, 1, 2)
    # The label mask alone leaves the tree without the span.
    mask[1, 3] = torch.tensor([False, True])
    around = ((0, 3, 1), (0, 1, 1), (1, 3, 1), (1, 2, 1), (2, 3, 1))
    assert all(mask[node] for node in around)
    assert not observed_mask([(0, 2, 0)], 3, 1, 2)[1, 3].any()


def test_masks_start_with_every_span_latent():
    assert allowed_labels(4) == {span: {2, 3} for span in spans(4)}


def test_masks_allow_an_observed_span_its_label_only():
    assert allowed_labels(4, [(1, 3, 1)])[1, 3] == {1}


@pytest.mark.parametrize("span", spans(4))
def test_masks_reject_every_span_that_crosses_an_entity(span):
    for other, (labels, rejected) in masks(4, [(*span, 0)]).items():
        assert rejected == crosses(span, other)
        assert bool(labels) != rejected


def test_masks_never_reject_words_or_the_whole_segment():
    entities = [(start, end, 0) for start, end in spans(5)]
    for (start, end), (_, rejected) in masks(5, entities).items():
        assert rejected == (1 < end - start < 5)


@few
@given(st.data(), st.integers(1, 6))
def test_masks_do_not_depend_on_the_order_of_entities(data, length):
    entities = data.draw(entity_sets(length, 2))
    expected = observed_mask(entities, length, 2, 3)
    shuffled = data.draw(st.permutations(entities))
    assert torch.equal(observed_mask(shuffled, length, 2, 3), expected)


@pytest.mark.parametrize("order", [1, -1])
def test_masks_rejected_wins_over_observed(order):
    crossing = [(0, 3, 0), (1, 4, 1)][::order]
    labels = allowed_labels(4, crossing)
    assert labels[0, 3] == labels[1, 4] == set()


def test_masks_of_crossing_entities_are_reported_as_impossible():
    masks = [observed_mask([], 4, 2, 3), observed_mask([(0, 3, 0), (1, 4, 1)], 4, 2, 3)]
    with pytest.raises(ValueError, match=r"none for segments \[1\]"):
        masked_log_partition(torch.zeros(2, 5, 5, 3), torch.stack(masks), [4, 4])


def test_masks_are_false_where_there_is_no_span():
    mask = observed_mask([(0, 1, 0)], 3, 1, 2)
    assert mask.shape == (4, 4, 2)
    assert mask.dtype == torch.bool
    assert not mask.any(-1).tril().any()


@pytest.mark.parametrize(
    "entity", [(0, 4, 0), (-1, 2, 0), (2, 2, 0), (2, 1, 0), (0, 1, 2), (0, 1, -1)]
)
def test_masks_refuse_an_entity_that_cannot_be(entity):
    with pytest.raises(ValueError, match=r"expected entities with .* received"):
        observed_mask([(0, 1, 0), entity], 3, 2, 3)


def test_masks_missing_region_frees_all_labels_of_the_spans_inside():
    labels = allowed_labels(4, missing=[(1, 3, ANY_LABEL)])
    inside = {(1, 2), (2, 3), (1, 3)}
    for span in spans(4):
        assert labels[span] == ({0, 1, 2, 3} if span in inside else {2, 3})


def test_masks_missing_label_frees_that_label_only():
    labels = allowed_labels(4, missing=[(1, 3, 1)])
    assert labels[1, 3] == labels[1, 2] == {1, 2, 3}
    assert labels[0, 3] == {2, 3}


def test_masks_missing_labels_of_one_region_add_up():
    labels = allowed_labels(2, missing=[(0, 2, 1), (0, 2, 0)])
    assert labels[0, 2] == {0, 1, 2, 3}


@pytest.mark.parametrize("label", [0, 1])
def test_masks_incorrect_label_is_masked_at_its_span_alone(label):
    everything = [(0, 3, ANY_LABEL)]
    labels = allowed_labels(3, missing=everything, incorrect=[(0, 2, label)])
    assert labels[0, 2] == {0, 1, 2, 3} - {label}
    assert labels[0, 1] == labels[0, 3] == {0, 1, 2, 3}


def test_masks_incorrect_without_label_masks_all_entity_labels():
    everything = [(0, 3, ANY_LABEL)]
    labels = allowed_labels(3, missing=everything, incorrect=[(0, 2, ANY_LABEL)])
    assert labels[0, 2] == {2, 3}


KINDS = {
    "rejected": {"observed": [(0, 2, 0)]},
    "incorrect": {"incorrect": [(1, 3, 1)]},
    "observed": {"observed": [(1, 3, 1)]},
    "missing": {"missing": [(1, 3, ANY_LABEL)]},
    "latent": {},
}
# What each kind alone says of span (1, 3); incorrect takes away from what is below it.
ALONE = {"rejected": set(), "observed": {1}, "missing": {0, 1, 2, 3}, "latent": {2, 3}}


@pytest.mark.parametrize(("stronger", "weaker"), list(itertools.combinations(KINDS, 2)))
def test_masks_of_two_kinds_follow_the_precedence(stronger, weaker):
    annotation = {}
    for kind in (weaker, stronger):
        for key, rows in KINDS[kind].items():
            annotation[key] = [*annotation.get(key, []), *rows]
    if stronger == "incorrect":
        expected = ALONE[weaker] - {1}
    else:
        expected = ALONE[stronger]
    assert allowed_labels(3, **annotation)[1, 3] == expected


def test_masks_everything_missing_allows_everything():
    labels = allowed_labels(4, missing=[(0, 4, ANY_LABEL)])
    assert all(own == {0, 1, 2, 3} for own in labels.values())


def test_masks_of_a_batch_keep_segments_apart():
    index = SpanIndex.build([3, 1, 4, 3])
    observed = torch.tensor([(0, 0, 2, 1), (2, 1, 3, 0), (3, 0, 3, 1)])
    missing = torch.tensor([(2, 3, 4, ANY_LABEL), (0, 2, 3, 0)])
    incorrect = torch.tensor([(2, 3, 4, 1)])
    allowed, rejected = packed_masks(
        index, ENTITY, LABELS, observed, missing, incorrect
    )
    chart, refused = index.unpack(allowed), index.unpack(rejected[None])
    for segment, length in enumerate(index.lengths):
        rows = [
            [tuple(row[1:]) for row in table.tolist() if row[0] == segment]
            for table in (observed, missing, incorrect)
        ]
        for span, (labels, is_rejected) in masks(length, *rows).items():
            cell = chart[(segment, *span)]
            assert set(cell.nonzero()[:, 0].tolist()) == labels
            assert bool(refused[(segment, *span)]) == is_rejected


@few
@given(
    st.data(),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_masks_crossing_spans_are_those_that_cross_one_of_their_set(
    data, lengths, copies
):
    every = [(b, *span) for b, length in enumerate(lengths) for span in spans(length)]
    rows = data.draw(st.lists(st.sampled_from(every), max_size=8))
    copy = data.draw(
        st.lists(st.integers(0, copies - 1), min_size=len(rows), max_size=len(rows))
    )
    index = SpanIndex.build(lengths)
    table = torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)
    result = crossing_spans(index, table, torch.tensor(copy, dtype=torch.int64), copies)
    columns = (index.segment.tolist(), index.start.tolist(), index.end.tolist())
    assert result.tolist() == [
        [
            any(
                own == number and b == other[0] and crosses((start, end), other[1:])
                for other, own in zip(rows, copy, strict=True)
            )
            for number in range(copies)
        ]
        for b, start, end in zip(*columns, strict=True)
    ]


def test_masks_crossing_spans_are_of_one_set_by_default():
    index = SpanIndex.build([4, 3])
    table = torch.tensor([(0, 1, 3, 0), (1, 0, 2, 0)])
    of_one = crossing_spans(index, table, torch.zeros(2, dtype=torch.int64), 1)
    assert torch.equal(crossing_spans(index, table), of_one)


def test_masks_spans_inside_lists_pairs_of_span_and_region():
    index = SpanIndex.build([2, 3])
    regions = torch.tensor([(1, 1, 3), (0, 0, 1), (1, 2, 3)])
    rows, numbers = spans_inside(index, regions)
    found = {
        (number, int(index.segment[row]), int(index.start[row]), int(index.end[row]))
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True)
    }
    assert found == {
        (0, 1, 1, 2),
        (0, 1, 1, 3),
        (0, 1, 2, 3),
        (1, 0, 0, 1),
        (2, 1, 2, 3),
    }


@few
@given(
    st.lists(
        st.tuples(st.sampled_from(spans(5)), st.integers(1, 3)), min_size=1, max_size=6
    )
)
def test_masks_largest_compatible_has_the_largest_weight_without_crossing(weighted):
    table = [(*span, weight) for span, weight in weighted]
    kept = largest_compatible(table, 5)
    chosen = [row for row, keep in zip(table, kept, strict=True) if keep]
    assert not any(crosses(a, b) for a, b in itertools.combinations(chosen, 2))
    best = max(
        sum(row[2] for row in subset)
        for size in range(len(table) + 1)
        for subset in itertools.combinations(table, size)
        if not any(crosses(a, b) for a, b in itertools.combinations(subset, 2))
    )
    assert sum(row[2] for row in chosen) == best


def test_masks_largest_compatible_adds_the_weights_of_one_span():
    table = [(1, 3, 3), (0, 2, 2), (0, 2, 2)]
    assert largest_compatible(table, 3) == [False, True, True]


def test_masks_largest_compatible_of_nothing_is_nothing():
    assert largest_compatible([], 3) == []


def test_masks_largest_compatible_breaks_ties_the_same_way_in_any_order():
    crossing = [(0, 2, 1), (1, 3, 1)]
    # The smaller left part: (0, 1), (1, 3).
    assert largest_compatible(crossing, 3) == [False, True]
    assert largest_compatible(crossing[::-1], 3) == [True, False]


def test_masks_create_nothing_on_the_default_device():
    expected = observed_mask([(0, 2, 0)], 3, 1, 2)
    with torch.device("meta"):
        assert torch.equal(observed_mask([(0, 2, 0)], 3, 1, 2), expected)
        assert largest_compatible([(0, 2, 1), (1, 3, 2)], 3) == [False, True]
