"""Entities and their probabilities, against enumeration of trees and of span sets."""

import itertools

import numpy as np
import pytest
import torch
from chain_oracle import analyses
from hypothesis import given
from hypothesis import strategies as st
from oracles import bracketings, crosses, tree_cells, tree_marginals, tree_scores
from strategies import few, seeds

from spacy_treecrf.ml.decoding import decode, decode_with_candidates
from spacy_treecrf.structure import (
    best_tree,
    entropy,
    k_best_entity_sets,
    marginals,
)
from spacy_treecrf.structure.losses import normalize_potentials

from .chunks import block, chunk_of, part_of, settings_of, temperature_model

PLAIN = np.eye(2, dtype="float32")
LENGTHS = [4, 1, 3]
lengths_drawn = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def run(
    chunks, decoder="cky", threshold=None, membership=PLAIN, model=None, **settings
):
    """Entities as a dict from (segment, start, end, label) to scores."""
    return {
        (int(b), int(s), int(e), int(k)): chances
        for part in run_entities(
            chunks, decoder, threshold, membership, model, **settings
        )
        for b, s, e, k, chances, _ in zip(*part, strict=True)
    }


def run_entities(
    chunks, decoder="cky", threshold=None, membership=PLAIN, model=None, **settings
):
    return decode(
        temperature_model() if model is None else model,
        chunks,
        settings_of(**settings),
        membership,
        decoder,
        threshold,
    )


def run_plain(*arguments, **settings):
    """Written entities as a dict from (segment, start, end, plain label) to its score."""
    return {
        (int(b), int(s), int(e), int(label)): chances[label]
        for part in run_entities(*arguments, **settings)
        for b, s, e, _, chances, parts in zip(*part, strict=True)
        for label in parts.nonzero()[0]
    }


def dense(chunk, values=None):
    return chunk.index.unpack(torch.as_tensor(chunk.data if values is None else values))


def enumerated_marginals(chunk, number):
    length = chunk.index.lengths[number]
    cells = tree_cells(length, len(chunk.data))
    return tree_marginals(dense(chunk)[number], cells)


@few
@given(lengths_drawn, seeds)
def test_decoding_cky_finds_the_entities_of_the_best_tree(lengths, seed):
    chunk = chunk_of(lengths, seed=seed)
    expected = set()
    for number, length in enumerate(lengths):
        cells = tree_cells(length, 3)
        best = cells[tree_scores(dense(chunk)[number], cells).argmax()]
        expected |= {(number, *node) for node in best.tolist() if node[2] < 2}
    assert run([chunk]).keys() == expected


@few
@given(lengths_drawn, seeds, st.sampled_from(["cky", "mbr"]))
def test_decoding_scores_are_the_marginals_of_each_label(lengths, seed, decoder):
    chunk = chunk_of(lengths, seed=seed)
    for (b, start, end, _), scores in run([chunk], decoder, 0.1).items():
        expected = enumerated_marginals(chunk, b)[start, end, :2]
        np.testing.assert_allclose(scores, expected, atol=1e-6)


@few
@given(lengths_drawn, seeds, st.sampled_from([0.0, 0.3, 0.6, 1.0]))
def test_decoding_cky_drops_nodes_up_to_the_threshold(lengths, seed, threshold):
    chunk = chunk_of(lengths, seed=seed)
    every = run([chunk])
    expected = {
        (b, start, end, label)
        for b, start, end, label in every
        if enumerated_marginals(chunk, b)[start, end, label] > threshold
    }
    assert run([chunk], threshold=threshold).keys() == expected


