"""Feature maps to draw, the grids that torchvision makes of them, and tiles cut out of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image
from reducers import reducer_of
from torch import Tensor, nn
from torchvision.utils import make_grid

from fmapboard.demo.bundled import bundled
from fmapboard.records import LayerCall, Planes
from fmapboard.render.palettes import palette

GREY = palette("grey")
NAN, INF = math.nan, math.inf


def planes_of(maps: Tensor, **options: object) -> Planes:
    """Planes of maps [N, C, H, W], without any limit that is not given."""
    unlimited = {"samples": None, "max_channels": None, "max_tile": None}
    reducer = reducer_of(**{**unlimited, **options})
    pending = reducer(LayerCall("conv", "Conv2d"), "feature_maps", maps, nn.Conv2d(1, 1, 1))
    planes = pending.to_host().planes
    assert planes is not None
    return planes


def classic(maps: Tensor) -> np.ndarray:
    """The classic recipe on one sample [1, C, H, W], as torch's add_image writes it: u8 [H, W]."""
    nrow = int(math.sqrt(maps.shape[1]))
    grid = make_grid(maps.transpose(0, 1), normalize=True, scale_each=True, nrow=nrow)
    return (grid.numpy() * 255).clip(0, 255).astype(np.uint8)[0]


def tile_of(picture: np.ndarray, channel: int, maps: Tensor) -> np.ndarray:
    """One channel's tile of a grid."""
    per_row, (height, width) = int(math.sqrt(maps.shape[1])), maps.shape[2:]
    top = 2 + channel // per_row * (height + 2)
    left = 2 + channel % per_row * (width + 2)
    return picture[top : top + height, left : left + width]


def chelsea(height: int, width: int) -> Tensor:
    """A real image as a network gets it, normalized: f32 [1, 3, height, width]."""
    with Image.open(bundled("photographs/chelsea.jpg")) as image:
        small = image.convert("RGB").resize((width, height))
    values = torch.from_numpy(np.array(small)).permute(2, 0, 1)[None] / 255
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (values - mean[:, None, None]) / std[:, None, None]


def network(build: Callable[..., nn.Module]) -> nn.Module:
    """An untrained network in training mode: with BatchNorm in eval mode deep maps shrink to 0."""
    torch.manual_seed(0)
    return build(weights=None).train()
