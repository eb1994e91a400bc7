"""An input image for a loaded model, and its first convolution."""

from __future__ import annotations

from image_files import noise
from PIL import Image
from torch import nn

from fmapboard.imaging.models.request import LoadedModel


def input_image(width: int = 90, height: int = 70) -> Image.Image:
    """Random pixels as an input image."""
    return noise(height, width)


def first_convolution(loaded: LoadedModel) -> nn.Conv2d:
    return next(layer for layer in loaded.model.modules() if isinstance(layer, nn.Conv2d))
