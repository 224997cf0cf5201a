"""Coded errors and warnings that data or a config can cause, with the way out.

Codes start with T, so that they cannot be taken for spaCy's own E and W codes.
Contract errors (a caller's wrong argument) are inline where they are raised. One file for
all, longer than others, so that no code is given twice.
"""


class Errors:
    """Messages of exceptions; each is a `str.format` template."""

    T001 = (
        "[T001] Pipe '{name}' finds no spans under the key '{key}' in its training data "
        "({n_docs} examples read), and no entities in `doc.ents` where that key is "
        "missing. Keys that are there: {keys}. Set `spans_key` to one of "
        "them, or convert the data with `python -m spacy treecrf convert ... --spans-key "
        "{key}`. Note that `gold_preproc = true` and `max_length > 0` of "
        "`spacy.Corpus.v1` drop span groups: leave them at false and 0."
    )
    T002 = (
        "[T002] Setting '{setting}' of pipe '{name}' is {value!r}: expected {expected}."
    )
    T003 = (
        "[T003] Span {span} {text!r} under the key '{key}' crosses another one, which no "
        "tree can hold, in the Doc that starts {doc!r}. Correct it, or set "
        '`crossing = "reduce"` to train on the largest set without crossing.'
    )
    T004 = (
        "[T004] Label {label!r}, in the Doc that starts {doc!r}, is none of the labels "
        "of pipe '{name}': {labels}. Labels are fixed at initialisation: initialise with "
        "data, or a labels file, that has them all."
    )
    T005 = (
        "[T005] The loss of pipe '{name}' is {loss}. Documents of the batch: {docs}. "
        "Lower the learning rate, or set `grad_clip`; if it happens in the first steps, "
        "look at these documents and at the encoder's output."
    )
    T007 = (
        "[T007] Pipe '{name}' computes potentials that are not finite, so that no entity "
        "can be told, for the documents {docs}. In training the weights have diverged: "
        "lower the learning rate, or set `grad_clip`. Otherwise look at the encoder's "
        "output for these documents."
    )
    T008 = (
        "[T008] Setting '{setting}' of pipe '{name}' is {configured!r} in the config, but "
        "its model was trained with {saved!r}, and means nothing with another value. "
        "Set it to {saved!r}, leave the override out, or train anew."
    )
    T009 = (
        "[T009] Setting '{setting}' of pipe '{name}' was changed to {now!r}, but its model "
        "was trained with {learnt!r}, and means nothing with another value. Set it back, "
        "or change it in the config and train anew."
    )
    T010 = (
        "[T010] Pipe '{name}' listens to the encoder '{upstream}', which has given no "
        "output for the Doc that starts {doc!r}: it is not in the pipeline, comes after "
        "'{name}', or is disabled. Put the encoder that '{name}' was trained with before "
        'it, e.g. `nlp.add_pipe("tok2vec", source=trained)`, or give the pipe a copy of '
        'its own: `trained.replace_listeners("tok2vec", "{name}", '
        '["model.tok2vec"])` before it is sourced.'
    )
    T011 = (
        "[T011] Pipe '{name}' has {labels} labels, latent ones included, but its weights "
        "are of {width}. Labels are fixed at initialisation: call `nlp.initialize` with "
        "data that has them all, or load the trained pipeline again."
    )

    T012 = (
        "[T012] Pipe '{name}' can't start from the weights of {path}: {reason}. "
        "`warm_start` names a trained pipeline with a `treecrf` pipe of the same encoder "
        "and span_scorer; its labels may differ."
    )

    T013 = (
        "[T013] The saved weights of pipe '{name}' are not of the model that the config "
        "describes in [components.{name}.model]: {reason}. Leave overrides of its encoder "
        "out, or train anew."
    )
    T014 = (
        "[T014] Pipe '{name}': the Doc that starts {doc!r} has a segment of more than "
        "max_width = {width} tokens, and torch-struct has no chains of trees. Set "
        '`max_width = null`, or `inference = "fused"`.'
    )

    T040 = "[T040] Can't read {path}: {reason}."
    T041 = (
        "[T041] {where}: not UTF-8 ({reason}). Convert the file first, e.g. with "
        "`iconv -f LATIN1 -t UTF-8`."
    )
    T042 = (
        "[T042] {where}: {reason}. A token needs text, and a span a label and at least "
        "one token of its sentence, with the end offset exclusive."
    )
    T043 = "[T043] {where}: not JSON: {reason}. The format is one object a line."
    T044 = "[T044] {where}: {reason}."
    T045 = (
        "[T045] spaCy has no language '{lang}': use a code of https://spacy.io/usage/"
        "models#languages, or xx, which splits at white space and punctuation."
    )
    T046 = "[T046] {path} holds no file that ends in {suffixes}."
    T047 = (
        "[T047] {path} is a file, and neither a folder nor named .spacy: write to "
        "FILE.spacy for one file, or to a folder for one file for each input."
    )
    T048 = (
        "[T048] {first} and {second} would both be written to {target}: convert them "
        "apart, or into one FILE.spacy."
    )
    T049 = "[T049] {path} holds no sentence: empty, or not of this format."
    T050 = (
        "[T050] {misaligned} of {n_gold} spans do not begin and end at token "
        "borders, more than --max-misaligned {limit} allows. If all are shifted, the "
        "offsets were counted from another start; if those behind accents or emoji, try "
        "--offsets utf-16 or bytes; if some, the --lang "
        "whose tokenizer fits, --alignment-mode expand, or give the tokens."
    )
    T052 = (
        "[T052] {where}: expected {expected} in this line of a block of {stride} "
        "lines, received {line!r}. Blocks are tokens, part-of-speech tags (in all "
        "blocks or in none), spans (may be empty) and a blank line."
    )
    T053 = (
        "[T053] {where}: no annotation of brat: {line!r}. An entity is 'T1, tab, LABEL "
        "START END, tab, TEXT'."
    )
    T054 = (
        "[T054] {path} names {name}, which is not in the input: give the folder that "
        "holds it as IN."
    )
    T055 = (
        "[T055] {path} is no .spacy file: {reason}. Make one with `python -m spacy "
        "treecrf convert`."
    )
    T056 = (
        "[T056] Can't read the corpora of {path}: {reason} Give their paths, e.g. "
        "`--paths.train TRAIN.spacy --paths.dev DEV.spacy`."
    )
    T058 = (
        "[T058] Expected a config (.cfg) with overrides, or one or two .spacy files or "
        "folders, train first; received {received}."
    )
    T057 = (
        "[T057] No spans under '{key}' in the {n_docs} training documents. Keys that are "
        "there: {keys}. Set --spans-key, or convert the data with `--spans-key {key}`. "
        "`gold_preproc = true` and `max_length > 0` of `spacy.Corpus.v1` drop all span "
        "groups: leave them at false and 0."
    )

    T070 = (
        "[T070] No usable entity in the training data of '{name}': the {n_docs} documents "
        "have none under `doc.spans['{key}']`, and `doc.ents` is empty where that key is "
        "missing. Keys found: {keys}. Set `spans_key` to one of them, or convert the data "
        "with `python -m spacy treecrf convert ... --spans-key {key}`. Note that "
        "`gold_preproc = true` and `max_length > 0` of `spacy.Corpus.v1` drop span groups."
    )
    T071 = (
        "[T071] '{name}' counts the whole corpus in `initialize`, but with `max_epochs = "
        "-1` in [training] spaCy passes the first 100 examples only. Set `max_epochs = 0` "
        "or `max_epochs = 1`."
    )
    T072 = (
        "[T072] '{name}' has not learnt anything yet. Call `nlp.initialize(lambda: "
        "examples)`, run `python -m spacy train`, or load a trained pipeline."
    )
    T073 = (
        "[T073] Can't read the model of '{name}' from {where}: {reason}. Save it again "
        "with `nlp.to_disk` of the version that trained it."
    )
    T083 = (
        "[T083] No conventions for speech in the language '{lang}'. Known: {known}. Add "
        "the language to `spacy_treecrf.speech.LANGUAGES`."
    )
    T084 = (
        "[T084] SNOR needs the package num2words to read numbers: install it with "
        "`pip install spacy-treecrf[snor]`."
    )
    T086 = (
        "[T086] No candidate under '{key}' has a label of the gold spans, so that none is "
        "ever right. Labels of the candidates: {candidates}; of gold: {gold}. If the base "
        'pipe finds segments alone (`tagging = "segment"`), give gold its one label too.'
    )
    T090 = (
        "[T090] Candidates under '{key}' in the Doc that starts {doc!r} are not of the "
        "form that base pipes write: {problem}. Candidate groups need attrs['segments'], "
        "half-open token offsets, and attrs['log_prob'], one a segment; keep pipes that "
        "change tokens or sentences out from between the base pipe and this one. "
        "`Doc.from_docs` and `Doc.to_json` drop these attributes: merge Docs before the "
        "base pipe, and store them with `DocBin` or `Doc.to_bytes`."
    )
    T091 = (
        "[T091] Pipe '{name}' finds no candidates '{key}:0', '{key}:1' ... in its "
        "{n_docs} training Docs. Keys that are there: {keys}. Make the data with `python "
        "-m spacy treecrf jackknife CONFIG OUT.spacy`, and set `candidates_key` to the "
        "`spans_key` of the base pipe."
    )
    T092 = (
        "[T092] {n_documents} documents cannot be cut into {folds} folds: a fold needs one "
        "document at least, and a Doc is never cut. Set --folds lower, or convert the "
        "corpus without `--merge-docs`."
    )
    T093 = (
        "[T093] Expected one trained pipe that writes candidates (has the setting "
        "`n_best`) in {path}, found {pipes}. Name one of several with --pipe; if there is "
        "none, give the config of `identifinder`, `maxent_ner` or `treecrf`."
    )
    T094 = (
        "[T094] Failed: {failed}. The last lines of each are above, all of it in the files "
        "named. The folds that are done are kept: run the same command again when the "
        "cause is mended."
    )
    T099 = (
        "[T099] The development data of '{name}' ({n_docs} Docs) have no candidates under "
        "'{key}:0', '{key}:1' ..., and no pipe before '{name}' writes them. Put the "
        "trained base pipe before it, with `n_best` above 1, or leave out `development`."
    )
    T110 = (
        "[T110] {path} is missing. Fetch the original files with `python -m spacy "
        "project assets --extra` in the folder of project.yml, or set the environment "
        "variable {variable} to a folder with a local copy, NAME/SPLIT.jsonl.gz."
    )
    T111 = (
        "[T111] {path} is missing, in the local copy that {variable} names. Put it there, "
        "or unset the variable to read the original files in {assets}."
    )
    T112 = (
        "[T112] {path}: {reason}. Delete it and fetch it again with `python -m spacy "
        "project assets --extra`."
    )
    T113 = (
        "[T113] No corpus '{name}'. Known: {known}. For any other one see `python -m spacy "
        "treecrf convert --help`."
    )
    T114 = (
        "[T114] Can't load the pipeline {model}: {reason} Give the folder that `spacy "
        "train` wrote, e.g. training/model-best, or the name of an installed package."
    )
    T115 = (
        "[T115] No pipe of this pipeline writes spans under '{key}'. Keys that are there: "
        "{keys}. Set --spans-key."
    )
    T116 = (
        "[T116] {path} holds no scores: {reason}. Make it with `python -m spacy evaluate "
        "MODEL DATA --output {path}`."
    )
    T117 = (
        "[T117] {path} has no scores of spans under '{key}'. Scores that are there: "
        "{keys}. Set --spans-key."
    )
    T161 = (
        "[T161] The options do not fit `--metric {metric}`. `f` stands alone; `precision` "
        "needs the least recall, `--at-recall`, and `recall` the least precision, "
        "`--at-precision`: without a bound the best threshold would be an extreme one."
    )
    T162 = (
        "[T162] {output} is the pipeline itself. Name another folder: the copy with the "
        "new settings does not replace it."
    )
    T163 = (
        "[T163] Expected one pipe{wanted} with a threshold for spans (`treecrf` or "
        "`spancat`), found {found}. Pipes of this pipeline: {pipes}. Name one with --pipe."
    )
    T164 = (
        "[T164] The scorer of pipe '{name}' gives no scores spans_{key}_p, _r and _f on "
        "{path}: check that its Docs have gold under '{key}', and the pipe a scorer."
    )
    T165 = (
        "[T165] No decoder and threshold has a {figure} of {bound} on these data: the "
        "highest is {most:.4f}. Ask for less, or try more thresholds with --step."
    )

    T120 = (
        "[T120] {detail} ({kind}). Refused by --strict: mend the file, or convert without "
        "--strict, which counts such places and goes on."
    )
    T121 = (
        "[T121] {lost} of {total} sentences of {path} can't be read as '{format}': is it "
        "of another format? The first places are named above."
    )
    T122 = (
        "[T122] {path}: column {column} holds no IOB tags but {values}. Name the columns "
        "of the tags: {advice}."
    )
    T123 = (
        "[T123] spaCy can't make its tokenizer for '{lang}': {reason} Install what it "
        "needs, or use --lang xx, which splits at white space and punctuation."
    )
    T124 = "[T124] --split {split}: {reason}."
    T125 = "[T125] {path}: {reason}. Layouts that are read: {layouts}."
    T126 = (
        "[T126] {path} has no span group '{key}'. Keys that are there: {keys}. Set "
        "--spans-key, or --model to predict the spans."
    )
    T127 = "[T127] Can't write {path}: {reason}."


