"""The model by its definition: counters, fractions, one probability at a time.

Written from Bikel et al. (1999), section 3.2 and Table 3.2, and from the decisions in the
docstrings of the package; it shares no code with it but the word features.
"""

from collections import Counter, defaultdict
from fractions import Fraction

START, END, UNKNOWN, END_WORD = "START", "END", "_UNK_", "+end+"
NAN = 0


def weight(c, u, old=0):
    if c == 0:
        return Fraction(0)
    first = min(max(1 - Fraction(old, c), Fraction(0)), Fraction(1))
    return first * Fraction(c, c + u)


def is_punctuation(word):
    return word not in (END_WORD, UNKNOWN) and not any(map(str.isalnum, word))


def events_of(words, features, classes, begins):
    """The events of one sentence as (family, outcome, histories...)."""
    before, last, beyond = START, END_WORD, END_WORD
    pairs = list(zip(words, features, strict=True))
    for at, pair in enumerate(pairs):
        if begins[at]:
            yield ("N", classes[at], before, last, beyond)
            yield ("F", pair, classes[at], before)
        else:
            yield ("W", pair, pairs[at - 1], classes[at])
        if at + 1 == len(pairs) or begins[at + 1]:
            yield ("W", END_WORD, pair, classes[at])
        before, last, beyond = classes[at], words[at], last
    yield ("N", END, before, last, beyond)


class Counts:
    """Outcome counts after each history of each level."""

    def __init__(self, events):
        self.table = defaultdict(Counter)
        self.words, self.tokens = set(), defaultdict(Counter)
        for event in events:
            if event[0] in ("N", "N0"):
                _, outcome, before, last, beyond = event
                if is_punctuation(last):
                    self.table["N0", before, last, beyond][outcome] += 1
                if event[0] == "N0":
                    continue
                for history in (("N1", before, last), ("N2", before), ("N3",)):
                    self.table[history][outcome] += 1
            elif event[0] == "F":
                _, pair, name_class, before = event
                self.table["F1", name_class, before][pair] += 1
                self.table["F2", name_class][pair] += 1
                self._token(pair, name_class)
            else:
                _, outcome, previous, name_class = event
                self.table["W1", previous, name_class][outcome] += 1
                if outcome == END_WORD:
                    self.table["W2", name_class][outcome] += 1
                else:
                    self._token(outcome, name_class)

    def _token(self, pair, name_class):
        self.table["W2", name_class][pair] += 1
        self.table["F3", name_class][pair] += 1
        self.tokens["w", name_class][pair[0]] += 1
        self.tokens["f", name_class][pair[1]] += 1
        self.words.add(pair[0])

    def mix(self, levels, uniform, outcome, product=None):
        """Mix levels from the top; `product` is (weight, probability) at the bottom."""
        p, left, old = Fraction(0), Fraction(1), 0
        for history in levels:
            counts = self.table.get(history, Counter())
            c, u = sum(counts.values()), len(counts)
            here = weight(c, u, old)
            p += left * here * (Fraction(counts[outcome], c) if c else 0)
            left, old = left * (1 - here), c
        if product is not None:
            p += left * product[0] * product[1]
            left *= 1 - product[0]
        return p + left * uniform


class Oracle:
    """The two models (or the merged one) of a labelled corpus."""

    def __init__(self, corpus, second_half, features, n_classes, **options):
        self.features, self.n_classes, self.options = features, n_classes, options
        halves = [set(), set()]
        for (words, _, _), half in zip(corpus, second_half, strict=True):
            halves[half].update(words)
        self.known = halves[0] | halves[1]
        plain, held_out = [], []
        for (words, classes, begins), half in zip(corpus, second_half, strict=True):
            found = self.features_of(words)
            new = [w if w in halves[1 - half] else UNKNOWN for w in words]
            plain += events_of(words, found, classes, begins)
            held_out += events_of(new, found, classes, begins)
        if options.get("unknown") == "merged":
            # Behind punctuation the level on top holds one word more than the others.
            above = [
                ("N0", *e[1:])
                for e in held_out
                if e[0] == "N" and e[4] == UNKNOWN != e[3] and is_punctuation(e[3])
            ]
            held_out = plain + above + [e for e in held_out if self._holds_unknown(e)]
            self.normal = self.unknown = Counts(held_out)
        else:
            self.normal, self.unknown = Counts(plain), Counts(held_out)

    def _holds_unknown(self, event):
        if event[0] == "N":
            return event[3] == UNKNOWN
        return any(isinstance(x, tuple) and x[0] == UNKNOWN for x in event[1:3])

    def features_of(self, words):
        return [self.features(word, at == 0) for at, word in enumerate(words)]

    def log_joint_factors(self, words, classes, begins):
        found = self.features_of(words)
        words = [w if w in self.known else UNKNOWN for w in words]
        return [self.probability(e) for e in events_of(words, found, classes, begins)]

    def probability(self, event):
        family, outcome, *rest = event
        if family == "N":
            return self.name_class(outcome, *rest)
        counts, outcome, rest = self._choose(outcome, rest)
        size = len(self.features.names) * len(counts.words)
        if family == "F":
            name_class, before = rest
            levels = [
                ("F1", name_class, before),
                ("F2", name_class),
                ("F3", name_class),
            ]
            product = self._product(counts, outcome, name_class)
            return counts.mix(levels, Fraction(1, size), outcome, product)
        previous, name_class = rest
        levels = [("W1", previous, name_class), ("W2", name_class)]
        product = self._product(counts, outcome, name_class)
        return counts.mix(levels, Fraction(1, size + 1), outcome, product)

    def _choose(self, outcome, rest):
        """The model that answers, and the pairs as it knows them."""
        pairs = [x for x in (outcome, *rest) if isinstance(x, tuple)]
        if all(pair[0] != UNKNOWN for pair in pairs):
            return self.normal, outcome, rest
        return self.unknown, self._mapped(outcome), [self._mapped(x) for x in rest]

    def _mapped(self, x):
        if isinstance(x, tuple) and x[0] not in self.unknown.words:
            return (UNKNOWN, x[1])
        return x

    def _product(self, counts, outcome, name_class):
        if not self.options.get("product_level"):
            return None
        of_word, of_feature = (
            counts.tokens["w", name_class],
            counts.tokens["f", name_class],
        )
        c = sum(of_word.values())
        if not c:
            return None
        p = Fraction(0)
        if outcome != END_WORD:
            p = Fraction(of_word[outcome[0]], c) * Fraction(of_feature[outcome[1]], c)
        return weight(c, len(of_word)), p

    def name_class(self, outcome, before, last, beyond):
        above = is_punctuation(last) and self.options.get("punctuation_context", True)
        counts = self.normal
        if last == UNKNOWN or (above and beyond == UNKNOWN):
            counts = self.unknown
            known = counts.words | {END_WORD}
            last = last if last in known else UNKNOWN
            beyond = beyond if beyond in known else UNKNOWN
        levels = [("N1", before, last), ("N2", before), ("N3",)]
        p = counts.mix(levels, Fraction(1, self.n_classes + 1), outcome)
        if not above:
            return p
        top = counts.table.get(("N0", before, last, beyond), Counter())
        c, here = sum(top.values()), weight(sum(top.values()), len(top))
        return here * (Fraction(top[outcome], c) if c else 0) + (1 - here) * p
