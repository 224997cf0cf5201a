"""Tables of the comparisons that `compare_ner.py` ran, with paired bootstrap intervals.

    python benchmarks/report_ner.py [--out benchmarks/results/ner/README.md]

Sentences of the test set are drawn with replacement, the same for both systems; the
interval is that of the difference of their F1, in points.
"""

import argparse
import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "ner"
SAMPLES = 10_000
# A system, and those that it is compared with.
BASE = "treecrf"


def read_results(folder):
    """Results by comparison and system."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf8"))
        results.setdefault(result["name"], {})[result["system"]] = result
    return results


def f_scores(sums):
    """F1 in points of sums of (right, predicted, gold). (..., 3) -> (...)."""
    return 200.0 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


def bootstrap_difference(first, second, seed=0):
    """Difference of F1 and its 95% interval, in points."""
    a, b = np.array(first["test"]["counts"]), np.array(second["test"]["counts"])
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(len(a), np.full(len(a), 1 / len(a)), size=SAMPLES)
    differences = f_scores(draws @ a) - f_scores(draws @ b)
    low, high = np.percentile(differences, [2.5, 97.5])
    return f_scores(a.sum(0)) - f_scores(b.sum(0)), low, high


def main_table(systems):
    """Scores of all systems of one comparison, as Markdown."""
    lines = [
        "| system | P | R | F1 | inner F1 | outer F1 | F1, at most 8 tokens | "
        "unlabelled F1 | dev F1 | learning rate | threshold | training s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, result in systems.items():
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
        {label for r in systems.values() for label in r["test"]["per_label"]}
    )
    lines = ["| F1 | " + " | ".join(labels) + " |", "|---" * (len(labels) + 1) + "|"]
    for name, result in systems.items():
        scores = result["test"]["per_label"]
        cells = [f"{100 * scores[x]['f']:.1f}" if x in scores else "-" for x in labels]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def difference_lines(systems):
    """Differences of the base system to each other one, as a Markdown list."""
    lines = []
    if BASE in systems:
        for name, result in systems.items():
            if name != BASE:
                difference, low, high = bootstrap_difference(systems[BASE], result)
                lines.append(
                    f"- {BASE} - {name}: {difference:+.1f} points, 95% interval "
                    f"[{low:+.1f}, {high:+.1f}]"
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
        "each file is in `project.yml` (workflows `compare-*`).",
    ]
    for name, systems in read_results(args.folder).items():
        one = next(iter(systems.values()))
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
            *difference_lines(systems),
        ]
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf8")


if __name__ == "__main__":
    main()
