"""The global features of candidates: strings in principle, numbers in practice.

Source: Collins (2002), section 3: a candidate has the set of all strings that its
templates print; features are those seen in at least five training sentences.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .blocks import Block, make_blocks
from .candidates import CandidateSegment
from .feature_table import MAX_COUNT, MAX_SEGMENTS, FeatureCounts, FeatureTable
from .templates.context_templates import document_names
from .templates.segment_templates import SegmentTemplates, TemplateSettings
from .words import WordTable, learn_lower_case

# Segments of a block: some MB of arrays, enough to make NumPy's calls cheap.
_BLOCK_SIZE = 256
assert _BLOCK_SIZE <= MAX_SEGMENTS
_ROW_BITS = 32


class SparseRows(NamedTuple):
    """Features of candidates.

    indptr (np.ndarray): Where the features of each candidate begin, int64. Shape: (C+1,).
    indices (np.ndarray): Columns, int32; those of a candidate are sorted and distinct.
    """

    indptr: np.ndarray
    indices: np.ndarray


class GlobalFeatures:
    """The global features that a reranker knows."""

    def __init__(
        self,
        *,
        typed: bool = True,
        min_sentences: int = 5,
        quote_limit: int = 6,
        nested: bool = True,
        context: bool = True,
        lower_case: Iterable[str] | None = None,
    ):
        """Choose the templates; `fit` learns which features are kept.

        typed (bool): Whether labels count. If not, and without `context`, a flat
            candidate has the features of the paper and no others.
        min_sentences (int): Distinct training segments in which a feature must occur,
            in any of the candidates.
        quote_limit (int): Q and Q2 are for quotation marks less than so far apart.
        nested (bool): Whether to add the templates of spans within spans; a candidate
            without any has none.
        context (bool): Whether to add the templates that look at other entities of the
            candidate, at the document's other segments, at affixes, and at words two or
            three away.
        lower_case (Optional[Iterable[str]]): Words that are mostly lower-case; by
            default they are learnt from the training segments.
        RAISES (ValueError): If a setting has no meaning.
        """
        if not 1 <= min_sentences <= MAX_COUNT:
            raise ValueError(
                f"expected min_sentences from 1 to {MAX_COUNT}, received {min_sentences}"
            )
        if quote_limit < 0:
            raise ValueError(
                f"expected quote_limit of 0 or more, received {quote_limit}"
            )
        self.min_sentences = min_sentences
        self.settings = TemplateSettings(typed, quote_limit, context, nested)
        self._lower_case = None if lower_case is None else frozenset(lower_case)
        self._words = WordTable(self._lower_case or frozenset())
        self._table = FeatureTable(np.empty(0, dtype=np.uint64))

    @property
    def n_features(self) -> int:
        """RETURNS (int): Kept features: columns of `transform`."""
        return len(self._table)

    @property
    def lower_case(self) -> frozenset[str]:
        """RETURNS (frozenset[str]): The words that are mostly lower-case."""
        return self._words.lower_case

    def fit(
        self,
        segments: Sequence[CandidateSegment],
        progress: Callable[[int], object] | None = None,
    ) -> None:
        """Learn the lower-case words and the features to keep; earlier ones are lost.

        segments (Sequence[CandidateSegment]): The training segments.
        progress (Optional[Callable[[int], object]]): Called with the number of segments
            of each step that is done, as `tqdm.update`.
        """
        lower_case = self._lower_case
        if lower_case is None:
            lower_case = learn_lower_case(segment.words for segment in segments)
        self._words = WordTable(lower_case)
        counts = FeatureCounts()
        for block in make_blocks(
            segments, self._words, self.settings, _BLOCK_SIZE, progress
        ):
            found, owners = [], []
            for family in block.families():
                found.append(family.features.values)
                owners.append(family.segments[family.features.owners()])
            counts.add(np.concatenate(found), np.concatenate(owners))
        self._table = FeatureTable(counts.frequent(self.min_sentences))

    def select(self, kept: np.ndarray) -> None:
        """Forget features, such as those that a ranker does not use.

        kept (np.ndarray): Which of the columns stay, bool. Shape: (n_features,).
        """
        self._table = FeatureTable(self._table.numbers[kept])

    def transform(
        self,
        segments: Iterable[CandidateSegment],
        *,
        drop_shared: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> SparseRows:
        """The kept features of all candidates, in order.

        segments (Iterable[CandidateSegment]): The segments; those of one document must
            come together, as one call sees its documents only.
        drop_shared (bool): Whether to leave out features that all candidates of a
            segment have. They change no difference within a segment, hence no choice,
            no update of boosting or of a perceptron and no vote; values of candidates
            then compare within their segment only. Saves memory in training.
        progress (Optional[Callable[[int], object]]): As in `fit`.
        RETURNS (SparseRows): The features.
        """
        counts, columns = [], []
        for block in make_blocks(
            segments, self._words, self.settings, _BLOCK_SIZE, progress
        ):
            keys = self._row_keys(block)
            if drop_shared:
                keys = _drop_shared(keys, block.row_borders())
            rows = keys >> _ROW_BITS
            counts.append(np.bincount(rows, minlength=block.row_borders()[-1]))
            columns.append(keys.astype(np.int32))
        indptr = np.zeros(1 + sum(map(len, counts)), dtype=np.int64)
        if counts:
            np.cumsum(np.concatenate(counts), out=indptr[1:])
        return SparseRows(indptr, np.concatenate([*columns, np.empty(0, np.int32)]))

    def _row_keys(self, block: Block) -> np.ndarray:
        """Candidate and column of every feature of a block, sorted, distinct."""
        keys = []
        for family in block.families():
            columns = self._table.find(family.features.values)
            known = family.features.keep(columns, columns >= 0)
            values, rows = known.gather(family.rows)
            keys.append((rows << _ROW_BITS) | values)
        merged = np.concatenate(keys)
        merged.sort()
        first = np.ones(len(merged), dtype=bool)
        np.not_equal(merged[1:], merged[:-1], out=first[1:])
        return merged[first]

    def strings(
        self,
        segment: CandidateSegment,
        rank: int,
        document: Sequence[CandidateSegment] = (),
    ) -> set[str]:
        """Print the features of a candidate, kept or not: what `transform` hashes.

        segment (CandidateSegment): The segment.
        rank (int): Which of its candidates.
        document (Sequence[CandidateSegment]): All segments of its document, itself
            included.
        RETURNS (set[str]): Features such as "LW=Xer" and "PER|LW=Xer"; parts are parted
            by U+001F, and U+0000 stands for what lies outside the segment.
        """
        whole = None
        if len(document) > 1:
            whole = document_names(document, self.settings.typed)
        templates = SegmentTemplates(segment, whole, self._words, self.settings)
        entities, relations = templates.read(segment.candidates[rank])
        printed = [templates.entity_strings(entity) for entity in entities]
        printed += [templates.relation_strings(relation) for relation in relations]
        return {string for strings in printed for string in strings}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state.

        RETURNS (tuple[dict[str, Any], dict[str, np.ndarray]]): A header for JSON, and
            arrays.
        """
        header = {
            "typed": self.settings.typed,
            "min_sentences": self.min_sentences,
            "quote_limit": self.settings.quote_limit,
            "nested": self.settings.nested,
            "context": self.settings.context,
            "lower_case": sorted(self.lower_case),
        }
        return header, {"features": self._table.numbers}

    @classmethod
    def from_arrays(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> "GlobalFeatures":
        """Restore what `to_arrays` returned.

        header (dict[str, Any]): The header.
        arrays (dict[str, np.ndarray]): The arrays.
        RETURNS (GlobalFeatures): Features that transform as the saved ones did.
        """
        features = cls(**header)
        features._table = FeatureTable(arrays["features"])
        return features


def _drop_shared(keys: np.ndarray, row_borders: np.ndarray) -> np.ndarray:
    """Drop the columns that all candidates of a segment have."""
    n_candidates = np.diff(row_borders)
    segment_of_row = np.repeat(np.arange(len(n_candidates)), n_candidates)
    segments = segment_of_row[keys >> _ROW_BITS]
    shared = (segments << _ROW_BITS) | (keys & ((1 << _ROW_BITS) - 1))
    distinct, place, count = np.unique(shared, return_inverse=True, return_counts=True)
    everywhere = count == n_candidates[distinct >> _ROW_BITS]
    return keys[~everywhere[place]]
