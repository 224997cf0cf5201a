"""What the pipes have in common that learn in `initialize` from the whole corpus.

They hold no Thinc model: `update` changes nothing, and their state is a JSON header and
NumPy arrays, so that it loads fast and never unpickles.
"""

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline.pipe import Pipe
from spacy.tokens import Doc
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.util import SimpleFrozenList, minibatch
from spacy.vocab import Vocab

from spacy_treecrf.errors import Errors

from .saved_settings import CONFIGURED, FixedSettings, reconcile

Header = dict[str, Any]
Arrays = dict[str, np.ndarray]


class LearnedPipe(FixedSettings, Pipe):
    """A pipe whose state is a header and arrays, learnt once.

    Subclasses define `predict`, `set_annotations`, `initialize`, `_to_arrays`,
    `_from_arrays`, `_check_ranges` and `is_initialized`.
    """

    vocab: Vocab
    name: str
    cfg: dict[str, Any]
    _configured: dict[str, Any]
    scorer: Callable[..., dict[str, Any]] | None

    @property
    def is_initialized(self) -> bool:
        """RETURNS (bool): Whether there is anything to predict with."""
        raise NotImplementedError

    def predict(self, docs: Sequence[Doc]) -> Any:
        """Predict without changing the Docs."""
        raise NotImplementedError

    def set_annotations(self, docs: Sequence[Doc], predictions: Any) -> None:
        """Write predictions to the Docs."""
        raise NotImplementedError

    def _to_arrays(self) -> tuple[Header, Arrays]:
        raise NotImplementedError

    def _from_arrays(self, header: Header, arrays: Arrays) -> None:
        raise NotImplementedError

    def _other_settings(self) -> Header:
        """Settings that are not in `cfg`, as JSON values."""
        return {}

    def _start_settings(self) -> None:
        """Check the settings of a new pipe, and keep what its config has."""
        self._forget_settings()
        self._configured = {**self.cfg, **self._other_settings()}

    def __call__(self, doc: Doc) -> Doc:
        """Annotate one Doc, in place.

        doc (Doc): The Doc.
        RETURNS (Doc): The same Doc.
        """
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of Docs, batch by batch.

        stream (Iterable[Doc]): The Docs.
        batch_size (int): Docs a batch.
        YIELDS (Doc): The same Docs, in order.
        """
        handle_error = self.get_error_handler()
        for docs in minibatch(stream, size=batch_size):
            try:
                self.set_annotations(docs, self.predict(docs))
            except Exception as error:
                handle_error(self.name, self, docs, error)
                continue
            yield from docs

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Any = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Do nothing: all is learnt in `initialize`.

        examples (Iterable[Example]): A batch.
        drop, sgd: Not used.
        losses (Optional[dict[str, float]]): Gets the loss 0 under the pipe's name.
        RETURNS (dict[str, float]): The losses.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        validate_examples(examples, f"{type(self).__name__}.update")
        return losses

    def _require_whole_corpus(self, nlp: Language | None) -> None:
        """Refuse a stream of which spaCy passes a sample only.

        RAISES (ValueError): If the training config asks for a stream.
        """
        training = (nlp.config.get("training") or {}) if nlp is not None else {}
        if training.get("max_epochs") == -1:
            raise ValueError(Errors.T071.format(name=self.name))

    def _require_initialized(self) -> None:
        """Check that there is something learnt, and what was set in `cfg` since."""
        if not self.is_initialized:
            raise ValueError(Errors.T072.format(name=self.name))
        self._check_settings()

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """Serialise the pipe.

        exclude (Iterable[str]): Not used: there is no vocab among the fields.
        RETURNS (bytes): Header and arrays.
        """
        if not self.is_initialized:
            return b""
        self._require_initialized()
        header, arrays = self._to_arrays()
        saved = {**self.cfg, **self._other_settings(), CONFIGURED: self._configured}
        header = {**header, "cfg": saved}
        text = srsly.json_dumps(header).encode("utf8", "surrogatepass")
        packed = np.frombuffer(text, dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, header=packed, **arrays)  # type: ignore[arg-type]
        return buffer.getvalue()

    def from_bytes(
        self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "LearnedPipe":
        """Load what `to_bytes` wrote.

        bytes_data (bytes): The data.
        exclude (Iterable[str]): Fields that are not loaded; see `reconcile`.
        RETURNS (LearnedPipe): The pipe itself.
        RAISES (ValueError): If the data are no model of this pipe, or the config has
            another value of what was learnt.
        """
        self._load(bytes_data, "bytes", exclude)
        return self

    def to_disk(
        self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Save the pipe as one file of arrays.

        path (Union[str, Path]): The folder to make.
        exclude (Iterable[str]): Not used.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.npz").write_bytes(self.to_bytes())

    def from_disk(
        self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "LearnedPipe":
        """Load what `to_disk` wrote.

        path (Union[str, Path]): The folder.
        exclude (Iterable[str]): Fields that are not loaded; see `reconcile`.
        RETURNS (LearnedPipe): The pipe itself.
        RAISES (ValueError): If the file is no model of this pipe, or the config has
            another value of what was learnt.
        """
        file = Path(path) / "model.npz"
        self._load(file.read_bytes(), str(file), exclude)
        return self

    def _load(self, data: bytes, where: str, exclude: Iterable[str]) -> None:
        if not data:  # saved before anything was learnt
            return
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            text = arrays.pop("header").tobytes().decode("utf8", "surrogatepass")
            header = srsly.json_loads(text)
            # Models of the first versions do not say their settings.
            saved = header.get("cfg", {})
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise self._unreadable(where, error) from error
        settings = reconcile(
            self.name,
            self._configured,
            saved,
            self.free_settings,
            exclude,
            self.earlier_settings,
        )
        try:
            self._from_arrays(header, arrays)
        except (ValueError, KeyError) as error:
            raise self._unreadable(where, error) from error
        self.cfg.update({key: settings[key] for key in self.cfg})
        self._fix_settings()

    def _unreadable(self, where: str, reason: Exception) -> ValueError:
        return ValueError(
            Errors.T073.format(name=self.name, where=where, reason=reason)
        )


def checked_examples(
    get_examples: Callable[[], Iterable[Example]], method: str
) -> Iterator[Example]:
    """The examples of a corpus, each checked when it is read.

    spaCy's `validate_get_examples` makes the same checks, and reads the corpus for them.

    get_examples (Callable[[], Iterable[Example]]): The corpus, read once.
    method (str): Who asks, for messages.
    YIELDS (Example): The examples.
    RAISES (TypeError): If it is not a function that returns examples (spaCy's errors).
    """
    if not callable(get_examples):
        validate_get_examples(get_examples, method)
    examples = get_examples()
    if not examples or not isinstance(examples, Iterable):
        validate_get_examples(lambda: examples, method)
    for example in examples:
        if not isinstance(example, Example):
            validate_examples([example], method)
        yield example
