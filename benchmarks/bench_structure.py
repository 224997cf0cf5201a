"""Time the structure against its peers: one run, interleaved, medians; needs torch only.

    python benchmarks/bench_structure.py [--device cuda] [--threads 2] [--json FILE]

Tasks: log p(allowed trees) forward and backward to the potentials with dense masks; best
tree; 20-best trees. Contestants: torch-struct 0.5 (skipped where absent), a chart whose
gradient autograd records, ours from padded potentials and ours as the pipe runs it (on
packed spans), and local cross-entropy, which has no structure at all.
"""

import argparse
import json
import platform
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

from spacy_treecrf.structure import best_tree, k_best_trees, log_probability
from spacy_treecrf.structure.inside import masked_potentials, packed_log_partitions
from spacy_treecrf.structure.losses import local_losses
from spacy_treecrf.structure.spans import SpanIndex

try:
    import torch_struct
except ImportError:
    torch_struct = None

# torch-struct has NaN gradients for -inf.
FLOOR = -1e6


def ragged_lengths(longest):
    """Sentence lengths as GENIA has them: mean 28, one of 120 tokens; cut at `longest`."""
    numbers = random.Random(0)
    lengths = [
        max(3, min(119, int(numbers.lognormvariate(3.1, 0.55)))) for _ in range(31)
    ]
    return [min(longest, length) for length in [*lengths, 120]]


SHAPES = {
    "n30 B32 L6": ([30] * 32, 6),
    "n64 B32 L8": ([64] * 32, 8),
    "n128 B8 L20": ([128] * 8, 20),
    "n256 B4 L8": ([256] * 4, 8),
    "ragged B32 L6": (ragged_lengths(120), 6),
    "ragged cut at 64": (ragged_lengths(64), 6),
}
EQUAL = ("n30 B32 L6", "n64 B32 L8", "n128 B8 L20", "n256 B4 L8")


class Case:
    """Inputs of one shape: potentials, and the mask of some non-crossing entities."""

    def __init__(self, lengths, n_labels, device):
        generator = torch.Generator().manual_seed(0)
        posts = max(lengths) + 1
        shape = (len(lengths), posts, posts, n_labels)
        self.lengths = lengths
        self.potentials = torch.randn(shape, generator=generator).to(device)
        self.allowed = torch.zeros(shape, dtype=torch.bool)
        self.allowed[..., -1] = True
        for segment, length in enumerate(lengths):
            for start in range(0, length - 4, 6):
                for end in (start + 1, start + 3):
                    self.observe(segment, start, end, (start + end) % (n_labels - 1))
        self.allowed = self.allowed.to(device)
        self.index = SpanIndex.build(lengths, torch.device(device))
        self.packed = self.index.pack(self.potentials)
        self.packed_allowed = self.index.pack(self.allowed)
        self.lengths_tensor = torch.tensor(lengths, device=device)
        self.inclusive = self.potentials[:, :-1, 1:].contiguous()
        self.inclusive_masked = torch.where(self.allowed, self.potentials, FLOOR)[
            :, :-1, 1:
        ]
        self.inclusive_allowed = self.allowed[:, :-1, 1:].contiguous()

    def observe(self, segment, start, end, label):
        self.allowed[segment, start + 1 : end, end + 1 :] = False
        self.allowed[segment, :start, start + 1 : end] = False
        self.allowed[segment, start, end] = False
        self.allowed[segment, start, end, label] = True


def ours_padded(case):
    potentials = case.potentials.detach().requires_grad_(True)
    log_probability(potentials, case.allowed, case.lengths).sum().backward()


def ours_packed(case):
    potentials = case.packed.detach().requires_grad_(True)
    masked = masked_potentials(potentials, case.packed_allowed)
    numerator, denominator = packed_log_partitions(masked, potentials, case.index)
    (numerator - denominator).sum().backward()


def local_cross_entropy(case):
    potentials = case.packed.detach().requires_grad_(True)
    local_losses(potentials, case.packed_allowed, case.index).sum().backward()


def autograd_chart(case):
    potentials = case.potentials.detach().requires_grad_(True)
    masked = torch.where(case.allowed, potentials, FLOOR)
    both = torch.cat([masked, potentials]).logsumexp(-1)
    longest = max(case.lengths)
    charts = [both.diagonal(1, 1, 2)]
    for width in range(2, longest + 1):
        count = longest - width + 1
        left = torch.stack([charts[k][:, :count] for k in range(width - 1)])
        right = torch.stack(
            [charts[width - k - 2][:, k + 1 :] for k in range(width - 1)]
        )
        charts.append((left + right).logsumexp(0) + both.diagonal(width, 1, 2))
    roots = [charts[n - 1][b, 0] for b, n in enumerate(case.lengths * 2)]
    numerator, denominator = torch.stack(roots).chunk(2)
    (numerator - denominator).sum().backward()


def struct(potentials, lengths):
    class TreeCRF(torch_struct.TreeCRF):
        # torch warns about distributions that do not state their constraints.
        arg_constraints = {}  # noqa: RUF012

    return TreeCRF(potentials, lengths=lengths)


def struct_log_probability(case):
    potentials = case.inclusive.detach().requires_grad_(True)
    masked = torch.where(case.inclusive_allowed, potentials, FLOOR)
    numerator = struct(masked, case.lengths_tensor).partition
    denominator = struct(potentials, case.lengths_tensor).partition
    (numerator - denominator).sum().backward()


def struct_argmax(case):
    return struct(case.inclusive.clone(), case.lengths_tensor).argmax


