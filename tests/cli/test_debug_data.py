"""`python -m spacy treecrf debug-data`: what it prints and when it fails."""

import json
import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span, SpanGroup
from spacy.training import Example
from typer.testing import CliRunner

from spacy_treecrf.cli import app

VOCAB = spacy.blank("en").vocab

CONFIG = """
[paths]
train = null
dev = null

[nlp]
lang = "en"
pipeline = ["treecrf"]

[components]

[components.treecrf]
factory = "treecrf"
spans_key = "nested"

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
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"

[training.score_weights]
spans_nested_f = 1.0
"""


def run(*args):
    return CliRunner().invoke(app, ["debug-data", *map(str, args)])


def make_doc(words, spans, key="nested"):
    doc = Doc(VOCAB, words=words.split())
    made = [Span(doc, start, end, label=label) for start, end, label in spans]
    doc.spans[key] = SpanGroup(doc, name=key, spans=made)
    return doc


@pytest.fixture
def paths(tmp_path):
    """A config, training and development data."""
    corpora = {
        "train": [
            make_doc("Bank of China rose", [(0, 3, "ORG"), (2, 3, "GPE")]),
            make_doc("Bank of China rose in China", [(0, 3, "ORG"), (2, 6, "GPE")]),
            make_doc("Nothing", []),
        ],
        "dev": [
            make_doc("China and Laos", [(0, 1, "GPE"), (2, 3, "GPE")]),
            make_doc("China", [(0, 1, "ORG"), (0, 1, "PER")]),
            make_doc("Nothing", []),
            make_doc(" ".join("abcdefghij"), [(0, 9, "ORG")]),
        ],
    }
    for name, docs in corpora.items():
        DocBin(docs=docs).to_disk(tmp_path / f"{name}.spacy")
    (tmp_path / "config.cfg").write_text(CONFIG)
    return [tmp_path / name for name in ("config.cfg", "train.spacy", "dev.spacy")]


def rows(output):
    """The cells of all rows of figures."""
    found = re.findall(r"^(\S[^\n]*?)  +(\d[^\n]*)$", output, flags=re.M)
    return {name: re.split("  +", cells.strip()) for name, cells in found}


def test_debug_data_prints_figures_of_train_and_dev(paths):
    result = run(*paths[1:])
    assert result.exit_code == 0, result.output
    assert rows(result.output) == {
        "Docs": ["3", "4"],
        "Docs without spans": ["1 (33.3%)", "1 (25.0%)"],
        "Docs without sentence boundaries": ["2 (66.7%)", "2 (50.0%)"],
        "Sentences": ["3", "4"],
        "Tokens": ["11", "15"],
        "Spans": ["4", "5"],
        "ORG": ["2", "2"],
        "GPE": ["2", "2"],
        "PER": ["0", "1"],
        "Depth 1": ["3", "4"],
        "Depth 2": ["1", "0"],
        "Inside a longer span": ["1 (25.0%)", "0 (0.0%)"],
        "Inside or around another": ["2 (50.0%)", "0 (0.0%)"],
        "Crossing pairs": ["1", "0"],
        "Spans with several labels": ["0", "1"],
        "Span, median": ["3", "1"],
        "Span, 90%": ["4", "9"],
        "Span, 95%": ["4", "9"],
        "Span, 99%": ["4", "9"],
        "Span, longest": ["4", "9"],
        "Spans over 8 (n-gram limit of spancat)": ["0 (0.0%)", "1 (20.0%)"],
        "Sentence, median": ["4", "1"],
        "Sentence, 90%": ["6", "10"],
        "Sentence, 95%": ["6", "10"],
        "Sentence, 99%": ["6", "10"],
        "Sentence, longest": ["6", "10"],
        "Dev spans whose text is one in train": ["3 (60.0%)"],
        "... with the same label": ["1 (20.0%)"],
        "Dev Docs whose text is one in train": ["1 (25.0%)"],
    }


def test_debug_data_names_labels_and_trouble(paths):
    output = " ".join(run(*paths[1:]).output.split())
    assert "Labels with fewer than 10 training spans: 'GPE', 'ORG'" in output
    assert "Labels of dev that train lacks: 'PER'" in output
    assert "train: 1 crossing pairs of spans" in output
    assert "doc 1: 'Bank of China' and 'China rose in China'" in output
    assert "doc 1: ORG + PER 'China'" in output


