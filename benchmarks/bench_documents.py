"""Time documents without sentence boundaries against the same words as sentences.

    python benchmarks/bench_documents.py --corpus corpus/genia [--json FILE]

Pipelines, CNN: `nlp.pipe` and training of documents of 450 tokens, as documents and as
sentences, with the width limit of the config and without, and spaCy's spancat on the same
documents; one Doc of 50,000 tokens against Docs of 500, and its peak memory over that of
the encoder alone. Structure: log p with gradients and decoding of one segment of growing
length, and the growth exponent between 1,000 and 4,000 tokens. One thread, CPU time,
medians of interleaved runs. Without --corpus the structure alone, which needs torch only.
"""

import argparse
import json
import math
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from spacy_treecrf.structure.distribution import TreeDistribution
from spacy_treecrf.structure.inside import masked_potentials
from spacy_treecrf.structure.losses import tree_crf_losses
from spacy_treecrf.structure.masks import border_potentials
from spacy_treecrf.structure.spans import SpanIndex

N_LABELS = 8
LENGTHS = (500, 1000, 2000, 4000, 8000)
# The same tokens in several shapes: documents of 450 tokens, and sentences of 28.
DOCUMENTS, SENTENCES = [450] * 20, [28] * 321
MEMORY_TOKENS = 50_000


class Case:
    """Potentials of some segments, and the mask of an entity every ten tokens."""

    def __init__(self, lengths, max_width):
        generator = torch.Generator().manual_seed(0)
        self.n_tokens = sum(lengths)
        self.index = SpanIndex.build(lengths, max_width=max_width)
        shape = (N_LABELS, self.index.n_spans)
        self.potentials = torch.randn(shape, generator=generator).requires_grad_()
        self.allowed = torch.zeros(shape, dtype=torch.bool)
        self.allowed[-1] = True
        index = self.index
        width = index.end - index.start
        # Entities [10 i, 10 i + 3); what crosses them is rejected.
        start = index.start % 10
        entity = (start == 0) & (width == 3)
        self.allowed[-1, entity] = False
        self.allowed[0, entity] = True
        inside = (start > 0) & (start < 3) & (start + width > 3)
        end = index.end % 10
        inside |= (end > 0) & (end < 3) & (width > end)
        self.allowed[:, inside] = False


def log_p(case):
    case.potentials.grad = None
    masked = masked_potentials(case.potentials, case.allowed)
    borders = border_potentials(case.index, case.allowed)
    losses = tree_crf_losses(case.potentials, masked, case.index, borders)
    losses.sum().backward()


def decode(case):
    trees = TreeDistribution(case.potentials, case.index)
    rows, _ = trees.best_tree()
    trees.marginals_at(rows)


TASKS = {"log p": log_p, "decode": decode}


def measure(cases, task, repeats):
    """Median CPU milliseconds of a task on each case, run in turn."""
    times = {name: [] for name in cases}
    for repeat in range(repeats + 1):
        for name, case in cases.items():
            start = time.process_time()
            TASKS[task](case)
            # The first round warms caches and allocators up.
            if repeat:
                times[name].append((time.process_time() - start) * 1e3)
    return {name: statistics.median(each) for name, each in times.items()}


def memory_mb(field):
    """A field of the process's status, in MB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1e3
    raise ValueError(f"no field {field}")


def print_peak(task, max_width):
    """Megabytes that a task adds to its inputs, and those of the inputs."""
    TASKS[task](Case([100], max_width))
    start = memory_mb("VmRSS")
    case = Case([MEMORY_TOKENS], max_width)
    before = memory_mb("VmRSS")
    # Sets the high-water mark back to what is in use now.
    Path("/proc/self/clear_refs").write_text("5")
    TASKS[task](case)
    print(json.dumps([before - start, memory_mb("VmHWM") - before]))


def peak_memory(task, max_width):
    command = [sys.executable, __file__, "--peak-of", task]
    command += ["--max-width", str(max_width)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def structure(max_width, repeats):
    """Growth with the length of one segment, and the peak memory of a long one."""
    result = {"cpu_ms": {}, "growth_exponent": {}, "microseconds_a_token": {}}
    result["peak_mb"] = {}
    growing = {length: Case([length], max_width) for length in LENGTHS}
    shapes = {
        "sentences of 28": Case(SENTENCES, None),
        "documents of 450, limited": Case(DOCUMENTS, max_width),
        "documents of 450, one of 20, no limit": Case(DOCUMENTS[:1], None),
    }
    for task in TASKS:
        times = measure(growing, task, repeats)
        result["cpu_ms"][task] = times
        exponent = math.log(times[4000] / times[1000]) / math.log(4.0)
        result["growth_exponent"][task] = exponent
        print(f"{task}, one segment under max_width {max_width}, CPU ms")
        print("  " + "  ".join(f"n{n} {value:.1f}" for n, value in times.items()))
        print(f"  growth exponent, n = 1,000 to 4,000: {exponent:.2f}")
        by_shape = {
            name: value * 1e3 / shapes[name].n_tokens
            for name, value in measure(shapes, task, repeats).items()
        }
        result["microseconds_a_token"][task] = by_shape
        for name, value in by_shape.items():
            print(f"  {name}: {value:.2f} microseconds a token")
        inputs, added = peak_memory(task, max_width)
        result["peak_mb"][task] = {"inputs": inputs, "added": added}
        print(
            f"  {MEMORY_TOKENS} tokens in one segment: inputs {inputs:.0f} MB, "
            f"peak {added:.0f} MB over them"
        )
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, help="folder of train and dev .spacy")
    parser.add_argument("--max-width", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.peak_of:
        print_peak(args.peak_of, args.max_width)
        return
    result = {
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "threads": 1,
        "max_width": args.max_width,
        "structure": structure(args.max_width, args.repeats),
    }
    if args.corpus is not None:
        from document_pipelines import pipelines

        result["pipelines"] = pipelines(args.corpus, args.max_width, args.repeats)
    if args.json:
        with open(args.json, "w", encoding="utf8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
