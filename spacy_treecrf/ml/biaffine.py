"""Span scorers: a potential for every (start, end, label) from token vectors.

Fu et al. (2021), Eq. 1-2; Dozat & Manning (2017) for separate start and end views.
"""

from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import pairwise
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
from torch import Tensor, nn

from spacy_treecrf.structure.spans import SpanIndex

from .pieces import TakeCells, pieces_of
from .pooling import add_highest_score, highest_token
from .threads import share_between_threads
from .types import Segments

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "identity": nn.Identity,
}
# Standard deviation of the biaffine tensors at the start: near 0, so that all trees begin
# about equally probable, but not 0, so that the two views get different gradients.
INITIAL_DEVIATION = 0.01

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


class SpanScorer(nn.Module):
    """Feed-forward layers and a biaffine form a label.

    views (int): 2 for separate start and end views, else 1.
    linear (bool): Whether the form has linear and constant terms.
    pooling (str): "max" to score the tokens within a span too, or None.
    The other arguments are those of `build_biaffine_span_scorer`.
    """

    def __init__(
        self,
        nI: int,
        nO: int,
        *,
        hidden_width: int | None,
        depth: int,
        dropout: float,
        views: int,
        activation: str,
        linear: bool,
        pooling: str | None,
    ) -> None:
        super().__init__()
        self.settings = {
            "hidden_width": hidden_width,
            "depth": depth,
            "dropout": dropout,
            "views": views,
            "activation": activation,
            "linear": linear,
            "pooling": pooling,
        }
        hidden = hidden_width or nI
        widths = [nI, *([hidden] * (depth - 1)), max(1, hidden // 2)]
        self.input_dropout = nn.Dropout(dropout)
        self.views = nn.ModuleList(
            _feed_forward(widths, dropout, ACTIVATIONS[activation])
            for _ in range(views)
        )
        width = widths[-1]
        self.bilinear = nn.Parameter(torch.randn(nO, width, width) * INITIAL_DEVIATION)
        self.start = self.end = self.bias = None
        if linear:
            self.end = nn.Parameter(torch.zeros(nO, width))
            # One view for both ends shares U2 between them, as printed in Eq. 2.
            self.start = (
                nn.Parameter(torch.zeros(nO, width)) if views == 2 else self.end
            )
            self.bias = nn.Parameter(torch.zeros(nO))
        self.inner: nn.Sequential | None = None
        if pooling is not None:
            last = nn.Linear(width, nO)
            nn.init.normal_(last.weight, std=INITIAL_DEVIATION)
            nn.init.zeros_(last.bias)
            layers = _feed_forward(widths, dropout, ACTIVATIONS[activation])
            self.inner = nn.Sequential(*layers, last)

    def set_bias(self, bias: Sequence[float]) -> None:
        """Set the constant term of each label, where the form has one.

        bias (Sequence[float]): Potentials of spans that nothing else is known of, e.g.
            log odds. Length: L.
        """
        if self.bias is not None:
            with torch.no_grad():
                self.bias.copy_(torch.tensor(bias))

    def label_parameters(self) -> list[nn.Parameter]:
        """The parameters that have a row for each label."""
        last = [] if self.inner is None else [*self.inner[-1].parameters()]
        found = [self.bilinear, self.start, self.end, self.bias, *last]
        return [parameter for parameter in found if parameter is not None]

    def forward(self, X: Tensor, segments: Segments, index: SpanIndex) -> Tensor:
        """X (Tensor): Token vectors. Shape: (T, nI). RETURNS (Tensor): Shape: (L, S)."""
        X = self.input_dropout(X)
        starts, ends = self.views[0](X), self.views[-1](X)
        n_labels, width = self.bilinear.shape[:2]
        # Row l * width + e holds U1_l[:, e]: one product gives e_i^T U1_l for all labels.
        weight = self.bilinear.transpose(1, 2).reshape(n_labels * width, width)
        bias = None if self.end is None else self.end.reshape(-1)
        taken, rows = [], []
        for pieces in pieces_of(segments.lengths, index.widest):
            start_tokens, end_tokens = pieces.tokens(segments)
            start = starts[start_tokens.to(X.device)]
            shape = (len(start), pieces.n_starts * n_labels, width)
            left = nn.functional.linear(start, weight, bias).view(shape)
            right = ends[end_tokens.to(X.device)].transpose(1, 2)
            if self.start is None or self.bias is None:
                product = torch.bmm(left, right)
            else:
                constant = nn.functional.linear(start, self.start, self.bias)
                product = torch.baddbmm(constant.view(*shape[:2], 1), left, right)
            cells, where = pieces.cells(index, n_labels)
            taken.append(
                TakeCells.apply(product.view(-1), cells, pieces.n_ends, n_labels)
            )
            rows.append(where)
        # Its memory is as large as that of the scores.
        del product, left
        if len(rows) == 1:
            scores = taken.pop()
        else:
            scores = torch.cat(taken, dim=1)
            order = torch.empty(index.n_spans, dtype=torch.int64, device=X.device)
            order[torch.cat(rows)] = torch.arange(index.n_spans, device=X.device)
            scores = scores.index_select(1, order)
        if self.inner is None:
            return scores
        inner = self.inner(X)
        first = torch.from_numpy(segments.first).to(X.device)
        last = first[index.segment] + index.end - 1
        if not torch.is_grad_enabled():
            return add_highest_score(scores, inner, last, index)
        return scores + inner.T.gather(1, highest_token(inner, last, index))


def _feed_forward(
    widths: list[int], dropout: float, activation: Callable[[], nn.Module]
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for nI, nO in pairwise(widths):
        linear = nn.Linear(nI, nO)
        nn.init.xavier_uniform_(linear.weight)
        nn.init.zeros_(linear.bias)
        layers += [linear, activation(), nn.Dropout(dropout)]
    return nn.Sequential(*layers)


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
