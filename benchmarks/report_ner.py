"""Tables of the comparisons that `compare_ner.py` ran, with paired bootstrap intervals.

    python benchmarks/report_ner.py [--out benchmarks/results/ner/README.md]

Sentences of the test set are drawn with replacement, the same for both systems and all of
their seeds; the interval is that of the difference of their F1, in points. An average over
comparisons is that of their differences, drawn independently.
"""

import argparse
import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "ner"
SAMPLES = 10_000
# Comparisons that are averaged; the others have fewer systems or seeds.
MAIN = ("genia_cnn", "litbank3000_minilm", "litbank_cnn")
# Systems that others are compared with: all, or those that are named.
BASES = {
    "treecrf": None,
    "treecrf_edges": ("local_edges",),
    "treecrf_likelihood": ("local",),
}


def read_results(folder):
    """Results by comparison and system: one for each seed, the lowest first."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf8"))
        name = result["name"].removesuffix(f"_seed{result['seed']}")
        results.setdefault(name, {}).setdefault(result["system"], []).append(result)
    for systems in results.values():
        for runs in systems.values():
            runs.sort(key=lambda result: result["seed"])
    return results


def f_scores(sums):
    """F1 in points of sums of (right, predicted, gold). (..., 3) -> (...)."""
    return 200.0 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


def bootstrap_differences(first, second, seed=0):
    """Difference of the mean F1 over the seeds that both have, in points.

    first, second (list[dict]): Runs of two systems.
    RETURNS (tuple[float, np.ndarray, list[int]]): The difference, that of each sample, and
        the seeds.
    """
    seeds = sorted({run["seed"] for run in first} & {run["seed"] for run in second})
    # Shape: (system, seed, sentence, 3).
    counts = np.array(
        [
            [run["test"]["counts"] for run in runs if run["seed"] in seeds]
            for runs in (first, second)
        ]
    )
    n = counts.shape[2]
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=SAMPLES)
    sampled = f_scores(np.einsum("ds,kesc->kedc", draws, counts, optimize=True))
    sampled = sampled.mean(1)
    scores = f_scores(counts.sum(2)).mean(1)
    return scores[0] - scores[1], sampled[0] - sampled[1], seeds


def interval(sampled):
    """The middle 95% of samples, as text."""
    low, high = np.percentile(sampled, [2.5, 97.5])
    return f"95% interval [{low:+.1f}, {high:+.1f}]"


def main_table(systems):
    """Scores of all systems of one comparison, as Markdown."""
    lines = [
        "| system | P | R | F1 | inner F1 | outer F1 | F1, at most 8 tokens | "
        "unlabelled F1 | dev F1 | learning rate | threshold | training s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (result, *_) in systems.items():
        test = result["test"]
        scores = [test["all"][key] for key in "prf"]
        scores += [
            test[part]["f"] for part in ("inner", "outer", "short", "unlabelled")
        ]
        scores.append(result["dev_f"])
        threshold = "none" if result["threshold"] is None else result["threshold"]
        cells = [f"{100 * score:.1f}" for score in scores]
        rates, rate = result["search_dev_f"], str(result["learning_rate"])
        if rates:
            rate += f", of {len(rates)} after {result['search_steps']} updates"
        cells += [rate, str(threshold), str(result["train_s"])]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def label_table(systems):
    """F1 of each label, as Markdown."""
    labels = sorted(
        {label for runs in systems.values() for label in runs[0]["test"]["per_label"]}
    )
    lines = ["| F1 | " + " | ".join(labels) + " |", "|---" * (len(labels) + 1) + "|"]
    for name, (result, *_) in systems.items():
        scores = result["test"]["per_label"]
        cells = [f"{100 * scores[x]['f']:.1f}" if x in scores else "-" for x in labels]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def seed_lines(systems):
    """F1 of the systems that ran with several seeds, as a Markdown list."""
    lines = []
    for name, runs in systems.items():
        if len(runs) > 1:
            scores = [100 * run["test"]["all"]["f"] for run in runs]
            lines.append(
                f"- {name}, seeds {', '.join(str(run['seed']) for run in runs)}: "
                f"{', '.join(f'{score:.1f}' for score in scores)}; mean "
                f"{np.mean(scores):.1f}"
            )
    return lines


def pairs(systems):
    """Each base system of a comparison with each that it is compared with."""
    return [
        (base, other)
        for base, others in BASES.items()
        for other in systems
        if base in systems and base != other and (not others or other in others)
    ]


def difference_lines(systems):
    """Differences of the base systems to others, as a Markdown list."""
    lines = []
    for base, other in pairs(systems):
        difference, sampled, seeds = bootstrap_differences(
            systems[base], systems[other]
        )
        mean = f" (mean of {len(seeds)} seeds)" if len(seeds) > 1 else ""
        lines.append(
            f"- {base} - {other}: {difference:+.1f} points{mean}, {interval(sampled)}"
        )
    return lines


def average_lines(results, skip=()):
    """Differences averaged over the comparisons that have both systems.

    skip (Collection[str]): Comparisons that make no line by themselves.
    """
    found = {}
    for comparison, systems in results.items():
        for base, other in pairs(systems):
            difference, sampled, _ = bootstrap_differences(
                systems[base], systems[other], seed=sum(comparison.encode())
            )
            found.setdefault((base, other), []).append(
                (comparison, difference, sampled)
            )
    lines = []
    for (base, other), parts in found.items():
        comparisons, differences, sampled = zip(*parts, strict=True)
        if len(parts) > 1 and set(comparisons) - set(skip):
            lines.append(
                f"- {base} - {other}: {np.mean(differences):+.1f} points, "
                f"{interval(np.mean(sampled, axis=0))} ({', '.join(comparisons)})"
            )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, help="write the tables to this file")
    args = parser.parse_args()
    lines = [
        "# Nested NER over the same encoder",
        "",
        "Written by `python benchmarks/report_ner.py --out "
        "benchmarks/results/ner/README.md` from the JSON files beside it; the command of "
        "the file NAME.SYSTEM.json is `python benchmarks/compare_ner.py NAME --systems "
        "SYSTEM --force`, with the settings of `benchmarks/experiments.toml`.",
    ]
    results = read_results(args.folder)
    main_results = {name: results[name] for name in MAIN if name in results}
    lines += ["", "## Average of the differences", "", *average_lines(main_results)]
    if len(main_results) < len(results):
        lines += ["", "With all corpora that have figures:", ""]
        lines += average_lines(results, skip=MAIN)
    for name, systems in results.items():
        one = next(iter(systems.values()))[0]
        lines += [
            "",
            f"## {name}",
            "",
            f"Encoder {one['encoder']}, {one['steps']} updates, learning rate and "
            f"threshold chosen on the development set, seed {one['seed']}.",
            "",
            *main_table(systems),
            "",
            *label_table(systems),
            "",
            *seed_lines(systems),
            *difference_lines(systems),
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
