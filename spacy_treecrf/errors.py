"""Coded errors and warnings that data or a config can cause, with the way out.

Codes start with T, so that they cannot be taken for spaCy's own E and W codes.
Contract errors (a caller's wrong argument) are inline where they are raised.
"""


class Errors:
    """Messages of exceptions; each is a `str.format` template."""

    T001 = (
        "[T001] No spans under the key '{key}' in the training data of '{name}'. Keys "
        "found in the {n_docs} examples read: {keys}. Set `spans_key` to one of them, or "
        "convert the data with `python -m spacy treecrf convert ... --spans-key {key}`. "
        "Note that `gold_preproc = true` and `max_length > 0` of `spacy.Corpus.v1` drop "
        "span groups: leave them at false and 0."
    )


class Warnings:
    """Messages of warnings; each is a `str.format` template."""
