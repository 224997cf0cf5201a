"""The same quantities by the package torch-struct: `inference = "torch_struct"`.

For comparison with the paper's implementation, and as a second opinion; the fused code of
`spacy_treecrf.structure` is several times as fast and is the default.
"""

import torch
from torch import Tensor

from spacy_treecrf.structure.spans import SpanIndex

# torch-struct's gradients are NaN for -inf, and sums of 1e30 swamp its float32.
FLOOR = -1e6


def log_partitions(potentials: Tensor, index: SpanIndex) -> Tensor:
    """Log-sum over the trees of each segment, differentiable. (L, S) -> (B,)."""
    return _distribution(potentials, index).partition


def packed_marginals(potentials: Tensor, index: SpanIndex) -> Tensor:
    """p(span, label in tree). (L, S) -> (L, S)."""
    # In double precision: its float32 marginals exceed 1 where scores are large.
    with torch.inference_mode(False), torch.enable_grad():
        marginals = _distribution(potentials.double().clone(), index).marginals
    return _pack(marginals.detach(), index).clamp(0.0, 1.0).to(potentials.dtype)


def packed_best_tree(potentials: Tensor, index: SpanIndex) -> tuple[Tensor, Tensor]:
    """Packed rows and labels of the nodes of the best trees. (L, S) -> (N,) each."""
    with torch.inference_mode(False), torch.enable_grad():
        chosen = _distribution(potentials.clone(), index).argmax
    labels, rows = _pack(chosen.detach(), index).nonzero(as_tuple=True)
    return rows, labels


def _distribution(potentials: Tensor, index: SpanIndex):  # type: ignore[no-untyped-def]
    if index.chained:
        raise ValueError(
            "expected segments within the width limit, since torch-struct has no chains of "
            f"trees; received {max(index.lengths)} tokens under max_width "
            f"{index.max_width}"
        )
    from torch_struct import TreeCRF

    class Distribution(TreeCRF):
        # torch warns about distributions that do not state their constraints.
        arg_constraints: dict = {}  # noqa: RUF012

    dense = index.unpack(potentials.clamp(min=FLOOR))
    # torch-struct's spans are inclusive.
    inclusive = dense[:, :-1, 1:].contiguous()
    lengths = torch.tensor(index.lengths, device=potentials.device)
    return Distribution(inclusive, lengths=lengths)


def _pack(inclusive: Tensor, index: SpanIndex) -> Tensor:
    return inclusive.movedim(-1, 0)[:, index.segment, index.start, index.end - 1]
