"""The factory `treecrf`: nested entities as nodes of a partially observed tree."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from spacy.errors import Errors as SpacyErrors
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import minibatch
from spacy.vocab import Vocab
from thinc.api import Config, Model, Optimizer, set_dropout_rate

from spacy_treecrf.errors import Errors, Warnings
from spacy_treecrf.labels import LabelData, LabelSet
from spacy_treecrf.problems import Problems, start_of

from .base.configured_pipe import ConfiguredPipe
from .base.encoders import check_encoder_output, share_encoders
from .base.settings import (
    check_schedule,
    check_score_weights,
    check_settings,
    longest_segment,
    loss_settings,
    warn_of_shared_key,
    warn_of_smoothing,
)
from .base.warm_start import start_from
from .docs.analyses import Analyses, write
from .docs.label_prior import LabelPrior
from .docs.predictions import analyses_of, check_labels, finite_potentials
from .docs.segments import DocSegments, doc_texts

if TYPE_CHECKING:
    from spacy_treecrf.ml.types import SpanPotentials

    from .docs.tree_gold import GoldReader
    from .docs.tree_gold_report import GoldReport

DEFAULT_MODEL = """
[model]
@architectures = "spacy-treecrf.TreeCRF.v1"

[model.tok2vec]
@architectures = "spacy.HashEmbedCNN.v2"
pretrained_vectors = null
width = 96
depth = 4
embed_size = 2000
window_size = 1
maxout_pieces = 3
subword_features = true

