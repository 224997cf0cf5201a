"""Write sentences as Docs with a span group, in spaCy's binary format."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from spacy.tokens import Doc, Span, SpanGroup
from spacy.vocab import Vocab

from .corpus_reader import FastDocBin
from .records import LabelledSpan, Sentence

# What is stored of a token beside its text and spacing. Not the entities: `doc.ents`
# stays unset ("missing"), so that no flat pipe takes its absence for gold.
STORED_ATTRS = ("SENT_START",)
ENT_ATTRS = ("ENT_IOB", "ENT_TYPE")


def make_docs(
    sentences: Iterable[Sentence],
    vocab: Vocab,
    spans_key: str,
    merge_docs: bool = False,
    keep_spaces: bool = False,
    flat: bool = False,
) -> Iterator[Doc]:
    """Make a Doc of each sentence, or of each run of sentences of one document.

    sentences (Iterable[Sentence]): The records.
    vocab (Vocab): Vocabulary of the Docs.
    spans_key (str): Key of the span group, which every Doc gets, even an empty one.
    merge_docs (bool): Join consecutive sentences of the same `doc` and set sentence
        starts. A sentence without `doc` stays alone.
    keep_spaces (bool): Keep the spacing also where the tokens are the corpus's own.
        By default it is dropped, since `spacy.Corpus.v1` splits texts of known spacing
        anew, by the pipeline's tokenizer, and gold spans that then do not align are
        lost. Where it is unknown, training and evaluation use the tokens as they are.
    flat (bool): Write the spans, which are then disjoint, to `doc.ents` and make no
        group, so that spaCy's own `ner` can learn from them, too.
    YIELDS (Doc): The documents, with `id` and `doc` in `user_data`.
    """
    if not merge_docs:
        for sentence in sentences:
            doc = _make_doc([sentence], vocab, spans_key, keep_spaces, flat)
            doc.user_data["id"] = sentence.id
            yield doc
        return
    # A tuple with the id never equals a document's name, which is a string.
    for _, group in groupby(sentences, key=lambda s: s.doc or (s.id,)):
        members = list(group)
        doc = _make_doc(members, vocab, spans_key, keep_spaces, flat)
        doc.user_data["id"] = members[0].doc or members[0].id
        starts = set()
        position = 0
        for member in members:
            starts.add(position)
            position += len(member.tokens)
        for token in doc:
            token.is_sent_start = token.i in starts
        yield doc


def _make_doc(
    sentences: Sequence[Sentence],
    vocab: Vocab,
    spans_key: str,
    keep_spaces: bool,
    flat: bool,
) -> Doc:
    is_spacing_known = all(
        s.spaces is not None and (keep_spaces or not s.own_tokens) for s in sentences
    )
    words: list[str] = []
    spaces: list[bool] = []
    spans: list[LabelledSpan] = []
    for sentence in sentences:
        if spaces:
            # What stood between two sentences is not in the corpus; a space keeps
            # their words apart in `doc.text`.
            spaces[-1] = True
        offset = len(words)
        words.extend(sentence.tokens)
        spaces.extend(sentence.spaces or [True] * len(sentence.tokens))
        spans.extend((s + offset, e + offset, label) for s, e, label in sentence.spans)
    doc = Doc(vocab, words=words, spaces=spaces if is_spacing_known else None)
    found = [Span(doc, start, end, label=label) for start, end, label in spans]
    if flat:
        doc.set_ents(found)
    else:
        doc.spans[spans_key] = SpanGroup(doc, name=spans_key, spans=found)
    if sentences[0].doc is not None:
        doc.user_data["doc"] = sentences[0].doc
    return doc


def write_docbin(
    docs: Iterable[Doc], path: Path, keep_ids: bool = False, flat: bool = False
) -> None:
    """Write Docs to a `.spacy` file; folders are made as needed.

    docs (Iterable[Doc]): The documents.
    path (Path): The file.
    keep_ids (bool): Store `user_data`, that is the names of sentence and document.
        With `spacy.Corpus.v1` reading them takes some 0.4 ms a Doc, in each epoch of
        training.
    flat (bool): Store `doc.ents`.
    """
    attrs = STORED_ATTRS + ENT_ATTRS * flat
    docbin = FastDocBin(attrs=attrs, docs=docs, store_user_data=keep_ids)
    path.parent.mkdir(parents=True, exist_ok=True)
    docbin.to_disk(path)
