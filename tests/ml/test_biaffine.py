"""Span scorers: Eq. 2 for every span, and widths that come late and travel along."""

import pickle
from io import BytesIO

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import few

from spacy_treecrf.ml.biaffine import (
    SettingMismatch,
    build_biaffine_span_scorer,
    build_bilinear_span_scorer,
)
from spacy_treecrf.ml.pieces import BUCKET_RATIO, length_buckets, pieces_of
from spacy_treecrf.structure.spans import SpanIndex

from .test_types import segments_of

BUILDERS = {
    "biaffine": build_biaffine_span_scorer,
    "bilinear": build_bilinear_span_scorer,
}
every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())
# Several buckets, in no order.
LENGTHS = [3, 9, 1, 4, 9, 8, 1]


def sample(lengths=LENGTHS, nI=6, seed=0, dtype="float32"):
    """Token vectors, segments and the layout."""
    rng = np.random.default_rng(seed)
    segments = segments_of(lengths)
    X = rng.normal(size=(int(segments.lengths.sum()), nI)).astype(dtype)
    return X, segments, SpanIndex.build(lengths)


def scorer(build=build_biaffine_span_scorer, nI=6, nO=3, seed=0, **settings):
    """An initialised scorer with random parameters: those that start at 0 too."""
    model = build(**{"dropout": 0.0, "nO": nO, **settings})
    X, segments, _ = sample(nI=nI)
    model.initialize(X=(X, segments))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module_of(model).parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return model


def module_of(model):
    return model.shims[0]._model


def assert_same(model, other, inputs):
    """The same weights, and with them the same potentials.

    Products of equal matrices at other places in memory may round otherwise.
    """
    weights = [module_of(one).state_dict() for one in (model, other)]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[1][name], own) for name, own in weights[0].items())
    potentials = [one.predict(inputs) for one in (model, other)]
    np.testing.assert_allclose(*potentials, rtol=1e-5, atol=1e-5)


def potentials_by_definition(model, X, segments, index):
    """Fu et al. (2021), Eq. 2, and the highest score within, span by span."""
    module = module_of(model).eval()
    with torch.no_grad():
        vectors = torch.from_numpy(X).float()
        starts, ends = module.views[0](vectors), module.views[-1](vectors)
        first = torch.from_numpy(segments.first)[index.segment]
        start, end = starts[first + index.start], ends[first + index.end - 1]
        potentials = torch.einsum("sd,lde,se->ls", start, module.bilinear, end)
        if module.bias is not None:
            potentials += torch.einsum("sd,ld->ls", start, module.start)
            potentials += torch.einsum("sd,ld->ls", end, module.end)
            potentials += module.bias[:, None]
        if module.inner is not None:
            inner = module.inner(vectors)
            begins, ends = first + index.start, first + index.end
            for span, (begin, end) in enumerate(zip(begins, ends, strict=True)):
                potentials[:, span] += inner[begin:end].max(dim=0).values
    return potentials.numpy()


@every_builder
@pytest.mark.parametrize("separate_views", [True, False])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("pooling", [None, "max"])
def test_biaffine_potentials_are_those_of_the_definition(
    build, separate_views, depth, pooling
):
    model = scorer(build, separate_views=separate_views, depth=depth, pooling=pooling)
    X, segments, index = sample()
    expected = potentials_by_definition(model, X, segments, index)
    result = model.predict((X, segments, index))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@few
