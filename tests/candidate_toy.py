"""Docs with candidate groups, made by hand."""

import numpy as np
from spacy.tokens import Doc, Span, SpanGroup


def add_rank(doc, rank, segments, log_prob, spans, key="nested", **attrs):
    """Write one candidate group; spans in tokens of the Doc."""
    name = f"{key}:{rank}"
    doc.spans[name] = SpanGroup(
        doc,
        name=name,
        attrs={
            "segments": np.array(segments, dtype=np.int32).reshape(-1, 2),
            "log_prob": np.array(log_prob, dtype=np.float64),
            **attrs,
        },
        spans=[Span(doc, start, end, label=label) for start, end, label in spans],
    )


def two_sentences(vocab):
    """Two segments with white space; the second has a single candidate."""
    words = ["Ann", "\n", "Lee", "left", "Rome", ".", "It", "rained", " "]
    doc = Doc(vocab, words=words, sent_starts=[1, *[-1] * 5, 1, -1, -1])
    add_rank(doc, 0, [(0, 6), (6, 9)], [-0.5, -0.1], [(0, 3, "PER"), (4, 5, "LOC")])
    add_rank(doc, 1, [(0, 6)], [-1.5], [(4, 5, "LOC")])
    return doc
