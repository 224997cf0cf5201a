"""A span scorer whose potentials stand in a table, for tests that need no training.

A table says what a Doc, or any piece of one, is scored:
`{"Bank of Rome": {(0, 3, "ORG"): 8.0, (2, 3, "GPE"): 8.0}}`. Wherever these words follow
one another in a segment, its spans get these log-potentials. Every other entity has
`DEFAULT`, every node without an entity 0. The pipe around it is the pipe as it ships:
segments, white space, the tree, decoding, and what is written to the Doc.
"""

from functools import partial

import numpy as np
import spacy
import torch
from nested_toy import make_example
from spacy.attrs import ORTH
from spacy.strings import get_string_id
from thinc.api import ArgsKwargs, Model, PyTorchWrapper_v3, torch2xp, xp2torch
from torch import nn

from spacy_treecrf.labels import LabelSet

# Log-potential of what no row names: 9 labels of that sum up to less than 0.001.
DEFAULT = -9.5
TOK2VEC = {"@architectures": "tests.WordNumbers.v1"}


@spacy.registry.architectures("tests.WordNumbers.v1")
def build_word_numbers():
    """An encoder that hands on which word each token is, whatever stands around it."""
    return Model("word_numbers", encode, dims={"nO": 4})


def encode(model, docs, is_train):
    vectors = [in_float32(doc.to_array(ORTH)) for doc in docs]
    return vectors, lambda gradients: docs


def in_float32(hashes):
    """64 bits as four numbers that float32 holds exactly. Shape: (words, 4)."""
    shifts = np.arange(0, 64, 16, dtype=np.uint64)
    parts = hashes.astype(np.uint64)[:, None] >> shifts & np.uint64(0xFFFF)
    return parts.astype(np.float32)


def split(words):
    return words.split(" ") if isinstance(words, str) else list(words)


@spacy.registry.architectures("tests.TableSpanScorer.v1")
def build_table_span_scorer(labels, rows, default=DEFAULT):
    """Build the scorer.

    labels (list): Labels as the pipe's `label_data` has them: they give the numbers.
    rows (list): (words, start, end, label or combined labels, log-potential).
    default (float): Log-potential of entities that no row names.
    """
    numbers = LabelSet(labels).numbers()
    table = {}
    for words, start, end, label, value in rows:
        parts = (label,) if isinstance(label, str) else tuple(sorted(label))
        key = tuple(get_string_id(word) for word in words)
        table.setdefault(key, []).append((numbers[parts], start, end, value))
    model = PyTorchWrapper_v3(
        TablePotentials(table, len(numbers), default), convert_inputs=convert_inputs
    )
    model.init = partial(init, n_entity_labels=len(numbers))
    return model


def init(model, X=None, Y=None, *, n_entity_labels):
    # What the pipe would have a trained scorer begin with.
    model.attrs.pop("initial_bias", None)
    assert model.get_dim("nO") > n_entity_labels


def convert_inputs(model, inputs, is_train):
    X, segments, index = inputs
    words = xp2torch(X, requires_grad=is_train)
    arguments = ArgsKwargs((words, segments, index, model.get_dim("nO")), {})
    return arguments, lambda gradients: torch2xp(torch.zeros_like(words))


class TablePotentials(nn.Module):
    """Looks each span up. `height`, which changes no distribution, can be learnt."""

    def __init__(self, table, n_entity_labels, default):
        super().__init__()
        self.table = table
        self.n_entity_labels = n_entity_labels
        self.default = default
        self.height = nn.Parameter(torch.zeros(1))

    def forward(self, X, segments, index, n_labels):
        """X (Tensor): Words. Shape: (T, 4). RETURNS (Tensor): Shape: (L, S)."""
        scores = torch.zeros(n_labels, index.n_spans)
        scores[: self.n_entity_labels] = self.default
        shifts = np.arange(0, 64, 16, dtype=np.uint64)
        parts = X.detach().cpu().numpy().astype(np.uint64)
        hashes = (parts << shifts).sum(axis=1, dtype=np.uint64).tolist()
        for segment, (first, length) in enumerate(
            zip(segments.first.tolist(), segments.lengths.tolist(), strict=True)
        ):
            own = tuple(hashes[first : first + length])
            for words, cells in self.table.items():
                for offset in range(len(own) - len(words) + 1):
                    if own[offset : offset + len(words)] != words:
                        continue
                    for label, start, end, value in cells:
                        if end - start > index.widest:
                            continue
                        place = (segment, offset + start, offset + end)
                        row = index.row_of(*map(torch.tensor, place))
                        scores[label, row] = value
        return scores.to(X.device) + self.height


def as_rows(table):
    """The table as a config holds it."""
    return [
        [split(words), start, end, label if isinstance(label, str) else [*label], value]
        for words, cells in table.items()
        for (start, end, label), value in cells.items()
    ]


def table_of(sentences, value=8.0):
    """The table that has these (words, spans) found with probabilities near 1.

    Several labels of one span become their combination.
    """
    table = {}
    for words, spans in sentences:
        labels = {}
        for start, end, label in spans:
            labels.setdefault((start, end), []).append(label)
        table[words if isinstance(words, str) else tuple(words)] = {
            (*span, own[0] if len(own) == 1 else tuple(sorted(own))): value
            for span, own in labels.items()
        }
    return table


def scored(table, labels=(), default=DEFAULT, **config):
    """A pipeline with one `treecrf` pipe that scores by the table, ready to predict.

    labels (list): As `label_data`; others of the table are added behind them.
    config (Any): Settings of the pipe.
    """
    known = LabelSet(labels)
    for *_, label, _ in as_rows(table):
        known.add([label] if isinstance(label, str) else label)
    data = known.as_data()
    model = {
        "@architectures": "spacy-treecrf.TreeCRF.v1",
        "tok2vec": TOK2VEC,
        "span_scorer": {
            "@architectures": "tests.TableSpanScorer.v1",
            "labels": data,
            "rows": as_rows(table),
            "default": default,
        },
    }
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("treecrf", config={"model": model, **config})
    nothing = make_example(nlp.vocab, ["w"], [], pipe.key)
    pipe.initialize(lambda: [nothing], labels=data)
    return nlp