def test_debug_data_of_one_file(paths):
    result = run(paths[1])
    assert result.exit_code == 0, result.output
    assert rows(result.output)["Docs"] == ["3"]
    assert "Overlap" not in result.output


def test_debug_data_counts_spans_over_the_ngram_limit(tmp_path):
    doc = make_doc(" ".join("abcdefghi"), [(0, 8, "A"), (0, 9, "A")])
    DocBin(docs=[doc]).to_disk(tmp_path / "train.spacy")
    result = run(tmp_path / "train.spacy")
    (row,) = (r for name, r in rows(result.output).items() if "n-gram" in name)
    assert row == ["1 (50.0%)"]


def test_debug_data_of_a_folder(paths):
    result = run(paths[0].parent)
    assert rows(result.output)["Docs"] == ["7"]


def test_debug_data_of_a_config_with_overrides(paths):
    config, train, dev = paths
    result = run(config, "--paths.train", train, f"--paths.dev={dev}")
    assert result.exit_code == 0, result.output
    assert rows(result.output)["Docs"] == ["3", "4"]


def test_debug_data_takes_the_key_of_the_config(paths):
    config, train, dev = paths
    result = run(
        *(config, "--paths.train", train, "--paths.dev", dev),
        *("--components.treecrf.spans_key", "sc"),
    )
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    assert "[T057] No spans under 'sc' in the 3 training documents" in output
    assert "Keys that are there: nested" in output


@pytest.mark.parametrize(("weight", "warns"), [("1.0", False), ("0.0", True)])
def test_debug_data_checks_score_weights(paths, weight, warns):
    config, train, dev = paths
    override = ("--training.score_weights.spans_nested_f", weight)
    result = run(config, "--paths.train", train, "--paths.dev", dev, *override)
    assert result.exit_code == 0, result.output
    assert ("No weight in [training.score_weights]" in result.output) == warns


def test_debug_data_warns_of_a_dev_corpus_without_the_key(paths, tmp_path):
    DocBin(docs=[make_doc("a", [], "sc")]).to_disk(tmp_path / "other.spacy")
    result = run(paths[1], tmp_path / "other.spacy")
    assert result.exit_code == 0, result.output
    assert "dev has no spans under 'nested'" in result.output
    assert "dev: 1 documents without the span group" in result.output


def test_debug_data_verbose_names_all(tmp_path):
    docs = [make_doc("a b c", [(0, 2, "A"), (1, 3, "A")]) for _ in range(9)]
    DocBin(docs=docs).to_disk(tmp_path / "train.spacy")
    assert "doc 8:" not in run(tmp_path / "train.spacy").output
    assert "doc 8:" in run(tmp_path / "train.spacy", "--verbose").output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["missing.spacy"], "[T040] Can't read missing.spacy"),
        (["missing.cfg"], "[T040] Can't read missing.cfg"),
        (["broken.spacy"], "[T055] broken.spacy is no .spacy file"),
        (["text.spacy"], "[T055] text.spacy is no .spacy file"),
        (["empty"], "[T046] empty holds no file"),
        (["config.cfg"], "[T056] Can't read the corpora of config.cfg"),
        (
            ["config.cfg", "--paths.train", "missing.spacy", "--paths.dev", "x.spacy"],
            "[T056] Can't read the corpora of config.cfg",
        ),
        (["config.cfg", "--paths", "x"], "No such option '--paths'"),
        (["config.cfg", "x.spacy"], "[T055] config.cfg is no .spacy file"),
        (["a.spacy", "b.spacy", "c.spacy"], "[T058] Expected a config"),
        (["train.spacy", "--paths.train", "x"], "[T058] Expected a config"),
        (["train.spacy", "--spans-key", "sc"], "[T057] No spans under 'sc'"),
        (["none.spacy"], "[T057] No spans under 'nested' in the 0 training documents"),
    ],
)
def test_debug_data_refuses_what_cannot_be_used(paths, monkeypatch, args, message):
    folder = paths[0].parent
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    Path("text.spacy").write_text("text")
    Path("broken.spacy").write_bytes(paths[1].read_bytes()[:-20])
    DocBin().to_disk("none.spacy")
    result = run(*args)
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit), result.exception
    assert message in " ".join(result.output.split())


