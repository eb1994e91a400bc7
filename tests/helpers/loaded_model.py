"""An input image for a loaded model, and its first convolution."""

from __future__ import annotations

import numpy as np
from PIL import Image
from torch import nn

from fmapboard.cli.models.load import LoadedModel


def photograph(width: int = 90, height: int = 70) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(values)


def first_convolution(loaded: LoadedModel) -> nn.Conv2d:
    return next(layer for layer in loaded.model.modules() if isinstance(layer, nn.Conv2d))
