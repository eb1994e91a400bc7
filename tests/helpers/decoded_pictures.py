"""What a viewer sees of a picture, before and after its encoding as PNG."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from fmapboard.records import Picture


def rgb_pixels(picture: Picture) -> np.ndarray:
    """The colours of a grey, palette or RGB picture: u8 [H, W, 3]."""
    if picture.palette is not None:
        return picture.palette[picture.pixels]
    if picture.pixels.ndim == 3:
        return picture.pixels
    return np.repeat(picture.pixels[..., None], 3, axis=2)


def decode_png(data: bytes) -> Image.Image:
    """The image in a PNG file, every chunk's checksum verified."""
    with Image.open(io.BytesIO(data)) as image:
        image.verify()
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image
