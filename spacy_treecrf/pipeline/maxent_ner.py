"""The pipe `maxent_ner`: flat entities from a maximum-entropy tagger with beam search.

Source: Collins (2002), "Ranking Algorithms for Named-Entity Extraction: Boosting and the
Voted Perceptron", section 2. It trains in a minute or two on a CPU, and its hypotheses
are the candidates of `ner_reranker`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training import Example
from spacy.util import logger
from spacy.vocab import Vocab

from spacy_treecrf.maxent.decoding import decode
from spacy_treecrf.maxent.features import WordBatch
from spacy_treecrf.maxent.model import MaxEntModel, tag_entities
from spacy_treecrf.maxent.training import train

from .base.flat_pipe import Columns, FlatPipe
from .base.learned_pipe import Arrays, Header
from .base.settings import check_maxent_settings, warn_of_shared_key
from .docs.flat_gold import FlatCorpus
from .docs.segments import Words

# Written in the mode "segment" if the corpus has several labels and none is set.
SEGMENT_LABEL = "ENTITY"
# Iterations of the estimation between two lines of progress: some seconds.
PROGRESS_EVERY = 10

DEFAULT_CONFIG = {
    "spans_key": "nested",
    "tagging": "typed",
    "segment_label": None,
    "cutoff": 5,
    "l2": 0.1,
    "beam": 20,
    "n_best": 1,
    "lower_case": None,
    "missing_spans_key": None,
    "annotate_ents": True,
    "scorer": {"@scorers": "spacy-treecrf.muc_scorer.v1"},
}


@Language.factory(
    "maxent_ner",
    assigns=["doc.spans", "doc.ents"],
    default_config=DEFAULT_CONFIG,
    default_score_weights={
        "spans_nested_f": 1.0,
        "spans_nested_p": 0.0,
        "spans_nested_r": 0.0,
        "spans_nested_muc_f": 0.0,
        "spans_nested_per_type": None,
    },
)
def make_maxent_ner(
    nlp: Language,
    name: str,
    spans_key: str,
    tagging: str,
    segment_label: str | None,
    cutoff: int,
    l2: float,
    beam: int,
    n_best: int,
    lower_case: list[str] | None,
    missing_spans_key: str | None,
    annotate_ents: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "MaxEntTagger":
    """Build the pipe; see `MaxEntTagger` for the settings."""
    warn_of_shared_key(nlp, name, spans_key)
    return MaxEntTagger(
        nlp.vocab,
        name,
        spans_key=spans_key,
        tagging=tagging,
        segment_label=segment_label,
        cutoff=cutoff,
        l2=l2,
        beam=beam,
        n_best=n_best,
        lower_case=lower_case,
        missing_spans_key=missing_spans_key,
        annotate_ents=annotate_ents,
        scorer=scorer,
    )


class MaxEntTagger(FlatPipe):
    """Flat named entities from a maximum-entropy tagger."""

    # Of prediction; and `cutoff`, `l2`, which steer a further training alone.
    free_settings = frozenset({"beam", "n_best", "annotate_ents", "cutoff", "l2"})

    def __init__(
        self,
        vocab: Vocab,
        name: str = "maxent_ner",
        *,
        spans_key: str = "nested",
        tagging: str = "typed",
        segment_label: str | None = None,
        cutoff: int = 5,
        l2: float = 0.1,
        beam: int = 20,
        n_best: int = 1,
        lower_case: list[str] | None = None,
        missing_spans_key: str | None = None,
        annotate_ents: bool = True,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ):
        """Make an untrained pipe.

        vocab (Vocab): The shared vocabulary.
        name (str): Name of the pipe in its pipeline.
        spans_key (str): Key of the span group to learn from and to write.
        tagging (str): "typed" for tags with labels, or "segment" for the paper's three
            tags S, C and N, which find entities without telling their labels.
        segment_label (Optional[str]): The label that "segment" writes; by default the
            corpus's own if it has one only, else "ENTITY".
        cutoff (int): How often a feature must occur in the corpus.
        l2 (float): Strength of the Gaussian prior of the weights.
        beam (int): Hypotheses that the search keeps at every word.
        n_best (int): Candidates to write a sentence, at most `beam`.
        lower_case (Optional[list[str]]): Words that are often in lower case; by default
            learnt from the corpus.
        missing_spans_key (Optional[str]): Key of regions that are not annotated: their
            words are not learnt from.
        annotate_ents (bool): Whether to write `doc.ents` too.
        scorer (Optional[Callable]): Scores examples.
        RAISES (ValueError): If a setting has no meaning.
        """
        self.vocab = vocab
        self.name = name
        self.scorer = scorer
        self.lower_case = lower_case
        self.cfg = {
            "spans_key": spans_key,
            "tagging": tagging,
            "segment_label": segment_label,
            "cutoff": cutoff,
            "l2": l2,
            "beam": beam,
            "n_best": n_best,
            "missing_spans_key": missing_spans_key,
            "annotate_ents": annotate_ents,
        }
        self._start_settings()
        self._labels: tuple[str, ...] = ()
        self._model: MaxEntModel | None = None

    def _check_ranges(self) -> None:
        check_maxent_settings(self.name, self.cfg)

    def _other_settings(self) -> Header:
        return {"lower_case": self.lower_case}

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): Whether the model has been estimated or loaded."""
        return self._model is not None

    @property
    def maxent_model(self) -> MaxEntModel:
        """RETURNS (MaxEntModel): The estimated model.

        RAISES (ValueError): If there is none yet.
        """
        self._require_initialized()
        assert self._model is not None
        return self._model

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        lower_case: list[str] | None = None,
    ) -> None:
        """Estimate the model from the whole corpus; an earlier model is replaced.

        get_examples (Callable[[], Iterable[Example]]): The corpus, read once. Gold is
            `doc.spans[spans_key]` where the key exists, else `doc.ents`.
        nlp (Optional[Language]): The pipeline.
        lower_case (Optional[list[str]]): As in the constructor, which it replaces; here
            it may come from a file. It is saved with the model.
        RAISES (ValueError): If there is no entity in the corpus, or only a sample of it.
        """
        self._start_learning(nlp)
        if lower_case is not None:
            self.lower_case = lower_case
        corpus = self._read_corpus(get_examples, nlp)
        labels, numbers = self._tagged_labels(corpus)
        self._set_labels(labels)
        self._model = train(
            _batch(corpus.sentences),
            tag_entities(len(corpus.sentences), corpus.start, corpus.end, numbers),
            len(labels),
            cutoff=self.cfg["cutoff"],
            l2=self.cfg["l2"],
            lower_case=self.lower_case,
            progress=self._report,
            known=corpus.known,
        )
        self._fix_settings()
        n_features = len(self._model.weights)
        logger.info("%s: learnt the weights of %d features", self.name, n_features)

    def _tagged_labels(self, corpus: FlatCorpus) -> tuple[tuple[str, ...], np.ndarray]:
        """The labels of the tags, and the number of each gold entity's."""
        if self.cfg["tagging"] == "typed":
            return corpus.label_names, corpus.labels
        label = self.cfg["segment_label"]
        if label is None:
            only = len(corpus.label_names) == 1
            label = corpus.label_names[0] if only else SEGMENT_LABEL
        return (label,), np.zeros_like(corpus.labels)

    def _report(self, iteration: int, loss: float) -> None:
        if iteration % PROGRESS_EVERY == 0:
            logger.info(
                "%s: iteration %d, %.6f nats a word", self.name, iteration, loss
            )

    def _decode(self, words: Words) -> Columns:
        beam, n_best = self.cfg["beam"], self.cfg["n_best"]
        return decode(self.maxent_model, _batch(words), beam, n_best)

    def _to_arrays(self) -> tuple[Header, Arrays]:
        header, arrays = self.maxent_model.to_arrays()
        return {**header, "labels": list(self._labels)}, arrays

    def _from_arrays(self, header: Header, arrays: Arrays) -> None:
        self._model = MaxEntModel.from_arrays(header, arrays)
        self._set_labels(header["labels"])


def _batch(words: Words) -> WordBatch:
    types, numbers = words.types()
    return WordBatch(types, numbers, words.lengths)
