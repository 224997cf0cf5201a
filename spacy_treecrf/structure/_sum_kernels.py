"""Sums over analyses on the host, segment by segment, compiled by Numba.

They give what the recursions in torch give (`chart.py`, `outside.py`, `chain.py`). Numba
keeps a function's code until its own file changes, so that all that one of them calls is
in this one.

Nothing in an inner loop is an exponential or a logarithm: a number x stands as a mantissa
m >= 1 and a whole exponent e, x = m * 2 ** e, both float64. A split is a product and a
sum; the sum over splits is in powers of two relative to one of them, which are made by
shifting bits. Log zero is no special case: its exponent is -1.4e30.

The cells of a segment of n tokens with nodes of at most W stand twice, so that both parts
of all splits of a span run along rows:

- by start: [i, i + w) at i * W + w - 1;
- by end: [j - w, j) at j * W - w.

A span's splits are a stretch of row i by start and one of row j by end. So are the ways
into a border of a chain: the borders before it, and row j by end.
"""

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ._jit import compiled, inlined

# 2 ** -1023 is made as 0: what is below vanishes. At the other bound no product of
# mantissas overflows, and the sum tells that there was more.
LOWEST, HIGHEST = -1023.0, 1000.0
# Sums outside these bounds are taken again, relative to the largest term.
TOO_SMALL, TOO_LARGE = 2.0**-900, 2.0**900
unsigned = types.uint64
# Added to a whole number of some thousands, it leaves the number in the last bits.
WHOLE = 1.5 * 2.0**52
LN2 = math.log(2.0)
# Rows of scratch that the recursions need: of n * W numbers, and of n + 1.
SUM_ROWS, ENTROPY_ROWS = 8, 10
# Starts whose cells are filled together: with nodes of 64 tokens some 400 kB.
BLOCK = 64
BORDER_ROWS = 7


def _power_of_two(context: Any, exponent: Any) -> Any:
    """2 ** exponent for a whole exponent from -1023, which gives 0, to 1023."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits, number = ir.IntType(64), ir.DoubleType()
        biased = builder.fadd(args[0], ir.Constant(number, WHOLE + 1023.0))
        shifted = builder.shl(builder.bitcast(biased, bits), ir.Constant(bits, 52))
        return builder.bitcast(shifted, number)

    return types.float64(types.float64), generate


def _exponent_of(context: Any, number: Any) -> Any:
    """The whole number e with 2 ** e <= number < 2 ** (e + 1), of a normal number > 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits, number = ir.IntType(64), ir.DoubleType()
        shifted = builder.lshr(builder.bitcast(args[0], bits), ir.Constant(bits, 52))
        return builder.fsub(
            builder.uitofp(shifted, number), ir.Constant(number, 1023.0)
        )

    return types.float64(types.float64), generate


