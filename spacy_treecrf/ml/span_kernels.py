"""From padded products to packed potentials in machine code, both ways.

What `pieces.TakeCells` and `pooling` do with calls of torch, in one pass over the cells and
without an index as large as they are. Imported by `placing` alone, where Numba is there.
"""

import numpy as np

from spacy_treecrf.structure._jit import compiled


@compiled
def place_spans(
    product: np.ndarray,
    number: np.ndarray,
    room: np.ndarray,
    places: np.ndarray,
    offsets: np.ndarray,
    inner: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the cells of a product that are spans to the packed layout.

    product (np.ndarray): Shape: (pieces, n_starts, L, n_ends).
    number (np.ndarray): First token of each piece, in the segments. Shape: (pieces,).
    room (np.ndarray): Tokens of its segment from there on. Shape: (pieces,).
    places (np.ndarray): Place in start order of each token. Shape: (T,).
    offsets (np.ndarray): First packed row of each width, from 1 on. Shape: (W,).
    inner (np.ndarray): Scores of tokens, of which a span gets the highest of its own.
        Shape: (L, T), or (L, 0) for none.
    scores (np.ndarray): Written to. Shape: (L, S).
    """
    n_pieces, n_starts, n_labels, _ = product.shape
    pooled = inner.shape[1] > 0
    # Start by start, since these stand side by side in the packed layout.
    for start in range(n_starts):
        for piece in range(n_pieces):
            if start >= room[piece]:
                continue
            token = number[piece] + start
            place = places[token]
            reach = min(len(offsets), room[piece] - start)
            for label in range(n_labels):
                cells = product[piece, start, label, start : start + reach]
                row = scores[label]
                if not pooled:
                    for step in range(reach):
                        row[offsets[step] + place] = cells[step]
                    continue
                best = inner[label, token]
                for step in range(reach):
                    best = max(best, inner[label, token + step])
                    row[offsets[step] + place] = cells[step] + best


@compiled
def gather_gradient(
    gradient: np.ndarray,
    number: np.ndarray,
    room: np.ndarray,
    places: np.ndarray,
    offsets: np.ndarray,
    inner: np.ndarray,
    product: np.ndarray,
    d_inner: np.ndarray,
) -> None:
    """Undo `place_spans` for gradients.

    gradient (np.ndarray): That of the scores. Shape: (L, S).
    product (np.ndarray): Zeros, written to. Shape: (pieces, n_starts, L, n_ends).
    d_inner (np.ndarray): Added to at the first of the highest tokens. Shape: (L, T) or
        (L, 0).
    The other arguments are those of `place_spans`.
    """
    n_pieces, n_starts, n_labels, _ = product.shape
    pooled = inner.shape[1] > 0
    # Start by start, since these stand side by side in the packed layout.
    for start in range(n_starts):
        for piece in range(n_pieces):
            if start >= room[piece]:
                continue
            token = number[piece] + start
            place = places[token]
            reach = min(len(offsets), room[piece] - start)
            for label in range(n_labels):
                cells = product[piece, start, label, start : start + reach]
                row = gradient[label]
                if not pooled:
                    for step in range(reach):
                        cells[step] = row[offsets[step] + place]
                    continue
                highest = token
                for step in range(reach):
                    if inner[label, token + step] > inner[label, highest]:
                        highest = token + step
                    value = row[offsets[step] + place]
                    cells[step] = value
                    d_inner[label, highest] += value
