"""The tables of `debug-data`: one column for each corpus, one row for each figure."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from typer import echo
from wasabi import msg

from spacy_treecrf.data.inspection import Inspection
from spacy_treecrf.data.statistics import quantile

from .training_check import Finding

Corpora = dict[str, Inspection]
Rows = list[tuple[str, Callable[[Inspection], str]]]

# A label with fewer examples than this is hardly learnt.
FEW_SPANS = 10
# The longest n-gram that spaCy's own configs give to the span categorizer.
NGRAM_LIMIT = 8
QUANTILES = {"median": 0.5, "90%": 0.9, "95%": 0.95, "99%": 0.99, "longest": 1.0}


def print_report(
    corpora: Corpora, spans_key: str, findings: Mapping[str, Sequence[Finding]]
) -> None:
    """Print all sections.

    corpora (Corpora): What was found, by the corpus's name; "train" is among them.
    spans_key (str): The key that was looked at.
    findings (Mapping[str, Sequence[Finding]]): What training on each would warn of.
    """
    msg.divider(f"Spans under '{spans_key}'")
    _print_table(corpora, _totals())
    msg.divider("Labels")
    _print_table(corpora, _labels(corpora))
    _print_rare_labels(corpora)
    msg.divider("Nesting")
    _print_table(corpora, _nesting(corpora))
    msg.divider("Lengths in tokens")
    _print_table(corpora, _lengths())
    if "dev" in corpora:
        msg.divider("Overlap")
        _print_overlap(corpora["train"], corpora["dev"])
    msg.divider("What makes trouble")
    any_found = _print_problems(corpora)
    if _print_findings(findings) or any_found:
        return
    msg.good("Nothing found")


def _print_table(corpora: Corpora, rows: Rows) -> None:
    data = [(name, *map(show, corpora.values())) for name, show in rows]
    msg.table(data, header=("", *corpora), aligns=("l", *"r" * len(corpora)))


def _share(number: int, total: int) -> str:
    return f"{number} ({number / total:.1%})" if total else str(number)


def _totals() -> Rows:
    return [
        ("Docs", lambda i: str(i.counts.docs)),
        ("Docs without spans", lambda i: _share(i.n_without_spans, i.counts.docs)),
        (
            "Docs without sentence boundaries",
            lambda i: _share(i.n_without_boundaries, i.counts.docs),
        ),
        ("Sentences", lambda i: str(i.counts.sentences)),
        ("Tokens", lambda i: str(i.counts.tokens)),
        ("Spans", lambda i: str(i.counts.spans)),
    ]


def _labels(corpora: Corpora) -> Rows:
    names = dict.fromkeys(
        label for i in corpora.values() for label, _ in i.counts.labels.most_common()
    )

    def show(label: str, inspection: Inspection) -> str:
        return str(inspection.counts.labels[label])

    return [(name, partial(show, name)) for name in names]


def _print_rare_labels(corpora: Corpora) -> None:
    train = corpora["train"].counts.labels
    rare = sorted(label for label, count in train.items() if count < FEW_SPANS)
    if rare:
        msg.warn(f"Labels with fewer than {FEW_SPANS} training spans: {_join(rare)}")
    if "dev" in corpora:
        unseen = sorted(set(corpora["dev"].counts.labels) - set(train))
        if unseen:
            msg.warn(f"Labels of dev that train lacks: {_join(unseen)}")


def _join(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _nesting(corpora: Corpora) -> Rows:
    deepest = max(inspection.counts.max_depth for inspection in corpora.values())

    def show(depth: int, inspection: Inspection) -> str:
        return str(inspection.counts.depths[depth])

    return [
        *((f"Depth {depth}", partial(show, depth)) for depth in range(1, deepest + 1)),
        ("Inside a longer span", lambda i: _share(i.counts.inner, i.counts.spans)),
        ("Inside or around another", lambda i: _share(i.counts.nested, i.counts.spans)),
        ("Crossing pairs", lambda i: str(i.counts.crossing)),
        ("Spans with several labels", lambda i: str(i.counts.multi_label)),
    ]


def _lengths() -> Rows:
    def span_quantile(share: float, inspection: Inspection) -> str:
        lengths = inspection.counts.lengths
        return str(quantile(lengths, share)) if lengths else "-"

    def sentence_quantile(share: float, inspection: Inspection) -> str:
        lengths = inspection.sentence_lengths
        return str(quantile(lengths, share)) if lengths else "-"

    def n_long(inspection: Inspection) -> str:
        lengths = inspection.counts.lengths
        n_longer = sum(n for length, n in lengths.items() if length > NGRAM_LIMIT)
        return _share(n_longer, inspection.counts.spans)

    return [
        *(
            (f"Span, {name}", partial(span_quantile, q))
            for name, q in QUANTILES.items()
        ),
        (f"Spans over {NGRAM_LIMIT} (n-gram limit of spancat)", n_long),
        *(
            (f"Sentence, {name}", partial(sentence_quantile, q))
            for name, q in QUANTILES.items()
        ),
    ]


def _print_overlap(train: Inspection, dev: Inspection) -> None:
    texts = {text for text, _ in train.entities}
    seen = sum(n for (text, _), n in dev.entities.items() if text in texts)
    same = sum(n for entity, n in dev.entities.items() if entity in train.entities)
    repeated = sum(n for text, n in dev.texts.items() if text in train.texts)
    rows = [
        ("Dev spans whose text is one in train", _share(seen, dev.counts.spans)),
        ("... with the same label", _share(same, dev.counts.spans)),
        ("Dev Docs whose text is one in train", _share(repeated, dev.counts.docs)),
    ]
    msg.table(rows, aligns=("l", "r"))


def _print_problems(corpora: Corpora) -> bool:
    any_found = False
    for name, inspection in corpora.items():
        for headline, details in inspection.problems.messages():
            any_found = True
            msg.warn(f"{name}: {headline}")
            echo(details)
    return any_found


def _print_findings(findings: Mapping[str, Sequence[Finding]]) -> bool:
    for name, found in findings.items():
        for finding in found:
            msg.warn(f"{name}, in training: {finding.headline}")
            if finding.cases:
                echo("\n".join(finding.cases))
    return any(findings.values())
