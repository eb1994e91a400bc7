"""Makes the picture of docs/patches.md.

    python assets/make_patches_picture.py

Cuts the bundled photographs, at full and at half size, into squares of 96 px, and searches them for
what excites the trained demonstration network most. Takes about 15 s on two cores. Left: some
channels of its second convolution; right: of its third one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from PIL import Image

import fmapboard
from fmapboard.demo.bundled import bundled
from fmapboard.demo.network import MEAN, STD, load_trained
from fmapboard.imaging.patches import Patches
from fmapboard.top_patches.pictures import RowLayout

BACKGROUND = (255, 255, 255)
FILE = Path(__file__).parents[1] / "docs" / "pictures" / "patches.png"
SIDE = 96
CHANNELS = {"conv2": (1, 3, 7, 10, 14, 15, 23), "conv3": (12, 14, 19, 28, 37, 45, 48, 57, 58)}


def squares() -> list[Image.Image]:
    """Squares of all photographs at two scales."""
    found = []
    for file in sorted(bundled("photographs").glob("*.jpg")):
        with Image.open(file) as opened:
            image = opened.convert("RGB")
        for scaled in (image, image.reduce(2)):
            found += [
                scaled.crop((left, top, left + SIDE, top + SIDE))
                for top in range(0, scaled.height - SIDE + 1, SIDE)
                for left in range(0, scaled.width - SIDE + 1, SIDE)
            ]
    return found


def prepared(image: Image.Image) -> torch.Tensor:
    """An image as the network takes it, float32 [3, H, W]."""
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255
    return (pixels - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]


def rows(found: Patches, layer: str) -> Image.Image:
    """The rows of some channels of a layer's picture."""
    layout, picture = RowLayout.of(found[layer]), found.picture(layer)
    tops = [layout.top + number * layout.down for number in CHANNELS[layer]]
    page = Image.new("RGB", (picture.width, layout.down * len(tops)), BACKGROUND)
    for number, top in enumerate(tops):
        page.paste(picture.crop((0, top, page.width, top + layout.down)), (0, number * layout.down))
    return page


def main() -> None:
    """Search the squares and save the picture."""
    images = squares()
    found = fmapboard.patches(
        load_trained(), images, list(CHANNELS), k=8, transform=prepared,
        normalization=(tuple(MEAN), tuple(STD)),
    )  # fmt: skip
    print(f"{len(images)} images\n{found}")
    pages = [rows(found, layer) for layer in CHANNELS]
    whole = Image.new(
        "RGB", (sum(p.width for p in pages), max(p.height for p in pages)), BACKGROUND
    )
    left = 0
    for page in pages:
        whole.paste(page, (left, 0))
        left += page.width
    whole.save(FILE, optimize=True)


if __name__ == "__main__":
    main()
