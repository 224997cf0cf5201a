"""Losses over chunks, and their gradients, against the dense functions."""

import math

import numpy as np
import pytest
import torch

from spacy_treecrf.ml.loss import distribution_potentials, loss_and_gradients
from spacy_treecrf.structure import marginals, masked_log_partition, observed_mask
from spacy_treecrf.structure.inside import LOG_ZERO, log_partition
from spacy_treecrf.structure.losses import (
    normalize_potentials,
    smoothed_potentials,
    tree_crf_losses,
)
from spacy_treecrf.structure.masks import ANY_LABEL, packed_masks

from .chunks import (
    annotation_of,
    block,
    chunk_of,
    part_of,
    settings_of,
    temperature_model,
)

LENGTHS = [4, 1, 6, 3]
OBSERVED = [(0, 0, 3, 1), (0, 1, 2, 0), (1, 0, 1, 0), (2, 2, 6, 0), (2, 2, 4, 0)]
GOLD = annotation_of(OBSERVED)


def dense_masked(chart, lengths, observed, n_entity_labels=2, max_width=None):
    """Masked log-sums of dense potentials."""
    allowed = torch.zeros(chart.shape, dtype=torch.bool)
    for number, length in enumerate(lengths):
        own = [row[1:] for row in observed if row[0] == number]
        mask = observed_mask(own, length, n_entity_labels, chart.shape[-1], max_width)
        allowed[number, : length + 1, : length + 1] = mask
    return masked_log_partition(chart, allowed, lengths, max_width=max_width)


def dense(chunk, values=None):
    data = chunk.data if values is None else values
    return chunk.index.unpack(torch.as_tensor(data))


def run(chunks, gold=GOLD, model=None, **settings):
    model = temperature_model() if model is None else model
    return loss_and_gradients(model, chunks, gold, settings_of(**settings))


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_loss_under_a_width_limit_is_minus_log_p_of_the_entities_within(width):
    chunk = chunk_of(LENGTHS, max_width=width)
    losses, (gradient,) = run([chunk])
    chart = dense(chunk)
    masked = dense_masked(chart, LENGTHS, OBSERVED, max_width=width)
    expected = log_partition(chart, LENGTHS, max_width=width) - masked
    np.testing.assert_allclose(losses, expected, rtol=1e-10)
    assert np.isfinite(gradient).all()


def test_loss_of_each_segment_is_minus_log_p_of_its_entities():
    chunk = chunk_of(LENGTHS)
    losses, _ = run([chunk])
    chart = dense(chunk)
    expected = log_partition(chart, LENGTHS) - dense_masked(chart, LENGTHS, OBSERVED)
    assert losses.dtype == np.float64
    np.testing.assert_allclose(losses, expected, rtol=1e-10)


@pytest.mark.parametrize("scope", ["all", "rejected"])
def test_loss_smooths_the_zeros_of_its_scope(scope):
    chunk = chunk_of(LENGTHS)
    losses, _ = run([chunk], structure_smoothing=0.02, smoothing_scope=scope)
    data, observed = torch.tensor(chunk.data), torch.tensor(OBSERVED)
    allowed, rejected = packed_masks(chunk.index, 2, 3, observed)
    masked = smoothed_potentials(
        data, allowed, 0.02, rejected if scope == "rejected" else None
    )
    expected = tree_crf_losses(data, masked, chunk.index)
    np.testing.assert_allclose(losses, expected, rtol=1e-10)


def test_loss_gradient_is_marginals_minus_masked_marginals_over_segments():
    chunk = chunk_of(LENGTHS)
    _, (gradient,) = run([chunk])
    chart = dense(chunk).requires_grad_()
    dense_masked(chart, LENGTHS, OBSERVED).sum().backward()
    full = marginals(chart, LENGTHS)
    expected = (full - chart.grad) / len(LENGTHS)
    np.testing.assert_allclose(dense(chunk, gradient), expected, atol=1e-12)
    # Observed nodes pull with what they lack to probability 1.
    for segment, start, end, label in OBSERVED:
        lacking = full[segment, start, end, label] - 1.0
        pull = dense(chunk, gradient)[segment, start, end, label] * len(LENGTHS)
        assert pull.item() == pytest.approx(lacking.item(), abs=1e-9)