TASKS = {
    "log p": {
        "torch-struct": struct_log_probability,
        "autograd chart": autograd_chart,
        "ours": ours_padded,
        "ours, packed": ours_packed,
        "local": local_cross_entropy,
    },
    "best tree": {
        "torch-struct": struct_argmax,
        "ours": lambda case: best_tree(case.potentials, case.lengths),
    },
    "20-best": {
        "ours, 1-best": lambda case: best_tree(case.potentials, case.lengths),
        "ours": lambda case: k_best_trees(case.potentials, case.lengths, 20),
    },
}


def measure(contestants, case, device, repeats):
    """Median wall and CPU milliseconds of each contestant, run in turn."""
    times = {name: [] for name in contestants}
    for repeat in range(repeats + 1):
        for name, run in contestants.items():
            synchronize(device)
            start = time.perf_counter(), time.process_time()
            run(case)
            synchronize(device)
            # The first round warms caches and allocators up.
            if repeat:
                times[name].append(
                    (time.perf_counter() - start[0], time.process_time() - start[1])
                )
    return {
        name: {
            "wall_ms": statistics.median(wall for wall, _ in each) * 1e3,
            "cpu_ms": statistics.median(cpu for _, cpu in each) * 1e3,
        }
        for name, each in times.items()
    }


def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def peak_memory(contestant, shape, device):
    """Megabytes that a contestant adds to its inputs, in a process of its own."""
    command = [sys.executable, __file__, "--device", device]
    command += ["--peak-of", contestant, "--shape", shape]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def print_peak(contestant, shape, device):
    case = Case(*SHAPES[shape], device)
    run = TASKS["log p"][contestant]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run(case)
        print((torch.cuda.max_memory_allocated() - before) / 1e6)
        return
    # A small run first: libraries allocate their own buffers once.
    run(Case([4], SHAPES[shape][1], device))
    before = memory_mb("VmRSS")
    # Sets the high-water mark back to what is in use now (Linux).
    Path("/proc/self/clear_refs").write_text("5")
    run(case)
    print(memory_mb("VmHWM") - before)


def memory_mb(field):
    """A field of the process's status, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1e3
    raise ValueError(f"no field {field}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument(
        "--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES)
    )
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--peak-of", help=argparse.SUPPRESS)
    parser.add_argument("--shape", help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.peak_of:
        print_peak(args.peak_of, args.shape, args.device)
        return
    result = {
        "device": args.device,
        "machine": platform.processor() or platform.machine(),
        "threads": args.threads,
        "torch": torch.__version__,
        "repeats": args.repeats,
        "tasks": {},
        "peak_mb": {},
    }
    for task in args.tasks:
        print(f"\n{task}: median wall ms (CPU ms)")
        for shape in args.shapes:
            contestants = {
                name: run
                for name, run in TASKS[task].items()
                if name != "torch-struct" or torch_struct is not None
            }
            case = Case(*SHAPES[shape], args.device)
            figures = measure(contestants, case, args.device, args.repeats)
            result["tasks"].setdefault(task, {})[shape] = figures
            row = [
                f"{name} {each['wall_ms']:.1f} ({each['cpu_ms']:.1f})"
                for name, each in figures.items()
            ]
            print(f"  {shape:18s}", "  ".join(row), flush=True)
    if "log p" in args.tasks and "n256 B4 L8" in args.shapes:
        for name in ("torch-struct", "ours"):
            if name != "torch-struct" or torch_struct is not None:
                result["peak_mb"][name] = peak_memory(name, "n256 B4 L8", args.device)
        print("\npeak memory of log p at n256 B4 L8, MB:", result["peak_mb"])
    print_ratios(result)
    if args.json:
        with open(args.json, "w", encoding="utf8") as file:
            json.dump(result, file, indent=1)


def print_ratios(result):
    """The figures that have a bar, as ratios of this run's CPU (GPU: wall) times."""
    clock = "cpu_ms" if result["device"] == "cpu" else "wall_ms"

    def ratio(task, shape, first, second):
        figures = result["tasks"].get(task, {}).get(shape, {})
        if first in figures and second in figures:
            return figures[first][clock] / figures[second][clock]
        return None

    print("\nratios")
    for task, first, second in (
        ("log p", "torch-struct", "ours"),
        ("log p", "torch-struct", "ours, packed"),
        ("log p", "ours, packed", "local"),
        ("best tree", "torch-struct", "ours"),
        ("20-best", "ours", "ours, 1-best"),
    ):
        ratios = {shape: ratio(task, shape, first, second) for shape in SHAPES}
        known = [ratios[shape] for shape in EQUAL if ratios[shape]]
        if not known:
            continue
        print(f"  {task}: {first} / {second}")
        print(
            f"    equal lengths, median of {len(known)}: {statistics.median(known):.2f}"
        )
        for shape, value in ratios.items():
            if value:
                print(f"    {shape}: {value:.2f}")
    times = result["tasks"].get("log p", {})
    if "n128 B8 L20" in times and "n256 B4 L8" in times:
        sizes = {}
        for length in (128, 256):
            case = Case([length] * 4, 8, result["device"])
            run = {"ours": ours_padded}
            sizes[length] = measure(run, case, result["device"], 5)["ours"][clock]
        growth = torch.tensor(sizes[256] / sizes[128]).log2().item()
        result["growth_exponent"] = growth
        print(f"  growth from n = 128 to n = 256, B4 L8, exponent: {growth:.2f}")


if __name__ == "__main__":
    main()
