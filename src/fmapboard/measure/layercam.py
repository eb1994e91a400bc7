"""LayerCAM of the loss: ``relu(-dL/dA) * A`` summed over channels, on the activation's device.

P.-T. Jiang, C.-B. Zhang, Q. Hou, M.-M. Cheng, Y. Wei: LayerCAM: Exploring Hierarchical Class
Activation Maps for Localization (2021), equations 4 to 6, with the negative gradient of the loss
in place of the gradient of a class score.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fmapboard.measure.layout import Axes
from fmapboard.measure.reducer import Reducer

_SAMPLE_AXES = (1, 2, 3)


def first_samples(tensor: Tensor, axes: Axes, samples: int, reduce: Reducer) -> Tensor | None:
    """The first samples as maps [S, C, H, W], a view where possible; None if there are no maps.

    Tokens are maps if they fill a square. A layer whose maps have a single pixel has none.

    Args:
        tensor: an output of a layer, or its gradient.
        axes: its axes.
        samples: how many samples at most.
        reduce: interprets sequences and tokens.
    """
    if axes.batch is not None:
        tensor = tensor.narrow(axes.batch, 0, min(samples, tensor.shape[axes.batch]))
    view = reduce.read(tensor, axes)
    maps = view.maps if view.patches is None else view.patches
    return maps if maps.dim() == 4 and maps.shape[2] * maps.shape[3] > 1 else None


def heat(gradient: Tensor, activation: Tensor) -> tuple[Tensor, Tensor]:
    """Attribution and gradient norm of each sample, without waiting for the device.

    Args:
        gradient: [S, C, H, W], dL/dA.
        activation: [S, C, H, W].

    Returns:
        The negative of the heat map f32 [S, H, W], and the 2-norms of the gradients f32 [S].
    """
    wide = gradient.to(torch.float32)
    norms = torch.linalg.vector_norm(wide, dim=_SAMPLE_AXES)  # [S]
    product = wide.clamp(max=0).mul_(activation)  # [S, C, H, W]
    return product.sum(1), norms