[model.span_scorer]
@architectures = "spacy-treecrf.BiaffineSpanScorer.v1"
hidden_width = null
depth = 2
dropout = 0.2
separate_views = true
activation = "relu"
"""

# Examples whose gold is checked at a time in initialisation.
CHECKED_AT_A_TIME = 256
# Docs that the widths are inferred from, as in spaCy's own pipes.
SAMPLE_SIZE = 10

# Settings that shape neither the weights nor what they mean: those of prediction, and
# those of further training.
FREE_SETTINGS = frozenset(
    {
        "initial_bias",
        "structure_smoothing",
        "smoothing_scope",
        "softmax_margin",
        "decoder",
        "threshold",
        "n_best",
        "entropy",
        "missing_spans_key",
        "incorrect_spans_key",
        "crossing",
        "max_length",
        "max_width",
        "annotate_ents",
        "inference",
    }
)

Objective = Literal["treecrf", "local"]
Decoder = Literal["cky", "mbr"]


@Language.factory(
    "treecrf",
    assigns=["doc.spans"],
    default_config={
        "model": Config().from_str(DEFAULT_MODEL)["model"],
        "spans_key": "nested",
        "latent_labels": 1,
        "initial_bias": "prior",
        "objective": "treecrf",
        "potential_normalization": False,
        "temperature": "learned",
        "structure_smoothing": 0.0,
        "smoothing_scope": "all",
        "softmax_margin": 1.0,
        "decoder": "cky",
        "threshold": None,
        "n_best": 1,
        "entropy": False,
        "missing_spans_key": None,
        "incorrect_spans_key": None,
        "crossing": "reduce",
        "max_length": None,
        "max_width": 48,
        "annotate_ents": False,
        "inference": "fused",
        "scorer": {"@scorers": "spacy-treecrf.nested_scorer.v1"},
    },
    default_score_weights={
        "spans_nested_f": 1.0,
        "spans_nested_p": 0.0,
        "spans_nested_r": 0.0,
        "spans_nested_inner_f": None,
        "spans_nested_outer_f": None,
        "spans_nested_unlabelled_f": None,
        "spans_nested_per_type": None,
    },
)
def make_treecrf(
    nlp: Language,
    name: str,
    model: Model[Any, Any],
    spans_key: str,
    latent_labels: int,
    initial_bias: Literal["prior", "zero"],
    objective: Objective,
    potential_normalization: bool,
    temperature: float | Literal["learned"],
    structure_smoothing: float,
    smoothing_scope: Literal["all", "rejected"],
    softmax_margin: float,
    decoder: Decoder,
    threshold: float | None,
    n_best: int,
    entropy: bool,
    missing_spans_key: str | None,
    incorrect_spans_key: str | None,
    crossing: Literal["reduce", "error"],
    max_length: int | None,
    max_width: int | None,
    annotate_ents: bool,
    inference: Literal["fused", "torch_struct"],
    scorer: Callable[..., dict[str, Any]] | None,
) -> "TreeCRF":
    """Create a `treecrf` pipe. The settings are described in docs/api/treecrf.md.

    RAISES (ValueError): If a setting is out of its range.
    """
    # All other arguments are settings of the same name.
    settings = {
        key: value
        for key, value in locals().items()
        if key not in ("nlp", "name", "model", "scorer")
    }
    share_encoders(nlp, model)
    warn_of_shared_key(nlp, name, spans_key)
    return TreeCRF(nlp.vocab, model, name, scorer=scorer, **settings)


class TreeCRF(ConfiguredPipe):
    """Pipe that finds nested entities with a Tree CRF (Fu et al. 2021)."""

    free_settings = FREE_SETTINGS
    # Models that do not say them were trained without a width limit, in windows of 512.
    earlier_settings: ClassVar[dict[str, tuple[Any, Any]]] = {
        "max_width": (48, None),
        "max_length": (None, 512),
    }

    def __init__(
        self,
        vocab: Vocab,
        model: Model[Any, Any],
        name: str = "treecrf",
        *,
        scorer: Callable[..., dict[str, Any]] | None = None,
        **settings: Any,
    ) -> None:
        """vocab (Vocab): The shared vocabulary.
        model (Model): From Docs and segments to potentials, `spacy-treecrf.TreeCRF.v1`.
        name (str): Name of the pipe.
        scorer (Callable): Scoring method; it gets the settings.
        settings (Any): As in the factory.
        RAISES (ValueError): If a setting is out of its range.
        """
        defaults = Language.get_factory_meta("treecrf").default_config or {}
        known = {k: v for k, v in defaults.items() if k not in ("model", "scorer")}
        if unknown := sorted(set(settings) - set(known)):
            raise ValueError(
                f"expected settings among {sorted(known)}, received {unknown}"
            )
        self.vocab = vocab
        self.model = model
        self.name = name
        self.scorer = scorer
        self.cfg: dict[str, Any] = {"labels": [], **known, **settings}
        self._start_settings()
        warn_of_smoothing(name, self.cfg)
        # Labels that `add_label` has given, which an initialisation keeps.
        self._added: list[str] = []
        self._report: GoldReport | None = None
        self._problems = Problems(n_named=1)

    @property
    def key(self) -> str:
        """Key of `doc.spans` that gold is read from and spans are written to."""
        return str(self.cfg["spans_key"])

    @property
    def label_set(self) -> LabelSet:
        """Plain labels and the combinations of them that a span may carry."""
        return LabelSet(self.cfg["labels"])

    @property
    def n_labels(self) -> int:
        """Number of the labels, latent ones (or the null of "local") included."""
        local = self.cfg["objective"] == "local"
        return len(self.label_set) + (1 if local else int(self.cfg["latent_labels"]))

    @property
    def labels(self) -> tuple[str, ...]:
        """The plain labels."""
        return tuple(entry for entry in self.cfg["labels"] if isinstance(entry, str))

    @property
    def label_data(self) -> list[LabelData]:
        """What `spacy init labels` saves: labels, then lists of combined labels."""
        return list(self.cfg["labels"])

    def add_label(self, label: str) -> int:
        """Add a label before initialisation.

        label (str): The label.
        RETURNS (int): 0 if it is there already, else 1.
        RAISES (ValueError): If it is no string, or the model has its labels already.
        """
        if not isinstance(label, str):
            raise ValueError(SpacyErrors.E187)
        if label in self.labels:
            return 0
        self._allow_extra_label()
        self._add_labels([[label]])
        self._added.append(label)
        return 1

    def _allow_extra_label(self) -> None:
        output = self.model.get_ref("output_layer")
        if output.has_dim("nO"):
            raise ValueError(
                SpacyErrors.E922.format(name=self.name, nO=output.get_dim("nO"))
            )

    def predict(self, docs: Iterable[Doc]) -> Analyses:
        """Find the entities of a batch of Docs, without changing them.

        docs (Iterable[Doc]): The batch.
        RETURNS (Analyses): What is to be written.
        RAISES (ValueError): If the weights give potentials that are not finite.
        """
        from spacy_treecrf.ml.decoding import decode_with_candidates

        docs = list(docs)
        n_best, labels = self.cfg["n_best"], self.label_set
        segments, potentials = self.span_potentials(docs)
        found = decode_with_candidates(
            self.model,
            potentials,
            loss_settings(self.cfg, len(labels)),
            labels.membership(),
            self.cfg["decoder"],
            self.cfg["threshold"],
            n_best,
            self.cfg["entropy"],
        )
        return analyses_of(found, segments, labels, n_best, self.cfg["entropy"])

    def span_potentials(
        self, docs: Sequence[Doc]
    ) -> "tuple[DocSegments, Iterator[SpanPotentials]]":
        """Cut Docs into segments and score all spans of these.

        docs (Sequence[Doc]): The batch.
        RETURNS (tuple[DocSegments, Iterator[SpanPotentials]]): The segments; their
            potentials, computed chunk by chunk as they are asked for.
        RAISES (ValueError): As `predict`.
        """
        self._check_settings()
        segments = self._cut(docs)
        if not len(segments):
            return segments, iter(())
        self._require_labels()
        self._warn_windows()
        check_encoder_output(self.name, self.model, docs)
        potentials = self.model.predict(
            (docs, segments.for_model(self.cfg["max_width"]))
        )
        n_labels = self.n_labels
        return segments, finite_potentials(
            potentials, docs, segments, self.name, n_labels
        )

    def set_annotations(self, docs: Iterable[Doc], predictions: Analyses) -> None:
        """Write predictions to `doc.spans`, and to `doc.ents` if asked.

        docs (Iterable[Doc]): The batch.
        predictions (Analyses): What `predict` returned for it.
        """
        write(list(docs), self.key, predictions, ents=self.cfg["annotate_ents"])

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Learn from a batch.

        examples (Iterable[Example]): The batch; gold is `reference.spans[spans_key]`.
        drop (float): Dropout of the encoder's Thinc layers.
        sgd (Optimizer): Optimizer, or None to leave the weights to the caller.
        losses (dict[str, float]): Gets the mean loss of a segment, in nats, added.
        RETURNS (dict[str, float]): The losses.
        RAISES (ValueError): If the loss is not finite, gold has an unknown label, or
            gold crosses and `crossing` is "error".
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, "TreeCRF.update")
        docs = [example.predicted for example in examples]
        self._check_settings()
        segments = self._cut(docs)
        if not len(segments):
            return losses
        self._require_labels()
        self._warn_windows()
        set_dropout_rate(self.model, drop)
        potentials, backprop = self.model.begin_update(
            (docs, segments.for_model(self.cfg["max_width"]))
        )
        loss, gradients = self.get_loss(examples, (segments, potentials))
        backprop(gradients)
        if sgd is not None:
            self.finish_update(sgd)
        losses[self.name] += loss
        return losses

    def get_loss(
        self, examples: Iterable[Example], scores: tuple[DocSegments, Any]
    ) -> tuple[float, Any]:
        """Mean loss of a segment: minus log p of its gold trees, or its softmax margin.

        examples (Iterable[Example]): The batch.
        scores (tuple): Segments of the batch, and their potentials.
        RETURNS (tuple[float, list[Floats2d]]): Loss in nats; gradient of each chunk's
            potentials.
        RAISES (ValueError): As `update`.
        """
        from spacy_treecrf.ml.loss import loss_and_gradients

        from .docs.tree_gold_report import GoldReport

        examples = list(examples)
        segments, potentials = scores
        if self._report is None:
            self._report = GoldReport(self.name, self.cfg)
        self._report.restart()
        gold = self._reader().read(examples, segments, self._report)
        self._report.warn()
        for chunk in potentials:
            check_labels(self.name, chunk, self.n_labels)
        segment_losses, gradients = loss_and_gradients(
            self.model, potentials, gold, loss_settings(self.cfg, len(self.label_set))
        )
        loss = float(segment_losses.mean())
        if not np.isfinite(loss):
            bad = np.flatnonzero(~np.isfinite(segment_losses))
            texts = doc_texts(
                [example.predicted for example in examples], segments, bad
            )
            raise ValueError(Errors.T005.format(name=self.name, loss=loss, docs=texts))
        return loss, gradients

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        labels: list[str | list[str]] | None = None,
        warm_start: str | Path | None = None,
    ) -> None:
        """Collect the labels, check all gold, and build the model anew.

        get_examples (Callable): Gives the training examples.
        nlp (Language): The pipeline, whose score weights are checked.
        labels (list): Labels in place of those of the data, as `label_data`.
        warm_start (str | Path): Folder or package of a trained pipeline with a `treecrf`
            pipe, whose weights are taken for the encoder and for all labels that it has.
        RAISES (ValueError): If there is no label, gold has one that is not in `labels`,
            or the pipe of `warm_start` has another form.
        """
        validate_get_examples(get_examples, "TreeCRF.initialize")
        self._forget_settings()
        # What an earlier initialisation found is forgotten with its weights.
        self.cfg["labels"] = []
        added = [*self._added, *(labels or [])]
        self._add_labels([[e] if isinstance(e, str) else e for e in added])
        sample, prior = self._read_gold(get_examples(), collect=labels is None)
        check_score_weights(self.name, self.key, nlp)
        check_schedule(self.name, nlp)
        if nlp is not None:
            share_encoders(nlp, self.model)
            warn_of_shared_key(nlp, self.name, self.key)
        objective, n_entity_labels = self.cfg["objective"], len(self.label_set)
        n_labels = self.n_labels
        n_latent = n_labels - n_entity_labels
        output = self.model.get_ref("output_layer")
        output.set_dim("nO", n_labels, force=True)
        # Normalised, the bias would take up all of the variance.
        if self.cfg["initial_bias"] == "prior" and not (
            self.cfg["potential_normalization"] and objective == "treecrf"
        ):
            odds = prior.log_odds(n_entity_labels, objective, n_latent)
            output.attrs["initial_bias"] = [*odds.tolist(), *[0.0] * n_latent]
        if not sample:
            sample = [Doc(self.vocab, words=["hello"])]
        segments = self._segments(sample)
        self.model.initialize(X=(sample, segments.for_model(self.cfg["max_width"])))
        if warm_start is not None:
            start_from(self, nlp, warm_start)
        self._fix_settings()

    def _read_gold(
        self, examples: Iterable[Example], collect: bool
    ) -> tuple[list[Doc], LabelPrior]:
        """Collect and count labels, count what is wrong, warn.

        RETURNS (tuple[list[Doc], LabelPrior]): A sample of Docs; counts of the labels.
        """
        from .docs.tree_gold import gold_labels
        from .docs.tree_gold_report import GoldReport

        self._report = GoldReport(self.name, self.cfg)
        sample: list[Doc] = []
        prior = LabelPrior(self.cfg["max_width"])
        for batch in minibatch(examples, CHECKED_AT_A_TIME):
            if collect:
                for example in batch:
                    self._add_labels(gold_labels(example, self.cfg))
            docs = [example.predicted for example in batch]
            sample += islice(
                (doc for doc in docs if len(doc)), SAMPLE_SIZE - len(sample)
            )
            segments = self._cut(docs)
            gold = self._reader().read(batch, segments, self._report)
            prior.add_annotated(segments.lengths, gold.observed, gold.missing)
        if not self.labels:
            raise ValueError(self._report.no_labels())
        self._report.warn(is_corpus=True)
        self._warn_windows()
        return sample, prior

    def _check_ranges(self) -> None:
        check_settings(self.name, self.cfg)

    def _add_labels(self, combinations: Iterable[Sequence[str]]) -> None:
        labels = self.label_set
        for combination in combinations:
            labels.add(combination)
        for label in labels.plain:
            self.vocab.strings.add(label)
        self.cfg["labels"] = labels.as_data()

    def _cut(self, docs: Sequence[Doc]) -> DocSegments:
        """Segments of a batch; counts the Docs that `max_length` had to cut."""
        segments = self._segments(docs)
        for number in segments.windowed:
            self._problems.add("windows", start_of(docs[number]))
        self._refuse_chains(docs, segments)
        return segments

    def _refuse_chains(self, docs: Sequence[Doc], segments: DocSegments) -> None:
        width = self.cfg["max_width"]
        if self.cfg["inference"] == "fused" or width is None:
            return
        for number in np.flatnonzero(segments.lengths > width)[:1]:
            text = start_of(docs[segments.doc[number]])
            raise ValueError(Errors.T014.format(name=self.name, width=width, doc=text))

    def _segments(self, docs: Sequence[Doc]) -> DocSegments:
        return DocSegments(docs, longest_segment(self.cfg))

    def _warn_windows(self) -> None:
        if "windows" in self._problems.unwarned():
            message = Warnings.T104.format(
                name=self.name,
                count=self._problems.counts["windows"],
                max_length=longest_segment(self.cfg),
                doc=self._problems.first("windows"),
            )
            warnings.warn(message, stacklevel=4)

    def _reader(self) -> "GoldReader":
        from .docs.tree_gold import GoldReader

        return GoldReader(self.name, self.label_set, self.cfg)