@given(st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_biaffine_potentials_are_in_the_packed_order_whatever_the_buckets(lengths):
    model = scorer()
    X, segments, index = sample(lengths)
    expected = potentials_by_definition(model, X, segments, index)
    result = model.predict((X, segments, index))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_biaffine_segments_may_be_cut_out_of_a_longer_text():
    model = scorer()
    X, segments, _ = sample()
    chosen = segments.select(np.array([4, 0, 2]))
    index = SpanIndex.build(chosen.lengths.tolist())
    expected = potentials_by_definition(model, X, chosen, index)
    result = model.predict((X, chosen, index))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


def test_biaffine_score_of_a_segment_does_not_depend_on_its_batch():
    model = scorer()
    X, segments, index = sample()
    together = index.unpack(torch.from_numpy(model.predict((X, segments, index))))
    for number, length in enumerate(LENGTHS):
        own = segments.select(np.array([number]))
        layout = SpanIndex.build([length])
        alone = layout.unpack(torch.from_numpy(model.predict((X, own, layout))))[0]
        part = together[number, : length + 1, : length + 1]
        torch.testing.assert_close(part, alone, rtol=1e-5, atol=1e-5)


# Under a width limit.

RAGGED = [3, 23, 1, 8, 14, 9, 1]


def limited(model, inputs, max_width):
    """Potentials under a limit, and the rows of the unlimited ones that they are."""
    X, segments, index = inputs
    lengths = segments.lengths.tolist()
    narrow = SpanIndex.build(lengths, max_width=max_width)
    rows = index.row_of(narrow.segment, narrow.start, narrow.end)
    return (X, segments_of(lengths, max_width), narrow), rows


@every_builder
@pytest.mark.parametrize("pooling", [None, "max"])
@pytest.mark.parametrize("separate_views", [True, False])
@pytest.mark.parametrize("max_width", [1, 2, 3, 8, 9, 16, 22, 23, 60])
def test_biaffine_scores_under_a_limit_are_rows_of_the_unlimited_ones(
    build, pooling, separate_views, max_width
):
    model = scorer(build, pooling=pooling, separate_views=separate_views)
    inputs = sample(RAGGED)
    narrow, rows = limited(model, inputs, max_width)
    expected = model.predict(inputs)[:, rows.numpy()]
    np.testing.assert_allclose(model.predict(narrow), expected, rtol=1e-5, atol=1e-5)


@few
@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 12))
def test_biaffine_scores_under_a_limit_are_in_the_packed_order(lengths, max_width):
    model = scorer()
    inputs = sample(lengths)
    narrow, rows = limited(model, inputs, max_width)
    expected = model.predict(inputs)[:, rows.numpy()]
    np.testing.assert_allclose(model.predict(narrow), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("max_width", [23, 24, 1000])
def test_biaffine_limit_that_no_segment_exceeds_changes_no_digit(max_width):
    model = scorer()
    inputs = sample(RAGGED)
    narrow, _ = limited(model, inputs, max_width)
    np.testing.assert_array_equal(model.predict(narrow), model.predict(inputs))


@every_builder
@pytest.mark.parametrize("max_width", [1, 3, 9])
def test_biaffine_gradients_under_a_limit_are_those_of_the_rows(build, max_width):
    model = scorer(build)
    module = module_of(model).double()
    X, segments, index = sample(RAGGED, dtype="float64")
    narrow, rows = limited(model, (X, segments, index), max_width)
    found = []
    for arguments, chosen in (
        (narrow[1:], slice(None)),
        ((segments, index), rows),
    ):
        vectors = torch.from_numpy(X).requires_grad_()
        scores = module(vectors, *arguments)[:, chosen]
        weights = torch.arange(scores.numel(), dtype=torch.float64).sin()
        loss = (scores.flatten() * weights).sum()
        found.append(torch.autograd.grad(loss, [vectors, *module.parameters()]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@every_builder
def test_biaffine_gradients_under_a_limit_equal_finite_differences(build):
    module = module_of(scorer(build, nI=3, activation="tanh")).double()
    X, segments, _ = sample([3, 1, 7], nI=3, dtype="float64")
    index = SpanIndex.build([3, 1, 7], max_width=3)
    vectors = torch.from_numpy(X).requires_grad_()

    def forward(*tensors):
        return module(tensors[0], segments, index)

    assert torch.autograd.gradcheck(forward, (vectors, *module.parameters()))


@pytest.mark.parametrize("length", [500, 2000])
def test_biaffine_products_under_a_limit_grow_with_the_length_alone(length):
    (pieces,) = pieces_of(np.array([length]), 16)
    cells = int(pieces.counts.sum()) * pieces.n_starts * pieces.n_ends
    # Twice the band at most, and the last piece.
    assert cells <= 2 * 16 * (length + 16)


@pytest.mark.parametrize("lengths", [LENGTHS, [5] * 4, [100, 80, 79, 1]])
def test_biaffine_buckets_hold_each_segment_once_and_waste_little(lengths):
    buckets = length_buckets(np.array(lengths))
    order = np.concatenate([numbers for numbers, _ in buckets])
    assert sorted(order.tolist()) == list(range(len(lengths)))
    for numbers, longest in buckets:
        own = [lengths[number] for number in numbers]
        assert max(own) == longest <= min(own) * BUCKET_RATIO


@every_builder
@pytest.mark.parametrize("separate_views", [True, False])
@pytest.mark.parametrize(
    ("activation", "pooling"), [("gelu", "max"), ("tanh", None), ("identity", "max")]
)
def test_biaffine_gradients_equal_finite_differences(
    build, separate_views, activation, pooling
):
    model = scorer(
        build,
        nI=3,
        separate_views=separate_views,
        activation=activation,
        pooling=pooling,
    )
    module = module_of(model).double()
    X, segments, index = sample([3, 1, 4], nI=3, dtype="float64")
    vectors = torch.from_numpy(X).requires_grad_()
    parameters = list(module.parameters())

    def forward(*tensors):
        return module(tensors[0], segments, index)

    assert torch.autograd.gradcheck(forward, (vectors, *parameters))


@every_builder
def test_biaffine_backprop_is_the_gradient_of_the_input(build):
    model = scorer(build)
    X, segments, index = sample()
    Y, backprop = model.begin_update((X, segments, index))
    dY = np.random.default_rng(1).normal(size=Y.shape).astype("float32")
    vectors = torch.from_numpy(X.copy()).requires_grad_()
    output = module_of(model)(vectors, segments, index)
    output.backward(torch.from_numpy(dY))
    np.testing.assert_allclose(Y, output.detach(), rtol=1e-5, atol=1e-5)
    dX = backprop(dY)
    assert dX.shape == X.shape
    np.testing.assert_allclose(dX, vectors.grad, rtol=1e-4, atol=1e-5)


def test_biaffine_leaves_its_input_alone():
    model = scorer()
    X, segments, index = sample()
    before = X.copy()
    Y, backprop = model.begin_update((X, segments, index))
    backprop(np.ones_like(Y))
    np.testing.assert_array_equal(X, before)


def test_biaffine_takes_half_precision_and_computes_in_float32():
    model = scorer()
    X, segments, index = sample(dtype="float16")
    Y, backprop = model.begin_update((X, segments, index))
    expected = model.predict((X.astype("float32"), segments, index))
    assert Y.dtype == np.float32
    np.testing.assert_allclose(Y, expected, rtol=1e-5, atol=1e-5)
    assert backprop(np.ones_like(Y)).dtype == np.float16


# Settings.


@pytest.mark.parametrize(
    ("settings", "widths"),
    [
        ({}, [(6, 6), (6, 3)]),
        ({"hidden_width": 8}, [(6, 8), (8, 4)]),
        ({"hidden_width": 8, "depth": 1}, [(6, 4)]),
        ({"hidden_width": 8, "depth": 3}, [(6, 8), (8, 8), (8, 4)]),
        ({"hidden_width": 1}, [(6, 1), (1, 1)]),
    ],
)
def test_biaffine_last_layer_has_half_the_hidden_width(settings, widths):
    module = module_of(scorer(**settings))
    layers = [layer for layer in module.views[0] if hasattr(layer, "in_features")]
    assert [(layer.in_features, layer.out_features) for layer in layers] == widths
    assert module.bilinear.shape == (3, widths[-1][1], widths[-1][1])


def test_biaffine_shared_view_has_one_matrix_for_both_ends():
    module = module_of(scorer(separate_views=False))
    assert len(module.views) == 1
    assert module.start is module.end


def test_biaffine_separate_views_have_parameters_of_their_own():
    module = module_of(scorer())
    assert len(module.views) == 2
    assert module.start is not module.end


def test_biaffine_starts_with_trees_about_equally_probable():
    model = build_biaffine_span_scorer(nO=3)
    X, segments, index = sample()
    model.initialize(X=(X, segments))
    scores = model.predict((X, segments, index))
    assert 0 < np.abs(scores).max() < 0.3


def test_biaffine_dropout_acts_in_training_alone():
    model = scorer(dropout=0.5)
    inputs = sample()
    first, second = (model.begin_update(inputs)[0] for _ in range(2))
    assert not np.array_equal(first, second)
    expected = potentials_by_definition(model, *inputs)
    np.testing.assert_allclose(model.predict(inputs), expected, rtol=1e-4, atol=1e-4)


@every_builder
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "swish"}, "expected activation to be one of .*'swish'"),
        ({"depth": 0}, "depth of at least 1 .* received depth=0"),
        ({"dropout": 1.0}, r"dropout in \[0, 1\), received .*dropout=1.0"),
        ({"dropout": -0.1}, r"dropout in \[0, 1\), received .*dropout=-0.1"),
        ({"hidden_width": 0}, "hidden_width of at least 1.*received .*0"),
        ({"hidden_width": -4}, "hidden_width of at least 1.*received .*-4"),
        ({"pooling": "mean"}, "expected pooling to be 'max' or null, received 'mean'"),
    ],
)
def test_biaffine_refuses_settings_out_of_range(build, settings, message):
    with pytest.raises(ValueError, match=message):
        build(**settings)


