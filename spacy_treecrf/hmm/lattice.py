"""Every labelled segmentation of a batch of sentences, as products of probabilities."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Lattice:
    """The factors of Pr(words, name classes), time-major.

    Sentences are ordered by falling length, so that at each time step the sentences
    still running are the first ones and lie side by side: no padding.

    sentences (np.ndarray): Place of each sentence in the caller's order. Shape: (S,).
    lengths (np.ndarray): Tokens of each sentence, falling. Shape: (S,).
    offsets (np.ndarray): Where each time step starts, and the end. Shape: (P + 1,).
    positions (np.ndarray): Place of each token in the caller's order. Shape: (T,).
    start (np.ndarray): N * F of the first word. Shape: (S, N).
    step (np.ndarray): A segment ends before this token and another starts at it:
        W(+end+) * N * F, 0 for NOT-A-NAME after NOT-A-NAME, which would give one
        labelling two paths. Unused at the first time step. Shape: (T, N, N before).
    go_on (np.ndarray): The segment of the token before goes on: W. Shape: (T, N).
    stop (np.ndarray): W(+end+) * N(END-OF-SENTENCE). Shape: (S, N).
    """

    sentences: np.ndarray
    lengths: np.ndarray
    offsets: np.ndarray
    positions: np.ndarray
    start: np.ndarray
    step: np.ndarray
    go_on: np.ndarray
    stop: np.ndarray

    @property
    def n_classes(self) -> int:
        """RETURNS (int): Name classes, NOT-A-NAME included."""
        return self.start.shape[1]

    def running(self, time: int) -> int:
        """Sentences with a token at a time step.

        time (int): The time step.
        RETURNS (int): Their number.
        """
        return int(self.offsets[time + 1] - self.offsets[time])


def time_major(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order the tokens of sentences by time step.

    lengths (np.ndarray): Tokens of each sentence, at least 1. Shape: (S,).
    RETURNS (tuple[np.ndarray, np.ndarray, np.ndarray]): `sentences`, `offsets` and
        `positions` as in `Lattice`.
    """
    sentences = np.argsort(-lengths, kind="stable")
    ordered = lengths[sentences]
    longest = int(ordered[0])
    # Sentences longer than t, for each t.
    running = len(lengths) - np.searchsorted(
        np.sort(lengths), np.arange(longest), "right"
    )
    offsets = np.concatenate(([0], np.cumsum(running)))
    first = (np.cumsum(lengths) - lengths)[sentences]
    time = np.repeat(np.arange(longest), running)
    rank = np.arange(offsets[-1]) - offsets[time]
    return sentences, offsets, first[rank] + time


def previous_tokens(offsets: np.ndarray) -> np.ndarray:
    """The token before each token of a time-major batch.

    offsets (np.ndarray): As in `Lattice`.
    RETURNS (np.ndarray): Its place; that of the token itself at the first time step.
        Shape: (T,).
    """
    running = np.diff(offsets)
    shift = np.repeat(np.concatenate(([0], running[:-1])), running)
    return np.arange(offsets[-1]) - shift
