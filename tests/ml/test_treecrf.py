"""The model of the pipe, and the table of Thinc's promises for each registered name."""

import pickle

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab
from thinc.api import Config, Model, fix_random_seed

from spacy_treecrf.ml import treecrf
from spacy_treecrf.ml.biaffine import build_biaffine_span_scorer
from spacy_treecrf.ml.decoding import decode
from spacy_treecrf.ml.loss import Annotation, LossSettings, loss_and_gradients
from spacy_treecrf.ml.treecrf import build_treecrf
from spacy_treecrf.ml.types import Segments
from spacy_treecrf.structure.spans import SpanIndex

from .test_types import segments_of

ENCODER = """
[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 8
depth = 1
embed_size = 50
window_size = 1
maxout_pieces = 2
subword_features = true
"""
TREECRF = """
[model]
@architectures = "spacy-treecrf.TreeCRF.v1"
{encoder}
[model.span_scorer]
@architectures = "spacy-treecrf.{scorer}.v1"
dropout = 0.0
"""
SCORERS = ["BiaffineSpanScorer", "BilinearSpanScorer"]
TEXTS = ["The old mayor of New York spoke .", "Yes", "", "Rain fell on Rome ."]
N_LABELS = 3
# Of equal products at other places in memory.
ROUNDING = {"rtol": 1e-5, "atol": 1e-6}


def resolve(text):
    """Fill a config with the defaults of its architecture, and build the model."""
    config = Config().from_str(text)
    filled = spacy.registry.fill(config)
    return filled, spacy.registry.resolve(filled)["model"]


def model_config(scorer="BiaffineSpanScorer"):
    return TREECRF.format(encoder=ENCODER, scorer=scorer)


def docs_and_segments(texts=TEXTS):
    vocab = Vocab()
    docs = [Doc(vocab, words=text.split()) for text in texts]
    lengths = np.array([len(doc) for doc in docs], dtype=np.int64)
    first, kept = lengths.cumsum() - lengths, lengths > 0
    borders = np.ones(int(lengths.sum()), dtype=bool)
    return docs, Segments(first[kept], lengths[kept], borders)


def initialised(scorer="BiaffineSpanScorer"):
    _, model = resolve(model_config(scorer))
    model.get_ref("span_scorer").set_dim("nO", N_LABELS)
    model.initialize(X=docs_and_segments())
    return model


SETTINGS = LossSettings(
    n_entity_labels=2,
    objective="treecrf",
    potential_normalization=True,
    temperature=None,
    structure_smoothing=0.01,
    smoothing_scope="all",
    softmax_margin=0.5,
)
GOLD = Annotation(
    observed=np.array([(0, 0, 6, 0), (0, 4, 6, 1), (2, 3, 4, 1)]),
    missing=np.zeros((0, 4), dtype=np.int64),
    incorrect=np.zeros((0, 4), dtype=np.int64),
)


# Thinc's table.


@pytest.mark.parametrize("scorer", SCORERS)
def test_treecrf_fills_resolves_initialises_and_runs_both_ways(scorer):
    filled, model = resolve(model_config(scorer))
    assert filled["model"]["span_scorer"]["depth"] == 2
    model.get_ref("span_scorer").set_dim("nO", N_LABELS)
    docs, segments = docs_and_segments()
    model.initialize(X=(docs, segments))
    predicted = list(model.predict((docs, segments)))
    potentials, backprop = model.begin_update((docs, segments))
    assert [chunk.data.shape for chunk in potentials] == [(N_LABELS, 36 + 1 + 15)]
    np.testing.assert_allclose(potentials[0].data, predicted[0].data, **ROUNDING)
    assert backprop([np.ones_like(chunk.data) for chunk in potentials]) == docs
    gradients = [name for name in model.get_ref("tok2vec").walk() if name.grad_names]
    assert gradients


