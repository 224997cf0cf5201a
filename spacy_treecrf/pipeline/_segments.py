"""Cut Docs into the segments that the Tree CRF runs over."""

import warnings
from collections.abc import Sequence

import numpy as np
from spacy.attrs import IS_SPACE, SENT_START
from spacy.tokens import Doc

from spacy_treecrf.errors import Warnings
from spacy_treecrf.ml.types import Segments


class DocSegments:
    """Segments of a batch of Docs, and where they lie in the Docs.

    segments (Segments): Over the concatenated tokens of the batch.
    doc (np.ndarray): Which Doc each segment is of. Shape: (B,), int64.
    start (np.ndarray): Its first token in that Doc. Shape: (B,), int64.
    windowed (list[int]): Docs in which `max_length` had to cut.
    """

    def __init__(
        self, docs: Sequence[Doc], max_length: int, max_width: int | None = None
    ) -> None:
        """docs (Sequence[Doc]): The batch.
        max_length (int): Longest segment, in tokens.
        max_width (int | None): Width limit of the spans; None for none.
        """
        numbers, starts, lengths, firsts, borders = [], [], [], [], []
        self.windowed: list[int] = []
        offset = 0
        for number, doc in enumerate(docs):
            cuts, windowed = _cuts(doc, max_length)
            if windowed:
                self.windowed.append(number)
            numbers.append(np.full(len(cuts) - 1, number))
            starts.append(cuts[:-1])
            lengths.append(np.diff(cuts))
            firsts.append(cuts[:-1] + offset)
            borders.append(doc.to_array(IS_SPACE) == 0)
            offset += len(doc)
        self.doc = _join(numbers)
        self.start = _join(starts)
        self.segments = Segments(
            _join(firsts),
            _join(lengths),
            np.concatenate([np.zeros(0, bool), *borders]),
            max_width,
        )

    @property
    def end(self) -> np.ndarray:
        """One past each segment's last token in its Doc. Shape: (B,), int64."""
        return self.start + self.segments.lengths


def doc_texts(docs: Sequence[Doc], cut: DocSegments, segments: np.ndarray) -> list[str]:
    """How the Docs begin that some segments are of, for messages.

    docs (Sequence[Doc]): The batch. cut (DocSegments): Its segments.
    segments (np.ndarray): Numbers of segments.
    RETURNS (list[str]): The first characters of each Doc.
    """
    return [docs[number].text[:60] for number in np.unique(cut.doc[segments])]


class WindowCount:
    """Counts the Docs that `max_length` cut; warns of them once.

    name (str): Name of the pipe.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.first = ""
        self.warned = False

    def add(self, docs: Sequence[Doc], cut: DocSegments) -> None:
        """Count the Docs of a batch that were cut, and keep the start of the first."""
        if cut.windowed and not self.count:
            self.first = docs[cut.windowed[0]][:12].text
        self.count += len(cut.windowed)

    def warn(self, max_length: int) -> None:
        """Warn if a Doc was cut and no warning was given yet."""
        if self.count and not self.warned:
            self.warned = True
            message = Warnings.T104.format(
                name=self.name, count=self.count, max_length=max_length, doc=self.first
            )
            warnings.warn(message, stacklevel=4)


def _join(pieces: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *pieces]).astype(np.int64)


def _cuts(doc: Doc, max_length: int) -> tuple[np.ndarray, bool]:
    """Offsets at which a Doc is cut, its two ends included.

    Sentence boundaries where the Doc has any; otherwise the Doc is one piece. A piece
    beyond `max_length` is cut into windows of equal length, as nearly as can be.
    """
    if not len(doc):
        return np.zeros(1, dtype=np.int64), False
    starts = np.flatnonzero(doc.to_array(SENT_START) == 1)
    edges = np.unique(np.concatenate([[0], starts, [len(doc)]]))
    lengths = np.diff(edges)
    if lengths.max() <= max_length:
        return edges, False
    pieces = [np.zeros(1, dtype=np.int64)]
    for start, length in zip(edges[:-1], lengths, strict=True):
        windows = -(-length // max_length)
        pieces.append(start + (np.arange(1, windows + 1) * length) // windows)
    return np.concatenate(pieces), True
