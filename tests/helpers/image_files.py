"""Image files for tests: written with Pillow, read with `read_image`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from fmapboard.imaging.images import read_image


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    """Save an image; its path."""
    image.save(path, **options)
    return path


def noise(height: int = 40, width: int = 60) -> Image.Image:
    """Random RGB pixels, the same at each call."""
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(values)


def pixels(path: Path) -> list[tuple[int, int, int]]:
    """The pixels that `read_image` gives, row by row."""
    image = read_image(path)
    assert image.mode == "RGB"
    return [tuple(p) for row in np.asarray(image).tolist() for p in row]