@pytest.mark.parametrize("scorer", SCORERS)
def test_treecrf_span_scorer_alone_fills_resolves_initialises_and_runs(scorer):
    filled, model = resolve(
        f'[model]\n@architectures = "spacy-treecrf.{scorer}.v1"\nnO = {N_LABELS}'
    )
    assert filled["model"]["dropout"] == 0.2
    segments = segments_of([3, 2])
    X = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    model.initialize(X=(X, segments))
    Y, backprop = model.begin_update((X, segments, SpanIndex.build([3, 2])))
    assert Y.shape == (N_LABELS, 9)
    assert backprop(np.ones_like(Y)).shape == X.shape


def test_treecrf_refers_to_its_encoder_and_output_layer():
    _, model = resolve(model_config())
    assert model.get_ref("tok2vec") is model.layers[0]
    assert model.get_ref("output_layer") is model.get_ref("span_scorer")


def test_treecrf_initialises_without_a_sample_where_the_encoder_knows_its_width():
    _, model = resolve(model_config())
    model.get_ref("span_scorer").set_dim("nO", N_LABELS)
    model.initialize()
    assert model.get_ref("span_scorer").get_dim("nI") == 8
    chunk = next(iter(model.predict(docs_and_segments())))
    assert len(chunk.data) == N_LABELS


def test_treecrf_infers_the_width_of_an_encoder_that_does_not_state_it():
    def encode(model, X, is_train):
        return [np.ones((len(doc), 5), dtype="float32") for doc in X], lambda dY: X

    scorer = build_biaffine_span_scorer(nO=N_LABELS)
    build_treecrf(Model("encoder", encode), scorer).initialize(X=docs_and_segments())
    assert scorer.get_dim("nI") == 5


def test_treecrf_starts_with_a_temperature_of_1():
    assert initialised().get_param("log_temperature").tolist() == [0.0]


# What comes out.


def test_treecrf_gradient_reaches_the_encoder_as_finite_differences_say():
    # Maxout and ReLU have kinks: a fixed start, and a step that crosses none of them.
    fix_random_seed(0)
    model = initialised()
    X = docs_and_segments()
    tok2vec = model.get_ref("tok2vec")
    weights = [node for node in tok2vec.walk() if node.has_param("W")][-1]
    rng = np.random.default_rng(0)
    potentials, backprop = model.begin_update(X)
    directions = [rng.normal(size=c.data.shape).astype("float32") for c in potentials]
    backprop(directions)
    gradient = weights.get_grad("W").copy()

    def total():
        pairs = zip(model.predict(X), directions, strict=True)
        return sum(float((c.data * d).astype("float64").sum()) for c, d in pairs)

    W, step = weights.get_param("W"), 2e-3
    change = rng.normal(size=W.shape).astype("float32")
    values = []
    for sign in (1, -1):
        weights.set_param("W", W + sign * step * change)
        values.append(total())
    slope = (values[0] - values[1]) / (2 * step)
    assert float((gradient * change).sum()) == pytest.approx(slope, rel=0.05, abs=1e-3)


def test_treecrf_prediction_scores_chunk_by_chunk_as_asked(monkeypatch):
    monkeypatch.setattr(treecrf, "MAX_CELLS", 40 * N_LABELS)
    model = initialised()
    chunks = model.predict(docs_and_segments())
    assert not isinstance(chunks, list)
    assert [chunk.numbers.tolist() for chunk in chunks] == [[0], [2, 1]]


def outcome(model):
    """Losses, gradients and entities of the sample."""
    docs, segments = docs_and_segments()
    potentials, backprop = model.begin_update((docs, segments))
    losses, gradients = loss_and_gradients(model, potentials, GOLD, SETTINGS)
    backprop(gradients)
    tok2vec = model.get_ref("tok2vec")
    grads = {
        (number, name): node.get_grad(name).copy()
        for number, node in enumerate(tok2vec.walk())
        for name in node.grad_names
    }
    grads["temperature"] = model.get_grad("log_temperature").copy()
    scores = model.predict((docs, segments))
    membership = np.eye(2, dtype="float32")
    found = decode(model, scores, SETTINGS, membership, "mbr", 0.05)
    entities = {
        (int(b), int(s), int(e), int(k)): np.round(chances, 4).tolist()
        for part in found
        for b, s, e, k, chances, _ in zip(*part, strict=True)
    }
    return losses, grads, entities, len(potentials)