# Widths that come late, and storage.


def test_biaffine_widths_may_be_set_after_building():
    model = build_biaffine_span_scorer()
    X, segments, index = sample(nI=7)
    model.set_dim("nO", 4)
    model.initialize(X=(X, segments))
    assert model.get_dim("nI") == 7
    assert model.predict((X, segments, index)).shape == (4, index.n_spans)


def test_biaffine_initialising_again_gives_new_weights():
    model = scorer()
    inputs = sample()
    before = model.predict(inputs)
    model.set_dim("nO", 5, force=True)
    model.initialize(X=inputs[:2])
    after = model.predict(inputs)
    assert after.shape == (5, before.shape[1])
    assert not np.isin(after, before).any()


@pytest.mark.parametrize(
    ("setting", "saved", "configured"),
    [
        ("hidden_width", 8, 4),
        ("hidden_width", None, 4),
        ("depth", 2, 3),
        ("separate_views", True, False),
        ("activation", "relu", "tanh"),
        ("activation", "gelu", "identity"),
        ("pooling", "max", None),
    ],
)
@every_builder
def test_biaffine_refuses_weights_of_other_settings(build, setting, saved, configured):
    state = scorer(build, **{setting: saved}).to_bytes()
    other = build(**{"dropout": 0.0, setting: configured})
    with pytest.raises(SettingMismatch) as caught:
        other.from_bytes(state)
    error = caught.value
    found = (error.setting, error.saved, error.configured)
    assert found == (setting, saved, configured)


