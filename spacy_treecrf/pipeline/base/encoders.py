"""The encoder that a pipe shares with others: whether it is there, and safe in threads."""

from collections.abc import Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from thinc.api import Model

from spacy_treecrf.errors import Errors

# Where spacy-transformers and spacy-curated-transformers put an encoder's output.
TRANSFORMER_OUTPUT = "trf_data"


def listeners(model: Model[Any, Any]) -> list[Model[Any, Any]]:
    """The layers that take the output of another pipe."""
    return [node for node in model.walk() if hasattr(node, "upstream_name")]


def upstream_pipes(nlp: Language, model: Model[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The pipes whose output the listeners of a model take.

    nlp (Language): The pipeline. model (Model): Model of a pipe in it.
    YIELDS (tuple[str, Any]): Their names and the pipes, disabled ones too.
    """
    names = {node.upstream_name for node in listeners(model)}  # type: ignore[attr-defined]
    for name, pipe in nlp.components:
        is_named = "*" in names or name in names
        if is_named and hasattr(pipe, "listener_map"):
            yield name, pipe


def share_encoders(nlp: Language, model: Model[Any, Any]) -> None:
    """Let the encoders that a model listens to predict in several threads at once.

    nlp (Language): The pipeline. model (Model): Model of a pipe in it.
    """
    from spacy_treecrf.ml.threads import share_between_threads

    for _, pipe in upstream_pipes(nlp, model):
        share_between_threads(pipe.model)


def check_encoder_output(
    name: str, model: Model[Any, Any], docs: Sequence[Doc]
) -> None:
    """Refuse Docs that the encoder has not seen: a listener would give zeros for them.

    name (str): Name of the pipe. model (Model): Its model.
    docs (Sequence[Doc]): Docs to predict for.
    RAISES (ValueError): If there is a Doc with tokens and no vectors.
    """
    for node in listeners(model):
        for doc in docs:
            if len(doc) and not _has_output(node, doc):
                raise ValueError(
                    Errors.T010.format(
                        name=name,
                        upstream=node.upstream_name,  # type: ignore[attr-defined]
                        doc=doc[:12].text[:60],
                    )
                )


def _has_output(listener: Model[Any, Any], doc: Doc) -> bool:
    if listener.name == "tok2vec-listener":
        return bool(doc.tensor.size)
    has_extension = Doc.has_extension(TRANSFORMER_OUTPUT)
    return has_extension and getattr(doc._, TRANSFORMER_OUTPUT) is not None