@few
@given(lengths_drawn, seeds, st.sampled_from([None, 0.1, 0.3]))
def test_decoding_mbr_has_the_largest_sum_above_the_threshold(lengths, seed, threshold):
    chunk = chunk_of(lengths, seed=seed)
    found = run([chunk], "mbr", threshold)
    cut = 0.5 if threshold is None else threshold
    for number, length in enumerate(lengths):
        chances = enumerated_marginals(chunk, number)[..., :2].amax(-1)
        gains = (chances - cut).clamp(min=0.0)
        best = max(
            sum(gains[span].item() for span in spans)
            for spans in bracketings(0, length)
        )
        own = [gains[node[1:3]].item() for node in found if node[0] == number]
        assert sum(own) == pytest.approx(best, abs=1e-9)
        assert all(gain > 0 for gain in own)


@pytest.mark.parametrize(("threshold", "kept"), [(0.5, 0), (0.49, 1)])
def test_decoding_cky_drops_a_node_whose_marginal_is_the_threshold(threshold, kept):
    chunk = chunk_of([1], n_labels=2, scale=0.0)
    found = run([chunk], "cky", threshold, PLAIN[:1, :1], n_entity_labels=1)
    assert len(found) == kept


def test_decoding_mbr_cuts_at_one_half_by_default():
    chunk = chunk_of(LENGTHS, scale=3.0)
    assert run([chunk], "mbr").keys() == run([chunk], "mbr", 0.5).keys()


def test_decoding_composite_labels_count_for_each_label_they_hold():
    # Entity labels A, B and the composite A + B; one latent label.
    chunk = chunk_of(LENGTHS, n_labels=4, seed=3)
    membership = np.array([[1, 0, 1], [0, 1, 1]], dtype="float32")
    found = run([chunk], membership=membership, n_entity_labels=3)
    assert found
    for (b, start, end, _), scores in found.items():
        chances = enumerated_marginals(chunk, b)[start, end]
        expected = [chances[0] + chances[2], chances[1] + chances[2]]
        np.testing.assert_allclose(scores, expected, atol=1e-6)


# Entity labels A, B and the composite A + B; one latent label.
COMPOSITE = np.array([[1, 0, 1], [0, 1, 1]], dtype="float32")


def plain_scores(chunk, objective="treecrf"):
    """Score of A and B at each span, as dense charts. Shape: (B, P, P, 2)."""
    if objective == "local":
        chances = dense(chunk, torch.tensor(chunk.data).softmax(0))
    else:
        chances = torch.stack(
            [
                torch.nn.functional.pad(own, (0, 0, *[0, size - own.shape[0]] * 2))
                for own in (
                    enumerated_marginals(chunk, number)
                    for number in range(len(chunk.index.lengths))
                )
                for size in [max(chunk.index.lengths) + 1]
            ]
        )
    return chances[..., :3] @ torch.tensor(COMPOSITE.T, dtype=torch.float64)


@few
@given(lengths_drawn, seeds, st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.9]))
def test_decoding_cky_judges_each_part_of_a_composite_by_its_own_score(
    lengths, seed, threshold
):
    chunk = chunk_of(lengths, n_labels=4, seed=seed)
    settings = {"membership": COMPOSITE, "n_entity_labels": 3}
    scores = plain_scores(chunk)
    expected = {
        (b, start, end, part)
        for b, start, end, label in run([chunk], **settings)
        for part in COMPOSITE[:, label].nonzero()[0].tolist()
        if scores[b, start, end, part] > threshold
    }
    assert run_plain([chunk], threshold=threshold, **settings).keys() == expected


def test_decoding_cky_threshold_may_split_a_composite():
    # One token: A 0.3, A + B 0.4, B 0.1, latent 0.2. So A 0.7, B 0.5.
    chunk = chunk_of([1], n_labels=4)
    chunk.data[:, 0] = np.log([0.3, 0.1, 0.4, 0.2])
    settings = {"membership": COMPOSITE, "n_entity_labels": 3}
    found = {
        threshold: {
            label: round(float(score), 4)
            for (*_, label), score in run_plain(
                [chunk], threshold=threshold, **settings
            ).items()
        }
        for threshold in (None, 0.45, 0.6, 0.75)
    }
    assert found == {
        None: {0: 0.7, 1: 0.5},
        0.45: {0: 0.7, 1: 0.5},
        0.6: {0: 0.7},
        0.75: {},
    }