SETTINGS = {
    "plain": {},
    "smoothing": {"structure_smoothing": 0.02},
    "smoothing rejected": {"structure_smoothing": 0.02, "smoothing_scope": "rejected"},
    "normalised": {"potential_normalization": True},
    "constant temperature": {"potential_normalization": True, "temperature": 3.0},
    "all": {"potential_normalization": True, "structure_smoothing": 0.02},
    "local": {"objective": "local"},
    "margin": {"softmax_margin": 0.5},
    "local margin": {"objective": "local", "softmax_margin": 0.5},
    "all with margin": {
        "potential_normalization": True,
        "structure_smoothing": 0.02,
        "softmax_margin": 0.5,
    },
}
every_setting = pytest.mark.parametrize(
    "settings", SETTINGS.values(), ids=SETTINGS.keys()
)


@every_setting
def test_loss_gradient_equals_finite_differences(settings):
    chunk = block(chunk_of([3, 2]), 2)
    gold = annotation_of([(0, 0, 2, 1)], [(1, 0, 1, ANY_LABEL)], [(1, 0, 1, 0)])
    _, (gradient,) = run([chunk], gold, **settings)
    start, step = chunk.data.copy(), 1e-5
    for cell in np.ndindex(*start.shape):
        if cell[0] < 2 and not chunk.usable[cell[1]]:
            continue
        means = []
        for sign in (1, -1):
            chunk.data = start.copy()
            chunk.data[cell] += sign * step
            means.append(run([chunk], gold, **settings)[0].mean())
        slope = (means[0] - means[1]) / (2 * step)
        assert gradient[cell] == pytest.approx(slope, abs=1e-7)


@every_setting
def test_loss_of_chunks_is_the_loss_of_the_batch(settings):
    chunk = chunk_of(LENGTHS)
    losses, (gradient,) = run([chunk], **settings)
    parts = [part_of(chunk, [2, 0]), part_of(chunk, [3, 1])]
    found, gradients = run(parts, **settings)
    np.testing.assert_allclose(found, losses, rtol=1e-10)
    whole = dense(chunk, gradient)
    for part, own in zip(parts, gradients, strict=True):
        for number, chart in zip(part.numbers, dense(part, own), strict=True):
            size = LENGTHS[number] + 1
            expected = whole[number, :size, :size]
            np.testing.assert_allclose(chart[:size, :size], expected, atol=1e-12)


@every_setting
def test_loss_by_torch_struct_is_the_same(settings):
    pytest.importorskip("torch_struct")
    chunk = block(chunk_of(LENGTHS), 3)
    ours = run([chunk], **settings)
    theirs = run([chunk], inference="torch_struct", **settings)
    np.testing.assert_allclose(theirs[0], ours[0], rtol=1e-9)
    np.testing.assert_allclose(theirs[1][0], ours[1][0], atol=1e-9)


@every_setting
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_loss_gradients_have_the_precision_of_the_potentials(settings, dtype):
    chunk = chunk_of(LENGTHS, dtype=dtype)
    losses, (gradient,) = run([chunk], **settings)
    assert gradient.dtype == dtype
    assert gradient.shape == chunk.data.shape
    expected, _ = run([chunk_of(LENGTHS)], **settings)
    rough = 0.1 if dtype == "float16" else 1e-4
    np.testing.assert_allclose(losses, expected, rtol=rough, atol=rough)


@every_setting
def test_loss_leaves_the_potentials_alone(settings):
    chunk = chunk_of(LENGTHS)
    before = chunk.data.copy()
    run([chunk], **settings)
    np.testing.assert_array_equal(chunk.data, before)


@every_setting
def test_loss_is_zero_where_everything_is_missing(settings):
    missing = [(b, 0, length, ANY_LABEL) for b, length in enumerate(LENGTHS)]
    losses, (gradient,) = run(
        [chunk_of(LENGTHS)], annotation_of([], missing), **settings
    )
    np.testing.assert_allclose(losses, 0.0, atol=1e-9)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


# The temperature.


@pytest.mark.parametrize("log_temperature", [0.0, 0.8, -1.0])
def test_loss_temperature_gradient_equals_finite_differences(log_temperature):
    chunk = chunk_of(LENGTHS)
    model, step = temperature_model(log_temperature), 1e-5
    run([chunk], model=model, potential_normalization=True)
    means = [
        run(
            [chunk],
            model=temperature_model(log_temperature + sign * step),
            potential_normalization=True,
        )[0].mean()
        for sign in (1, -1)
    ]
    slope = (means[0] - means[1]) / (2 * step)
    gradient = model.get_grad("log_temperature")
    assert gradient.shape == (1,)
    assert gradient[0] == pytest.approx(slope, abs=1e-8)


def test_loss_temperature_gradients_of_chunks_add_up():
    chunk = chunk_of(LENGTHS)
    gradients = []
    for parts in ([chunk], [part_of(chunk, [number]) for number in range(4)]):
        model = temperature_model(0.3)
        run(parts, model=model, potential_normalization=True)
        gradients.append(model.get_grad("log_temperature")[0])
    assert gradients[1] == pytest.approx(gradients[0])


