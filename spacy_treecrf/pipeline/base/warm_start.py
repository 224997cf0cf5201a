"""Start a pipe from the weights of a trained one that may have other labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.util import load_model
from thinc.api import Model

from spacy_treecrf.errors import Errors

from .encoders import listeners, upstream_pipes

if TYPE_CHECKING:
    from ..treecrf import TreeCRF


def start_from(pipe: "TreeCRF", nlp: Language | None, path: str | Path) -> None:
    """Copy encoder, scorer and temperature of a trained pipeline into an initialised pipe.

    What is of a label, or a combination of labels, that both pipes have is copied; what
    is of a new one stays as it was initialised.

    pipe (TreeCRF): The pipe. nlp (Language | None): Its pipeline, whose shared encoder
        gets the weights too.
    path (str | Path): Folder or package of the trained pipeline.
    RAISES (ValueError): If there is no such pipeline, or its pipe has another form.
    """
    from spacy_treecrf.ml.biaffine import SettingMismatch, copy_scorer

    try:
        trained = load_model(path)
        source = source_pipe(trained, pipe.name)
        encoder, own_encoder = (
            encoder_of(source, trained),
            encoder_of(pipe, nlp),
        )
        own_encoder.from_bytes(encoder.to_bytes())
        copy_scorer(
            source.model.get_ref("span_scorer"),
            pipe.model.get_ref("span_scorer"),
            shared_labels(source, pipe),
        )
    except SettingMismatch as error:
        reason = (
            f"its span_scorer has {error.setting}={error.saved!r}, this one "
            f"{error.configured!r}"
        )
        raise refusal(pipe.name, path, reason) from error
    except (ValueError, OSError) as error:
        raise refusal(pipe.name, path, str(error)) from error
    temperature = source.model.get_param("log_temperature")
    pipe.model.set_param("log_temperature", temperature.copy())


def refusal(name: str, path: str | Path, reason: str) -> ValueError:
    """The error that says why a pipe can't start from a pipeline."""
    return ValueError(Errors.T012.format(name=name, path=path, reason=reason))


def source_pipe(nlp: Language, name: str) -> "TreeCRF":
    """The `treecrf` pipe of that name, or else the only one.

    RAISES (ValueError): If there is none, or none can be told from another.
    """
    found = {
        n: p for n, p in nlp.components if nlp.get_pipe_meta(n).factory == "treecrf"
    }
    if name in found:
        return found[name]  # type: ignore[return-value]
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} pipes of the factory treecrf")
    return next(iter(found.values()))  # type: ignore[return-value]


def encoder_of(pipe: "TreeCRF", nlp: Language | None) -> Model[Any, Any]:
    """The encoder inside a pipe's model, or that of the pipe which it listens to.

    RAISES (ValueError): If the latter is not there.
    """
    if not listeners(pipe.model):
        return pipe.model.get_ref("tok2vec")
    shared = list(upstream_pipes(nlp, pipe.model)) if nlp is not None else []
    if not shared:
        raise ValueError(f"the encoder that '{pipe.name}' listens to is not there")
    return shared[0][1].model


def shared_labels(source: "TreeCRF", pipe: "TreeCRF") -> list[tuple[int, int]]:
    """Numbers, in one pipe and in the other, of the labels that both have.

    Latent labels are paired in their order.
    """
    old, new = source.label_set, pipe.label_set
    numbers = old.numbers()
    pairs = [
        (numbers[parts], number)
        for number, parts in enumerate(new.parts())
        if parts in numbers
    ]
    n_latent = min(source.n_labels - len(old), pipe.n_labels - len(new))
    return [*pairs, *((len(old) + i, len(new) + i) for i in range(n_latent))]
