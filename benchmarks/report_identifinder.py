"""Make the tables and the plot of the identifinder experiments from their JSON files.

    python benchmarks/report_identifinder.py

Reads benchmarks/results/identifinder/*.json, writes README.md and training_size.svg beside
them. The plot needs matplotlib: pip install "spacy-treecrf[report]".
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "identifinder"
HEADLINE = """# Results of `identifinder`

Made by `benchmarks/report_identifinder.py` from the JSON files beside it, which
`benchmarks/identifinder_experiments.py` and `benchmarks/bench_identifinder.py` write. F is
exact-match F1 of entities in percent; MUC F gives half credit. Each model is trained and
tested on data of one modality, with the shipped settings except what the row names.
"""


def table(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table in Markdown; the first column is text, the others are numbers."""
    header = list(header)
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|---" + "|---:" * (len(header) - 1) + "|")
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def scores(row: dict[str, Any]) -> list[Any]:
    """The columns of one experiment."""
    return [
        *(f"{row['dev'][name]:.2f}" for name in ("f", "muc_f")),
        *(f"{row['test'][name]:.2f}" for name in ("p", "r", "f", "muc_f")),
    ]


COLUMNS = ("dev F", "dev MUC F", "test P", "test R", "test F", "test MUC F")


def experiments(data: dict[str, Any]) -> str:
    """The tables of one corpus."""
    by_section: dict[str, list[dict[str, Any]]] = {}
    for row in data["rows"]:
        by_section.setdefault(row["section"], []).append(row)
    mixed = by_section["modality"][0]
    parts = [f"## {data['corpus']}", "Modality (Table 5.1 of the paper):"]
    parts.append(
        table(
            ("modality", *COLUMNS, "loss in test F"),
            (
                [
                    row["name"],
                    *scores(row),
                    f"{mixed['test']['f'] - row['test']['f']:.2f}",
                ]
                for row in by_section["modality"]
            ),
        )
    )
    parts.append("Options, one changed at a time (Table 5.3):")
    parts.append(
        table(
            ("option", *COLUMNS),
            (
                ["as shipped" if row is mixed else row["name"], *scores(row)]
                for row in [mixed, *by_section["option"]]
            ),
        )
    )
    parts.append("Size of the training data, nested random samples (Figure 5.4):")
    parts.append(
        table(
            ("words", *COLUMNS, "training, CPU s"),
            (
                [row["train_words"], *scores(row), row["train_cpu_s"]]
                for row in by_section["size"]
            ),
        )
    )
    return "\n\n".join(parts)


def speed(found: list[dict[str, Any]]) -> str:
    """The table of speeds, one column a corpus."""
    lines: list[tuple[str, str]] = [
        ("test F of identifinder", "test_f"),
        ("test F of spaCy's ner", "ner_test_f"),
        ("words of training", "train_words"),
        ("training, examples in memory, CPU s", "train_s"),
        ("reading the corpus into examples, CPU s", "read_s"),
        ("training of spaCy's ner, CPU s", "ner_train_s"),
        ("`predict`, words/s", "predict.words_s"),
        ("`predict` of 20 best, words/s", "predict_20_best.words_s"),
        ("`nlp.pipe` from texts, words/s", "pipe_identifinder.words_s"),
        ("`nlp.pipe`, first pass, words/s", "pipe_identifinder.cold_words_s"),
        ("`nlp.pipe` of spaCy's ner, words/s", "pipe_ner.words_s"),
        ("`nlp.pipe` of the tokenizer alone, words/s", "pipe_tokenizer.words_s"),
        ("times as fast as spaCy's ner", "ratio_to_ner"),
        ("times as slow as the tokenizer alone, warm", "ratio_to_tokenizer_words"),
        ("times as slow as the tokenizer alone, first pass", "ratio_to_tokenizer_cold"),
        ("model on disk, bytes", "model_bytes"),
        ("model of spaCy's ner on disk, bytes", "ner_bytes"),
        ("loading the model, s", "load_s"),
        ("memory of training and model, MB", "memory_of_model_mb"),
    ]

    def value(data: dict[str, Any], path: str) -> Any:
        for part in path.split("."):
            data = data.get(part, "") if isinstance(data, dict) else ""
        return data

    rows = [[name, *(value(data, path) for data in found)] for name, path in lines]
    rows = [row for row in rows if any(cell != "" for cell in row[1:])]
    return (
        "## Speed and size\n\nOne thread, best of several rounds in process time; "
        f"{found[0]['machine']}.\n\n"
        + table(("", *(data["corpus"] for data in found)), rows)
    )


def plot(found: list[dict[str, Any]], path: Path) -> None:
    """Test F over the words of training, as Figure 5.4."""
    import matplotlib

    matplotlib.use("svg")
    # Text as text and fixed ids, so that a new run changes only what has changed.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "identifinder"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for data in found:
        rows = sorted(
            (row for row in data["rows"] if row["section"] == "size"),
            key=lambda row: row["train_words"],
        )
        words = [row["train_words"] for row in rows]
        axes.plot(
            words, [row["test"]["f"] for row in rows], marker="o", label=data["corpus"]
        )
    axes.set_xscale("log", base=2)
    axes.set_xlabel("words of training")
    axes.set_ylabel("exact-match F1 on test, %")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Write README.md and the plot."""
    found = [json.loads(p.read_text()) for p in sorted(RESULTS.glob("*.json"))]
    runs = [data for data in found if "rows" in data]
    speeds = [data for data in found if "predict" in data]
    parts = [HEADLINE.strip(), *map(experiments, runs)]
    if runs:
        plot(runs, RESULTS / "training_size.svg")
        parts.append("![F over words of training](training_size.svg)")
    if speeds:
        parts.append(speed(speeds))
    (RESULTS / "README.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