@few
@given(
    lengths_drawn,
    seeds,
    st.sampled_from([0.1, 0.2, 0.5]),
    st.sampled_from([("mbr", "treecrf"), ("cky", "local"), ("mbr", "local")]),
)
def test_decoding_composites_maximise_what_their_parts_exceed(
    lengths, seed, threshold, how
):
    decoder, objective = how
    chunk = chunk_of(lengths, n_labels=4, seed=seed)
    found = run_plain(
        [chunk],
        decoder,
        threshold,
        COMPOSITE,
        n_entity_labels=3,
        objective=objective,
    )
    excess = (plain_scores(chunk, objective) - threshold).clamp(min=0.0)
    for number, length in enumerate(lengths):
        # The best label of a span: A, B, or both.
        gains = excess[number].sum(-1)
        best = max(
            sum(gains[span].item() for span in spans)
            for spans in bracketings(0, length)
        )
        own = [excess[node].item() for node in found if node[0] == number]
        assert sum(own) == pytest.approx(best, abs=1e-6)
        assert all(gain > 0 for gain in own)


@few
@given(
    lengths_drawn,
    seeds,
    st.floats(0.0, 1.0),
    st.sampled_from(["cky", "mbr"]),
    st.sampled_from(["treecrf", "local"]),
)
def test_decoding_writes_nothing_at_or_below_a_threshold(
    lengths, seed, threshold, decoder, objective
):
    chunk = chunk_of(lengths, n_labels=4, seed=seed, dtype="float32")
    found = run_plain(
        [chunk],
        decoder,
        threshold,
        COMPOSITE,
        n_entity_labels=3,
        objective=objective,
    )
    assert all(
        score > np.float32(threshold) and float(score) > threshold
        for score in found.values()
    )


@pytest.mark.parametrize("objective", ["treecrf", "local"])
def test_decoding_without_a_threshold_writes_all_parts(objective):
    chunk = chunk_of(LENGTHS, n_labels=4, seed=3)
    (found,) = run_entities(
        [chunk], membership=COMPOSITE, n_entity_labels=3, objective=objective
    )
    np.testing.assert_array_equal(found.parts, COMPOSITE.T[found.label] > 0)


@pytest.mark.parametrize("decoder", ["cky", "mbr"])
@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("inference", ["fused", "torch_struct"])
def test_decoding_scores_are_right_for_scores_of_any_size(decoder, scale, inference):
    if inference == "torch_struct":
        pytest.importorskip("torch_struct")
    single = chunk_of([40, 9], scale=scale, dtype="float32")
    double = chunk_of([40, 9], scale=scale)
    double.data = single.data.astype("float64")
    found = run([single], decoder, 0.3, inference=inference)
    expected = run([double], decoder, 0.3)
    assert found.keys() == expected.keys()
    for node, scores in found.items():
        np.testing.assert_allclose(scores, expected[node], atol=2e-6)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4])
def test_decoding_entropy_is_right_for_scores_of_any_size(scale):
    single = chunk_of([40, 9], scale=scale, dtype="float32")
    double = chunk_of([40, 9], scale=scale)
    double.data = single.data.astype("float64")
    entropies = [
        decode_with_candidates(
            temperature_model(), [chunk], settings_of(), PLAIN, "cky", None, 5, True
        )[0][1].entropy
        for chunk in (single, double)
    ]
    assert entropies[0].dtype == np.float64
    np.testing.assert_allclose(*entropies, atol=1e-3)


@pytest.mark.parametrize("objective", ["treecrf", "local"])
def test_decoding_scores_are_float32_probabilities(objective):
    chunk = chunk_of(LENGTHS, scale=30.0, dtype="float32")
    (found,) = decode(
        temperature_model(),
        [chunk],
        settings_of(objective=objective),
        PLAIN,
        "cky",
        None,
    )
    assert found.scores.dtype == np.float32
    assert found.scores.shape == (len(found.label), 2)
    assert (found.scores >= 0).all()
    assert (found.scores <= 1).all()


