"""Norms of gradients before they are clipped, at a moment that the caller names."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fmapboard.capture.isolation import aside
from fmapboard.measure.norms import dense, norms
from fmapboard.model.distributed import sharding, summed
from fmapboard.model.layers import clean_name

GROUP = "gradient_norm_before_clipping"


def norms_before_clipping(model: nn.Module) -> dict[str, float]:
    """Scalars of every parameter's gradient and of all together; one host sync.

    Where parameters are sharded all ranks must call this.
    """
    gradients: dict[str, Tensor] = {
        clean_name(name): parameter.grad
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    if not gradients:
        return {}
    device = next(iter(gradients.values())).device
    with aside(device.type):
        parts = norms([dense(gradient) for gradient in gradients.values()])
        cuts = [sharding(gradient) for gradient in gradients.values()]
        whole = torch.stack([norm.to(device) for norm in summed(parts, cuts)])
        values = torch.cat([torch.linalg.vector_norm(whole)[None], whole]).tolist()
    tags = (f"{GROUP}/{name}" for name in ("total", *gradients))
    return dict(zip(tags, values, strict=True))
