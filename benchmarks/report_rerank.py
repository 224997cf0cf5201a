"""Write the table of benchmarks/results/rerank.json into a page of the docs.

    python benchmarks/report_rerank.py --docs docs/api/ner_reranker.md

Replaces what stands between the two marker lines of the page.
"""

import argparse
import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "rerank.json"
BEGIN, END = "<!-- rerank table: begin -->", "<!-- rerank table: end -->"
METHODS = ("base", "boosting", "voted_perceptron", "averaged_perceptron", "oracle")


def make_table(rows: list[dict]) -> str:
    """A table a base pipe, a row for each corpus and method; figures in percent."""
    lines = []
    for base in sorted({row["base"] for row in rows}):
        lines += [
            f"Over `{base}`:",
            "",
            "| corpus | method | P | R | F1 | error reduction | CPU s |",
            "|---|---|---:|---:|---:|---:|---:|",
        ]
        mine = [row for row in rows if row["base"] == base]
        for row in sorted(
            mine, key=lambda row: (row["corpus"], METHODS.index(row["method"]))
        ):
            figures = " | ".join(f"{100 * row[name]:.1f}" for name in ("p", "r", "f"))
            lines.append(
                f"| {row['corpus']} | {row['method'].replace('_', ' ')} | {figures} | "
                f"{100 * row['relative_error_reduction']:.1f}% | {row['seconds']:.0f} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, required=True)
    args = parser.parse_args()
    rows = json.loads(RESULTS.read_text(encoding="utf8"))["rows"]
    page = args.docs.read_text(encoding="utf8")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise SystemExit(f"{args.docs} needs one line {BEGIN} and one line {END}.")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    args.docs.write_text(
        f"{before}{BEGIN}\n{make_table(rows)}{END}{after}", encoding="utf8"
    )


if __name__ == "__main__":
    main()
