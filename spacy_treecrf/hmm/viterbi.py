"""Best, k best and expected labelled segmentations of a batch of sentences.

All three walk a `Lattice` one time step at a time, for all sentences of the batch
together; each costs O(T N^2). Probabilities are rescaled at every step, so that
sentences of any length stay within floating point.

Source: Bikel et al. 1999, section 3.4 (Viterbi); forward-backward and the exact k-best
list follow from the same recurrence.
"""

from dataclasses import dataclass

import numpy as np

from .lattice import Lattice

GO_ON = -1  # back pointer of a token that continues the segment of the one before


@dataclass(frozen=True)
class Labelling:
    """One labelled segmentation a sentence, in the caller's order of tokens.

    name_classes (np.ndarray): Class of each token. Shape: (T,).
    begins (np.ndarray): Whether it is the first of its segment. Shape: (T,).
    """

    name_classes: np.ndarray
    begins: np.ndarray


def viterbi(lattice: Lattice) -> Labelling:
    """The most probable labelled segmentation of each sentence.

    lattice (Lattice): The batch.
    RETURNS (Labelling): Its name classes and segments.

    Source: Bikel et al. 1999, section 3.4.
    """
    offsets = lattice.offsets
    back = np.full(lattice.go_on.shape, GO_ON, dtype=np.int32)
    last = np.zeros(len(lattice.lengths), dtype=np.int64)
    delta = lattice.start / lattice.start.max(axis=1, keepdims=True)
    for time in range(len(offsets) - 1):
        here = slice(offsets[time], offsets[time + 1])
        if time:
            candidates = lattice.step[here] * delta[: lattice.running(time), None, :]
            arg = candidates.argmax(axis=2)
            new = np.take_along_axis(candidates, arg[:, :, None], axis=2)[:, :, 0]
            stay = lattice.go_on[here] * delta[: len(new)]
            delta = np.maximum(new, stay)
            back[here] = np.where(new > stay, arg, GO_ON)
            delta /= delta.max(axis=1, keepdims=True)
        done = lattice.lengths[: len(delta)] == time + 1
        last[: len(delta)][done] = (delta * lattice.stop[: len(delta)])[done].argmax(
            axis=1
        )
    return _trace_back(lattice, back, last)


def _trace_back(lattice: Lattice, back: np.ndarray, last: np.ndarray) -> Labelling:
    """Follow the back pointers of one path a sentence."""
    classes = np.empty(len(lattice.positions), dtype=np.int32)
    begins = np.empty(len(lattice.positions), dtype=bool)
    state = last.copy()
    for time in range(len(lattice.offsets) - 2, -1, -1):
        here = slice(lattice.offsets[time], lattice.offsets[time + 1])
        running = lattice.running(time)
        now = state[:running]
        pointer = back[here][np.arange(running), now]
        classes[lattice.positions[here]] = now
        begins[lattice.positions[here]] = (pointer != GO_ON) | (time == 0)
        state[:running] = np.where(pointer == GO_ON, now, pointer)
    return Labelling(classes, begins)


@dataclass(frozen=True)
class Posteriors:
    """What forward-backward knows, in the caller's order of tokens.

    begin (np.ndarray): Scaled probability that a segment of the class begins at the
        token, given the words up to it. Shape: (T, N).
    end (np.ndarray): Scaled probability of the words after it, if a segment of the
        class ends at the token. Shape: (T, N).
    inside (np.ndarray): Running sum of the log of the scaled factors of continuation.
        Shape: (T, N).
    log_z (np.ndarray): log Pr(words) of each sentence, caller's order. Shape: (S,).
    """

    begin: np.ndarray
    end: np.ndarray
    inside: np.ndarray
    log_z: np.ndarray

    def spans(
        self, start: np.ndarray, end: np.ndarray, name_class: np.ndarray
    ) -> np.ndarray:
        """Pr([start, end) is a segment of its class | words).

        start, end, name_class (np.ndarray): Half-open token offsets in the batch, and
            classes. Shape: (M,).
        RETURNS (np.ndarray): The probabilities. Shape: (M,).
        """
        inner = self.inside[end - 1, name_class] - self.inside[start, name_class]
        p = (
            self.begin[start, name_class]
            * np.exp(inner)
            * self.end[end - 1, name_class]
        )
        return np.clip(p, 0.0, 1.0)  # rounding may pass 1 by an ulp