@pytest.mark.parametrize("decoder", ["cky", "mbr"])
def test_decoding_of_chunks_numbers_segments_as_in_the_batch(decoder):
    chunk = chunk_of(LENGTHS, seed=2)
    whole = run([chunk], decoder, 0.2)
    parts = (part_of(chunk, numbers) for numbers in ([2, 1], [0]))
    found = run(parts, decoder, 0.2)
    assert {node[0] for node in whole} == {0, 1, 2}
    assert found.keys() == whole.keys()
    for node, scores in found.items():
        np.testing.assert_allclose(scores, whole[node], atol=1e-6)


@pytest.mark.parametrize("objective", ["treecrf", "local"])
@pytest.mark.parametrize("decoder", ["cky", "mbr"])
@pytest.mark.parametrize("latent", [1, 2])
def test_decoding_finds_no_entity_that_borders_on_white_space(
    objective, decoder, latent
):
    chunk = block(chunk_of([4], n_labels=2 + latent), 1)
    # Without the bar, every node would be an entity.
    chunk.data[:2] += 50.0
    threshold = 0.0 if decoder == "mbr" else None
    found = run([chunk], decoder, threshold, objective=objective)
    spans = {node[1:3] for node in found}
    assert (0, 4) in spans
    assert all(1 not in (start, end - 1) for start, end in spans)


@pytest.mark.parametrize("decoder", ["cky", "mbr"])
def test_decoding_by_torch_struct_is_the_same(decoder):
    pytest.importorskip("torch_struct")
    chunk = block(chunk_of(LENGTHS, seed=4), 2)
    ours = run([chunk], decoder)
    theirs = run([chunk], decoder, inference="torch_struct")
    assert theirs.keys() == ours.keys()
    for node, scores in theirs.items():
        np.testing.assert_allclose(scores, ours[node], atol=1e-6)


def test_decoding_normalises_as_in_training():
    chunk = chunk_of(LENGTHS, scale=9.0)
    normalised = chunk_of(LENGTHS)
    normalised.data = normalize_potentials(
        torch.tensor(chunk.data), chunk.index, None, 0.4
    ).numpy()
    found = run([chunk], model=temperature_model(0.4), potential_normalization=True)
    expected = run([normalised])
    assert found.keys() == expected.keys()
    for node, scores in found.items():
        np.testing.assert_allclose(scores, expected[node], atol=1e-6)


def test_decoding_leaves_the_potentials_alone():
    chunk = chunk_of(LENGTHS)
    before = chunk.data.copy()
    run([chunk], "mbr", potential_normalization=True)
    np.testing.assert_array_equal(chunk.data, before)


def test_decoding_of_nothing_is_nothing():
    assert run([]) == {}


