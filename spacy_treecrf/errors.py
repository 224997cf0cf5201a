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

    T040 = "[T040] Can't read {path}: {reason}."
    T041 = (
        "[T041] {where}: not UTF-8 ({reason}). Convert the file first, e.g. with "
        "`iconv -f LATIN1 -t UTF-8`."
    )
    T042 = (
        "[T042] {where}: {reason}. A token needs text, and a span a label and at least "
        "one token of its sentence, with the end offset exclusive."
    )
    T043 = "[T043] {where}: not JSON: {reason}. The format is one object a line."
    T044 = "[T044] {where}: {reason}."
    T045 = (
        "[T045] spaCy has no language '{lang}': use a code of https://spacy.io/usage/"
        "models#languages, or xx, which splits at white space and punctuation."
    )
    T046 = "[T046] {path} holds no file that ends in {suffixes}."
    T047 = (
        "[T047] {path} is a file, and neither a folder nor named .spacy: write to "
        "FILE.spacy for one file, or to a folder for one file for each input."
    )
    T048 = (
        "[T048] {first} and {second} would both be written to {target}: convert them "
        "apart, or into one FILE.spacy."
    )
    T049 = "[T049] {path} holds no sentence: empty, or not of this format."
    T050 = (
        "[T050] {misaligned} of {n_gold} spans do not begin and end at token "
        "borders, more than --max-misaligned {limit} allows. If all are shifted, the "
        "offsets were counted from another start or in bytes; if some, try the --lang "
        "whose tokenizer fits, --alignment-mode expand, or give the tokens."
    )
    T051 = (
        "[T051] {where}: ill-formed tag {tag}: {reason}. The tags of a file must all "
        "be IOB2, all IOB1, all BIOES or all BILUO."
    )
    T052 = (
        "[T052] {where}: expected {expected} in this line of a block of {stride} "
        "lines, received {line!r}. Blocks are tokens, part-of-speech tags (in all "
        "blocks or in none), spans (may be empty) and a blank line."
    )
    T053 = (
        "[T053] {where}: no annotation of brat: {line!r}. An entity is 'T1, tab, LABEL "
        "START END, tab, TEXT'."
    )
    T054 = (
        "[T054] {path} names {name}, which is not in the input: give the folder that "
        "holds it as IN."
    )


class Warnings:
    """Messages of warnings; each is a `str.format` template."""
