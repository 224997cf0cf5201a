"""One pipeline called from several threads gives what it gives in one."""

import random
from concurrent.futures import ThreadPoolExecutor

import flat_toy
import pytest
import reranker_toy
import spacy
from nested_toy import LISTENER, add_treecrf, toy_examples, train_until
from seeds import seed_all
from spacy.tokens import Doc
from thread_check import check_threads, differing, spans_and_scores, texts, toy_words


def dropping(nlp, **config):
    """A pipe whose scorer drops out, so that a wrong mode shows."""
    add_treecrf(nlp, span_scorer={"dropout": 0.5}, **config)
    train_until(nlp, toy_examples(nlp), loss=0.5, share=0.2, at_most=400)
    return nlp


@pytest.mark.trains
def test_treecrf_threads_over_a_cnn():
    seed_all()
    nlp = dropping(spacy.blank("en"), annotate_ents=True)
    check_threads(nlp, texts(toy_words(), 100, 20))
    nlp.get_pipe("treecrf").cfg.update(n_best=2, entropy=True)
    check_threads(nlp, texts(toy_words(), 16, 6))


@pytest.mark.trains
def test_treecrf_threads_over_a_shared_torch_encoder():
    # Its BiLSTM drops out by itself; the pipe that it is in is not ours.
    pytest.importorskip("torch")
    nlp = spacy.blank("en")
    encode = {
        "@architectures": "spacy.TorchBiLSTMEncoder.v1",
        "width": 32,
        "depth": 2,
        "dropout": 0.5,
    }
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 32,
        "attrs": ["NORM"],
        "rows": [200],
        "include_static_vectors": False,
    }
    model = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    nlp.add_pipe("tok2vec", config={"model": model})
    add_treecrf(nlp, tok2vec=LISTENER)
    examples = toy_examples(nlp)
    nlp.initialize(lambda: examples)
    check_threads(nlp, texts(toy_words(), 64, 20))


@pytest.mark.parametrize("factory", list(flat_toy.CONFIGS))
def test_flat_pipe_threads(factory):
    nlp = flat_toy.trained(factory, n_best=5)
    words = ["Mr.", "Ann", "Lee", "Gus", "in", "Rome", "New", "York", ".", "lives"]
    check_threads(nlp, texts(words, 200, 20))


def test_ner_reranker_threads():
    nlp = reranker_toy.trained()
    rng = random.Random(0)
    inputs = [
        (rng.choice(list(reranker_toy.BEFORE)), rng.choice(["Gus", "Ann", "Hal"]))
        for _ in range(200)
    ]

    def as_doc(text) -> Doc:
        return reranker_toy.toy_doc(nlp.vocab, *text)

    check_threads(nlp, inputs, as_doc)


def test_threads_many_load_and_predict_at_once(tmp_path):
    nlp = flat_toy.trained("identifinder")
    nlp.to_disk(tmp_path)
    inputs = texts(["Mr.", "Ann", "Lee", "in", "Rome", "."], 40, 12)
    one = [spans_and_scores(nlp(text)) for text in inputs]

    def loaded(_):
        again = spacy.load(tmp_path)
        return [spans_and_scores(again(text)) for text in inputs]

    with ThreadPoolExecutor(4) as pool:
        for many in pool.map(loaded, range(4)):
            assert differing(one, many) == 0