# Under a width limit.


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_decoding_under_a_width_limit_finds_the_best_chains(width):
    lengths = [6, 2, 5]
    chunk = chunk_of(lengths, max_width=width)
    potentials = dense(chunk)
    trees = best_tree(potentials, lengths, max_width=width)
    expected = {
        (number, *node)
        for number, tree in enumerate(trees)
        for node in tree
        if node[2] < 2
    }
    chances = marginals(potentials, lengths, max_width=width)
    found = run([chunk])
    assert found.keys() == expected
    for (b, start, end, _), scores in found.items():
        np.testing.assert_allclose(scores, chances[b, start, end, :2], atol=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("how", [("mbr", "treecrf"), ("cky", "local")])
def test_decoding_under_a_width_limit_maximises_what_exceeds_a_threshold(width, how):
    decoder, objective = how
    lengths = [5, 2]
    chunk = chunk_of(lengths, max_width=width)
    found = run([chunk], decoder, 0.3, objective=objective)
    if objective == "local":
        chances = dense(chunk, torch.tensor(chunk.data).softmax(0))
    else:
        chances = marginals(dense(chunk), lengths, max_width=width)
    for number, length in enumerate(lengths):
        gains = (chances[number, ..., :2].amax(-1) - 0.3).clamp(min=0.0)
        best = max(
            sum(gains[span].item() for span in spans)
            for spans in analyses(length, width)
        )
        own = [gains[node[1:3]].item() for node in found if node[0] == number]
        assert sum(own) == pytest.approx(best, abs=1e-6)


def test_decoding_candidates_under_a_width_limit_are_those_of_the_structure():
    lengths = [6, 2]
    chunk = chunk_of(lengths, max_width=2)
    ((_, candidates),) = decode_with_candidates(
        temperature_model(), [chunk], settings_of(), PLAIN, "cky", None, 5, True
    )
    expected = k_best_entity_sets(dense(chunk), lengths, 5, 2, max_width=2)
    for own, others in zip(candidates.sets, expected, strict=True):
        assert [entities for _, entities in own] == [each for _, each in others]
        assert [log_prob for log_prob, _ in own] == pytest.approx(
            [log_prob for log_prob, _ in others]
        )
    np.testing.assert_allclose(
        candidates.entropy, entropy(dense(chunk), lengths, max_width=2)
    )


# The local objective.


@few
@given(st.lists(st.integers(1, 3), min_size=1, max_size=2), seeds)
def test_decoding_local_is_the_best_set_that_does_not_cross(lengths, seed):
    chunk = chunk_of(lengths, seed=seed)
    found = run([chunk], objective="local")
    log_chances = dense(chunk, torch.tensor(chunk.data).log_softmax(0))
    for number, length in enumerate(lengths):
        spans = [(s, e) for s in range(length) for e in range(s + 1, length + 1)]
        own = log_chances[number]
        subsets = itertools.chain.from_iterable(
            itertools.combinations(spans, size) for size in range(len(spans) + 1)
        )
        # Log-probability of a labelling in which just these spans are entities.
        best = max(
            sum(own[s][:2].max() if s in kept else own[s][2] for s in spans).item()
            for kept in subsets
            if not any(crosses(a, b) for a, b in itertools.combinations(kept, 2))
        )
        mine = {node[1:3]: node[3] for node in found if node[0] == number}
        total = sum(own[s][mine.get(s, 2)] for s in spans).item()
        assert total == pytest.approx(best)


@few
@given(lengths_drawn, seeds, st.sampled_from([None, 0.05, 0.4]))
def test_decoding_local_entities_do_not_cross(lengths, seed, threshold):
    found = run([chunk_of(lengths, seed=seed)], threshold=threshold, objective="local")
    for a, b in itertools.combinations(found, 2):
        assert a[0] != b[0] or not crosses(a[1:3], b[1:3])


@few
@given(lengths_drawn, seeds, st.sampled_from([0.05, 0.3, 0.7]))
def test_decoding_local_threshold_maximises_what_exceeds_it(lengths, seed, threshold):
    chunk = chunk_of(lengths, seed=seed)
    found = run([chunk], threshold=threshold, objective="local")
    chances = dense(chunk, torch.tensor(chunk.data).softmax(0))[..., :2].amax(-1)
    for number, length in enumerate(lengths):
        gains = (chances[number] - threshold).clamp(min=0.0)
        best = max(
            sum(gains[span].item() for span in spans)
            for spans in bracketings(0, length)
        )
        own = [gains[node[1:3]].item() for node in found if node[0] == number]
        assert sum(own) == pytest.approx(best)
        assert all(gain > 0 for gain in own)


def test_decoding_local_scores_are_the_softmax():
    chunk = chunk_of(LENGTHS)
    chances = dense(chunk, torch.tensor(chunk.data).softmax(0))
    found = run([chunk], objective="local")
    assert found
    for (b, start, end, _), scores in found.items():
        np.testing.assert_allclose(scores, chances[b, start, end, :2], atol=1e-6)
