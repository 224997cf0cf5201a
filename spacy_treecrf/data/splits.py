"""Cut a corpus into train, dev and test, so that no document is in two of them."""

import random
from collections.abc import Sequence

from spacy_treecrf.errors import Errors
from spacy_treecrf.problems import ConversionError

SPLITS = ("train", "dev", "test")
# What decimal shares may miss 1 by, in floating point.
TOLERANCE = 1e-6


def parse_shares(split: str) -> list[float]:
    """Read the shares of train, dev and, if there is one, test.

    split (str): E.g. "0.8/0.1/0.1".
    RETURNS (list[float]): The shares.
    RAISES (ConversionError): If they are not two or three numbers above 0 that add to 1.
    """

    def bad(reason: str) -> ConversionError:
        return ConversionError(Errors.T124.format(split=split, reason=reason))

    try:
        shares = [float(share) for share in split.split("/")]
    except ValueError as error:
        raise bad("expected shares of train, dev and test, e.g. 0.8/0.1/0.1") from error
    if len(shares) not in (len(SPLITS) - 1, len(SPLITS)):
        raise bad(f"expected 2 or 3 shares, of train, dev and test, not {len(shares)}")
    # The negation, so that NaN is refused.
    for name, share in zip(SPLITS, shares, strict=False):
        if not 0 < share < 1:
            raise bad(f"the share of {name} is {share:g}, so that a split is empty")
    if abs(sum(shares) - 1) > TOLERANCE:
        raise bad(f"the shares add to {sum(shares):g}, not to 1")
    return shares


def split_documents(
    names: Sequence[str], shares: Sequence[float], seed: int
) -> dict[str, list[int]]:
    """Choose a split for each document.

    names (Sequence[str]): The document of each sentence.
    shares (Sequence[float]): The share of documents in each split, which add to 1.
    seed (int): Seed of the choice.
    RETURNS (dict[str, list[int]]): The numbers of the sentences of each split, in order.
        Each split has one document at least, and else as many as its share comes to.
    RAISES (ConversionError): If there are fewer documents than splits.
    """
    documents = list(dict.fromkeys(names))
    if len(documents) < len(shares):
        split = "/".join(f"{share:g}" for share in shares)
        reason = (
            f"{len(documents)} documents can't be cut into {len(shares)} splits of which "
            f"none is empty"
        )
        raise ConversionError(Errors.T124.format(split=split, reason=reason))
    counts = _count(len(documents), shares)
    random.Random(seed).shuffle(documents)
    chosen: dict[str, str] = {}
    for name, count in zip(SPLITS, counts, strict=False):
        for _ in range(count):
            chosen[documents.pop()] = name
    splits: dict[str, list[int]] = {name: [] for name in SPLITS[: len(shares)]}
    for i, document in enumerate(names):
        splits[chosen[document]].append(i)
    return splits


def _count(total: int, shares: Sequence[float]) -> list[int]:
    """Documents of each split: one for each, the rest by largest remainder."""
    counts = [max(1, int(total * share + TOLERANCE)) for share in shares]
    while sum(counts) < total:
        missing = [total * share - n for share, n in zip(shares, counts, strict=True)]
        counts[missing.index(max(missing))] += 1
    while sum(counts) > total:
        # What the small ones got, the largest has too much.
        counts[counts.index(max(counts))] -= 1
    return counts
