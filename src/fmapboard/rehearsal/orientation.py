"""Whether dense labels, such as masks, lie on their images in the right way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from fmapboard.rehearsal.experiment import Answer, fault

_LEAST_IMAGES = 8
_CERTAIN = 6.0
"""Standard errors by which labels must fit better in another way."""

_WAYS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda edges: edges.transpose(1, 2),
    "turned upside down": lambda edges: edges.flip(1),
    "flipped left to right": lambda edges: edges.flip(2),
    "turned by 180 degrees": lambda edges: edges.flip(1, 2),
    "turned by 90 degrees": lambda edges: edges.rot90(1, (1, 2)),
    "turned by 270 degrees": lambda edges: edges.rot90(3, (1, 2)),
    "transposed along the other diagonal": lambda edges: edges.rot90(2, (1, 2)).transpose(1, 2),
    "of the next image": lambda edges: edges.roll(-1, 0),
    "of the image before": lambda edges: edges.roll(1, 0),
}


def misplaced(images: Tensor, labels: Tensor) -> Answer | None:
    """A fault if edges in labels lie on edges of the images only once these are turned.

    Args:
        images: [N, C, H, W].
        labels: [N, H, W] or [N, K, H, W].
    """
    if images.dim() != 4 or labels.dim() not in (3, 4) or len(images) != len(labels):
        return None
    if labels.shape[-2:] != images.shape[-2:] or min(labels.shape[-2:]) < 8:
        return None
    dense = labels if labels.dim() == 4 else labels[:, None]
    own = _edges(images.detach().double().cpu(), is_class=False)
    others = _edges(dense.detach().double().cpu(), is_class=not labels.is_floating_point())
    varies = (own.flatten(1).abs().amax(1) > 0) & (others.flatten(1).abs().amax(1) > 0)
    own = own[varies]
    others = others[varies]
    if len(own) < _LEAST_IMAGES:
        return None
    as_is = (own * others).mean((1, 2))
    is_square = own.shape[1] == own.shape[2]
    for name, way in _WAYS.items():
        if not is_square and ("transposed" in name or "90" in name or "270" in name):
            continue
        turned = (own * way(others)).mean((1, 2))
        if _errors(turned - as_is) > _CERTAIN and _errors(turned) > _CERTAIN:
            return fault(
                f"labels fit their images better {name}: their edges agree by "
                f"{float(turned.mean()):.2g}, as they are by {float(as_is.mean()):.2g}",
                figure=float(turned.mean()),
                advice="Look at how images and labels are read and augmented: H and W exchanged, "
                "a flip of only one of the two, another index",
            )
    return None


def _edges(maps: Tensor, *, is_class: bool) -> Tensor:
    """Where neighbouring pixels differ, [N, H-1, W-1], with a mean of 0 and a deviation of 1."""
    down = maps[:, :, 1:, :-1] - maps[:, :, :-1, :-1]
    right = maps[:, :, :-1, 1:] - maps[:, :, :-1, :-1]
    found = (down != 0).double() + (right != 0).double() if is_class else down.abs() + right.abs()
    edges = functional.avg_pool2d(found.mean(1, keepdim=True), 3, 1, 1)[:, 0]
    centred = edges - edges.mean((1, 2), keepdim=True)
    deviation = centred.square().mean((1, 2), keepdim=True).sqrt()
    return torch.where(deviation > 1e-9, centred / deviation.clamp(min=1e-9), 0.0)


def _errors(values: Tensor) -> float:
    """The mean in its standard errors."""
    error = float(values.std()) / sqrt(len(values))
    return float(values.mean()) / error if error > 0 else 0.0
