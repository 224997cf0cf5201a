"""`treecrf tune`: decoder and threshold by development data, in a copy of the model."""

import pytest
import spacy
from nested_toy import SENTENCES, add_treecrf, toy_examples, train
from spacy.cli.evaluate import evaluate
from spacy.tokens import DocBin
from thinc.api import fix_random_seed
from typer.testing import CliRunner

from spacy_treecrf.cli import app
from spacy_treecrf.cli.tune import Metric, Result, choose, decodings_of, score_all
from spacy_treecrf.pipeline.docs.sweep import Decoding, sweep
from spacy_treecrf.problems import ConversionError

KEY = "nested"


def run(*arguments):
    words = ["tune", *(str(argument) for argument in arguments)]
    return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def nlp():
    """Barely trained, so that probabilities lie between 0 and 1."""
    fix_random_seed(0)
    nlp = spacy.blank("en")
    add_treecrf(nlp)
    train(nlp, toy_examples(nlp), steps=8)
    return nlp


@pytest.fixture(scope="module")
def folder(nlp, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune")
    nlp.to_disk(folder / "model")
    docs = [example.reference for example in toy_examples(nlp)]
    DocBin(docs=docs).to_disk(folder / "dev.spacy")
    return folder


@pytest.fixture(scope="module")
def tuned(folder):
    result = run(folder / "model", folder / "dev.spacy", folder / "tuned")
    assert result.exit_code == 0, result.output
    return result.output


def rows_of(output):
    """(decoder, threshold, P, R, F, marks) of each row of the table."""
    rows = [line.split() for line in output.splitlines()]
    return [row for row in rows if row and row[0] in ("cky", "mbr", "-")]


def test_tune_tries_both_decoders(tuned):
    rows = rows_of(tuned)
    assert {row[0] for row in rows} == {"cky", "mbr"}
    assert len(rows) == 20 + 19
    assert len({tuple(row[:2]) for row in rows}) == len(rows)
    assert rows[0][:2] == ["cky", "null"]
    assert "now" in " ".join(rows[0])


def test_tune_writes_the_best_into_the_copy(tuned, folder):
    (best,) = [row for row in rows_of(tuned) if row[-1] == "best"]
    assert float(best[4]) == max(float(row[4]) for row in rows_of(tuned))
    again = spacy.load(folder / "tuned")
    threshold = None if best[1] == "null" else float(best[1])
    for settings in (
        again.get_pipe("treecrf").cfg,
        again.config["components"]["treecrf"],
    ):
        assert settings["decoder"] == best[0]
        # spaCy's JSON of `cfg` may be off by a rounding.
        assert settings["threshold"] == pytest.approx(threshold)
    text = (folder / "tuned" / "config.cfg").read_text(encoding="utf8")
    assert f'decoder = "{best[0]}"' in text


def test_tune_scores_are_those_of_evaluate(tuned, folder):
    (best,) = [row for row in rows_of(tuned) if row[-1] == "best"]
    scores = evaluate(str(folder / "tuned"), folder / "dev.spacy", silent=True)
    for figure, shown in zip("prf", best[2:5], strict=True):
        exact = 100 * scores[f"spans_nested_{figure}"]
        assert float(shown) == pytest.approx(exact, abs=0.006)


def test_tune_leaves_the_model_alone(tuned, folder):
    settings = spacy.load(folder / "model").get_pipe("treecrf").cfg
    assert (settings["decoder"], settings["threshold"]) == ("cky", None)


def test_sweep_is_what_the_pipe_predicts(nlp):
    pipe = nlp.get_pipe("treecrf")
    docs = [nlp.make_doc(words) for words, _ in SENTENCES] + [nlp.make_doc("")]
    decodings = decodings_of(pipe, 0.1)
    before = dict(pipe.cfg)
    found = sweep(pipe, docs, decodings)
    assert pipe.cfg == before
    try:
        for decoding, predictions in zip(decodings, found, strict=True):
            pipe.cfg.update(decoder=decoding.decoder, threshold=decoding.threshold)
            expected = [spans for spans, _ in pipe.predict(docs).by_doc()]
            assert [spans for spans, _ in predictions.by_doc()] == expected
    finally:
        pipe.cfg.update(before)


def test_sweep_runs_the_model_once(nlp, monkeypatch):
    pipe, calls = nlp.get_pipe("treecrf"), []
    encoder = pipe.model.get_ref("tok2vec")
    forward = encoder._func
    monkeypatch.setattr(
        encoder, "_func", lambda *args, **kw: calls.append(args) or forward(*args, **kw)
    )
    docs = [nlp.make_doc(words) for words, _ in SENTENCES]
    sweep(pipe, docs, decodings_of(pipe, 0.05))
    assert len(calls) == 1


def test_sweep_of_empty_docs(nlp):
    (predictions,) = sweep(
        nlp.get_pipe("treecrf"), [nlp.make_doc("")], [Decoding("cky", None)]
    )
    assert len(predictions.entities) == 0


def test_tune_local_objective_has_one_decoder(folder, tmp_path):
    nlp = spacy.blank("en")
    add_treecrf(nlp, objective="local")
    nlp.initialize(lambda: toy_examples(nlp))
    nlp.to_disk(tmp_path / "local")
    result = run(
        tmp_path / "local", folder / "dev.spacy", tmp_path / "out", "--step", 0.25
    )
    assert result.exit_code == 0, result.output
    assert [row[1] for row in rows_of(result.output)] == ["null", "0.25", "0.5", "0.75"]
    assert {row[0] for row in rows_of(result.output)} == {"cky"}


def test_tune_spancat_threshold(folder, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("spancat", config={"spans_key": KEY})
    train(nlp, toy_examples(nlp), steps=4)
    nlp.to_disk(tmp_path / "spancat")
    result = run(tmp_path / "spancat", folder / "dev.spacy", tmp_path / "out")
    assert result.exit_code == 0, result.output
    (best,) = [row for row in rows_of(result.output) if row[-1] == "best"]
    again = spacy.load(tmp_path / "out")
    assert again.get_pipe("spancat").cfg["threshold"] == pytest.approx(float(best[1]))
    scores = evaluate(
        str(tmp_path / "out"), folder / "dev.spacy", spans_key=KEY, silent=True
    )
    assert float(best[4]) == pytest.approx(100 * scores["spans_nested_f"], abs=0.006)


def test_tune_honours_missing_regions(tmp_path):
    fix_random_seed(0)
    nlp = spacy.blank("en")
    pipe = add_treecrf(nlp, missing_spans_key="missing")
    examples = toy_examples(nlp)
    train(nlp, examples, steps=8)
    # All that is not annotated may be anything: precision is 1 wherever it is defined.
    for example in examples:
        doc = example.reference
        doc.spans["missing"] = [doc[:]]
    results = score_all(nlp, "treecrf", examples, decodings_of(pipe, 0.1), tmp_path)
    assert {result.p for result in results if result.p} == {1.0}


# Choosing.

RESULTS = [
    Result(Decoding("cky", None), 0.8, 0.6, 0.686),
    Result(Decoding("mbr", 0.3), 0.6, 0.8, 0.686),
    Result(Decoding("mbr", 0.4), 0.7, 0.7, 0.7),
    Result(Decoding("mbr", 0.6), 0.9, 0.3, 0.45),
]


@pytest.mark.parametrize(
    ("metric", "bounds", "expected"),
    [
        (Metric.f, {}, 2),
        (Metric.precision, {"at_recall": 0.5}, 0),
        (Metric.precision, {"at_recall": 0.0}, 3),
        (Metric.recall, {"at_precision": 0.65}, 2),
        (Metric.recall, {"at_precision": 0.5}, 1),
    ],
)
def test_choose_by_metric(metric, bounds, expected):
    assert choose(RESULTS, metric, **bounds) is RESULTS[expected]


def test_choose_takes_the_settings_of_the_pipe_where_all_is_equal():
    same = [RESULTS[0], RESULTS[0]._replace(decoding=Decoding("mbr", 0.5))]
    assert choose(same, Metric.f) is same[0]


def test_choose_out_of_reach():
    with pytest.raises(ConversionError, match=r"T165.*recall of 0.95.*0.8000"):
        choose(RESULTS, Metric.precision, at_recall=0.95)


# What cannot be tuned.


@pytest.mark.parametrize(
    "options",
    [
        ("--metric", "precision"),
        ("--metric", "recall", "--at-recall", 0.5),
        ("--at-recall", 0.5),
    ],
)
def test_tune_refuses_options_that_do_not_fit(folder, tmp_path, options):
    result = run(folder / "model", folder / "dev.spacy", tmp_path / "out", *options)
    assert result.exit_code == 1
    assert "T161" in result.output
    assert not (tmp_path / "out").exists()


def test_tune_refuses_to_overwrite_the_model(folder):
    result = run(folder / "model", folder / "dev.spacy", folder / "model")
    assert result.exit_code == 1
    assert "T162" in result.output


def test_tune_refuses_pipelines_without_thresholds(folder, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "plain")
    result = run(tmp_path / "plain", folder / "dev.spacy", tmp_path / "out")
    assert result.exit_code == 1
    assert "T163" in result.output
    assert "sentencizer" in result.output


def test_tune_refuses_a_pipe_that_is_not_there(folder, tmp_path):
    result = run(
        folder / "model", folder / "dev.spacy", tmp_path / "out", "--pipe", "other"
    )
    assert result.exit_code == 1
    assert "named 'other'" in result.output


@pytest.mark.parametrize(
    ("name", "code"), [("no.spacy", "T040"), ("bad.spacy", "T055")]
)
def test_tune_refuses_data_that_cannot_be_read(folder, tmp_path, name, code):
    (tmp_path / "bad.spacy").write_bytes(b"nothing")
    result = run(folder / "model", tmp_path / name, tmp_path / "out")
    assert result.exit_code == 1
    assert code in result.output


@pytest.mark.filterwarnings("ignore:.*T101")
def test_tune_refuses_data_without_gold(folder, tmp_path):
    nlp = spacy.blank("en")
    DocBin(docs=[nlp.make_doc("nothing here")]).to_disk(tmp_path / "empty.spacy")
    result = run(folder / "model", tmp_path / "empty.spacy", tmp_path / "out")
    assert result.exit_code == 1
    assert "T164" in result.output


def test_tune_tunes_the_pipe_that_is_named(folder, tmp_path):
    nlp = spacy.load(folder / "model")
    nlp.add_pipe("spancat", config={"spans_key": "other"})
    nlp.get_pipe("spancat").add_label("ORG")
    nlp.get_pipe("spancat").initialize(lambda: toy_examples(nlp))
    nlp.to_disk(tmp_path / "two")
    arguments = (tmp_path / "two", folder / "dev.spacy", tmp_path / "out")
    assert "T163" in run(*arguments).output
    result = run(
        *arguments, "--pipe", "treecrf", "--metric", "recall", "--at-precision", 0
    )
    assert result.exit_code == 0, result.output
    assert spacy.load(tmp_path / "out").get_pipe("spancat").cfg["threshold"] == 0.5
