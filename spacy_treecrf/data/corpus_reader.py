"""Read and write `.spacy` files fast: `spacy-treecrf.Corpus.v1`, all that spaCy's does.

`srsly.msgpack` scans the entry points of all installed packages for its decoders, and its
encoders, at every message, and spaCy makes two messages of each Doc that has a span group.
Here they are looked up once a file. See docs/reading.md.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import srsly.msgpack
from spacy.attrs import (
    DEP,
    ENT_ID,
    ENT_KB_ID,
    ENT_TYPE,
    HEAD,
    LEMMA,
    MORPH,
    NORM,
    ORTH,
    SENT_START,
    SPACY,
    TAG,
)
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.tokens._dict_proxies import SpanGroups
from spacy.training import Corpus, Example
from spacy.vocab import Vocab

# A span as `SpanGroup.to_bytes` packs it: id, kb_id, label, tokens and characters.
SPAN = struct.Struct(">QQQllll")

# The attributes of a token that are hashes of strings.
STRINGS: list[int | str] = [
    *(ORTH, TAG, LEMMA, NORM, MORPH, DEP, ENT_TYPE, ENT_KB_ID, ENT_ID)
]
# What a `DocBin` holds for each Doc.
COLUMNS = ("tokens", "spaces", "cats", "span_groups", "user_data", "flags")
NO_GROUPS = SpanGroups._EMPTY_BYTES

Unpack = Callable[..., Any]


def create_corpus_reader(
    path: Path | None,
    gold_preproc: bool,
    max_length: int = 0,
    limit: int = 0,
    augmenter: Callable[[Language, Example], Iterable[Example]] | None = None,
) -> Callable[[Language], Iterable[Example]]:
    """Build the reader `spacy-treecrf.Corpus.v1`, with the arguments of spaCy's.

    path (Path): A `.spacy` file, or a folder of them.
    gold_preproc (bool): Cut the Docs into sentences; span groups are lost.
    max_length (int): Cut longer Docs into sentences; 0 for no limit.
    limit (int): Read so many Docs only; 0 for all.
    augmenter (Callable): Makes further examples of each.
    RETURNS (Callable): Takes a pipeline, yields examples.
    RAISES (ValueError): If there is no path (spaCy's E913).
    """
    if path is None:
        raise ValueError(SpacyErrors.E913)
    return FastCorpus(
        path,
        gold_preproc=gold_preproc,
        max_length=max_length,
        limit=limit,
        augmenter=augmenter,
    )


class FastCorpus(Corpus):
    """spaCy's `Corpus`, over `FastDocBin`."""

    def read_docbin(self, vocab: Vocab, locs: Iterable[str | Path]) -> Iterator[Doc]:
        """Read the Docs of some files.

        vocab (Vocab): The shared vocabulary.
        locs (Iterable[Path]): The files; `limit` is of each, as in spaCy.
        YIELDS (Doc): The Docs that have tokens.
        """
        count = 0
        for loc in locs:
            for doc in FastDocBin().from_disk(loc).get_docs(vocab):
                if len(doc):
                    yield doc
                    count += 1
                    if 1 <= self.limit <= count:
                        break

    def _make_example(
        self, nlp: Language, reference: Doc, gold_preproc: bool
    ) -> Example:
        """As spaCy's, but with the words as numbers where it copies them one by one."""
        if not (gold_preproc or reference.has_unknown_spaces):
            return super()._make_example(nlp, reference, gold_preproc)
        words, spaces = reference.to_array([ORTH, SPACY]).reshape(-1, 2).T
        predicted = Doc(nlp.vocab, words=words, spaces=spaces.astype(bool))
        return Example(predicted, reference)


class FastDocBin(DocBin):
    """spaCy's `DocBin`, which looks codecs up once: the same bytes, the same Docs."""

    _packer: srsly.msgpack.Packer | None = None

    def add(self, doc: Doc) -> None:
        """Add a Doc.

        doc (Doc): The Doc. Nothing is kept of it but its annotations.
        """
        if self._packer is None:
            self._packer = srsly.msgpack.Packer(use_bin_type=True)
        attrs: list[Any] = list(self.attrs)
        self.tokens.append(doc.to_array(attrs).reshape(len(doc), len(attrs)))
        self.spaces.append(doc.to_array([SPACY]).reshape(-1, 1).astype(bool))
        self.flags.append({"has_unknown_spaces": doc.has_unknown_spaces})
        self.cats.append(doc.cats)
        strings = doc.vocab.strings
        # Each once, by their hashes: spaCy adds nine strings for each token.
        for number in np.unique(doc.to_array(STRINGS)).tolist():
            self.strings.add(strings[number])
        packed: dict[bytes, list[str]] = {}
        for key, group in doc.spans.items():
            packed.setdefault(self._packer.pack(group_message(group)), []).append(key)
            for span in group:
                self.strings.add(span.label_)
                for number in (span.kb_id, span.id):
                    if number in strings:
                        self.strings.add(strings[number])
        self.span_groups.append(self._packer.pack(packed or []))
        if self.store_user_data:
            self.user_data.append(self._packer.pack(doc.user_data))

    def get_docs(self, vocab: Vocab) -> Iterator[Doc]:
        """Make the Docs.

        vocab (Vocab): The shared vocabulary; labels and words are added to it.
        YIELDS (Doc): The Docs, in order.
        """
        for string in self.strings:
            vocab[string]
        unpack = make_unpack()
        used = self._used_columns()
        attrs: list[Any] = [self.attrs[column] for column in used]
        for number, tokens in enumerate(self.tokens):
            is_known = not self.flags[number].get("has_unknown_spaces")
            doc = Doc(
                vocab,
                words=tokens[:, self.attrs.index(ORTH)],  # type: ignore[arg-type]
                spaces=self.spaces[number] if is_known else None,  # type: ignore[arg-type]
            )
            if attrs and len(tokens):
                doc.from_array(attrs, tokens[:, used])  # type: ignore[arg-type]
            doc.cats = self.cats[number]
            groups = self.span_groups[number]
            if groups and groups != NO_GROUPS:
                read_groups(doc, groups, unpack)
            if number < len(self.user_data) and self.user_data[number] is not None:
                doc.user_data.update(unpack(self.user_data[number], use_list=False))
            yield doc

    def _used_columns(self) -> list[int]:
        """The attributes that are not what a new Doc has in all of the Docs."""
        is_used = np.zeros(len(self.attrs), dtype=bool)
        for tokens in self.tokens:
            is_used |= tokens.any(axis=0)
        # A new Doc has a sentence start, and a root's head is 0.
        kept = {SENT_START, HEAD}
        return [
            column
            for column, attr in enumerate(self.attrs)
            if attr != ORTH and (is_used[column] or attr in kept)
        ]

    def part(self, *slices: slice) -> "FastDocBin":
        """Some of the Docs; none of them is made.

        slices (slice): Which, in order.
        RETURNS (FastDocBin): These Docs, with the strings of all.
        """
        some = FastDocBin(store_user_data=self.store_user_data)
        some.attrs, some.strings = list(self.attrs), set(self.strings)
        for name in COLUMNS:
            rows = getattr(self, name)
            setattr(some, name, [row for place in slices for row in rows[place]])
        return some

    def __reduce__(self) -> tuple[Callable[[bytes], "FastDocBin"], tuple[bytes]]:
        return unpickle_docbin, (self.to_bytes(),)


def unpickle_docbin(data: bytes) -> FastDocBin:
    """The `FastDocBin` of some bytes, as spaCy pickles its own."""
    docbin = FastDocBin()
    docbin.from_bytes(data)
    return docbin


@contextmanager
def codecs_looked_up_once() -> Iterator[None]:
    """Let `srsly.msgpack` look its encoders and decoders up once, not at each message.

    For a block that serialises many Docs by spaCy's own code, above all
    `nlp.pipe(n_process=2)`, which has to be read to its end within the block. It changes
    `srsly` for the whole process, and for the processes that are forked, until the block
    ends; what is registered there meanwhile is not seen.
    """
    registries = (srsly.msgpack.msgpack_encoders, srsly.msgpack.msgpack_decoders)
    with ExitStack() as stack:
        for codecs in registries:
            found = codecs.get_all()
            stack.callback(codecs.__dict__.pop, "get_all", None)
            # Of this object alone; its class has the method as before.
            codecs.__dict__["get_all"] = found.copy
        yield


def make_unpack() -> Unpack:
    """A function that unpacks as `srsly.msgpack_loads` does, its decoders looked up."""
    hook: Callable[[Any], Any] | None = None
    for decoder in srsly.msgpack.msgpack_decoders.get_all().values():
        hook = partial(decoder, chain=hook)

    def decode(pairs: list[tuple[Any, Any]]) -> Any:
        return dict(pairs) if hook is None else hook(dict(pairs))

    # Where it is given this hook, srsly looks for no decoders.
    return partial(srsly.msgpack.unpackb, raw=False, object_pairs_hook=decode)


def group_message(group: SpanGroup) -> dict[str, Any]:
    """What `SpanGroup.to_bytes` packs."""
    spans = [
        SPAN.pack(
            *(span.id, span.kb_id, span.label),
            *(span.start, span.end, span.start_char, span.end_char),
        )
        for span in group
    ]
    return {"name": group.name, "attrs": group.attrs, "spans": spans}


def read_groups(doc: Doc, data: bytes, unpack: Unpack) -> None:
    """Give a Doc the span groups that `SpanGroups.to_bytes` has packed."""
    message = unpack(data)
    if not isinstance(message, dict):
        # Of a version before 3.2.1, or empty.
        doc.spans.from_bytes(data)
        return
    for packed, keys in message.items():
        group = read_group(doc, packed, unpack)
        doc.spans[keys[0]] = group
        for key in keys[1:]:
            doc.spans[key] = group.copy()


def read_group(doc: Doc, data: bytes, unpack: Unpack) -> SpanGroup:
    """The span group that `SpanGroup.to_bytes` has packed."""
    message = unpack(data)
    spans = []
    try:
        for packed in message["spans"]:
            span_id, kb_id, label, start, end, *characters = SPAN.unpack(packed)
            span = Span(doc, start, end, label, kb_id=kb_id, span_id=span_id)
            if characters != [span.start_char, span.end_char]:
                return SpanGroup(doc).from_bytes(data)
            spans.append(span)
    except (IndexError, ValueError):
        # Spans that are not of this Doc: spaCy loads them unseen.
        return SpanGroup(doc).from_bytes(data)
    name, attrs = message["name"], dict(message["attrs"])
    return SpanGroup(doc, name=name, attrs=attrs, spans=spans)
