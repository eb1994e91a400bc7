"""Which experts a router has chosen, a file of its own since it is no layer's output as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fmapboard.model.tensors import tensors
from fmapboard.records import LayerPart


def chosen_experts(value: Any, router: LayerPart) -> Tensor | None:
    """1 for each expert to which a router sends a token, and 0 for the others.

    Args:
        value: what the router returned: scores [..., experts], alone or with the numbers of the
            chosen experts [..., chosen], which count if they are there.
        router: how many experts there are, and how many are chosen for each token.

    Returns:
        float32 [N, T, experts], with N = 1 for scores of tokens without a batch; None if ``value``
        holds neither.
    """
    experts = router.features
    chosen = router.chosen
    indices: Tensor | None = None
    scores: Tensor | None = None
    for tensor in tensors(value):
        if tensor.dim() < 2:
            continue
        if tensor.shape[-1] == chosen and not tensor.is_floating_point():
            indices = tensor
        elif tensor.shape[-1] == experts and tensor.is_floating_point() and scores is None:
            scores = tensor
    if indices is None:
        if scores is None:
            return None
        indices = scores.detach().topk(chosen, dim=-1).indices
    indices = indices.reshape(-1 if indices.dim() > 2 else 1, *indices.shape[-2:])
    zeros = torch.zeros(*indices.shape[:2], experts, device=indices.device)
    return zeros.scatter_(-1, indices.long(), 1.0)
