"""The pipe `identifinder`: flat entities from a name-class hidden Markov model.

Source: Bikel, Schwartz & Weischedel (1999), "An Algorithm that Learns What's in a
Name". It trains in seconds, needs no GPU, and stands in for `treecrf` or spaCy's `ner`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab

from spacy_treecrf.hmm.decoding import decode
from spacy_treecrf.hmm.learning import learn
from spacy_treecrf.hmm.model import NameClassModel, Settings
from spacy_treecrf.hmm.tokens import TokenBatch
from spacy_treecrf.hmm.word_features import (
    WordFeatures,
    make_word_features,
    with_acronyms,
)
from spacy_treecrf.hmm.word_lists import WordLists

from .base.flat_pipe import Columns, FlatPipe
from .base.learned_pipe import Arrays, Header
from .base.settings import check_flat_settings, warn_of_shared_key
from .docs.flat_gold import label_words
from .docs.segments import Words

DEFAULT_CONFIG = {
    "spans_key": "nested",
    "punctuation_context": True,
    "product_level": False,
    "unknown": "split",
    "acronym_periods": False,
    "features": {
        "@misc": "spacy-treecrf.identifinder_features.v1",
        "feature_set": "fourteen",
    },
    "lists": None,
    "n_best": 1,
    "missing_spans_key": None,
    "annotate_ents": True,
    "scorer": {"@scorers": "spacy-treecrf.muc_scorer.v1"},
}


@registry.misc("spacy-treecrf.identifinder_features.v1")
def make_identifinder_features(feature_set: str = "fourteen") -> WordFeatures:
    """The word features of the paper.

    feature_set (str): "fourteen" (Table 3.1), or "five" (the ablation of section 5.3).
    RETURNS (WordFeatures): From a token, and "is it the first of its sentence", to a
        position in its `names`.
    """
    return make_word_features(feature_set)


@Language.factory(
    "identifinder",
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
def make_identifinder(
    nlp: Language,
    name: str,
    spans_key: str,
    punctuation_context: bool,
    product_level: bool,
    unknown: str,
    acronym_periods: bool,
    features: Callable[[str, bool], int],
    lists: dict[str, list[str]] | None,
    n_best: int,
    missing_spans_key: str | None,
    annotate_ents: bool,
    scorer: Callable[..., dict[str, Any]] | None,
) -> "IdentiFinder":
    """Build the pipe; see `IdentiFinder` for the settings."""
    warn_of_shared_key(nlp, name, spans_key)
    return IdentiFinder(
        nlp.vocab,
        name,
        spans_key=spans_key,
        punctuation_context=punctuation_context,
        product_level=product_level,
        unknown=unknown,
        acronym_periods=acronym_periods,
        features=features,
        lists=lists,
        n_best=n_best,
        missing_spans_key=missing_spans_key,
        annotate_ents=annotate_ents,
        scorer=scorer,
    )


class IdentiFinder(FlatPipe):
    """Flat named entities from a hidden Markov model of name classes."""

    free_settings = frozenset({"n_best", "annotate_ents"})

    def __init__(
        self,
        vocab: Vocab,
        name: str = "identifinder",
        *,
        spans_key: str = "nested",
        punctuation_context: bool = True,
        product_level: bool = False,
        unknown: str = "split",
        acronym_periods: bool = False,
        features: Callable[[str, bool], int] | None = None,
        lists: dict[str, list[str]] | None = None,
        n_best: int = 1,
        missing_spans_key: str | None = None,
        annotate_ents: bool = True,
        scorer: Callable[..., dict[str, Any]] | None = None,
    ):
        """Make an untrained pipe.

        vocab (Vocab): The shared vocabulary.
        name (str): Name of the pipe in its pipeline.
        spans_key (str): Key of the span group to learn from and to write.
        punctuation_context (bool): Whether the choice of a name class behind a
            punctuation mark looks at the word before the mark too (section 6.2).
        product_level (bool): Whether Pr(w | NC) Pr(f | NC) has weight in the back-off.
        unknown (str): "split" for an unknown-word model of its own, as printed, or
            "merged" for one model with the relabelled events added.
        acronym_periods (bool): Whether "U.S." has the feature of "M.".
        features (Optional[Callable]): The word features; by default the fourteen.
        lists (Optional[dict[str, list[str]]]): Named lists of words and phrases, whose
            members have features of their own (note 2 of the paper).
        n_best (int): Candidates to write a sentence.
        missing_spans_key (Optional[str]): Key of regions that are not annotated: their
            words are in no count.
        annotate_ents (bool): Whether to write `doc.ents` too.
        scorer (Optional[Callable]): Scores examples.
        RAISES (ValueError): If a setting has no meaning.
        """
        features = make_word_features() if features is None else features
        if not isinstance(features, WordFeatures):
            raise ValueError(
                "expected a registered function that returns WordFeatures as features "
                f"of '{name}', received {type(features).__name__}"
            )
        self.vocab = vocab
        self.name = name
        self.scorer = scorer
        self.features = with_acronyms(features) if acronym_periods else features
        self.lists = WordLists(lists) if lists else None
        self.cfg = {
            "spans_key": spans_key,
            "punctuation_context": punctuation_context,
            "product_level": product_level,
            "unknown": unknown,
            "acronym_periods": acronym_periods,
            "n_best": n_best,
            "missing_spans_key": missing_spans_key,
            "annotate_ents": annotate_ents,
        }
        self._start_settings()
        self._labels: tuple[str, ...] = ()
        self._model: NameClassModel | None = None

    def _check_ranges(self) -> None:
        check_flat_settings(self.name, self.cfg)
        self._settings(2)  # refuses a wrong setting now, not after reading a corpus

    def _other_settings(self) -> Header:
        return {
            "features": list(self.features.names),
            "lists": self.lists.to_dict() if self.lists else None,
        }

    def _settings(self, n_classes: int) -> Settings:
        return Settings(
            n_classes,
            unknown=self.cfg["unknown"],
            product_level=self.cfg["product_level"],
            punctuation_context=self.cfg["punctuation_context"],
        )

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): Whether the model has been counted or loaded."""
        return self._model is not None

    @property
    def name_class_model(self) -> NameClassModel:
        """RETURNS (NameClassModel): The counted model.

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
        lists: dict[str, list[str]] | None = None,
    ) -> None:
        """Count the model from the whole corpus; an earlier model is replaced.

        get_examples (Callable[[], Iterable[Example]]): The corpus, read once. Gold is
            `doc.spans[spans_key]` where the key exists, else `doc.ents`.
        nlp (Optional[Language]): The pipeline.
        lists (Optional[dict[str, list[str]]]): As in the constructor, which they
            replace; here they may come from a file and are saved with the model.
        RAISES (ValueError): If there is no entity in the corpus, or only a sample of it.
        """
        self._start_learning(nlp)
        if lists is not None:
            self.lists = WordLists(lists)
        corpus = self._read_corpus(get_examples, nlp)
        self._set_labels(corpus.label_names)
        name_classes, begins = label_words(corpus)
        self._model = learn(
            _batch(corpus.sentences),
            name_classes,
            begins,
            second_half(corpus.sentences.docs),
            self._settings(len(self._labels) + 1),
            self.features,
            self.lists,
            corpus.known,
        )
        self._fix_settings()

    def _decode(self, words: Words) -> Columns:
        found = decode(self.name_class_model, _batch(words), self.cfg["n_best"])
        rank, start, end, name_class, score, log_prob = found
        return rank, start, end, name_class - 1, score, log_prob

    def _to_arrays(self) -> tuple[Header, Arrays]:
        header, arrays = self.name_class_model.to_arrays()
        return {**header, "labels": list(self._labels)}, arrays

    def _from_arrays(self, header: Header, arrays: Arrays) -> None:
        model = NameClassModel.from_arrays(header, arrays, self.features)
        self._model, self.lists = model, model.lists
        self._set_labels(header["labels"])


def _batch(words: Words) -> TokenBatch:
    types, token_types = words.types()
    return TokenBatch(types, token_types, words.lengths)


def second_half(docs: np.ndarray) -> np.ndarray:
    """Which sentences are in the second half of the hold-out for unknown words.

    docs (np.ndarray): The Doc of each sentence, ascending. Shape: (S,).
    RETURNS (np.ndarray): True from the Doc border on that lies nearest to half of the
        sentences; a single Doc is cut between its sentences. Shape: (S,).

    Source: Bikel et al. 1999, section 3.2.3; the halves are whole documents (A-11), as
    otherwise a document's own words would count as known in both.
    """
    half = len(docs) / 2
    borders = np.flatnonzero(np.diff(docs)) + 1
    cut = int(half) if not len(borders) else borders[np.abs(borders - half).argmin()]
    return np.arange(len(docs)) >= cut
