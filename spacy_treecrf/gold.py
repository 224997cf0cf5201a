"""Gold of a Doc, by one rule for learning, for scores and for reports.

Gold is `doc.spans[key]` where the Doc has that group, else `doc.ents` where the Doc's
tokens are tagged. What nobody has annotated is a missing region: the spans of a group
that marks such regions and, where gold is in `doc.ents`, the tokens whose tag is unknown
("-" in `Example.from_dict`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from spacy.attrs import ENT_IOB, ORTH
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

# (start, end, label): half-open token offsets and the label's name.
LabelledSpan = tuple[int, int, str]
# Half-open token offsets.
Run = tuple[int, int]


@dataclass(frozen=True)
class GoldKeys:
    """Where the annotation of a Doc is.

    spans (str): Key of the gold spans.
    missing (Optional[str]): Key of the regions that are not annotated.
    incorrect (Optional[str]): Key of the spans with labels known to be wrong.
    """

    spans: str
    missing: str | None = None
    incorrect: str | None = None

    @classmethod
    def of(cls, cfg: Mapping[str, Any]) -> "GoldKeys":
        """The keys among the settings of a pipe.

        cfg (Mapping[str, Any]): The settings; a pipe need not have all three.
        RETURNS (GoldKeys): The keys.
        """
        return cls(
            cfg["spans_key"],
            cfg.get("missing_spans_key"),
            cfg.get("incorrect_spans_key"),
        )


@dataclass(frozen=True)
class Gold:
    """The annotation of one Doc.

    source (Optional[str]): "spans" or "ents"; None if the Doc has neither.
    spans (list[LabelledSpan]): Gold spans.
    missing (list[LabelledSpan]): Regions that are not annotated; one with a label is
        not annotated with that label alone.
    unknown (list[Run]): Runs of tokens whose entity tag is unknown.
    incorrect (list[LabelledSpan]): Spans that do not have their label; without a label,
        that have none at all.
    lost, lost_missing, lost_incorrect (list[LabelledSpan]): Those of each kind that fit
        no tokens, in tokens of the Doc that they were read from.
    """

    source: Literal["spans", "ents"] | None = None
    spans: list[LabelledSpan] = field(default_factory=list)
    missing: list[LabelledSpan] = field(default_factory=list)
    unknown: list[Run] = field(default_factory=list)
    incorrect: list[LabelledSpan] = field(default_factory=list)
    lost: list[LabelledSpan] = field(default_factory=list)
    lost_missing: list[LabelledSpan] = field(default_factory=list)
    lost_incorrect: list[LabelledSpan] = field(default_factory=list)

    @property
    def regions(self) -> list[LabelledSpan]:
        """All that is not annotated, unknown tags as regions without a label."""
        return [*self.missing, *((start, end, "") for start, end in self.unknown)]

    def is_open(self, span: LabelledSpan) -> bool:
        """Whether nobody can say if a span is right: it is in a region, and not gold.

        span (LabelledSpan): A span, in the tokens of this gold.
        RETURNS (bool): True if it lies wholly inside a missing region or has a token
            whose tag is unknown (as in spaCy's `get_ner_prf`), and is neither gold nor
            marked as incorrect.
        """
        start, end, _ = span
        touches = any(s < end and start < e for s, e in self.unknown)
        return (
            (touches or _is_inside(span, self.missing))
            and span not in self.spans
            and span not in self.incorrect
            and (start, end, "") not in self.incorrect
        )


def _is_inside(span: LabelledSpan, regions: Sequence[LabelledSpan]) -> bool:
    return any(
        start <= span[0] and span[1] <= end and label in ("", span[2])
        for start, end, label in regions
    )


def read_gold(doc: Doc, keys: GoldKeys) -> Gold:
    """Read the annotation of a Doc, in its own tokens.

    doc (Doc): The Doc.
    keys (GoldKeys): Where its annotation is. Attrs of the gold group may say it too, as
        in Docs that `jackknife` has packed: "missing_spans_key", "incorrect_spans_key",
        and "unknown", the runs of tokens whose tag is unknown.
    RETURNS (Gold): The annotation. Missing regions without a token are lost.
    """
    source: Literal["spans", "ents"] | None = None
    spans: list[LabelledSpan] = []
    unknown: list[Run] = []
    attrs: Mapping[str, Any] = {}
    if keys.spans in doc.spans:
        group = doc.spans[keys.spans]
        source, spans, attrs = "spans", _plain(group), group.attrs
        unknown = [(int(start), int(end)) for start, end in attrs.get("unknown", ())]
    else:
        tags = doc.to_array(ENT_IOB)
        if tags.any():
            source = "ents"
            spans = [(span.start, span.end, span.label_) for span in doc.ents]
            unknown = [] if tags.all() else _unknown_runs(doc, tags == 0)
    missing = keys.missing or attrs.get("missing_spans_key", "")
    incorrect = keys.incorrect or attrs.get("incorrect_spans_key", "")
    regions = _plain(doc.spans.get(missing, []))
    return Gold(
        source,
        spans,
        [region for region in regions if region[0] < region[1]],
        unknown,
        _plain(doc.spans.get(incorrect, [])),
        # The whole of an empty Doc has no token either, and loses nothing.
        lost_missing=[
            region for region in regions if region[0] >= region[1] and len(doc)
        ],
    )


def aligned_gold(example: Example, keys: GoldKeys) -> Gold:
    """Read the annotation of an example's reference, in tokens of its predicted Doc.

    example (Example): The example.
    keys (GoldKeys): Where the annotation is.
    RETURNS (Gold): The annotation. Gold and incorrect spans that do not begin and end at
        borders of the predicted tokens are lost; missing regions are widened to every
        token that they touch, since nobody has annotated the rest of it.
    """
    gold = read_gold(example.reference, keys)
    if same_tokens(example):
        return gold
    spans, lost = _align(example, gold.spans)
    incorrect, lost_incorrect = _align(example, gold.incorrect)
    missing: list[LabelledSpan] = []
    lost_missing = list(gold.lost_missing)
    for start, end, label in gold.missing:
        touched = _touched(example, start, end)
        if touched is not None:
            missing.append((*touched, label))
        elif not example.reference[start:end].text.isspace():
            lost_missing.append((start, end, label))
    runs = (_touched(example, start, end) for start, end in gold.unknown)
    return Gold(
        gold.source,
        spans,
        missing,
        [run for run in runs if run is not None],
        incorrect,
        lost,
        lost_missing,
        lost_incorrect,
    )


def same_tokens(example: Example) -> bool:
    """Whether predicted and reference Doc have the same tokens."""
    # By the hashes of their texts: token by token took a tenth of an update.
    x, y = (doc.to_array(ORTH) for doc in (example.predicted, example.reference))
    return bool(np.array_equal(x, y))


def _plain(group: SpanGroup | list[Any]) -> list[LabelledSpan]:
    return [(span.start, span.end, span.label_) for span in group]


def _unknown_runs(doc: Doc, is_unknown: np.ndarray) -> list[Run]:
    """Runs of words without a tag; that of white space says nothing."""
    runs: list[list[int]] = []
    is_open = False
    for token in doc:
        if token.is_space:
            continue
        if is_unknown[token.i]:
            if is_open:
                runs[-1][1] = token.i + 1
            else:
                runs.append([token.i, token.i + 1])
        is_open = bool(is_unknown[token.i])
    return [(start, end) for start, end in runs]


def _align(
    example: Example, spans: Sequence[LabelledSpan]
) -> tuple[list[LabelledSpan], list[LabelledSpan]]:
    aligned, lost = [], []
    for start, end, label in spans:
        found = example.get_aligned_spans_y2x(
            [example.reference[start:end]], allow_overlap=True
        )
        if found:
            aligned.append((found[0].start, found[0].end, label))
        else:
            lost.append((start, end, label))
    return aligned, lost


def _touched(example: Example, start: int, end: int) -> Run | None:
    """The predicted tokens that share a character with some tokens of the reference."""
    indices = example.alignment.y2x[start:end]
    return (int(min(indices)), int(max(indices)) + 1) if len(indices) else None
