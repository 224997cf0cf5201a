"""The pipelines of `bench_documents.py`: documents, and the same words as sentences."""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import spacy
from bench_documents import memory_mb
from compare_ner import KEY, make_config
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.util import registry

from spacy_treecrf.data.corpus_reader import FastCorpus

# Tokens of a document, and of the long one and what it is held against.
TOKENS, LONG, SHORT = 450, 50_000, 500
TRAIN_DOCS, DEV_DOCS = 80, 60
# Updates before anything is measured, so that what is written to Docs is no noise.
WARM_UP = 60
WORDS_A_BATCH = 900
ROWS = (
    # What is divided by what, in words per CPU second.
    ("nlp.pipe, documents / sentences", "pipe", "documents", "sentences"),
    ("training, documents / sentences", "train", "documents", "sentences"),
    (f"nlp.pipe, {LONG} tokens in one Doc / {SHORT}", "pipe", "long", "short"),
    ("nlp.pipe of documents, treecrf / spancat", "pipe", "documents", "spancat"),
    ("training of documents, treecrf / spancat", "train", "documents", "spancat"),
    ("nlp.pipe of sentences, limit / none", "pipe", "sentences", "sentences, no limit"),
    (
        "training of sentences, limit / none",
        "train",
        "sentences",
        "sentences, no limit",
    ),
    ("nlp.pipe of documents, limit / none", "pipe", "documents", "documents, no limit"),
    ("nlp.pipe of sentences, treecrf / encoder alone", "pipe", "sentences", "encoder"),
)


def read(path, vocab, n_tokens):
    """Sentences of a corpus, as (words, spaces, spans), until so many tokens."""
    found, total = [], 0
    for example in FastCorpus(path)(spacy.blank("en")):
        doc = example.reference
        spans = [(s.start, s.end, s.label_) for s in doc.spans[KEY]]
        found.append(([t.text for t in doc], spans))
        total += len(doc)
        if total >= n_tokens:
            break
    return found


def join(vocab, sentences):
    """One Doc without sentence boundaries, with its gold."""
    words, spans = [], []
    for own, gold in sentences:
        spans += [(s + len(words), e + len(words), label) for s, e, label in gold]
        words += own
    doc = Doc(vocab, words=words)
    doc.spans[KEY] = [Span(doc, *span) for span in spans]
    return doc


def documents(vocab, sentences, n_tokens):
    """Docs of about so many tokens."""
    found, waiting, total = [], [], 0
    for sentence in sentences:
        waiting.append(sentence)
        total += len(sentence[0])
        if total >= n_tokens:
            found.append(join(vocab, waiting))
            waiting, total = [], 0
    return found


class Contestant:
    """A pipeline, in training on Docs of one shape."""

    def __init__(self, folder, pipe, settings, shape):
        args = argparse.Namespace(
            corpus=folder, train=None, encoder="cnn", seed=0, batch_words=1000
        )
        config = make_config(args, pipe, settings, 0.001, 10_000)
        self.nlp = init_nlp(config)
        optimizer = config.interpolate()["training"]["optimizer"]
        self.optimizer = registry.resolve({"optimizer": optimizer})["optimizer"]
        self.pipe, self.shape = pipe, shape

    def docs(self, sentences, n_tokens):
        vocab = self.nlp.vocab
        if self.shape == "sentences":
            kept = documents(vocab, sentences, n_tokens)
            n = sum(len(doc) for doc in kept)
            found, total = [], 0
            for sentence in sentences:
                if total >= n:
                    break
                found.append(join(vocab, [sentence]))
                total += len(sentence[0])
            return found
        return documents(vocab, sentences, n_tokens)

    def update(self, golds):
        batch = [Example(Doc(self.nlp.vocab, [t.text for t in g]), g) for g in golds]
        start = time.process_time()
        self.nlp.update(batch, sgd=False, drop=0.1)
        for _, pipe in self.nlp.pipeline:
            pipe.finish_update(self.optimizer)
        self.optimizer.step_schedules()
        return time.process_time() - start

    def annotate(self, docs, encoder=False):
        copies = [Doc(self.nlp.vocab, [t.text for t in doc]) for doc in docs]
        start = time.process_time()
        list(self.nlp.pipe(copies, disable=[self.pipe] if encoder else []))
        return time.process_time() - start


def by_words(docs):
    """Batches of about as many words."""
    batch, total = [], 0
    for doc in docs:
        batch.append(doc)
        total += len(doc)
        if total >= WORDS_A_BATCH:
            yield batch
            batch, total = [], 0