def test_biaffine_refuses_weights_of_the_other_form():
    state = scorer(build_biaffine_span_scorer).to_bytes()
    with pytest.raises(SettingMismatch, match="BilinearSpanScorer"):
        build_bilinear_span_scorer().from_bytes(state)


def test_biaffine_loads_into_another_dropout_and_the_same_width_by_name():
    model = scorer(dropout=0.0, hidden_width=None)
    again = build_biaffine_span_scorer(dropout=0.4, hidden_width=6)
    again.from_bytes(model.to_bytes())
    inputs = sample()
    np.testing.assert_array_equal(again.predict(inputs), model.predict(inputs))
    assert module_of(again).input_dropout.p == 0.4


@every_builder
@pytest.mark.parametrize("separate_views", [True, False])
def test_biaffine_bytes_load_into_a_model_without_widths(build, separate_views):
    model = scorer(build, separate_views=separate_views)
    fresh = build(dropout=0.0, separate_views=separate_views)
    fresh.from_bytes(model.to_bytes())
    inputs = sample()
    assert (fresh.get_dim("nI"), fresh.get_dim("nO")) == (6, 3)
    assert_same(model, fresh, inputs)


def test_biaffine_loaded_model_trains_on():
    model = build_biaffine_span_scorer(dropout=0.0).from_bytes(scorer().to_bytes())
    inputs = sample()
    Y, backprop = model.begin_update(inputs)
    assert np.abs(backprop(np.ones_like(Y))).sum() > 0


def test_biaffine_files_load_into_a_model_without_widths(tmp_path):
    model = scorer()
    model.to_disk(tmp_path / "model")
    fresh = build_biaffine_span_scorer(dropout=0.0).from_disk(tmp_path / "model")
    assert_same(model, fresh, sample())


@every_builder
def test_biaffine_survives_pickling(build):
    model = scorer(build)
    assert_same(model, pickle.loads(pickle.dumps(model)), sample())


def test_biaffine_copies_are_independent():
    model = scorer()
    inputs = sample()
    copied, before = model.copy(), model.copy()
    with torch.no_grad():
        module_of(copied).bilinear.zero_()
    assert_same(model, before, inputs)
    differences = copied.predict(inputs) - model.predict(inputs)
    assert np.abs(differences).max() > 0.1


@every_builder
def test_biaffine_state_holds_tensors_and_widths_only(build):
    model = scorer(build)
    state = model.shims[0]._serialize_model(module_of(model))
    saved = torch.load(BytesIO(state), weights_only=True)
    assert {key: saved[key] for key in ("nI", "nO")} == {"nI": 6, "nO": 3}
    assert all(type(tensor) is torch.Tensor for tensor in saved["state"].values())


def test_biaffine_without_weights_is_not_saved():
    with pytest.raises(ValueError, match="expected an initialised span scorer"):
        build_biaffine_span_scorer(nO=2).to_bytes()


@pytest.mark.parametrize(("n_labels", "length"), [(300, 40), (2000, 60)])
def test_biaffine_takes_many_labels(n_labels, length):
    model = scorer(nO=n_labels, hidden_width=4)
    inputs = sample([length])
    scores = model.predict(inputs)
    assert scores.shape == (n_labels, length * (length + 1) // 2)
