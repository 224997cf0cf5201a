"""`python -m spacy treecrf jackknife`: what it writes, what it keeps, when it fails."""

import json
import shutil
from pathlib import Path

import pytest
import spacy
from nested_toy import SENTENCES
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from typer.testing import CliRunner

from spacy_treecrf.cli import app, jackknife, jackknife_fold
from spacy_treecrf.cli.jackknife import (
    base_pipe,
    best_f,
    cut_folds,
    number_documents,
    sets_sentences,
)
from spacy_treecrf.cli.jackknife_fold import (
    FoldReport,
    Plan,
    count_oracles,
    point_to,
)
from spacy_treecrf.pipeline.docs.packing import pack

ROOT = Path(__file__).parents[2]
IDENTIFINDER = ROOT / "configs" / "identifinder.cfg"
VOCAB = spacy.blank("en").vocab
PEOPLE = ["Ann Lee", "Bo Chan", "Cy Dow", "Di Ek"]
CITIES = ["Paris", "Rome", "Oslo"]


def make_doc(words, spans, key="nested", **kwargs):
    doc = Doc(VOCAB, words=words, **kwargs)
    made = [Span(doc, start, end, label=label) for start, end, label in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=made)
    return doc


def corpus_docs():
    """Twelve Docs, the last of two sentences."""
    docs = []
    for person in PEOPLE:
        for city in CITIES:
            words = ["Mr.", *person.split(), "left", city, "."]
            docs.append(make_doc(words, [(1, 3, "PER"), (4, 5, "LOC")]))
    words = [*words, "It", "rained"]
    spans = [(1, 3, "PER"), (4, 5, "LOC"), (5, 7, "ODD")]
    docs[-1] = make_doc(words, spans, sent_starts=[1, *[-1] * 5, 1, -1])
    return docs


def run(*args):
    return CliRunner().invoke(app, ["jackknife", *map(str, args)])


def text_of(result):
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    DocBin(docs=corpus_docs()).to_disk(folder / "train.spacy")
    DocBin(docs=corpus_docs()[:3]).to_disk(folder / "dev.spacy")
    paths = ("--paths.train", folder / "train.spacy")
    return (*paths, "--paths.dev", folder / "dev.spacy")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data):
    """Two folds of identifinder, run once for all tests; they must not change it."""
    output = tmp_path_factory.mktemp("out") / "deep" / "candidates.spacy"
    result = run(
        *(IDENTIFINDER, output, "--folds", 2, "--n-best", 5, "--workers", 2), *data
    )
    assert result.exit_code == 0, result.output
    return result, output


@pytest.fixture
def again(finished, tmp_path):
    """A copy of the finished run."""
    shutil.copytree(finished[1].parent, tmp_path / "deep")
    return tmp_path / "deep" / finished[1].name


def packed(path):
    return list(DocBin().from_disk(path).get_docs(spacy.blank("en").vocab))


def test_jackknife_packs_the_corpus_in_its_order(finished):
    words = [token.text for doc in packed(finished[1]) for token in doc]
    assert words == [token.text for doc in corpus_docs() for token in doc]


def test_jackknife_writes_a_doc_a_fold_of_so_few_segments(finished):
    docs = packed(finished[1])
    segments = [doc.spans["nested:0"].attrs["segments"] for doc in docs]
    assert [len(rows) for rows in segments] == [6, 7]
    assert segments[1][-2:].tolist() == [[30, 36], [36, 38]]


def test_jackknife_keeps_gold_also_where_it_crosses(finished):
    docs = packed(finished[1])
    gold = [[s.label_ for s in doc.spans["nested"]] for doc in docs]
    assert gold == [["PER", "LOC"] * 6, [*["PER", "LOC"] * 6, "ODD"]]


def test_jackknife_writes_candidates_of_each_rank(finished):
    doc = packed(finished[1])[0]
    assert {f"nested:{rank}" for rank in range(5)} <= set(doc.spans)
    assert "nested:5" not in doc.spans
    attrs = doc.spans["nested:1"].attrs
    assert attrs["documents"].tolist() == [0, 1, 2, 3, 4, 5]
    assert len(attrs["scores"]) == len(doc.spans["nested:1"])
    assert (attrs["log_prob"] <= doc.spans["nested:0"].attrs["log_prob"]).all()