def forward_backward(lattice: Lattice) -> Posteriors:
    """Posterior probabilities of segments.

    lattice (Lattice): The batch.
    RETURNS (Posteriors): From which any span's posterior is read off in O(1).
    """
    offsets, running = lattice.offsets, lattice.running
    n_steps = len(offsets) - 1
    alpha, begin, scale = (
        np.empty_like(lattice.go_on),
        np.empty_like(lattice.go_on),
        np.empty(len(lattice.positions)),
    )
    for time in range(n_steps):
        here = slice(offsets[time], offsets[time + 1])
        if time:
            before = alpha[offsets[time - 1] :][: running(time)]
            new = np.matmul(lattice.step[here], before[:, :, None])[:, :, 0]
            total = new + before * lattice.go_on[here]
        else:
            new = total = lattice.start
        scale[here] = total.sum(axis=1)
        begin[here] = new / scale[here][:, None]
        alpha[here] = total / scale[here][:, None]

    last = offsets[lattice.lengths - 1] + np.arange(len(lattice.lengths))
    z_last = (alpha[last] * lattice.stop).sum(axis=1)
    beta, end = np.empty_like(alpha), np.empty_like(alpha)
    beta[last] = end[last] = lattice.stop / z_last[:, None]
    for time in range(n_steps - 2, -1, -1):
        after = slice(offsets[time + 1], offsets[time + 2])
        here = slice(offsets[time], offsets[time] + running(time + 1))
        scaled = beta[after] / scale[after][:, None]
        end[here] = np.matmul(scaled[:, None, :], lattice.step[after])[:, 0, :]
        beta[here] = end[here] + scaled * lattice.go_on[after]

    log_scale = np.log(scale)
    steps = np.empty_like(alpha)
    steps[lattice.positions] = np.log(lattice.go_on) - log_scale[:, None]
    log_z = np.bincount(
        np.arange(len(scale)) - np.repeat(offsets[:-1], np.diff(offsets)), log_scale
    ) + np.log(z_last)
    result = [np.empty_like(alpha), np.empty_like(alpha), np.empty_like(log_z)]
    for values, into in ((begin, result[0]), (end, result[1])):
        into[lattice.positions] = values
    result[2][lattice.sentences] = log_z
    return Posteriors(result[0], result[1], np.cumsum(steps, axis=0), result[2])


@dataclass(frozen=True)
class KBest:
    """The k best labelled segmentations of each sentence, best first.

    name_classes (np.ndarray): In the caller's order of tokens. Shape: (k, T).
    begins (np.ndarray): Shape: (k, T).
    log_joint (np.ndarray): log Pr(words, name classes), -inf where a sentence has fewer
        than k labellings. Caller's order of sentences. Shape: (k, S).
    """

    name_classes: np.ndarray
    begins: np.ndarray
    log_joint: np.ndarray


def k_best(lattice: Lattice, k: int) -> KBest:
    """The k most probable labelled segmentations of each sentence, exactly.

    lattice (Lattice): The batch.
    k (int): How many, at least 1.
    RETURNS (KBest): Different paths are different labellings: no duplicates.

    Cost: O(T N^2 k) time.
    """
    n, offsets = lattice.n_classes, lattice.offsets
    with np.errstate(divide="ignore"):  # the forbidden move has probability 0
        step, go_on = np.log(lattice.step), np.log(lattice.go_on)
    stop = np.log(lattice.stop)
    back = np.full((len(lattice.positions), n, k), -1, dtype=np.int32)
    delta = np.full((len(lattice.lengths), n, k), -np.inf)
    delta[:, :, 0] = np.log(lattice.start)
    last = np.zeros((len(lattice.lengths), k), dtype=np.int64)
    log_joint = np.full((k, len(lattice.lengths)), -np.inf)
    for time in range(len(offsets) - 1):
        here = slice(offsets[time], offsets[time + 1])
        count = lattice.running(time)
        if time:
            delta = delta[:count]
            # Candidates into class c: class before * k + rank, then "go on" by rank.
            new = step[here][:, :, :, None] + delta[:, None, :, :]
            stay = go_on[here][:, :, None] + delta
            both = np.concatenate((new.reshape(count, n, n * k), stay), axis=2)
            back[here], delta = _largest(both, k)
        done = np.flatnonzero(lattice.lengths[:count] == time + 1)
        final = (delta[done] + stop[done][:, :, None]).reshape(len(done), n * k)
        last[done], scores = _largest(final, k)
        log_joint[:, lattice.sentences[done]] = scores.T
    return KBest(*_trace_back_k(lattice, back, last, k), log_joint)


def _largest(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and values of the k largest along the last axis, falling."""
    places = np.argpartition(values, -k, axis=-1)[..., -k:]
    chosen = np.take_along_axis(values, places, axis=-1)
    order = np.argsort(-chosen, axis=-1, kind="stable")
    return (
        np.take_along_axis(places, order, axis=-1),
        np.take_along_axis(chosen, order, axis=-1),
    )


def _trace_back_k(
    lattice: Lattice, back: np.ndarray, last: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Follow the back pointers of k paths a sentence; state = class * k + rank."""
    n, positions = lattice.n_classes, lattice.positions
    classes = np.empty((k, len(positions)), dtype=np.int32)
    begins = np.empty((k, len(positions)), dtype=bool)
    state = last.copy()
    for time in range(len(lattice.offsets) - 2, -1, -1):
        here = slice(lattice.offsets[time], lattice.offsets[time + 1])
        running = lattice.running(time)
        now, rank = np.divmod(state[:running], k)
        pointer = back[here][np.arange(running)[:, None], now, rank]
        goes_on = pointer >= n * k
        classes[:, positions[here]] = now.T
        begins[:, positions[here]] = (~goes_on | (time == 0)).T
        if time:
            state[:running] = np.where(goes_on, now * k + pointer - n * k, pointer)
    return classes, begins
