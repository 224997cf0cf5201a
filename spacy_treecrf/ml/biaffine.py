"""Span scorers: a potential for every (start, end, label) from token vectors.

Fu et al. (2021), Eq. 1-2; Dozat & Manning (2017) for separate start and end views.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, cast

import torch
from thinc.api import (
    ArgsKwargs,
    Model,
    PyTorchShim,
    PyTorchWrapper_v3,
    torch2xp,
    xp2torch,
)
from thinc.types import Floats2d
from torch import nn

from spacy_treecrf.structure.spans import SpanIndex

from .span_scorer import ACTIVATIONS, SpanScorer
from .threads import share_between_threads
from .types import Segments

# What may differ between a saved scorer and the one it is loaded into: it shapes no weight,
# and no prediction.
FREE_SETTINGS = ("dropout",)

ScorerInput = tuple[Floats2d, Segments]


class SettingMismatch(ValueError):
    """A saved scorer has another setting than the one that it is loaded into.

    setting (str): The setting's name in a config.
    saved, configured (Any): Its values.
    """

    def __init__(self, setting: str, saved: Any, configured: Any) -> None:
        super().__init__(
            f"expected {setting}={saved!r} as saved, received {setting}={configured!r}"
        )
        self.setting, self.saved, self.configured = setting, saved, configured


def build_biaffine_span_scorer(
    hidden_width: int | None = None,
    depth: int = 2,
    dropout: float = 0.2,
    separate_views: bool = True,
    activation: str = "relu",
    pooling: str | None = "max",
    nO: int | None = None,
) -> Model[ScorerInput, Floats2d]:
    """Build the biaffine scorer of Eq. 2.

    hidden_width (int): Width of the feed-forward layers; the last one has half of it.
        Default: the encoder's width.
    depth (int): Number of feed-forward layers, at least 1.
    dropout (float): After the encoder and each feed-forward layer, in [0, 1). It is part
        of the architecture: `[training] dropout` does not change it.
    separate_views (bool): Give start and end tokens layers of their own (Dozat & Manning
        2017); false is the paper's form, one view for both.
    activation (str): "relu", "gelu", "tanh" or "identity".
    pooling (str): "max" adds to the potential of a span the highest score of one of its
        tokens, from layers of their own: the head word of a long span may be far
        from both of its edges. null is the paper's form.
    nO (int): Number of labels, set by the pipe.
    RETURNS (Model): From token vectors (T, nI) and segments to potentials (L, S).
    RAISES (ValueError): If an argument is out of its range.

    Source: Fu et al. (2021), Eq. 1-2. Deviates: separate views and pooling by default.
    """
    settings = _settings(
        hidden_width, depth, dropout, separate_views, activation, pooling
    )
    return _build({**settings, "linear": True}, nO)


def build_bilinear_span_scorer(
    hidden_width: int | None = None,
    depth: int = 2,
    dropout: float = 0.2,
    separate_views: bool = True,
    activation: str = "relu",
    pooling: str | None = "max",
    nO: int | None = None,
) -> Model[ScorerInput, Floats2d]:
    """Build the bilinear scorer: Eq. 2 without its linear and constant terms.

    The arguments are those of `build_biaffine_span_scorer`.
    RETURNS (Model): From token vectors (T, nI) and segments to potentials (L, S).
    RAISES (ValueError): If an argument is out of its range.

    Source: Fu et al. (2021), ablation "bilinear" of Table 2.
    """
    settings = _settings(
        hidden_width, depth, dropout, separate_views, activation, pooling
    )
    return _build({**settings, "linear": False}, nO)


class UnbuiltScorer(nn.Module):
    """Stands for a span scorer whose widths are known only at initialisation or loading.

    settings (dict[str, Any]): What it is to be built with.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()
        self.settings = settings


def _settings(
    hidden_width: int | None,
    depth: int,
    dropout: float,
    separate_views: bool,
    activation: str,
    pooling: str | None,
) -> dict[str, Any]:
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"expected activation to be one of {sorted(ACTIVATIONS)}, received "
            f"{activation!r}"
        )
    if depth < 1 or not 0.0 <= dropout < 1.0:
        raise ValueError(
            "expected depth of at least 1 and dropout in [0, 1), received "
            f"depth={depth}, dropout={dropout}"
        )
    if hidden_width is not None and hidden_width < 1:
        raise ValueError(
            "expected hidden_width of at least 1, or null for the encoder's width, "
            f"received {hidden_width}"
        )
    if pooling not in (None, "max"):
        raise ValueError(f"expected pooling to be 'max' or null, received {pooling!r}")
    return {
        "hidden_width": hidden_width,
        "depth": depth,
        "dropout": dropout,
        "views": 2 if separate_views else 1,
        "activation": activation,
        "pooling": pooling,
    }


def _build(settings: dict[str, Any], nO: int | None) -> Model[ScorerInput, Floats2d]:
    model = PyTorchWrapper_v3(
        UnbuiltScorer(settings),
        convert_inputs=_convert_inputs,
        serialize_model=_serialize,
        deserialize_model=_deserialize,
    )
    model.name = "span_scorer"
    model.attrs["settings"] = settings
    model.init = _init
    if nO is not None:
        model.set_dim("nO", nO)
    share_between_threads(model)
    return model


