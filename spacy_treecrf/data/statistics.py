"""What a set of spans is like: nesting, crossing, several labels, lengths."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .records import LabelledSpan

Bounds = tuple[int, int]


def nesting_depths(bounds: Iterable[Bounds]) -> dict[Bounds, int]:
    """How deep each span lies: 1 + the most spans around it, each inside the next.

    bounds (Iterable[Bounds]): Half-open offsets; repeated ones count once.
    RETURNS (dict[Bounds, int]): Depth of each, 1 for a span inside no other.
    """
    # Longest first among those of one start: a span comes after all that hold it.
    ordered = sorted(set(bounds), key=lambda b: (b[0], -b[1]))
    depths = dict.fromkeys(ordered, 1)
    for i, (start, end) in enumerate(ordered):
        for inner in ordered[i + 1 :]:
            if inner[0] >= end:
                break
            if inner[1] <= end:
                depths[inner] = max(depths[inner], depths[start, end] + 1)
    return depths


def spans_around_others(bounds: Iterable[Bounds]) -> set[Bounds]:
    """The spans that have another one inside.

    bounds (Iterable[Bounds]): Half-open offsets; repeated ones count once.
    RETURNS (set[Bounds]): Those with a shorter span wholly inside.
    """
    ordered = sorted(set(bounds), key=lambda b: (b[0], -b[1]))
    around = set()
    for i, (start, end) in enumerate(ordered):
        for inner in ordered[i + 1 :]:
            if inner[0] >= end:
                break
            if inner[1] <= end:
                around.add((start, end))
                break
    return around


def crossing_pairs(bounds: Iterable[Bounds]) -> list[tuple[Bounds, Bounds]]:
    """Pairs of spans that share tokens although neither lies in the other.

    bounds (Iterable[Bounds]): Half-open offsets; repeated ones count once.
    RETURNS (list[tuple[Bounds, Bounds]]): The pairs in text order, left one first.
    """
    ordered = sorted(set(bounds))
    pairs = []
    for i, left in enumerate(ordered):
        for right in ordered[i + 1 :]:
            if right[0] >= left[1]:
                break
            if left[0] < right[0] and left[1] < right[1]:
                pairs.append((left, right))
    return pairs


def labels_by_bounds(spans: Iterable[LabelledSpan]) -> dict[Bounds, list[str]]:
    """The labels of each span, sorted.

    spans (Iterable[LabelledSpan]): Spans in any order.
    RETURNS (dict[Bounds, list[str]]): Labels by offsets.
    """
    labels: dict[Bounds, set[str]] = {}
    for start, end, label in spans:
        labels.setdefault((start, end), set()).add(label)
    return {bounds: sorted(names) for bounds, names in labels.items()}


@dataclass
class SpanCounts:
    """Counts over a corpus.

    docs (int): Documents (Docs written or read).
    sentences (int): Sentences or lines.
    tokens (int): Tokens.
    spans (int): Labelled spans.
    inner (int): Labelled spans inside a longer one.
    nested (int): Labelled spans inside a longer one or around a shorter one.
    max_depth (int): The most spans inside one another.
    crossing (int): Pairs of spans that cross.
    multi_label (int): Spans with more than one label.
    labels (Counter[str]): Labelled spans by label.
    depths (Counter[int]): Spans by depth, 1 for the outermost.
    lengths (Counter[int]): Labelled spans by number of tokens.
    """

    docs: int = 0
    sentences: int = 0
    tokens: int = 0
    spans: int = 0
    inner: int = 0
    nested: int = 0
    max_depth: int = 0
    crossing: int = 0
    multi_label: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    depths: Counter[int] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)

    def add(self, n_tokens: int, spans: Sequence[LabelledSpan]) -> None:
        """Count one sentence, or any stretch that no span leaves.

        n_tokens (int): Its tokens.
        spans (Sequence[LabelledSpan]): Its spans.
        """
        labels = labels_by_bounds(spans)
        depths = nesting_depths(labels)
        around = spans_around_others(labels)
        self.sentences += 1
        self.tokens += n_tokens
        self.crossing += len(crossing_pairs(labels))
        self.max_depth = max([self.max_depth, *depths.values()])
        self.depths.update(depths.values())
        for bounds, names in labels.items():
            self.spans += len(names)
            self.inner += len(names) * (depths[bounds] > 1)
            self.nested += len(names) * (depths[bounds] > 1 or bounds in around)
            self.multi_label += len(names) > 1
            self.labels.update(names)
            self.lengths[bounds[1] - bounds[0]] += len(names)


def quantile(counts: Counter[int], share: float) -> int:
    """The smallest value that at least a share of the counted values do not exceed.

    counts (Counter[int]): How often each value occurs, at least one in all.
    share (float): Between 0 and 1.
    RETURNS (int): The value (no interpolation).
    """
    total, seen = sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= share * total:
            return value
    raise ValueError(f"expected counted values and a share <= 1, received {share}")
