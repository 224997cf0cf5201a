"""How often labels occur in the gold: what a new model believes before it sees a word."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from spacy_treecrf.ml.types import span_counts

# Label number of a region that is not annotated with any label.
ANY_LABEL = -1
# Segment and half-open offsets in it.
Region = tuple[int, int, int]

# Added to each count, so that a label that was only announced has finite odds.
PSEUDO_COUNT = 0.5


class LabelPrior:
    """Counts labels over the places where they could be.

    A tree over n tokens has 2n - 1 nodes, and each of them carries an entity label or a
    latent one; for the local objective every one of the n (n + 1) / 2 spans does, or of
    those within the width limit.

    max_width (int | None): The limit, W; None for none.
    """

    def __init__(self, max_width: int | None = None) -> None:
        self.max_width = max_width
        self.counts = np.zeros(0, dtype=np.int64)
        self.nodes = 0
        self.spans = 0
        # Of these places, how many nobody has annotated: with any label, and how many
        # more there are for a label that has regions of its own.
        self.open_nodes: Counter[int] = Counter()
        self.open_spans: Counter[int] = Counter()

    def add_annotated(
        self, lengths: np.ndarray, observed: np.ndarray, missing: np.ndarray
    ) -> None:
        """Count some segments, without what lies in regions that are not annotated.

        lengths (np.ndarray): Tokens of each segment. Shape: (B,), int64.
        observed, missing (np.ndarray): As in `Annotation`. Shapes: (E, 4), (M, 4).

        The gold in such a region was picked: it does not say how often its label occurs.
        Gold beyond the width limit is at none of the places.
        """
        if self.max_width is not None:
            observed = observed[observed[:, 2] - observed[:, 1] <= self.max_width]
        if not len(missing):
            self.add(lengths, observed[:, 3])
            return
        regions: dict[int, set[Region]] = {ANY_LABEL: set()}
        for segment, start, end, label in missing.tolist():
            regions.setdefault(label, set()).add((segment, start, end))
        of_any = regions[ANY_LABEL]
        nodes, spans = self._places(of_any)
        self.open_nodes[ANY_LABEL] += nodes
        self.open_spans[ANY_LABEL] += spans
        for label in regions.keys() - {ANY_LABEL}:
            more_nodes, more_spans = self._places(regions[label] | of_any)
            self.open_nodes[label] += more_nodes - nodes
            self.open_spans[label] += more_spans - spans
        kept = [
            label
            for segment, start, end, label in observed.tolist()
            if not any(
                segment == s and first <= start and end <= last
                for s, first, last in of_any | regions.get(label, set())
            )
        ]
        self.add(lengths, np.array(kept, dtype=np.int64))

    def add(self, lengths: np.ndarray, labels: np.ndarray) -> None:
        """Count some segments.

        lengths (np.ndarray): Tokens of each segment. Shape: (B,), int64.
        labels (np.ndarray): Label numbers of their entities. Shape: (E,), int64.
        """
        found = np.bincount(labels, minlength=len(self.counts))
        found[: len(self.counts)] += self.counts
        self.counts = found
        self.nodes += int((2 * lengths - 1).sum())
        self.spans += int(span_counts(lengths, self.max_width).sum())

    def log_odds(
        self, n_entity_labels: int, objective: str, n_latent: int
    ) -> np.ndarray:
        """Log odds of each entity label against each latent (or null) label.

        n_entity_labels (int): Number of entity labels, L.
        objective (str): "treecrf" or "local".
        n_latent (int): Number of latent labels, which share what no entity has.
        RETURNS (np.ndarray): In nats; potentials that differ so give, in a tree without
            any other preference, as many entities as the data has. Shape: (L,).
        """
        counts = np.full(n_entity_labels, PSEUDO_COUNT)
        counts[: len(self.counts)] += self.counts
        is_tree = objective == "treecrf"
        places = self.nodes if is_tree else self.spans
        unseen = self.open_nodes if is_tree else self.open_spans
        hidden = np.array(
            [unseen[ANY_LABEL] + unseen[label] for label in range(n_entity_labels)]
        )
        # Entities can fill a corpus of single words.
        others = np.maximum(places - hidden - int(self.counts.sum()), 0) + PSEUDO_COUNT
        return np.log(counts) - np.log(others / n_latent)

    def _places(self, regions: Iterable[Region]) -> tuple[int, int]:
        """Nodes of the trees over some regions, and spans in them.

        Regions that overlap are one.
        """
        merged: list[list[int]] = []
        for segment, start, end in sorted(regions):
            if merged and merged[-1][0] == segment and start < merged[-1][2]:
                merged[-1][2] = max(merged[-1][2], end)
            else:
                merged.append([segment, start, end])
        widths = np.array([end - start for _, start, end in merged], dtype=np.int64)
        nodes = int((2 * widths - 1).sum())
        return nodes, int(span_counts(widths, self.max_width).sum())
