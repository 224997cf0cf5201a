"""Oracle F1 of 20 candidate entity sets, beside those that 1,000 best trees hold.

    python benchmarks/bench_candidates.py --model training/compare/genia_cnn.treecrf \
        --corpus corpus/genia/test.spacy --limit 300 [--json FILE]

"entity sets" are the neighbours that `treecrf` writes with n_best = 20. "oversample and
merge" takes the 1,000 best trees of a sentence, drops their latent nodes, merges equal
sets, scores each by masked inside and keeps the 20 best. The oracle chooses for each
sentence the candidate with the best F1 against gold.
"""

import argparse
import json
import time
from pathlib import Path

import spacy
import torch
from spacy.scorer import PRFScore
from thinc.api import xp2torch

from spacy_treecrf.data.corpus_reader import FastCorpus
from spacy_treecrf.ml.loss import distribution_potentials, log_temperature_of
from spacy_treecrf.pipeline.base.settings import loss_settings
from spacy_treecrf.pipeline.docs.segments import DocSegments
from spacy_treecrf.structure import k_best_trees
from spacy_treecrf.structure.decode import packed_best_tree
from spacy_treecrf.structure.entity_sets import packed_entity_sets, score_sets

K = 20
TREES = 1000
KEY = "nested"


def gold_sets(examples, numbers):
    """Gold entities of each Doc as (start, end, label number)."""
    return [
        {
            (span.start, span.end, numbers[(span.label_,)])
            for span in example.reference.spans[KEY]
            if (span.label_,) in numbers
        }
        for example in examples
    ]


def potentials_of(nlp, docs):
    """Packed potentials of Docs of one segment each: (numbers, index, scores) a chunk."""
    with nlp.select_pipes(disable=["treecrf"]):
        docs = list(nlp.pipe(docs))
    pipe = nlp.get_pipe("treecrf")
    segments = DocSegments(docs, pipe.cfg["max_length"])
    settings = loss_settings(pipe.cfg, len(pipe.label_set))
    for chunk in pipe.model.predict((docs, segments.for_model(pipe.cfg["max_width"]))):
        temperature = log_temperature_of(pipe.model, settings)
        scores = distribution_potentials(
            xp2torch(chunk.data), chunk, settings, temperature
        )
        yield chunk.numbers, chunk.index, scores.double()


def merged_trees(scores, index, n_entity_labels):
    """The 20 best entity sets among the 1,000 best trees of each segment."""
    dense = index.unpack(scores)
    sets = []
    for trees in k_best_trees(dense, index.lengths, TREES):
        distinct = dict.fromkeys(
            frozenset(node for node in tree if node[2] < n_entity_labels)
            for _, tree in trees
        )
        sets.append(list(distinct))
    scored = score_sets(scores, index, sets, n_entity_labels)
    return [
        [
            chosen
            for _, chosen in sorted(zip(values, of, strict=True), key=lambda x: -x[0])
        ][:K]
        for values, of in zip(scored, sets, strict=True)
    ], [len(of) for of in sets]


def oracle(candidates, gold):
    """F1 if the best candidate of each sentence were chosen."""
    score = PRFScore()
    for sets, truth in zip(candidates, gold, strict=True):
        best = max(sets, key=lambda one: sentence_f(set(one), truth))
        score.score_set(set(best), truth)
    return score.fscore


def sentence_f(found, truth):
    total = len(found) + len(truth)
    return 2 * len(found & truth) / total if total else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    nlp = spacy.load(args.model)
    labels = nlp.get_pipe("treecrf").label_set
    examples = list(FastCorpus(args.corpus, limit=args.limit)(nlp))
    gold = gold_sets(examples, labels.numbers())
    names = ("best tree", "entity sets, first", "entity sets", "oversample and merge")
    found = {name: [None] * len(gold) for name in names}
    seconds = dict.fromkeys(("best tree", "entity sets", "oversample and merge"), 0.0)
    distinct = [0] * len(gold)
    with torch.inference_mode():
        docs = [example.predicted for example in examples]
        for numbers, index, scores in potentials_of(nlp, docs):
            start = time.process_time()
            rows, chosen = packed_best_tree(scores, index)
            seconds["best tree"] += time.process_time() - start
            start = time.process_time()
            sets = packed_entity_sets(scores, index, K, len(labels))
            seconds["entity sets"] += time.process_time() - start
            start = time.process_time()
            merged, sizes = merged_trees(scores, index, len(labels))
            seconds["oversample and merge"] += time.process_time() - start
            nodes = zip(
                index.segment[rows].tolist(),
                index.start[rows].tolist(),
                index.end[rows].tolist(),
                chosen.tolist(),
                strict=True,
            )
            best = [set() for _ in numbers]
            for segment, *node in nodes:
                if node[2] < len(labels):
                    best[segment].add(tuple(node))
            for place, number in enumerate(numbers.tolist()):
                found["best tree"][number] = [best[place]]
                found["entity sets, first"][number] = [sets[place][0][1]]
                found["entity sets"][number] = [one for _, one in sets[place]]
                found["oversample and merge"][number] = merged[place]
                distinct[number] = sizes[place]
    result = {
        "model": args.model.name,
        "sentences": len(gold),
        "k": K,
        "trees": TREES,
        "f1": {name: oracle(candidates, gold) for name, candidates in found.items()},
        "distinct_sets_in_trees": sum(distinct) / len(distinct),
        "cpu_s": seconds,
        "ratio_entity_sets_to_best_tree": seconds["entity sets"] / seconds["best tree"],
    }
    print(json.dumps(result, indent=1))
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
