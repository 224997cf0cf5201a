"""Which labels exist: plain labels, and composites for spans that carry several.

A tree has one label a node. Where gold gives one span several labels, their combination
is a label of its own inside the model, and is taken apart again on output. Composites
are tuples, never strings that would have to be parsed: a label may hold any character.
"""

from collections.abc import Iterable, Sequence

import numpy as np

# An entry of `label_data`: a plain label, or a combination of plain labels.
LabelData = str | list[str]


class LabelSet:
    """Plain labels and combinations of them, numbered in that order.

    plain (list[str]): Plain labels.
    combinations (list[tuple[str, ...]]): Combinations seen in training, each sorted.
    """

    def __init__(self, data: Iterable[LabelData] = ()) -> None:
        """data (Iterable[LabelData]): Entries as `as_data` gives them."""
        self.plain: list[str] = []
        self.combinations: list[tuple[str, ...]] = []
        for entry in data:
            self.add([entry] if isinstance(entry, str) else entry)

    def __len__(self) -> int:
        return len(self.plain) + len(self.combinations)

    def add(self, labels: Sequence[str]) -> bool:
        """Add a label, or a combination and its parts.

        labels (Sequence[str]): One or more plain labels.
        RETURNS (bool): Whether anything was new.
        """
        new = [label for label in sorted(set(labels)) if label not in self.plain]
        self.plain.extend(new)
        combination = tuple(sorted(set(labels)))
        if len(combination) > 1 and combination not in self.combinations:
            self.combinations.append(combination)
            return True
        return bool(new)

    def as_data(self) -> list[LabelData]:
        """Entries that JSON can hold: the plain labels, then lists of combined ones."""
        return [*self.plain, *(list(combination) for combination in self.combinations)]

    def parts(self) -> list[tuple[str, ...]]:
        """The plain labels that each number stands for."""
        return [*((label,) for label in self.plain), *self.combinations]

    def numbers(self) -> dict[tuple[str, ...], int]:
        """Number of each label, by its sorted parts."""
        return {parts: number for number, parts in enumerate(self.parts())}

    def membership(self) -> np.ndarray:
        """1 where a plain label is part of a numbered one.

        RETURNS (np.ndarray): Shape: (plain labels, all labels), float32.
        """
        table = np.zeros((len(self.plain), len(self)), dtype=np.float32)
        for number, parts in enumerate(self.parts()):
            for label in parts:
                table[self.plain.index(label), number] = 1.0
        return table
