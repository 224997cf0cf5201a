"""A few sentences with nested entities, and pipelines that learn them in seconds."""

import spacy
from seeds import seed_all
from spacy.tokens import Doc, Span
from spacy.training import Example
from thinc.api import SGD

TOK2VEC = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "pretrained_vectors": None,
    "width": 32,
    "depth": 2,
    "embed_size": 300,
    "window_size": 1,
    "maxout_pieces": 2,
    "subword_features": True,
}
LISTENER = {
    "@architectures": "spacy.Tok2VecListener.v1",
    "width": 32,
    "upstream": "*",
}
SPAN_SCORER = {
    "@architectures": "spacy-treecrf.BiaffineSpanScorer.v1",
    "hidden_width": 64,
    "dropout": 0.0,
}
# Nested, nested with the same label, two labels on one token, whole sentence, none.
SENTENCES = [
    ("The Bank of China said so .", [(1, 4, "ORG"), (3, 4, "GPE")]),
    ("University of Rome Press wins", [(0, 4, "ORG"), (0, 3, "ORG"), (2, 3, "GPE")]),
    ("p21ras binds DNA", [(0, 1, "DNA"), (0, 1, "protein")]),
    ("Bank of Rome", [(0, 3, "ORG"), (2, 3, "GPE")]),
    ("It rained in Oslo", [(3, 4, "GPE")]),
    ("nothing here to see", []),
    ("Mayor of Oslo Ann Lee left", [(0, 5, "PER"), (2, 3, "GPE")]),
    ("p21ras gene of Rome", [(0, 1, "DNA"), (0, 1, "protein"), (3, 4, "GPE")]),
]
LABELS = {"ORG", "GPE", "DNA", "protein", "PER"}


def make_doc(vocab, words, spans=None, key="nested", **kwargs):
    """A Doc, with a group of spans under the key unless `spans` is None."""
    words = words.split(" ") if isinstance(words, str) else words
    doc = Doc(vocab, words=words, **kwargs)
    if spans is not None:
        doc.spans[key] = [Span(doc, s, e, label=label) for s, e, label in spans]
    return doc


def make_example(vocab, words, spans=None, key="nested", **kwargs):
    """An Example whose predicted Doc has the words and nothing else."""
    reference = make_doc(vocab, words, spans, key, **kwargs)
    return Example(Doc(vocab, words=[token.text for token in reference]), reference)


def toy_examples(nlp, key="nested", sentences=SENTENCES):
    return [make_example(nlp.vocab, *sentence, key=key) for sentence in sentences]


def add_treecrf(nlp, tok2vec=TOK2VEC, span_scorer=None, name="treecrf", **config):
    """Add a small `treecrf` pipe."""
    model = {
        "@architectures": "spacy-treecrf.TreeCRF.v1",
        "tok2vec": tok2vec,
        "span_scorer": {**SPAN_SCORER, **(span_scorer or {})},
    }
    return nlp.add_pipe("treecrf", name=name, config={"model": model, **config})


def untrained(**config):
    seed_all()
    nlp = spacy.blank("en")
    add_treecrf(nlp, **config)
    return nlp


def initialized(examples=None, **config):
    """A blank pipeline with random weights and the labels of the examples."""
    nlp = untrained(**config)
    examples = toy_examples(nlp) if examples is None else examples
    nlp.initialize(lambda: examples)
    return nlp


def copy_of(nlp, **settings):
    """A pipeline with a copy of the trained pipe and other settings.

    `add_pipe(source=nlp)` would share the pipe, and so change what other tests use.
    """
    again = spacy.blank("en")
    config = dict(nlp.get_pipe_config("treecrf"))
    pipe = again.add_pipe(config.pop("factory"), config=config)
    pipe.from_bytes(nlp.get_pipe("treecrf").to_bytes())
    pipe.cfg.update(settings)
    return again


def train(nlp, examples, steps, learn_rate=0.005):
    """Take some steps: what was learnt in them is luck, unless the loss was asked.

    RETURNS (list[float]): The loss of each step.
    """
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = learn_rate
    curve = []
    for _ in range(steps):
        losses = {}
        nlp.update(examples, sgd=optimizer, losses=losses)
        curve.append(sum(losses.values()))
    return curve


def train_until(nlp, examples, loss=0.01, *, learn_rate=0.005, **bounds):
    """Overfit a new pipeline until its loss says that gold is found.

    The loss is at least -log p(the segment's gold): with 8 segments and a mean below 0.01,
    each has its gold with a probability of at least exp(-0.08) = 0.92.
    The arguments and what is returned are those of `learn_until`.
    """
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = learn_rate
    return learn_until(nlp, examples, optimizer, loss, **bounds)


def learn_until(
    nlp, examples, optimizer, loss=0.01, *, share=0.0, at_most=200, pipes=("treecrf",)
):
    """Learn until the mean loss of a segment is below a bound.

    loss (float): The bound, in nats.
    share (float): Or this share of the first loss, where that is more.
    at_most (int): Cap on the steps; to reach it is a failure.
    pipes (tuple[str, ...]): Whose losses are meant, each by itself.
    RETURNS (list[float]): The largest loss before each step, and at the end.
    """
    curve = []
    while len(curve) <= at_most:
        losses = {}
        nlp.update(examples, sgd=False, losses=losses)
        curve.append(max(losses[pipe] for pipe in pipes))
        bound = max(loss, share * curve[0])
        reached = curve[-1] < bound
        for _, component in nlp.pipeline:
            if hasattr(component, "finish_update"):
                # The last gradient is let go: the loss is that of the final weights.
                component.finish_update(SGD(0.0) if reached else optimizer)
        if reached:
            return curve
    raise AssertionError(
        f"the loss of {' and '.join(pipes)} fell from {curve[0]:.4g} to {curve[-1]:.4g} "
        f"in {at_most} steps, not below {bound:.4g}: nothing can be said of predictions"
    )


def run(nlp, words, **kwargs):
    """Predict over given words."""
    words = words.split(" ") if isinstance(words, str) else words
    return nlp(Doc(nlp.vocab, words=words, **kwargs))


def found(doc, key="nested"):
    return [(span.start, span.end, span.label_) for span in doc.spans[key]]