class Warnings:
    """Messages of warnings; each is a `str.format` template."""

    T060 = (
        "[T060] {count} of {total} spans do not begin and end at token borders. Correct "
        "their offsets, or set `alignment_mode` to 'expand' or 'contract'.\n{details}"
    )

    T130 = (
        "[T130] {n_fit} of {total} spans fit the text if offsets count {unit}, but "
        "{n_read} as {read}, as they were read. Try --offsets {unit}."
    )
    T131 = (
        "[T131] {count} spans stand behind characters that JavaScript counts as two, and "
        "fit the text either way. They were read as code-points: if a tool in JavaScript "
        "wrote the file, use --offsets utf-16."
    )

    T101 = (
        "[T101] No score of key '{key}': none of the {n_docs} Docs scored has that span "
        "group, or entities in `doc.ents` in its place. Keys that are there: {keys}. Check "
        "`spans_key`, and that the evaluation corpus was converted with it."
    )
    T102 = (
        "[T102] Pipe '{name}': {count} of {total} {what} ({share:.1%}) under the key "
        "'{key}' {problem}, for example {example}. {evaluation}"
        "List them all with `python -m spacy treecrf debug-data`."
    )
    T103 = (
        "[T103] No weight in [training.score_weights] is for a score of pipe '{name}', "
        "which are named spans_{key}_f and so on: its score will not choose the best "
        "model. Set spans_{key}_f = 1.0 there."
    )
    T104 = (
        "[T104] Pipe '{name}' cut {count} Docs without sentence boundaries, or with longer "
        "sentences, into windows of at most {max_length} tokens, the first one the Doc "
        "that starts {doc!r}; no entity can cross a cut. Set sentence boundaries "
        "with a pipe before this one (in training it must be in `annotating_components`), "
        "or raise `max_length`: under a width limit (`max_width`) it costs no more a token."
    )
    T105 = (
        "[T105] Pipe '{name}': {count} of {total} training examples have no span group "
        "'{key}', nor entities in `doc.ents`, and are learnt from as if they had no "
        "entity. Keys that are there: "
        "{keys}. `gold_preproc = true` and `max_length > 0` of `spacy.Corpus.v1` drop "
        "span groups: leave them at false and 0."
    )
    T145 = (
        "[T145] Pipe '{name}': {count} of {total} examples have no span group '{key}': "
        "their gold is what `doc.ents` holds, {entities} entities, of which none is "
        "nested. Give them the group, an empty one too, if `doc.ents` is not meant."
    )
    T146 = (
        "[T146] Pipe '{name}': {count} of {total} {what} Docs have no gold, neither spans "
        "under '{key}' nor entities in `doc.ents`: nothing is learnt from their "
        "candidates. The first one starts {doc!r}."
    )
    T147 = (
        "[T147] {count} missing regions or incorrect spans hold no token, or do not fit "
        "the tokens that the pipeline makes, and are left out. The first is {first}."
    )
    T148 = (
        "[T148] {count} Docs have neither spans under '{key}' nor entities in `doc.ents`. "
        "Their candidates are written, but are neither right nor wrong."
    )
    T149 = (
        "[T149] {name}: {count} regions under '{key}' hold no token and are left out. The "
        "first is {first}."
    )
    T106 = (
        "[T106] Pipe '{name}': structure smoothing without potential normalisation is "
        "known not to converge (Fu et al. 2021): set `potential_normalization = true`, or "
        "`structure_smoothing = 0`."
    )

    T107 = (
        "[T107] Pipes '{name}' and '{other}' both write `doc.spans['{key}']`: the later "
        "one replaces what the earlier one has found. Give one another `spans_key`."
    )

    T095 = (
        "[T095] Pipe '{name}': {count} Docs have no candidates '{key}:0', '{key}:1' ..., "
        "the first one the Doc that starts {doc!r}. They keep the spans that they have. "
        "Put a base pipe with `n_best` above 1 and the spans key '{key}' before this one."
    )
    T096 = (
        "[T096] Pipe '{name}' has learnt nothing about the labels {labels} of the "
        "candidates, and chooses among these by what it knows of their other spans, the "
        "words and the base pipe's probability. Train both on the same labels."
    )
    T097 = (
        "[T097] {count} of {total} gold spans under '{key}' do not fit the tokens that the "
        "pipeline makes and are left out, though missed. The first is {first}. Convert "
        "the corpus so that it keeps its own tokens (without `--keep-spaces`)."
    )
    T098 = (
        "[T098] Pipe '{name}': {count} of {total} {what} Docs have no candidates "
        "'{key}:0', '{key}:1' ... and are left out, the first one the Doc that starts "
        "{doc!r}."
    )
    T160 = (
        "[T160] Pipe '{name}': training may take {steps} steps (`max_steps` of "
        "[training]), but the learning rate falls to 0 at step {last} (`total_steps` of "
        "[training.optimizer.learn_rate]): nothing would be learnt after it. Set "
        "`total_steps`, which `max_steps` follows in the configs of this package."
    )
    T080 = (
        "[T080] {name}: {count} of {total} gold spans ({share:.1%}) under '{key}' "
        "{problem}. The first is {first}."
    )
    T081 = (
        "[T081] {name}: {count} of {total} training documents have neither spans under "
        "'{key}' nor entities annotated in `doc.ents`, and are learnt from as if they had "
        "no names. Keys that are there: {keys}."
    )
    T082 = (
        "[T082] The `elements` of the MUC scorer lack the labels {labels}, which count as "
        "{element}. Add them to `elements`."
    )
    T085 = (
        "[T085] Nothing is spoken of the gold span {span} in {text!r}: it is left out. "
        "Further ones are only counted, in `n_lost` of the augmenter."
    )