def pipelines(folder, max_width, repeats):
    """Words per CPU second of each contestant, and the ratios of `ROWS`."""
    limit = {
        "components.treecrf.max_width": max_width,
        "components.treecrf.max_length": 1_000_000,
    }
    none = {"components.treecrf.max_width": None}
    contestants = {
        "documents": Contestant(folder, "treecrf", limit, "documents"),
        "sentences": Contestant(folder, "treecrf", limit, "sentences"),
        "sentences, no limit": Contestant(folder, "treecrf", none, "sentences"),
        "documents, no limit": Contestant(folder, "treecrf", none, "documents"),
        "spancat": Contestant(folder, "spancat", {}, "documents"),
    }
    vocab = spacy.blank("en").vocab
    train = read(folder / "train.spacy", vocab, TRAIN_DOCS * TOKENS)
    dev = read(folder / "dev.spacy", vocab, DEV_DOCS * TOKENS)
    seconds = {"train": {name: [] for name in contestants}}
    batches = {
        name: list(by_words(one.docs(train, TOKENS)))
        for name, one in contestants.items()
    }
    for number in range(WARM_UP + 4 * repeats):
        for name, one in contestants.items():
            if name == "documents, no limit":
                continue
            batch = batches[name][number % len(batches[name])]
            taken = one.update(batch)
            if number >= WARM_UP:
                words = sum(map(len, batch))
                seconds["train"][name].append(taken / words)
    # It needs no training of its own.
    contestants["documents, no limit"].nlp.get_pipe("treecrf").from_bytes(
        contestants["documents"].nlp.get_pipe("treecrf").to_bytes(exclude=["cfg"])
    )
    held = {name: one.docs(dev, TOKENS) for name, one in contestants.items()}
    long = read(folder / "train.spacy", vocab, LONG)
    limited = contestants["documents"]
    held["long"] = documents(limited.nlp.vocab, long, LONG)
    held["short"] = documents(limited.nlp.vocab, long, SHORT)
    held["encoder"] = held["sentences"]
    words = {name: sum(map(len, docs)) for name, docs in held.items()}
    seconds["pipe"] = {name: [] for name in held}
    for _ in range(repeats):
        for name, docs in held.items():
            one = contestants.get(name, limited)
            if name == "encoder":
                one = contestants["sentences"]
            taken = one.annotate(docs, name == "encoder")
            seconds["pipe"][name].append(taken / words[name])
    speeds = {
        task: {n: 1 / statistics.median(each) for n, each in found.items() if each}
        for task, found in seconds.items()
    }
    result = {"corpus": folder.name, "words_per_cpu_second": speeds, "ratios": {}}
    for title, task, one, other in ROWS:
        ratio = speeds[task][one] / speeds[task][other]
        result["ratios"][title] = round(ratio, 3)
        print(f"{title}: {ratio:.2f}")
    result["peak_mb"] = peaks(limited, held["long"])
    print(f"{LONG} tokens in one Doc: peak memory, MB: {result['peak_mb']}")
    return result


def peaks(contestant, docs):
    """Peak memory of one long Doc, with the encoder alone and with the pipe, in MB."""
    found = {}
    with TemporaryDirectory() as folder:
        contestant.nlp.to_disk(Path(folder) / "model")
        words = Path(folder) / "words.json"
        words.write_text(json.dumps([t.text for t in docs[0]]), encoding="utf8")
        for name in ("encoder", "treecrf"):
            command = [sys.executable, __file__, str(Path(folder) / "model")]
            command += [str(words), name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name] = float(done.stdout.splitlines()[-1])
    found["over the encoder"] = found["treecrf"] - found["encoder"]
    return {name: round(value) for name, value in found.items()}


def print_peak(model, words, name):
    nlp = spacy.load(model)
    long = json.loads(Path(words).read_text(encoding="utf8"))
    disable = ["treecrf"] if name == "encoder" else []
    # What is compiled and loaded on first use is not the Doc's.
    list(nlp.pipe([Doc(nlp.vocab, long[:600])], disable=disable))
    # Sets the high-water mark back to what is in use now.
    Path("/proc/self/clear_refs").write_text("5")
    list(nlp.pipe([Doc(nlp.vocab, long)], disable=disable))
    print(memory_mb("VmHWM"))


if __name__ == "__main__":
    print_peak(*sys.argv[1:])
