"""How often labels occur in the gold: what a new model believes before it sees a word."""

import numpy as np

# Added to each count, so that a label that was only announced has finite odds.
PSEUDO_COUNT = 0.5


class LabelPrior:
    """Counts labels over the places where they could be.

    A tree over n tokens has 2n - 1 nodes, and each of them carries an entity label or a
    latent one; for the local objective every one of the n (n + 1) / 2 spans does.
    """

    def __init__(self) -> None:
        self.counts = np.zeros(0, dtype=np.int64)
        self.nodes = 0
        self.spans = 0

    def add(self, lengths: np.ndarray, labels: np.ndarray) -> None:
        """Count some segments.

        lengths (np.ndarray): Tokens of each segment. Shape: (B,), int64.
        labels (np.ndarray): Label numbers of their entities. Shape: (E,), int64.
        """
        found = np.bincount(labels, minlength=len(self.counts))
        found[: len(self.counts)] += self.counts
        self.counts = found
        self.nodes += int((2 * lengths - 1).sum())
        self.spans += int((lengths * (lengths + 1) // 2).sum())

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
        places = self.nodes if objective == "treecrf" else self.spans
        # Entities can fill a corpus of single words.
        others = max(places - int(self.counts.sum()), 0) + PSEUDO_COUNT
        return np.log(counts) - np.log(others / n_latent)