def _whole_below(context: Any, number: Any) -> Any:
    """The floor as a number: that of 1e30 is no integer of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        floor = builder.module.declare_intrinsic("llvm.floor", [ir.DoubleType()])
        return builder.call(floor, args)

    return types.float64(types.float64), generate


# Untyped, since mypy would have callers give the compiler's context, too.
power_of_two: Any = intrinsic(_power_of_two)
whole_below: Any = intrinsic(_whole_below)
exponent_of: Any = intrinsic(_exponent_of)


# Runs of numbers are an array, where the run begins, and how long it is. Unsigned: an index
# that may be negative, or a slice, costs more than the numbers.


@inlined
def weigh(
    lm: Any, le: Any, at: Any, rm: Any, re: Any, to: Any, count: Any, base: float
) -> Any:
    """Sum of the products of two runs of numbers, relative to 2 ** base."""
    total = 0.0
    for step in range(count):
        relative = le[at + step] + re[to + step] - base
        relative = relative if relative > LOWEST else LOWEST
        relative = relative if relative < HIGHEST else HIGHEST
        total += lm[at + step] * rm[to + step] * power_of_two(relative)
    return total


@inlined
def weigh_all(lm: Any, le: Any, left: int, rm: Any, re: Any, right: int, n: int) -> Any:
    """Sum of the products of two runs of numbers, and the base of `weigh` for it."""
    at, to, count = unsigned(left), unsigned(right), unsigned(n)
    # Any base will do that is not out of all proportion to the largest term.
    middle, last = count >> unsigned(1), count - unsigned(1)
    base = max(le[at] + re[to], le[at + middle] + re[to + middle])
    base = max(base, le[at + last] + re[to + last])
    total = weigh(lm, le, at, rm, re, to, count, base)
    if total < TOO_SMALL or total > TOO_LARGE:
        for step in range(count):
            base = max(base, le[at + step] + re[to + step])
        total = weigh(lm, le, at, rm, re, to, count, base)
    return total, base


@inlined
def spread(
    lm: Any,
    le: Any,
    left: int,
    rm: Any,
    re: Any,
    right: int,
    n: int,
    base: float,
    factor: float,
    shares: Any,
) -> None:
    """The terms of `weigh`, times a factor."""
    at, to = unsigned(left), unsigned(right)
    for step in range(unsigned(n)):
        relative = le[at + step] + re[to + step] - base
        relative = relative if relative > LOWEST else LOWEST
        relative = relative if relative < HIGHEST else HIGHEST
        product = lm[at + step] * rm[to + step] * power_of_two(relative)
        shares[step] = factor * product


@inlined
def add_to(sums: Any, first: int, values: Any, n: int) -> None:
    """Add a run of numbers to another."""
    at = unsigned(first)
    for step in range(unsigned(n)):
        sums[at + step] += values[step]


@compiled
def choice_entropy(
    ll: Any,
    le: Any,
    left: int,
    rl: Any,
    re: Any,
    right: int,
    n: int,
    base: float,
    total: float,
    chances: Any,
) -> Any:
    """Entropy of a choice among the terms of `weigh`, in nats.

    ll, rl (ndarray): Logs of the mantissas, in bits.
    chances (ndarray): Probability of each term.
    """
    at, to = unsigned(left), unsigned(right)
    expected = 0.0
    for step in range(unsigned(n)):
        relative = le[at + step] + re[to + step] - base
        relative = relative if relative > LOWEST else LOWEST
        expected += chances[step] * (ll[at + step] + rl[to + step] + relative)
    # Relative to the base nothing is large, so that no digits are lost.
    return max(0.0, math.log(total) - expected * LN2)


@inlined
def normal(mantissa: float, exponent: float) -> Any:
    """The same number with a mantissa in [1, 2)."""
    shift = exponent_of(mantissa)
    return mantissa * power_of_two(-shift), exponent + shift


@inlined
def parted(bits: float) -> Any:
    """Mantissa and exponent of 2 ** bits."""
    exponent = whole_below(bits)
    return math.exp((bits - exponent) * LN2), exponent


@compiled
def sum_inside(
    bits: Any, chart: int, offsets: Any, places: Any, n: int, widest: int, cells: Any
) -> None:
    """Sum over the bracketings of every span of a segment: Fu et al. (2021), Alg. 3."""
    lm, le, rm, re, totals, bases = (
        cells[0],
        cells[1],
        cells[2],
        cells[3],
        cells[4],
        cells[5],
    )
    # By width: a processor works on several cells at once where none waits for another.
    # In blocks of starts, the last one first, so that what is read stays in its cache.
    for block in range((n - 1) // BLOCK, -1, -1):
        for width in range(1, widest + 1):
            for start in range(block * BLOCK, min((block + 1) * BLOCK, n - width + 1)):
                end = start + width
                here, there = start * widest + width - 1, end * widest - width
                mantissa, exponent = parted(bits[offsets[width] + places[start], chart])
                if width > 1:
                    total, base = weigh_all(
                        lm, le, start * widest, rm, re, there + 1, width - 1
                    )
                    totals[here], bases[here] = total, base
                    mantissa, exponent = normal(mantissa * total, exponent + base)
                lm[here], le[here] = mantissa, exponent
                rm[there], re[there] = mantissa, exponent


@compiled
def sum_chain(
    n: int, widest: int, cells: Any, line: Any, borders: Any, chart: int
) -> None:
    """Sum over the chains of stretches up to each border."""
    rm, re, am, ae = cells[2], cells[3], line[0], line[1]
    am[0], ae[0] = 1.0, 0.0
    for end in range(1, n + 1):
        count = min(widest, end)
        total, base = weigh_all(
            am, ae, end - count, rm, re, end * widest - count, count
        )
        line[2, end], line[3, end] = total, base
        mantissa, exponent = parted(borders[end - 1, chart])
        am[end], ae[end] = normal(mantissa * total, exponent + base)


@compiled
def take_logs(logs: Any, mantissas: Any, count: int) -> None:
    """Logs of mantissas, in bits; cells without a span may hold anything."""
    for step in range(count):
        mantissa = mantissas[step]
        logs[step] = math.log(mantissa) / LN2 if mantissa > 0.0 else 0.0


@compiled
def pass_outside(
    mass: Any,
    choices: Any,
    chart: int,
    offsets: Any,
    places: Any,
    n: int,
    widest: int,
    cells: Any,
    line: Any,
) -> Any:
    """Probability of every span, from the whole segment down; RETURNS the entropy.

    The probability of a border is spread over the last stretches before it, that of a
    span over its splits.
    """
    lm, le, rm, re, totals, bases = (
        cells[0],
        cells[1],
        cells[2],
        cells[3],
        cells[4],
        cells[5],
    )
    # What reaches a span as the left part of a split, by start; as the right part, by end.
    as_left, as_right = cells[6], cells[7]
    am, ae, passed, shares = line[0], line[1], line[4], line[5]
    as_left[: n * widest] = 0.0
    as_right[: n * widest] = 0.0
    passed[: n + 1] = 0.0
    passed[n] = 1.0
    uncertain = len(choices) > 0
    entropy = 0.0
    # Logs of the mantissas, where they are needed.
    ll, rl, al = cells[0], cells[2], line[6]
    if uncertain:
        ll, rl = cells[8], cells[9]
        take_logs(ll, lm, n * widest)
        take_logs(rl, rm, n * widest)
    if n == widest:
        as_right[(n - 1) * widest] = 1.0
    else:
        if uncertain:
            take_logs(al, am, n + 1)
        for end in range(n, 0, -1):
            count = min(widest, end)
            at, to = end - count, end * widest - count
            total, base = line[2, end], line[3, end]
            spread(am, ae, at, rm, re, to, count, base, 1.0 / total, shares)
            if uncertain:
                entropy += passed[end] * choice_entropy(
                    al, ae, at, rl, re, to, count, base, total, shares
                )
            for step in range(count):
                shares[step] *= passed[end]
            add_to(as_right, to, shares, count)
            add_to(passed, at, shares, count)
    for block in range((n - 1) // BLOCK + 1):
        for width in range(widest, 0, -1):
            for start in range(block * BLOCK, min((block + 1) * BLOCK, n - width + 1)):
                end = start + width
                here, there = start * widest + width - 1, end * widest - width
                chance = as_left[here] + as_right[there]
                row = offsets[width] + places[start]
                mass[row, chart] = chance
                if uncertain:
                    entropy += chance * choices[row, chart]
                if width == 1 or chance == 0.0:
                    continue
                total, base = totals[here], bases[here]
                at, to, count = start * widest, there + 1, width - 1
                if uncertain:
                    spread(lm, le, at, rm, re, to, count, base, 1.0 / total, shares)
                    entropy += chance * choice_entropy(
                        ll, le, at, rl, re, to, count, base, total, shares
                    )
                spread(lm, le, at, rm, re, to, count, base, chance / total, shares)
                add_to(as_left, at, shares, count)
                add_to(as_right, to, shares, count)
    return entropy


@compiled
def tree_sums(
    bits: Any,
    borders: Any,
    choices: Any,
    offsets: Any,
    places: Any,
    lengths: Any,
    widest: int,
    cells: Any,
    line: Any,
    log_sums: Any,
    mass: Any,
    entropies: Any,
) -> None:
    """Log-sums of the analyses of each segment, and on demand what follows from them.

    bits (ndarray): Log-potential of each span, in bits. Shape: (S, K).
    borders (ndarray): What a border after each token adds, in bits. Shape: (T, K), or
        (0, K) where no segment is chained.
    choices (ndarray): Entropy of what is chosen at a node but its split, in nats. Shape:
        (S, K), or (0, K) where no entropy is asked for.
    offsets, places, lengths (ndarray): `SpanIndex.on_host`.
    widest (int): Width of the widest span.
    cells (ndarray): Scratch. Shape: (SUM_ROWS or ENTROPY_ROWS, n * W).
    line (ndarray): Scratch. Shape: (BORDER_ROWS, n + 1).
    log_sums (ndarray): Filled, in bits. Shape: (B, K).
    mass (ndarray): Filled with the probability of each span. Shape: (S, K), or (0, K)
        where it is not asked for.
    entropies (ndarray): Filled, in nats, where they are asked for. Shape: (B, K).
    """
    for chart in range(bits.shape[1]):
        first = 0
        for segment in range(len(lengths)):
            n = lengths[segment]
            width = min(n, widest)
            own = places[first : first + n]
            sum_inside(bits, chart, offsets, own, n, width, cells)
            whole = (n - 1) * width
            mantissa, exponent = cells[2, whole], cells[3, whole]
            if n > width:
                sum_chain(n, width, cells, line, borders[first : first + n], chart)
                mantissa, exponent = line[0, n], line[1, n]
            log_sums[segment, chart] = math.log(mantissa) / LN2 + exponent
            if len(mass):
                entropies[segment, chart] = pass_outside(
                    mass, choices, chart, offsets, own, n, width, cells, line
                )
            first += n
