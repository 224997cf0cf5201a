"""Train the small pipelines of `saved_models`, and write what they find.

    python tests/samples/make_saved_model.py OUT

The models in `saved_models` were made by commit 22447f3, before entity sets travelled as
`Analyses`, so that tests can tell whether models saved then still do what they did. To be
run again only with that commit.
"""

import json
import sys
from pathlib import Path

import spacy

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "pipeline"))

import flat_toy
import nested_toy
import reranker_toy

TOK2VEC = {**nested_toy.TOK2VEC, "width": 16, "depth": 1, "embed_size": 50}
TEXTS = [
    "The Bank of Rome said so .",
    "p21ras gene of Rome",
    "Mr. Gus Holt lives in Rome .",
    "",
]


def treecrf():
    nlp = spacy.blank("en")
    settings = {"n_best": 3, "entropy": True, "threshold": 0.4, "annotate_ents": True}
    scorer = {"hidden_width": 16}
    nested_toy.add_treecrf(nlp, TOK2VEC, scorer, **settings)
    examples = nested_toy.toy_examples(nlp)
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    return nlp


def flat(factory):
    return flat_toy.trained(factory, n_best=3)


def reranker():
    return reranker_toy.trained()


MODELS = {
    "treecrf": treecrf,
    "identifinder": lambda: flat("identifinder"),
    "maxent_ner": lambda: flat("maxent_ner"),
    "ner_reranker": reranker,
}


def docs_of(nlp, name):
    if name == "ner_reranker":
        pairs = [("in", "Gus"), ("Mr.", "Gus"), ("in", "Bo")]
        return [reranker_toy.toy_doc(nlp.vocab, *pair) for pair in pairs]
    words = [text.split(" ") if text else [] for text in TEXTS]
    return [spacy.tokens.Doc(nlp.vocab, words=each) for each in words]


def found(nlp, name):
    """All that a pipeline writes to some Docs, as JSON can hold it."""
    result = []
    for doc in nlp.pipe(docs_of(nlp, name)):
        groups = {}
        for key in sorted(doc.spans):
            group = doc.spans[key]
            attrs = {name: values.tolist() for name, values in group.attrs.items()}
            spans = [[span.start, span.end, span.label_] for span in group]
            groups[key] = {"spans": spans, **attrs}
        ents = [[ent.start, ent.end, ent.label_] for ent in doc.ents]
        result.append({"groups": groups, "ents": ents})
    return result


def main(out):
    for name, make in MODELS.items():
        nlp = make()
        # The tokenizer's exceptions would be the bulk of a model, and are spaCy's own.
        nlp.to_disk(out / name, exclude=["tokenizer"])
        text = json.dumps(found(nlp, name), indent=1)
        (out / f"{name}.json").write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