# What training would warn of.


def text_of(result):
    return " ".join(result.output.split())


def save(path, *docs, **kwargs):
    DocBin(docs=docs, **kwargs).to_disk(path)
    return path


def characters(text, spans):
    """A Doc of one token a character, spacing known, as a page of an annotator has it."""
    words, spaces = [], []
    for character in text:
        if character == " ":
            spaces[-1] = True
        else:
            words.append(character)
            spaces.append(False)
    doc = Doc(VOCAB, words=words, spaces=spaces)
    made = [doc.char_span(start, end, label=label) for start, end, label in spans]
    doc.spans["nested"] = SpanGroup(doc, name="nested", spans=made)
    return doc


INSIDE_WORDS = characters("Rome fell today", [(0, 4, "GPE"), (0, 2, "X"), (6, 8, "Y")])


def test_debug_data_lists_spans_inside_the_words_of_a_file(tmp_path):
    result = run(save(tmp_path / "train.spacy", INSIDE_WORDS))
    assert result.exit_code == 0, result.output
    text = text_of(result)
    assert "'treecrf': 2 of 3 gold spans do not fit the tokens of the predicted" in text
    assert "(0, 2, 'X') 'Ro' in doc 0, 'Rome fell toda'..." in text
    assert "(5, 7, 'Y') 'el' in doc 0" in text
    assert "Nothing found" not in text


def test_debug_data_lists_what_convert_let_pass(tmp_path):
    tokens = [
        {"text": c, "start": i, "end": i + 1, "id": i, "ws": False}
        for i, c in enumerate("Romans")
    ]
    spans = [{"start": 0, "end": 4, "label": "GPE", "token_start": 0, "token_end": 3}]
    line = {"text": "Romans", "tokens": tokens, "spans": spans}
    (tmp_path / "in.jsonl").write_text(json.dumps(line))
    out = tmp_path / "out.spacy"
    options = ["jsonl", str(tmp_path / "in.jsonl"), str(out)]
    done = CliRunner().invoke(app, ["convert", *options])
    assert done.exit_code == 0, done.output
    assert "'treecrf': 1 of 1 gold spans do not fit the tokens" in text_of(run(out))


@pytest.mark.parametrize(("lang", "n_lost"), [("en", 0), ("xx", 1)])
def test_debug_data_splits_files_by_the_language_given(tmp_path, lang, n_lost):
    doc = Doc(VOCAB, words=["I", "ca", "n't"], spaces=[True, False, False])
    doc.spans["nested"] = [Span(doc, 1, 2, label="V"), Span(doc, 0, 1, label="P")]
    result = run(save(tmp_path / "train.spacy", doc), "--lang", lang)
    assert ("do not fit the tokens" in text_of(result)) == bool(n_lost)


def test_debug_data_reads_a_config_with_its_own_tokenizer(paths, tmp_path):
    config, _, dev = paths
    train = save(tmp_path / "chars.spacy", INSIDE_WORDS)
    given = ("--paths.train", train, "--paths.dev", dev)
    result = run(config, *given, "--nlp.lang", "en")
    text = text_of(result)
    assert "train, in training: 'treecrf': 2 of 3 gold spans do not fit" in text
    # A tokenizer that makes each character a token.
    code = tmp_path / "code.py"
    code.write_text(
        "from spacy import registry\n"
        "from spacy.tokens import Doc\n"
        "@registry.tokenizers('characters_of_words.v1')\n"
        "def make():\n"
        "    def build(nlp):\n"
        "        def split(text):\n"
        "            words = [c for c in text if c != ' ']\n"
        "            spaces = [text[i + 1 : i + 2] == ' ' for i, c in enumerate(text)\n"
        "                      if c != ' ']\n"
        "            return Doc(nlp.vocab, words=words, spaces=spaces)\n"
        "        return split\n"
        "    return build\n"
    )
    text = config.read_text().replace(
        'lang = "en"',
        'lang = "en"\ntokenizer = {"@tokenizers": "characters_of_words.v1"}',
    )
    config.write_text(text)
    result = run(config, "--code", code, *given)
    assert result.exit_code == 0, result.output
    assert "train, in training" not in text_of(result)