def test_jackknife_numbers_documents_through_the_folds(finished):
    documents = packed(finished[1])[1].spans["nested:0"].attrs["documents"]
    assert documents.tolist() == [6, 7, 8, 9, 10, 11, 11]


def test_jackknife_decodes_by_models_of_the_other_folds(finished):
    # "Ann" and "Bo" are in the first fold alone, so that its model never saw them.
    (folder,) = finished[1].with_suffix(".folds").iterdir()
    report = json.loads((folder / "fold-0.json").read_text())
    assert report["segments"] == 6
    assert not list(folder.glob("*.scratch"))


def test_jackknife_prints_what_the_candidates_are_worth(finished):
    text = text_of(finished[0])
    assert "Segments 13" in text
    assert "Gold spans 25" in text
    for figure in ("Candidates a segment", "Base F1", "Oracle F1 (5)"):
        assert figure in text
    assert "Oracle F1 (20)" not in text
    assert "1 gold spans lie in no segment" in text
    assert "Fold 2 of 2: trained in" in text


def test_jackknife_uses_finished_folds(again, data):
    (folder,) = again.with_suffix(".folds").iterdir()
    before = (folder / "fold-0.spacy").stat().st_mtime_ns
    again.unlink()
    result = run(IDENTIFINDER, again, "--folds", 2, "--n-best", 5, *data)
    assert result.exit_code == 0, result.output
    assert "Fold 1 of 2: done before" in text_of(result)
    assert (folder / "fold-0.spacy").stat().st_mtime_ns == before
    assert len(packed(again)) == 2


def test_jackknife_runs_only_the_folds_that_are_missing(again, data, monkeypatch):
    (folder,) = again.with_suffix(".folds").iterdir()
    shutil.copy(folder / "fold-1.spacy", folder / "copy")
    (folder / "fold-1.spacy").unlink()
    ran = []

    def run_process(folder, number, *_):
        ran.append(number)
        shutil.copy(folder / "copy", folder / f"fold-{number}.spacy")
        return 0

    monkeypatch.setattr(jackknife, "run_process", run_process)
    result = run(IDENTIFINDER, again, "--folds", 2, "--n-best", 5, *data)
    assert result.exit_code == 0, result.output
    assert ran == [1]


@pytest.mark.parametrize(
    "change",
    [
        ("--n-best", 4),
        ("--folds", 3),
        ("--components.identifinder.unknown", "merged"),
        ("--no-resume",),
    ],
)
def test_jackknife_uses_no_folds_of_another_run(again, data, monkeypatch, change):
    ran = []
    monkeypatch.setattr(
        jackknife, "run_process", lambda folder, number, *_: ran.append(number) or 1
    )
    monkeypatch.setattr(jackknife, "log_path", lambda folder, number: Path(__file__))
    given = ("--folds", 2, "--n-best", 5)
    assert run(IDENTIFINDER, again, *given, *change, *data).exit_code == 1
    assert sorted(ran)[:2] == [0, 1]


def test_jackknife_uses_no_folds_of_other_data(again, data, monkeypatch, tmp_path):
    DocBin(docs=corpus_docs()[:11]).to_disk(tmp_path / "other.spacy")
    ran = []
    monkeypatch.setattr(
        jackknife, "run_process", lambda folder, number, *_: ran.append(number) or 1
    )
    monkeypatch.setattr(jackknife, "log_path", lambda folder, number: Path(__file__))
    other = ("--paths.train", tmp_path / "other.spacy", *data[2:])
    run(IDENTIFINDER, again, "--folds", 2, "--n-best", 5, *other)
    assert sorted(ran) == [0, 1]