def test_treecrf_chunks_change_neither_loss_nor_gradients_nor_entities(monkeypatch):
    model = initialised()
    whole = outcome(model)
    assert whole[2]
    assert whole[3] == 1
    chunked = pickle.loads(pickle.dumps(model))
    for node in chunked.walk():
        for name in node.grad_names:
            node.set_grad(name, np.zeros_like(node.get_grad(name)))
    monkeypatch.setattr(treecrf, "MAX_CELLS", 1)
    parts = outcome(chunked)
    assert parts[3] == 4 - 1
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-5)
    assert parts[1].keys() == whole[1].keys()
    for name, gradient in parts[1].items():
        np.testing.assert_allclose(gradient, whole[1][name], rtol=1e-3, atol=1e-6)
    assert parts[2].keys() == whole[2].keys()
    for entity, chances in parts[2].items():
        assert chances == pytest.approx(whole[2][entity], abs=2e-4)


def test_treecrf_usable_spans_border_on_no_white_space():
    model = initialised()
    docs = [Doc(Vocab(), words=["a", "\n", "b"])]
    borders = np.array([True, False, True])
    segments = Segments(np.array([0]), np.array([3]), borders)
    chunk = next(iter(model.predict((docs, segments))))
    index = chunk.index
    usable = {
        (int(start), int(end))
        for start, end, free in zip(index.start, index.end, chunk.usable, strict=True)
        if free
    }
    assert usable == {(0, 1), (2, 3), (0, 3)}


@pytest.mark.parametrize("texts", [[""], ["", ""]])
def test_treecrf_of_empty_docs_still_reaches_the_encoder(texts):
    docs, segments = docs_and_segments(texts)
    called = []

    def encode(model, X, is_train):
        vectors = [np.zeros((len(doc), 4), dtype="float32") for doc in X]
        return vectors, lambda dY: called.append(len(dY))

    encoder = Model("encoder", encode, dims={"nO": 4})
    model = build_treecrf(encoder, build_biaffine_span_scorer(nO=N_LABELS))
    model.initialize(X=docs_and_segments())
    potentials, backprop = model.begin_update((docs, segments))
    assert potentials == []
    backprop([])
    assert called == [len(texts)]


def test_treecrf_backprop_wants_a_gradient_for_each_chunk(monkeypatch):
    monkeypatch.setattr(treecrf, "MAX_CELLS", 1)
    potentials, backprop = initialised().begin_update(docs_and_segments())
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        backprop([potentials[0].data])


# Storage.


@pytest.mark.parametrize("scorer", SCORERS)
def test_treecrf_bytes_load_into_a_model_that_was_never_initialised(scorer):
    model = initialised(scorer)
    model.set_param("log_temperature", np.array([0.7], dtype="float32"))
    _, fresh = resolve(model_config(scorer))
    fresh.from_bytes(model.to_bytes())
    X = docs_and_segments()
    assert fresh.get_param("log_temperature")[0] == pytest.approx(0.7)
    for loaded, saved in zip(fresh.predict(X), model.predict(X), strict=True):
        np.testing.assert_allclose(loaded.data, saved.data, **ROUNDING)


def test_treecrf_survives_pickling():
    model = initialised()
    loaded, X = pickle.loads(pickle.dumps(model)), docs_and_segments()
    for a, b in zip(loaded.predict(X), model.predict(X), strict=True):
        np.testing.assert_allclose(a.data, b.data, **ROUNDING)