def test_debug_data_counts_what_training_warns_of(paths, tmp_path):
    # The same words, the same count: T102 sends its reader here.
    config, _, dev = paths
    doc = make_doc("a b c d", [(0, 3, "X"), (1, 4, "Y"), (1, 1, "Z"), (3, 4, "X")])
    train = save(tmp_path / "bad.spacy", doc)
    output = text_of(run(config, "--paths.train", train, "--paths.dev", dev))
    nlp = spacy.blank("en")
    nlp.add_pipe("treecrf")
    example = Example(Doc(nlp.vocab, words=[t.text for t in doc]), doc)
    with pytest.warns(UserWarning, match="T102") as caught:
        nlp.initialize(lambda: [example])
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 2
    for message in messages:
        words = message.split("Pipe 'treecrf': ")[1]
        count, problem = words.split(" gold spans (")[0], words.split("'nested' ")[1]
        assert f"'treecrf': {count} gold spans {problem.split(',')[0]}" in output


@pytest.mark.parametrize("crossing", ["reduce", "error"])
def test_debug_data_lists_crossing_gold_whatever_training_does(paths, crossing):
    config, train, dev = paths
    override = ("--components.treecrf.crossing", crossing)
    result = run(config, "--paths.train", train, "--paths.dev", dev, *override)
    assert "1 of 4 gold spans cross another gold span" in text_of(result)


def test_debug_data_counts_partial_annotation_that_is_left_out(paths, tmp_path):
    config, _, dev = paths
    doc = make_doc("a b c", [(0, 1, "X")])
    doc.spans["wrong"] = [Span(doc, 1, 1, label="X"), Span(doc, 1, 2, label="X")]
    doc.spans["open"] = [Span(doc, 2, 2)]
    text = text_of(
        run(
            *(config, "--paths.train", save(tmp_path / "t.spacy", doc)),
            *("--paths.dev", dev, "--components.treecrf.incorrect_spans_key", "wrong"),
            *("--components.treecrf.missing_spans_key", "open"),
        )
    )
    assert "1 of 2 incorrect spans hold no token but white space" in text
    assert "1 of 1 missing regions hold no token" in text


def long_doc(length, starts=None):
    sent_starts = None
    if starts is not None:
        sent_starts = [place in starts for place in range(length)]
    doc = Doc(VOCAB, words=["w"] * length, sent_starts=sent_starts)
    doc.spans["nested"] = [Span(doc, 0, 1, label="X")]
    return doc


TOO_LONG = "Docs of more than 200 tokens have no sentence boundaries and"
WINDOWS = "are cut into windows of at most 512 tokens"


@pytest.mark.parametrize(
    ("length", "message"), [(150, None), (450, TOO_LONG), (513, WINDOWS)]
)
def test_debug_data_says_which_docs_are_too_long_without_a_width_limit(
    paths, tmp_path, length, message
):
    config, _, dev = paths
    train = save(tmp_path / "t.spacy", long_doc(length, None), make_doc("a", []))
    given = ("--paths.train", train, "--paths.dev", dev)
    text = text_of(run(config, *given, "--components.treecrf.max_width", "null"))
    for said in (TOO_LONG, WINDOWS):
        assert (said in text) == (said == message)
    if message:
        assert f"doc 0: {length} tokens" in text


@pytest.mark.parametrize("starts", [None, {0, 20}])
def test_debug_data_finds_no_doc_too_long_under_a_width_limit(tmp_path, starts):
    text = text_of(run(save(tmp_path / "t.spacy", long_doc(600, starts))))
    for said in (TOO_LONG, WINDOWS):
        assert said not in text


def test_debug_data_windows_are_those_of_the_config(paths, tmp_path):
    # In training the boundaries of the file's gold are not those of the pipeline.
    config, _, dev = paths
    train = save(tmp_path / "t.spacy", long_doc(30, {0, 15}), make_doc("a", []))
    given = ("--paths.train", train, "--paths.dev", dev)
    override = ("--components.treecrf.max_length", "20")
    text = text_of(run(config, *given, *override))
    assert "train, in training: 'treecrf': 1 Docs without sentence boundaries" in text
    assert "windows of at most 20 tokens" in text


