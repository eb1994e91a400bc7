"""Training and validation crops of the bundled photographs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from fmapboard.demo.bundled import bundled
from fmapboard.demo.network import INPUT_SIZE, MEAN, STD

SCALES = (0.7, 0.5)
"""Factors by which a part is scaled before it is cropped; a crop covers 69 or 96 px of the file."""

GRID = (6, 2)
"""Rows and columns of validation crops per held-out part and scale."""

LEFT = 0
"""The left half of a photograph, as an index into its parts."""

HELD_OUT = 1
"""Its third quarter."""

RIGHT = 2
"""Its last quarter."""


class Photographs(NamedTuple):
    """A data set of crops, each labelled with the photograph that it comes from.

    The third quarter of each photograph's width is held out for validation; training crops come
    from the parts to its left and right. The parts are separated before anything is resized, so
    they have no pixel in common. They are cut at the borders of JPEG's 8 × 8 blocks, so they have
    no coefficient in common either.

    >>> photographs = Photographs.load()
    >>> images, labels = photographs.training_batch(32, torch.Generator().manual_seed(0))
    >>> images.shape, labels.shape
    (torch.Size([32, 3, 48, 48]), torch.Size([32]))
    """

    names: tuple[str, ...]
    """Class names by label: file names without ``.jpg``, sorted."""
    pixels: Tensor
    """The pixels of all parts at all scales, each part in row-major order, uint8 [3, P]."""
    places: Tensor
    """First pixel, height and width of each part in `pixels`, int64 [photographs, 3, scales, 3]."""

    @classmethod
    def load(cls, folder: str | Path | None = None) -> Photographs:
        """Read every ``*.jpg`` in a folder; None for the folder that ships with fmapboard.

        The photographs must be at least 384 px wide and 96 px high, so that each quarter can be
        cropped.
        """
        place = bundled("photographs") if folder is None else Path(folder)
        files = sorted(place.glob("*.jpg"))
        planes = []
        for file in files:
            for part in _cut(file):
                planes += _scaled(part)
        shapes = [plane.shape[:2] for plane in planes]
        sizes = torch.tensor(shapes)  # [photographs*3*scales, 2]
        areas = sizes.prod(1)
        first = areas.cumsum(0) - areas
        places = torch.column_stack([first, sizes])
        flat = [plane.reshape(-1, 3) for plane in planes]
        pixels = np.concatenate(flat)  # [P, 3]
        return cls(
            names=tuple(file.stem for file in files),
            pixels=torch.from_numpy(pixels.T.copy()),
            places=places.view(-1, 3, len(SCALES), 3),
        )

    def training_batch(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Random crops outside the held-out parts, with random scale, flip, contrast, brightness.

        Args:
            size: number of crops, N.
            generator: the only source of randomness; a CPU generator.

        Returns:
            Images, float32 [N, 3, 48, 48], normalized with `MEAN` and `STD`, and labels,
            int64 [N], each an index into `names`.
        """
        classes = len(self.names)
        labels = torch.randint(classes, (size,), generator=generator)
        scale = torch.randint(len(SCALES), (size,), generator=generator)
        side, down, across, mirror, gain, lift = torch.rand(6, size, generator=generator)
        part = torch.where(side < 2 / 3, LEFT, RIGHT)  # the left part is twice as large
        places = self.places[labels, part, scale]  # [N, 3]
        crops = self._crops(places, down, across, mirror < 0.5)
        contrast = 0.8 + 0.4 * gain
        brightness = 0.4 * lift - 0.2  # in standard deviations
        shape = (size, 1, 1, 1)
        crops.mul_(contrast.view(shape))
        crops.add_(brightness.view(shape))
        return crops, labels

    def validation_crops(self) -> tuple[Tensor, Tensor]:
        """Fixed crops: an even grid over each held-out part, at each scale.

        Returns:
            Images, float32 [24 * photographs, 3, 48, 48], and labels, int64 [24 * photographs],
            as in `training_batch`; 24 for every photograph.
        """
        rows, columns = GRID
        every = torch.cartesian_prod(
            torch.arange(len(self.names)),
            torch.arange(len(SCALES)),
            torch.arange(rows),
            torch.arange(columns),
        )  # [24 * photographs, 4]
        labels, scale, row, column = every.T
        places = self.places[labels, HELD_OUT, scale]
        down = row / (rows - 1)
        across = column / (columns - 1)
        mirror = torch.zeros(len(labels), dtype=torch.bool)
        crops = self._crops(places, down, across, mirror)
        return crops, labels

    def probe(self) -> Tensor:
        """The centre crop of each photograph's held-out part.

        Returns:
            Images, float32 [photographs, 3, 48, 48], in the order of `names`.
        """
        places = self.places[:, HELD_OUT, -1]
        middle = torch.full((len(places),), 0.5)
        mirror = torch.zeros(len(places), dtype=torch.bool)
        return self._crops(places, middle, middle, mirror)

    def _crops(self, places: Tensor, down: Tensor, across: Tensor, mirror: Tensor) -> Tensor:
        """One crop from each of N parts, float32 [N, 3, 48, 48], normalized.

        Args:
            places: first pixel, height and width of each part, int64 [N, 3].
            down: vertical position of the crop, 0 (top) to 1 (bottom), [N].
            across: horizontal position of the crop, 0 (left) to 1 (right), [N].
            mirror: True flips the crop horizontally, bool [N].
        """
        first, height, width = places.T[:, :, None]  # [N, 1] each
        free_down = height - INPUT_SIZE
        free_across = width - INPUT_SIZE
        down_px = down[:, None] * free_down  # [N, 1]
        across_px = across[:, None] * free_across
        top = down_px.round().long()
        left = across_px.round().long()
        along = torch.arange(INPUT_SIZE)
        rows = first + (top + along) * width  # [N, 48]
        mirrored = along.flip(0)
        columns = left + torch.where(mirror[:, None], mirrored, along)  # [N, 48]
        which = rows[:, :, None] + columns[:, None, :]  # [N, 48, 48]
        planes = self.pixels[:, which]  # [3, N, 48, 48]
        crops = planes.transpose(0, 1).float()  # [N, 3, 48, 48]
        mean = torch.tensor(MEAN) * 255
        std = torch.tensor(STD) * 255
        crops.sub_(mean.view(3, 1, 1))
        crops.div_(std.view(3, 1, 1))
        return crops.contiguous()


def _cut(file: Path) -> list[Image.Image]:
    """The left, held-out and right part of one photograph, each RGB."""
    with Image.open(file) as opened:
        image = opened.convert("RGB")
    width, height = image.size
    half = _at_block(width // 2)
    rest = _at_block(width * 3 // 4)
    return [
        image.crop((0, 0, half, height)),
        image.crop((half, 0, rest, height)),
        image.crop((rest, 0, width, height)),
    ]


def _at_block(column: int) -> int:
    """The border of JPEG's blocks at or before a column."""
    return column // 8 * 8


def _scaled(part: Image.Image) -> list[NDArray[np.uint8]]:
    """A part at every scale, each uint8 [H, W, 3]."""
    scaled = []
    for scale in SCALES:
        width = int(part.width * scale)
        height = int(part.height * scale)
        resized = part.resize((width, height), Image.Resampling.BOX)
        scaled.append(np.asarray(resized))
    return scaled
