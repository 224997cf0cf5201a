"""An encoder that is not there, and initialising again, with other labels or warm."""

import numpy as np
import pytest
import spacy
from nested_toy import (
    LISTENER,
    SENTENCES,
    add_treecrf,
    found,
    initialized,
    make_example,
    run,
    toy_examples,
    train_until,
    untrained,
)
from seeds import seed_all

WORDS = "The Bank of China said so ."
NEW = [("Ann wrote Emma", [(0, 1, "PER"), (2, 3, "BOOK")])]
BOTH = [("Oslo shone", [(0, 1, "GPE"), (0, 1, "ORG")])]


def tok2vec_config():
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": 32,
        "attrs": ["NORM"],
        "rows": [300],
        "include_static_vectors": False,
    }
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 32,
        "depth": 1,
        "window_size": 1,
        "maxout_pieces": 2,
    }
    model = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    return {"model": model}


def sharing(**config):
    """A pipeline whose encoder is a pipe of its own."""
    seed_all()
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config=tok2vec_config())
    add_treecrf(nlp, tok2vec=LISTENER, **config)
    return nlp


def ready(nlp, sentences=SENTENCES):
    examples = toy_examples(nlp, sentences=sentences)
    nlp.initialize(lambda: examples)
    return nlp


# A listener without its encoder.


def test_treecrf_without_its_encoder_is_refused():
    trained = ready(sharing())
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf", source=trained)
    with pytest.raises(ValueError, match=r"T010.*'treecrf' listens.*'The Bank of"):
        run(nlp, WORDS)
    assert "nested" in run(nlp, []).spans


def test_treecrf_with_a_disabled_or_late_encoder_is_refused():
    nlp = ready(sharing())
    with nlp.select_pipes(disable="tok2vec"), pytest.raises(ValueError, match="T010"):
        run(nlp, WORDS)
    late = spacy.blank("en")
    late.add_pipe("treecrf", source=nlp)
    late.add_pipe("tok2vec", source=nlp)
    with pytest.raises(ValueError, match="T010"):
        run(late, WORDS)


def test_treecrf_with_its_encoder_predicts():
    trained = ready(sharing())
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", source=trained)
    nlp.add_pipe("treecrf", source=trained)
    assert found(run(nlp, WORDS)) == found(run(trained, WORDS))


def test_treecrf_with_an_encoder_of_its_own_predicts(tmp_path):
    trained = ready(sharing())
    expected = found(run(trained, WORDS))
    trained.replace_listeners("tok2vec", "treecrf", ["model.tok2vec"])
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf", source=trained)
    assert found(run(nlp, WORDS)) == expected
    nlp.to_disk(tmp_path)
    assert found(run(spacy.load(tmp_path), WORDS)) == expected


# Initialising again.


@pytest.mark.parametrize("more", [NEW, BOTH], ids=["label", "combination"])
def test_treecrf_initialised_again_has_the_labels_of_the_new_data(more, tmp_path):
    nlp = initialized()
    pipe = nlp.get_pipe("treecrf")
    before = pipe.labels
    examples = [make_example(nlp.vocab, *one) for one in [*SENTENCES, *more]]
    nlp.initialize(lambda: examples)
    expected = {*before, *(span[2] for _, spans in more for span in spans)}
    assert set(pipe.labels) == expected
    width = pipe.model.get_ref("output_layer").get_dim("nO")
    assert width == len(pipe.label_set) + 1
    losses = nlp.update(examples, sgd=False)
    assert 0 <= losses["treecrf"] < 1000
    nlp.to_disk(tmp_path)
    again = spacy.load(tmp_path)
    assert again.get_pipe("treecrf").label_data == pipe.label_data
    assert found(run(again, WORDS)) == found(run(nlp, WORDS))


def test_treecrf_initialised_again_forgets_labels_but_not_those_added():
    nlp = untrained()
    nlp.get_pipe("treecrf").add_label("MINE")
    ready(nlp)
    ready(nlp, NEW)
    assert set(nlp.get_pipe("treecrf").labels) == {"MINE", "PER", "BOOK"}


def test_treecrf_loaded_and_initialised_again(tmp_path):
    initialized().to_disk(tmp_path)
    nlp = ready(spacy.load(tmp_path), NEW)
    assert set(nlp.get_pipe("treecrf").labels) == {"PER", "BOOK"}
    assert np.isfinite(run(nlp, WORDS).spans["nested"].attrs["scores"]).all()


def test_treecrf_initialised_again_with_another_setting():
    nlp = initialized()
    nlp.get_pipe("treecrf").cfg["latent_labels"] = 3
    ready(nlp)
    assert "nested" in run(nlp, WORDS).spans


# With the weights of a trained pipe.


@pytest.fixture(scope="module", params=["inside", "shared"])
def trained(request, tmp_path_factory):
    """A trained pipeline, and one that has learnt nothing."""
    make = {"inside": untrained, "shared": sharing}[request.param]
    nlp = make()
    train_until(nlp, toy_examples(nlp), loss=0.05)
    path = tmp_path_factory.mktemp("trained")
    nlp.to_disk(path)
    return nlp, make, path


@pytest.mark.trains
def test_treecrf_warm_start_predicts_as_before(trained):
    nlp, make, path = trained
    warm = make()
    examples = [make_example(nlp.vocab, *one) for one in [*NEW, *BOTH, *SENTENCES]]
    warm.config["initialize"]["components"]["treecrf"] = {"warm_start": str(path)}
    warm.initialize(lambda: examples)
    # New labels begin at their log odds: rare, so that they show nowhere by themselves.
    for words, spans in SENTENCES:
        assert found(run(warm, words)) == spans == found(run(nlp, words))
    assert "BOOK" in warm.get_pipe("treecrf").labels
    losses = warm.update(toy_examples(warm), sgd=False)
    cold = make()
    cold.initialize(lambda: examples)
    assert losses["treecrf"] < cold.update(toy_examples(cold), sgd=False)["treecrf"]


def test_treecrf_warm_start_by_the_pipe_itself(trained):
    nlp, make, path = trained
    warm = ready(make())
    pipe = warm.get_pipe("treecrf")
    pipe.initialize(lambda: toy_examples(warm), nlp=warm, warm_start=path)
    scores = [run(each, WORDS).spans["nested"].attrs["scores"] for each in (nlp, warm)]
    np.testing.assert_allclose(*scores, atol=1e-5)


def test_treecrf_warm_start_needs_the_same_form(trained):
    _, make, path = trained
    for scorer, message in (
        ({"hidden_width": 32}, r"T012.*hidden_width"),
        ({"activation": "tanh"}, r"T012.*activation"),
    ):
        nlp = make(span_scorer=scorer)
        examples = toy_examples(nlp)
        with pytest.raises(ValueError, match=message):
            nlp.get_pipe("treecrf").initialize(
                lambda examples=examples: examples, nlp=nlp, warm_start=path
            )


def test_treecrf_warm_start_needs_a_pipeline_with_the_pipe(tmp_path):
    nlp = untrained()
    examples = toy_examples(nlp)
    spacy.blank("en").to_disk(tmp_path)
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(ValueError, match=r"T012.*treecrf"):
            nlp.get_pipe("treecrf").initialize(
                lambda: examples, nlp=nlp, warm_start=path
            )