def test_debug_data_gives_the_share_of_gold_over_the_width_limit(paths, tmp_path):
    config, _, dev = paths
    doc = make_doc(" ".join("abcdefgh"), [(0, 7, "X"), (1, 2, "X"), (3, 4, "X")])
    train = save(tmp_path / "t.spacy", doc, long_doc(450))
    given = ("--paths.train", train, "--paths.dev", dev)
    text = text_of(run(config, *given, "--components.treecrf.max_width", "5"))
    assert "1 of 4 gold spans (25.00%) are wider than max_width = 5" in text
    assert "max_width = 7 would hold all" in text
    # Chains are as fast as sentences.
    assert "have no sentence boundaries and" not in text
    assert "wider than" not in text_of(run(config, *given))


@pytest.mark.parametrize("annotates", [True, False])
def test_debug_data_cuts_where_the_pipeline_sets_sentences(paths, tmp_path, annotates):
    config, _, dev = paths
    text = config.read_text().replace(
        "[components]", '[components]\n\n[components.sents]\nfactory = "sentencizer"'
    )
    text = text.replace("[treecrf]", "[sents, treecrf]")
    if annotates:
        text = text.replace(
            "[training]", '[training]\nannotating_components = ["sents"]'
        )
    config.write_text(text)
    doc = make_doc("He left . Rome . fell", [(3, 4, "GPE"), (3, 6, "X")])
    train = save(tmp_path / "t.spacy", doc)
    result = run(config, "--paths.train", train, "--paths.dev", dev)
    assert result.exit_code == 0, result.output
    assert ("1 of 2 gold spans cross a segment border" in text_of(result)) == annotates


def test_debug_data_says_whose_boundaries_it_cannot_know(paths):
    config, train, dev = paths
    text = config.read_text().replace(
        "[components]", '[components]\n\n[components.senter]\nfactory = "senter"'
    )
    config.write_text(
        text.replace("[training]", '[training]\nannotating_components = ["senter"]')
    )
    result = run(config, "--paths.train", train, "--paths.dev", dev)
    assert result.exit_code == 0, result.output
    assert "'senter' will set sentence boundaries once it has been" in text_of(result)


@pytest.mark.parametrize("factory", ["identifinder", "maxent_ner"])
def test_debug_data_lists_what_flat_pipes_leave_out(paths, factory):
    config, train, dev = paths
    config.write_text(config.read_text().replace('"treecrf"', f'"{factory}"', 2))
    config.write_text(
        config.read_text()
        .replace(f'pipeline = ["{factory}"]', 'pipeline = ["treecrf"]')
        .replace('factory = "treecrf"', f'factory = "{factory}"')
    )
    result = run(config, "--paths.train", train, "--paths.dev", dev)
    text = text_of(result)
    assert "'treecrf': 2 of 4 gold spans lie in, cross or repeat another" in text
    assert "(2, 3, 'GPE') 'China' in document 0" in text


def test_debug_data_reads_entities_where_the_key_is_absent(tmp_path):
    doc = Doc(VOCAB, words=["Ann", "left"], ents=["B-PER", "O"])
    result = run(save(tmp_path / "t.spacy", doc, make_doc("Rome", [(0, 1, "GPE")])))
    assert result.exit_code == 0, result.output
    figures = rows(result.output)
    assert (figures["Spans"], figures["PER"]) == (["2"], ["1"])
    text = text_of(result)
    assert "1 of 2 examples have no span group 'nested': their gold is" in text
    assert "without the span group, and" not in text


def test_debug_data_counts_docs_without_any_annotation(tmp_path):
    bare = Doc(VOCAB, words=["Ann", "left"])
    result = run(save(tmp_path / "t.spacy", bare, make_doc("Rome", [(0, 1, "GPE")])))
    assert "1 documents without the span group, and without entities" in text_of(result)


def test_debug_data_finds_nothing_in_good_data(tmp_path):
    doc = make_doc("Bank of China rose", [(0, 3, "ORG"), (2, 3, "GPE")])
    assert "Nothing found" in run(save(tmp_path / "t.spacy", doc)).output
