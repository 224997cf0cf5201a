"""What work on the lower triangle costs the biaffine scorer, on one thread, in one run.

    python benchmarks/bench_scorer.py [--json FILE]

"square" is the scorer's own form: one padded product a group of segments of like length,
of which the cells with start < end are gathered. "triangle" cuts the starts into blocks and
multiplies each with the ends that may follow only; "band" also stops `--width` tokens after
the block, so that longer spans have no potential (it is another model: its cost alone is of
interest). All are forward and backward passes from the same token vectors, interleaved;
medians of process time, and the ratio of each to "square".
"""

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported

import numpy as np
import torch
from torch import Tensor, nn

from spacy_treecrf.ml.pieces import pieces_of
from spacy_treecrf.ml.span_scorer import SpanScorer
from spacy_treecrf.ml.types import Segments
from spacy_treecrf.structure.spans import SpanIndex

# (segments, mean tokens, longest, input width, hidden width, labels): batches of 1,000
# words as the CNN and the MiniLM configs make them, and one of long segments.
SHAPES = {
    "cnn, GENIA": (40, 26, 100, 96, 192, 7),
    "MiniLM, LitBank": (28, 26, 120, 384, 384, 8),
    "cnn, long": (8, 120, 250, 96, 192, 7),
}


class Blocked(nn.Module):
    """The scorer with its products cut into blocks of starts."""

    def __init__(self, scorer: SpanScorer, block: int, width: int | None):
        super().__init__()
        self.scorer, self.block, self.width = scorer, block, width

    def forward(self, X: Tensor, segments: Segments, index: SpanIndex) -> Tensor:
        """X (Tensor): Shape: (T, nI). RETURNS (Tensor): Shape: (L, S or fewer)."""
        scorer = self.scorer
        X = scorer.input_dropout(X)
        starts, ends = scorer.views[0](X), scorer.views[-1](X)
        n_labels, width = scorer.bilinear.shape[:2]
        weight = scorer.bilinear.transpose(1, 2).reshape(n_labels * width, width)
        pieces = []
        for group in pieces_of(segments.lengths, index.widest):
            numbers, longest = group.segments, group.n_ends
            tokens, _ = group.tokens(segments)
            start, end = starts[tokens], ends[tokens].transpose(1, 2)
            left = nn.functional.linear(start, weight, scorer.end.reshape(-1))
            left = left.view(len(numbers), longest * n_labels, width)
            constant = nn.functional.linear(start, scorer.start, scorer.bias)
            constant = constant.view(len(numbers), longest * n_labels, 1)
            # Spans of the group, and where each block's product begins.
            _, where = group.cells(index, n_labels)
            place_of = torch.empty(len(segments), dtype=torch.int64)
            place_of[torch.from_numpy(numbers)] = torch.arange(len(numbers))
            place, first, last = (
                place_of[index.segment[where]],
                index.start[where],
                index.end[where] - 1,
            )
            products, offsets, total = [], [], 0
            for begin in range(0, longest, self.block):
                rows = slice(begin * n_labels, (begin + self.block) * n_labels)
                stop = longest
                if self.width is not None:
                    stop = min(longest, begin + self.block + self.width)
                product = torch.baddbmm(
                    constant[:, rows], left[:, rows], end[:, :, begin:stop]
                )
                products.append(product.reshape(-1))
                offsets.append((total, *product.shape[1:]))
                total += product.numel()
            if self.width is not None:
                near = last - first < self.width
                place, first, last = place[near], first[near], last[near]
            number = first // self.block
            table = torch.tensor(offsets)[number]
            begin = number * self.block
            row = place * table[:, 1] + (first - begin) * n_labels
            labels = torch.arange(n_labels)[:, None]
            cells = table[:, 0] + (row + labels) * table[:, 2] + last - begin
            pieces.append(torch.cat(products)[cells])
        return torch.cat(pieces, dim=1)


def make_batch(n: int, mean: int, longest: int, generator) -> list[int]:
    """Lengths of a batch, exponential as those of sentences about are."""
    draws = torch.empty(n).exponential_(1 / mean, generator=generator)
    return sorted(draws.round().clamp(2, longest).int().tolist(), reverse=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--block", type=int, default=16)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    generator = torch.Generator().manual_seed(args.seed)
    results = {}
    for name, (n, mean, longest, nI, hidden, n_labels) in SHAPES.items():
        lengths = make_batch(n, mean, longest, generator)
        ends = np.cumsum(lengths)
        segments = Segments(ends - lengths, np.array(lengths), np.ones(ends[-1], bool))
        index = SpanIndex.build(lengths)
        X = torch.randn(sum(lengths), nI, generator=generator)
        scorer = SpanScorer(
            nI,
            n_labels,
            hidden_width=hidden,
            depth=2,
            dropout=0.0,
            views=2,
            activation="relu",
            linear=True,
            pooling=None,
        )
        contestants = {
            "square": scorer,
            "triangle": Blocked(scorer, args.block, None),
            "band": Blocked(scorer, args.block, args.width),
        }
        times = {contestant: [] for contestant in contestants}
        for _ in range(args.rounds):
            for contestant, module in contestants.items():
                scorer.zero_grad()
                vectors = X.clone().requires_grad_()
                start = time.process_time()
                module(vectors, segments, index).sum().backward()
                times[contestant].append(time.process_time() - start)
        medians = {each: statistics.median(taken) for each, taken in times.items()}
        results[name] = {
            "milliseconds": {e: round(1000 * m, 2) for e, m in medians.items()},
            "ratio_to_square": {
                e: round(m / medians["square"], 3) for e, m in medians.items()
            },
        }
        print(f"{name}: {sum(lengths)} tokens in {n} segments: {results[name]}")
    if args.json:
        report = {
            "machine": f"{platform.processor() or platform.machine()}",
            "threads": args.threads,
            "torch": torch.__version__,
            "block": args.block,
            "width": args.width,
            "shapes": results,
        }
        args.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