def test_jackknife_names_a_fold_that_fails(tmp_path, data):
    # The only names are in the first fold, so that a model without it has none.
    docs = corpus_docs()[:3] + [make_doc(["It", "rained"], []) for _ in range(3)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    output = tmp_path / "out.spacy"
    given = ("--folds", 2, "--paths.train", tmp_path / "train.spacy", *data[2:])
    result = run(IDENTIFINDER, output, *given)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    text = text_of(result)
    assert "[T094] Failed: fold 1 (" in text
    assert "[T070] No usable entity" in text
    assert not output.exists()
    (folder,) = output.with_suffix(".folds").iterdir()
    assert (folder / "fold-1.spacy").exists()
    assert not (folder / "fold-0.spacy").exists()


KILL = """
import multiprocessing
import os
import signal

if multiprocessing.current_process().name != "MainProcess":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_jackknife_names_a_fold_that_is_killed(tmp_path, data):
    code, output = tmp_path / "code.py", tmp_path / "out.spacy"
    code.write_text(KILL)
    result = run(IDENTIFINDER, output, "--folds", 2, "--code", code, *data)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    text = text_of(result)
    assert "[T094] Failed: fold 1 (" in text
    assert "fold 2 (" in text
    assert not output.exists()


@pytest.mark.filterwarnings("ignore:.T080")  # the corpus has a span across a border
def test_jackknife_gives_what_folds_trained_by_hand_give(finished, tmp_path):
    """Also where nothing is left to train after the initialisation."""
    (folder,) = finished[1].with_suffix(".folds").iterdir()
    plan = Plan(**json.loads((folder / "plan.json").read_text()))
    for number, docs in enumerate((corpus_docs()[6:], corpus_docs()[:6])):
        held_out = corpus_docs()[6:] if number else corpus_docs()[:6]
        paths = (tmp_path / f"train{number}.spacy", tmp_path / f"held{number}.spacy")
        for path, part in zip(paths, (docs, held_out), strict=True):
            DocBin(docs=part).to_disk(path)
        config = load_config(folder / "config.cfg", interpolate=False)
        point_to(config, "corpora.train", paths[0])
        (tmp_path / f"model{number}").mkdir()
        train(init_nlp(config), tmp_path / f"model{number}")
        nlp = spacy.load(tmp_path / f"model{number}" / "model-best")
        nlp.get_pipe("identifinder").cfg["n_best"] = 5
        items = jackknife_fold.decode(
            nlp, paths[1], plan, plan.borders[number], FoldReport()
        )
        (expected,) = pack(items, nlp.vocab, plan.keys)
        (found,) = packed(folder / f"fold-{number}.spacy")
        assert found.to_bytes() == expected.to_bytes()


@pytest.mark.parametrize(
    ("pipes", "training", "complete"),
    [
        (["identifinder"], {}, True),
        (["sentencizer", "maxent_ner"], {}, True),
        (["identifinder", "ner"], {}, False),
        (["identifinder"], {"before_to_disk": {"@callbacks": "x"}}, False),
        (["identifinder"], {"before_update": None}, True),
    ],
)
def test_jackknife_knows_what_initialisation_completes(pipes, training, complete):
    nlp = spacy.blank("en")
    for pipe in pipes:
        nlp.add_pipe(pipe, config={"spans_key": "m"} if pipe == "maxent_ner" else {})
    assert jackknife_fold.is_complete(nlp, {"training": training}) == complete


TREECRF = """
[paths]
train = null
dev = null

[nlp]
lang = "en"
pipeline = ["sentencizer", "treecrf"]

[components]

[components.sentencizer]
factory = "sentencizer"

[components.treecrf]
factory = "treecrf"

[components.treecrf.model]
@architectures = "spacy-treecrf.TreeCRF.v1"

[components.treecrf.model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
width = 16
depth = 1
embed_size = 100
pretrained_vectors = null

[components.treecrf.model.span_scorer]
@architectures = "spacy-treecrf.BiaffineSpanScorer.v1"
hidden_width = 8

[corpora]

[corpora.train]
@readers = "spacy.Corpus.v1"
path = ${paths.train}
gold_preproc = false

[corpora.dev]
@readers = "spacy.Corpus.v1"
path = ${paths.dev}
gold_preproc = false

[training]
seed = 0
gpu_allocator = null
max_steps = 4
eval_frequency = 2
annotating_components = ["sentencizer"]
"""


@pytest.mark.slow
def test_jackknife_trains_by_gradients_too(tmp_path):
    path, config = tmp_path / "train.spacy", tmp_path / "config.cfg"
    docs = [make_doc(words.split(), spans) for words, spans in SENTENCES]
    DocBin(docs=docs).to_disk(path)
    config.write_text(TREECRF)
    output = tmp_path / "out.spacy"
    given = ("--folds", 2, "--n-best", 3, "--paths.train", path, "--paths.dev", path)
    result = run(config, output, *given)
    assert result.exit_code == 0, result.output
    docs = packed(output)
    assert sum(len(doc) for doc in docs) == sum(len(w.split()) for w, _ in SENTENCES)
    assert "nested:2" in docs[0].spans


# Partial annotation.


def partial_docs(tags=False):
    """The corpus, of which nobody has looked at "left CITY", in Docs with user data."""
    docs = []
    for doc in corpus_docs()[:-1]:
        if tags:
            iob = ["O", "B-PER", "I-PER", "", "", "O"]
            words = [token.text for token in doc]
            doc = Doc(VOCAB, words=words, ents=iob)
        else:
            doc.spans["nested"] = [s for s in doc.spans["nested"] if s.label_ == "PER"]
            doc.spans["open"] = [Span(doc, 3, 5)]
            doc.spans["wrong"] = [Span(doc, 0, 1, label="PER")]
        doc.user_data["id"] = f"d{len(docs)}"
        docs.append(doc)
    return docs


def save(path, docs):
    DocBin(docs=docs, store_user_data=True).to_disk(path)
    return path


def test_jackknife_carries_unknown_tags(tmp_path):
    path = save(tmp_path / "train.spacy", partial_docs(tags=True))
    output = tmp_path / "out.spacy"
    given = ("--folds", 2, "--n-best", 3, "--paths.train", path, "--paths.dev", path)
    result = run(IDENTIFINDER, output, *given)
    assert result.exit_code == 0, result.output
    docs = packed(output)
    unknown = [row for doc in docs for row in doc.spans["nested"].attrs["unknown"]]
    assert [row.tolist() for row in unknown[:2]] == [[3, 5], [9, 11]]
    assert len(unknown) == 11
    # Only the known words count: each has a name, and whatever is found in the
    # others is neither right nor wrong.
    assert "Gold spans 11" in text_of(result)
    report = FoldReport()
    count_oracles(docs, "nested", report)
    right, predicted = report.counts["5"]
    assert (report.gold, right) == (11, 11)
    assert predicted == 11


def decoded_part(tmp_path, docs, **plan):
    save(tmp_path / "held_out.spacy", docs)
    n_docs = len(docs)
    given = jackknife_fold.Plan(
        *("corpora.train", "x", "nested", 2, [0, n_docs], list(range(n_docs)), True),
        **plan,
    )
    report = FoldReport()
    path = tmp_path / "held_out.spacy"
    items = jackknife_fold.decode(spacy.blank("en"), path, given, 0, report)
    return list(items), report, given


def test_jackknife_carries_regions_and_incorrect_spans(tmp_path):
    keys = {"missing_spans_key": "open", "incorrect_spans_key": "wrong"}
    items, report, plan = decoded_part(tmp_path, partial_docs()[:2], **keys)
    assert (report.lost_marks, report.unannotated) == (0, 0)
    (doc,) = pack(items, VOCAB, plan.keys)
    assert [(s.start, s.end, s.label_) for s in doc.spans["open"]] == [
        (3, 5, ""),
        (9, 11, ""),
    ]
    assert [(s.start, s.end, s.label_) for s in doc.spans["wrong"]] == [
        (0, 1, "PER"),
        (6, 7, "PER"),
    ]


def test_jackknife_regions_widen_and_lost_marks_are_counted(tmp_path):
    reference = Doc(VOCAB, words=["An", "n left", "Rome"], spaces=[False, True, False])
    reference.spans["nested"] = []
    reference.spans["open"] = [Span(reference, 0, 1), Span(reference, 1, 1)]
    reference.spans["wrong"] = [Span(reference, 0, 1, label="X")]
    keys = {"missing_spans_key": "open", "incorrect_spans_key": "wrong"}
    (item,), report, _ = decoded_part(tmp_path, [reference], **keys)
    assert item.gold.missing == [(0, 1, "")]
    assert report.lost_marks == 2
    assert report.first_mark.endswith("in Doc 0")


def test_jackknife_counts_docs_that_nobody_has_annotated(tmp_path):
    bare = Doc(VOCAB, words=["Ann", "left"])
    (item,), report, _ = decoded_part(tmp_path, [bare])
    assert report.unannotated == 1
    assert item.gold.unknown == [(0, 2)]


@pytest.mark.slow
def test_jackknife_carries_the_regions_of_treecrf(tmp_path):
    path, config = save(tmp_path / "train.spacy", partial_docs()), tmp_path / "c.cfg"
    keys = 'missing_spans_key = "open"\nincorrect_spans_key = "wrong"\n'
    config.write_text(
        TREECRF.replace('factory = "treecrf"\n', f'factory = "treecrf"\n{keys}')
    )
    output = tmp_path / "out.spacy"
    given = ("--folds", 2, "--n-best", 3, "--paths.train", path, "--paths.dev", path)
    result = run(config, output, *given)
    assert result.exit_code == 0, result.output
    docs = packed(output)
    assert sum(len(doc.spans["open"]) for doc in docs) == 11
    assert sum(len(doc.spans["wrong"]) for doc in docs) == 11
    assert {doc[s.start : s.end].text for doc in docs for s in doc.spans["wrong"]} == {
        "Mr."
    }


# Parts.


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.cfg", "out.spacy"], "[T040] Can't read missing.cfg"),
        ([IDENTIFINDER, "out.spacy", "--paths", "x"], "No such option '--paths'"),
        ([IDENTIFINDER, "out.spacy"], "[T056] Can't read the corpora"),
        (
            [IDENTIFINDER, "out.spacy", "--paths.train", "no.spacy"],
            "[T056] Can't read the corpora",
        ),
    ],
)
def test_jackknife_refuses_what_it_cannot_read(tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in text_of(result)


def test_jackknife_refuses_more_folds_than_documents(tmp_path, data):
    result = run(IDENTIFINDER, tmp_path / "out.spacy", "--folds", 13, *data)
    assert result.exit_code == 1
    assert "[T092] 12 documents cannot be cut into 13 folds" in text_of(result)


@pytest.mark.parametrize(
    ("documents", "folds", "expected"),
    [
        ([0, 1, 2, 3], 2, [0, 2, 4]),
        ([0, 1, 2, 3, 4], 2, [0, 2, 5]),
        ([0, 0, 0, 1], 2, [0, 3, 4]),
        ([0, 1, 1, 1, 2, 3], 2, [0, 4, 6]),
        ([0, 1, 2], 3, [0, 1, 2, 3]),
    ],
)
def test_jackknife_folds_are_contiguous_whole_documents(documents, folds, expected):
    assert cut_folds(documents, folds) == expected


def test_jackknife_neighbours_of_one_name_are_one_document():
    docs = [Doc(VOCAB, words=["a"]) for _ in range(6)]
    for doc, name in zip(docs, [None, None, "x", "x", "y", None], strict=True):
        if name:
            doc.user_data["doc"] = name
    assert number_documents(docs) == [0, 1, 2, 2, 3, 4]


def config_of(pipeline, **components):
    config = load_config(IDENTIFINDER)
    config["nlp"]["pipeline"] = pipeline
    config["components"].update(components)
    return config


TWO = {"other": {"factory": "identifinder", "spans_key": "names"}}


def test_jackknife_base_pipe_is_the_one_with_candidates():
    config = config_of(
        ["sentencizer", "identifinder"], sentencizer={"factory": "sentencizer"}
    )
    found = base_pipe(config, spacy.blank("en"), None, IDENTIFINDER, 20)
    assert found == ("identifinder", "nested")


def test_jackknife_base_pipe_can_be_named():
    config = config_of(["identifinder", "other"], **TWO)
    found = base_pipe(config, spacy.blank("en"), "other", IDENTIFINDER, 20)
    assert found == ("other", "names")


def test_jackknife_base_pipe_is_not_frozen():
    config = config_of(["identifinder", "other"], **TWO)
    config["training"]["frozen_components"] = ["identifinder"]
    found = base_pipe(config, spacy.blank("en"), None, IDENTIFINDER, 20)
    assert found == ("other", "names")


@pytest.mark.parametrize(
    ("pipeline", "wanted", "found"),
    [
        (["identifinder", "other"], None, "'identifinder', 'other'"),
        (["identifinder", "other"], "sentencizer", "'identifinder', 'other'"),
        (["sentencizer"], None, "none"),
    ],
)
def test_jackknife_base_pipe_must_be_one(pipeline, wanted, found):
    config = config_of(pipeline, sentencizer={"factory": "sentencizer"}, **TWO)
    with pytest.raises(ValueError, match="T093") as caught:
        base_pipe(config, spacy.blank("en"), wanted, IDENTIFINDER, 20)
    assert f"found {found}." in str(caught.value)


def test_jackknife_candidates_are_no_more_than_the_beam():
    config = config_of(["base"], base={"factory": "maxent_ner", "beam": 7})
    nlp = spacy.blank("en")
    assert base_pipe(config, nlp, None, IDENTIFINDER, 7) == ("base", "nested")
    with pytest.raises(
        ValueError, match=r"T002.*'n_best' of pipe 'base' is 8.*beam of 7"
    ):
        base_pipe(config, nlp, None, IDENTIFINDER, 8)


@pytest.mark.parametrize(("factory", "sets"), [("sentencizer", True), ("ner", False)])
def test_jackknife_knows_who_sets_sentences(factory, sets):
    config = config_of(["other", "identifinder"], other={"factory": factory})
    assert sets_sentences(config, spacy.blank("en")) == sets


def test_jackknife_keeps_the_settings_of_the_reader():
    config = config_of(["identifinder"])
    config["corpora"]["train"]["limit"] = 3
    config["corpora"]["train"]["max_length"] = 9
    point_to(config, "corpora.train", Path("new.spacy"))
    section = config["corpora"]["train"]
    assert section["path"] == "new.spacy"
    assert (section["limit"], section["max_length"]) == (0, 9)


def test_jackknife_replaces_a_reader_of_another_kind():
    config = config_of(["identifinder"])
    config["corpora"]["train"] = {"@readers": "my_reader.v1", "where": "x"}
    point_to(config, "corpora.train", Path("new.spacy"))
    section = config["corpora"]["train"]
    assert section["@readers"] == "spacy-treecrf.Corpus.v1"
    assert "where" not in section


def test_jackknife_gold_that_fits_no_tokens_is_counted(tmp_path):
    reference = Doc(VOCAB, words=["Mr.", "An", "n left"], spaces=[True, False, False])
    reference.spans["nested"] = [Span(reference, 1, 2, "PER")]
    DocBin(docs=[reference]).to_disk(tmp_path / "held_out.spacy")
    plan = jackknife_fold.Plan("corpora.train", "x", "nested", 2, [0, 1], [0], True)
    report = FoldReport()
    nlp = spacy.blank("en")
    (decoded,) = jackknife_fold.decode(
        nlp, tmp_path / "held_out.spacy", plan, 0, report
    )
    assert [t.text for t in decoded.doc] == ["Mr.", "Ann", "left"]
    assert decoded.gold.spans == []
    assert (report.misaligned, report.gold) == (1, 1)
    assert report.first == "(1, 2, 'PER') 'An' in Doc 0"


def test_jackknife_oracle_counts_gold_that_crosses_as_missed(finished):
    docs = packed(finished[1])
    report = FoldReport()
    count_oracles(docs, "nested", report)
    assert (report.segments, report.gold, report.outside) == (13, 25, 1)
    assert report.counts["1"][0] <= report.counts["5"][0] <= 24
    right, predicted = report.counts["5"]
    assert best_f(report, 5) == 2 * right / (predicted + 25)


@pytest.mark.parametrize("same", [True, False])
def test_jackknife_sentence_starts_come_from_equal_tokens(same):
    reference = Doc(VOCAB, words=["a", "b"], sent_starts=[1, 1])
    example = Example(Doc(VOCAB, words=["a", "b" if same else "c"]), reference)
    jackknife_fold.copy_sentence_starts(example)
    assert example.predicted[1].is_sent_start == (True if same else None)
