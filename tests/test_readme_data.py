"""The section "Your own data" of README.md runs as it is pasted."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import spacy
from spacy.tokens import DocBin

ROOT = Path(__file__).parent.parent
SECTION = (ROOT / "README.md").read_text("utf8").split("## Your own data")[1]
SECTION = SECTION.split("\n## ")[0]
BLOCKS = dict(re.findall(r"^```(\w*)\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL))
LINES = [line for line in BLOCKS[""].splitlines() if line.strip()]


def test_readme_own_data_is_of_three_documents():
    records = [json.loads(line) for line in BLOCKS["json"].splitlines()]
    spans = [[r["text"][s["start"] : s["end"]] for s in r["spans"]] for r in records]
    assert spans == [
        ["Bank of China", "China"],
        ["The mayor of Ghent", "Ghent"],
        ["the president of France", "France"],
    ]


@pytest.mark.slow
def test_readme_own_data_runs_as_pasted(tmp_path):
    (tmp_path / "mydata.jsonl").write_text(BLOCKS["json"], encoding="utf8")
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    outputs = {}
    for line in LINES:
        command = shlex.split(line)
        assert command[0] == "python"
        name = command[3] if command[3] != "treecrf" else command[4]
        if name == "train":
            # As pasted, but for the number of steps.
            steps = ["--training.max_steps", "4", "--training.eval_frequency", "2"]
            command += steps
        done = subprocess.run(
            [sys.executable, *command[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        outputs[name] = done.stdout
    assert list(outputs) == ["convert", "debug-data", "train", "visualize"]
    texts = [
        doc.text
        for split in ("train", "dev", "test")
        for doc in DocBin()
        .from_disk(tmp_path / "corpus" / f"{split}.spacy")
        .get_docs(spacy.blank("en").vocab)
    ]
    assert sorted(texts) == sorted(
        json.loads(line)["text"] for line in BLOCKS["json"].splitlines()
    )
    assert outputs["visualize"].strip()