def test_loss_constant_temperature_is_the_deviation_of_the_potentials():
    chunk = chunk_of(LENGTHS)
    learned = run(
        [chunk], model=temperature_model(math.log(3)), potential_normalization=True
    )
    model = temperature_model()
    constant = run([chunk], model=model, potential_normalization=True, temperature=3.0)
    np.testing.assert_allclose(constant[0], learned[0])
    assert not model.has_grad("log_temperature")


def test_loss_has_no_temperature_without_normalisation():
    chunk = chunk_of(LENGTHS)
    model = temperature_model(2.0)
    expected, _ = run([chunk])
    np.testing.assert_array_equal(run([chunk], model=model)[0], expected)
    assert not model.has_grad("log_temperature")


# The local objective.


def test_loss_local_ignores_what_regularises_trees():
    chunk = chunk_of(LENGTHS)
    expected, _ = run([chunk], objective="local")
    losses, _ = run(
        [chunk],
        model=temperature_model(1.0),
        objective="local",
        potential_normalization=True,
        structure_smoothing=0.1,
    )
    np.testing.assert_array_equal(losses, expected)


def test_loss_local_is_the_cross_entropy_summed_over_spans():
    chunk = chunk_of([2])
    losses, (gradient,) = run([chunk], annotation_of([(0, 0, 2, 1)]), objective="local")
    chances = torch.tensor(chunk.data).softmax(0)
    spans = zip(chunk.index.start.tolist(), chunk.index.end.tolist(), strict=True)
    gold = [1 if span == (0, 2) else 2 for span in spans]
    expected = -sum(math.log(chances[label, row]) for row, label in enumerate(gold))
    assert losses.tolist() == pytest.approx([expected])
    target = torch.nn.functional.one_hot(torch.tensor(gold), 3).T
    np.testing.assert_allclose(gradient, chances - target, atol=1e-12)


# White space.


def test_loss_potentials_bar_entities_from_spans_that_are_not_usable():
    chunk = block(chunk_of([4]), 2)
    scores = distribution_potentials(
        torch.tensor(chunk.data), chunk, settings_of(), 0.0
    )
    assert (scores[:2, ~chunk.usable] == LOG_ZERO).all()
    np.testing.assert_array_equal(scores[2], chunk.data[2])
    np.testing.assert_array_equal(
        scores[:, chunk.usable], chunk.data[:, chunk.usable.numpy()]
    )


def test_loss_potentials_are_normalised_over_usable_spans_and_barred_after():
    chunk = block(chunk_of([4]), 2)
    data = torch.tensor(chunk.data)
    scores = distribution_potentials(
        data, chunk, settings_of(potential_normalization=True), 0.5
    )
    expected = normalize_potentials(data, chunk.index, chunk.usable, 0.5)
    np.testing.assert_array_equal(scores[:, chunk.usable], expected[:, chunk.usable])
    assert (scores[:2, ~chunk.usable] == LOG_ZERO).all()


@every_setting
def test_loss_does_not_depend_on_what_unusable_spans_score(settings):
    chunk = block(chunk_of([4, 3]), 2)
    gold = annotation_of([(0, 0, 2, 1)])
    losses, (gradient,) = run([chunk], gold, **settings)
    barred = ~chunk.usable.numpy()
    chunk.data[:2, barred] += 7.0
    moved, _ = run([chunk], gold, **settings)
    np.testing.assert_allclose(moved, losses, atol=1e-9)
    np.testing.assert_allclose(gradient[:2, barred], 0.0, atol=1e-12)


# Annotation.


def test_loss_annotation_select_numbers_segments_anew():
    rows = [(0, 0, 1, 0), (2, 1, 2, 1), (1, 0, 2, 0), (2, 0, 2, -1)]
    chosen = annotation_of(rows, rows[1:2], rows[2:3]).select(np.array([2, 0]), 4)
    assert chosen.observed.tolist() == [[1, 0, 1, 0], [0, 1, 2, 1], [0, 0, 2, -1]]
    assert chosen.missing.tolist() == [[0, 1, 2, 1]]
    assert chosen.incorrect.shape == (0, 4)


def test_loss_partial_annotation_lies_between_full_annotation_and_none():
    chunk = chunk_of([4])
    observed = [(0, 0, 2, 1)]
    losses = [
        run([chunk], annotation_of(observed, missing))[0][0]
        for missing in (
            [],
            [(0, 2, 4, 0)],
            [(0, 2, 4, ANY_LABEL)],
            [(0, 0, 4, ANY_LABEL)],
        )
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] > 0
