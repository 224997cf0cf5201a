"""CPU seconds of whole commands, start of Python and imports included.

    python -m spacy treecrf corpus conll2002_es corpus/conll2002_es
    python benchmarks/bench_commands.py corpus/conll2002_es --lang es \
        --json benchmarks/results/commands_conll2002_es.json

Runs `spacy train` of `identifinder` and of `maxent_ner`, and `treecrf jackknife` of five
folds of `identifinder`, one thread each, and counts user and system time of a command and
of all processes it starts, medians of some rounds. "import spacy" is a process that
imports spaCy, and "spacy.blank" one that makes an empty pipeline too, for which spaCy
imports every plugin that is installed: both are part of each command.
"""

import argparse
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Linux: processes whose parent has ended become children of this one.
PR_SET_CHILD_SUBREAPER = 36
PYTHON = [sys.executable]
SPACY = [sys.executable, "-m", "spacy"]


def commands(corpus, lang, folder):
    """The commands by name."""
    given = [
        *("--paths.train", f"{corpus}/train.spacy"),
        *("--paths.dev", f"{corpus}/dev.spacy", "--nlp.lang", lang),
    ]
    made = {
        "import spacy": [*PYTHON, "-c", "import spacy.cli"],
        "spacy.blank": [*PYTHON, "-c", f"import spacy.cli; spacy.blank({lang!r})"],
    }
    for pipe in ("identifinder", "maxent_ner"):
        config = str(ROOT / "configs" / f"{pipe}.cfg")
        output = ["--output", f"{folder}/{pipe}"]
        made[f"train {pipe}"] = [*SPACY, "train", config, *output, *given]
    config, output = str(ROOT / "configs/identifinder.cfg"), f"{folder}/out.spacy"
    options = ["--folds", "5", "--no-resume"]
    made["jackknife identifinder"] = [
        *(*SPACY, "treecrf", "jackknife", config, output, *options, *given)
    ]
    return made


def cpu_s(command):
    """CPU seconds of a command and of all that it has started."""

    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return used() - before


def n_process_ms(model, texts):
    """CPU milliseconds a Doc in the parent, by the number of processes."""
    import spacy

    from spacy_treecrf.data.corpus_reader import codecs_looked_up_once

    nlp = spacy.load(model)
    found = {}
    for name, n_process, block in (
        ("one process", 1, nullcontext),
        ("two, without the pipe", 2, nullcontext),
        ("two", 2, nullcontext),
        ("two, codecs_looked_up_once", 2, codecs_looked_up_once),
    ):
        disable = nlp.pipe_names if "without" in name else []
        with block(), nlp.select_pipes(disable=disable):
            start = time.process_time()
            n = sum(1 for _ in nlp.pipe(texts, n_process=n_process, batch_size=200))
            found[name] = 1000 * (time.process_time() - start) / n
    return found


def read_texts(path, lang):
    """The texts of the Docs of a file."""
    import spacy

    from spacy_treecrf.data.corpus_reader import FastDocBin

    vocab = spacy.blank(lang).vocab
    return [doc.text for doc in FastDocBin().from_disk(path).get_docs(vocab)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="Folder of train.spacy, dev.spacy")
    parser.add_argument("--lang", default="en")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="Names of commands; by default all")
    parser.add_argument(
        "--model",
        type=Path,
        help="Measure nlp.pipe(n_process=2) of this pipeline instead of the commands",
    )
    parser.add_argument("--json", type=Path, help="File to write")
    args = parser.parse_args()
    if args.model is not None:
        texts = read_texts(args.corpus / "dev.spacy", args.lang)
        rounds = [n_process_ms(args.model, texts) for _ in range(args.rounds)]
        parent = {
            name: round(statistics.median(r[name] for r in rounds), 3)
            for name in rounds[0]
        }
        write({"docs": len(texts), "parent_cpu_ms_a_doc": parent}, args.json)
        return
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise SystemExit("This needs Linux, to count what the processes of a fold use.")
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        made = commands(args.corpus, args.lang, folder)
        for _ in range(args.rounds):
            for name in args.only or made:
                seconds.setdefault(name, []).append(cpu_s(made[name]))
    medians = {name: round(statistics.median(s), 1) for name, s in seconds.items()}
    best = {name: round(min(s), 1) for name, s in seconds.items()}
    result = {"rounds": args.rounds, "cpu_s": medians, "cpu_s_least": best}
    write(result, args.json)


def write(result, path):
    """Print a result, and write it to a file if there is one to write."""
    text = json.dumps(result, indent=2)
    print(text)
    if path is not None:
        path.write_text(text + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