def _init(
    model: Model[ScorerInput, Floats2d], X: ScorerInput | None = None, Y: Any = None
) -> None:
    """Build the scorer with new weights, also where it had some, as Thinc's layers do."""
    if X is not None and model.has_dim("nI") is None:
        model.set_dim("nI", X[0].shape[1])
    module = SpanScorer(
        model.get_dim("nI"), model.get_dim("nO"), **model.attrs["settings"]
    )
    # Taken out: attributes are saved with the model.
    bias = model.attrs.pop("initial_bias", None)
    if bias is not None:
        module.set_bias(bias)
    model.shims[0]._model = module.to(torch_device(model))


def torch_device(model: Model[Any, Any]) -> torch.device:
    """Device that a span scorer's weights are on."""
    return cast(PyTorchShim, model.shims[0]).device


def _serialize(module: nn.Module) -> bytes:
    if not isinstance(module, SpanScorer):
        raise ValueError(
            "expected an initialised span scorer, received one without weights"
        )
    buffer = BytesIO()
    first = cast(nn.Linear, cast(nn.Sequential, module.views[0])[0])
    torch.save(
        {
            "nI": first.in_features,
            "nO": len(module.bilinear),
            "settings": module.settings,
            "state": module.state_dict(),
        },
        buffer,
    )
    return buffer.getvalue()


def _deserialize(
    module: UnbuiltScorer | SpanScorer, state: bytes, device: torch.device
) -> SpanScorer:
    """Build the saved scorer, if it is of the settings of the one that is there.

    RAISES (SettingMismatch): If it is not: with another activation, say, the same
        weights would be loaded without a word and give other potentials.
    """
    saved = torch.load(BytesIO(state), map_location=device, weights_only=True)
    # Scorers of the first versions do not say their settings.
    settings, nI = saved.get("settings", module.settings), saved["nI"]
    check_scorer_settings(settings, module.settings, nI)
    scorer = SpanScorer(nI, saved["nO"], **module.settings)
    scorer.load_state_dict(saved["state"])
    return scorer.to(device)


def check_scorer_settings(
    saved: dict[str, Any], configured: dict[str, Any], nI: int
) -> None:
    """Refuse weights that were learnt with other settings.

    saved, configured (dict[str, Any]): Settings as a scorer keeps them.
    nI (int): Width of the saved scorer's encoder.
    RAISES (SettingMismatch): If one differs that shapes weights or potentials.
    """
    for key, value in configured.items():
        default = nI if key == "hidden_width" else None
        same = (saved[key] or default) == (value or default)
        if key not in FREE_SETTINGS and not same:
            raise SettingMismatch(*_as_configured(key, saved[key], value))


def copy_scorer(
    source: Model[Any, Any], target: Model[Any, Any], labels: Sequence[tuple[int, int]]
) -> None:
    """Copy the weights of a scorer to one with other labels.

    source, target (Model): Both initialised.
    labels (Sequence[tuple[int, int]]): Pairs of label numbers, in source and target.
    RAISES (SettingMismatch): If they have other settings, or another width.
    RAISES (ValueError): If one is no scorer of this module.
    """
    old, new = source.shims[0]._model, target.shims[0]._model
    if not isinstance(old, SpanScorer) or not isinstance(new, SpanScorer):
        raise ValueError("both pipes need a span scorer of the package")
    nI = source.get_dim("nI")
    check_scorer_settings(old.settings, new.settings, nI)
    if nI != target.get_dim("nI"):
        raise SettingMismatch("nI", nI, target.get_dim("nI"))
    from_, to = (torch.tensor(numbers) for numbers in zip(*labels, strict=True))
    of_labels = {id(parameter) for parameter in new.label_parameters()}
    weights = dict(old.named_parameters())
    with torch.no_grad():
        for name, parameter in new.named_parameters():
            saved = weights[name].to(parameter.device)
            if id(parameter) in of_labels:
                parameter[to] = saved[from_]
            else:
                parameter.copy_(saved)


def _as_configured(key: str, saved: Any, configured: Any) -> tuple[str, Any, Any]:
    """A setting with the name and the values that it has in a config."""
    if key == "views":
        return "separate_views", saved == 2, configured == 2
    if key == "linear":
        names = {True: "BiaffineSpanScorer", False: "BilinearSpanScorer"}
        return "@architectures", names[saved], names[configured]
    return key, saved, configured


def _convert_inputs(
    model: Model[Any, Any], inputs: tuple[Floats2d, Segments, SpanIndex], is_train: bool
) -> tuple[ArgsKwargs, Callable[[ArgsKwargs], Floats2d]]:
    X, segments, index = inputs
    # An encoder in mixed precision may hand over half precision.
    vectors = xp2torch(X, device=torch_device(model)).float().requires_grad_(is_train)

    def backprop(gradients: ArgsKwargs) -> Floats2d:
        dX = cast(Floats2d, torch2xp(gradients.args[0]))
        return cast(Floats2d, dX.astype(X.dtype, copy=False))

    return ArgsKwargs(args=(vectors, segments, index), kwargs={}), backprop
