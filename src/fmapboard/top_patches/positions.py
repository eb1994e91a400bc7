"""Read a layer's output as values per image, channel and position."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from fmapboard.measure.layout import as_maps, axes_of, square_of
from fmapboard.model.tensors import first_tensor, is_observable


def maps_of(value: Any, module: nn.Module, images: int) -> tuple[Tensor, tuple[int, ...]] | None:
    """The first tensor that a layer returned; None if it cannot be read.

    A tensor of one sample for several images is the same for all of them, as a relative position
    bias that is computed once per pass. If its first axis is otherwise not that of the images, as
    in windowed attention, the tensor must be of one image; the axis then is one of positions.

    Returns:
        The values [N, C, P], P positions per image, which may alias the layer's live tensor; and
        the axes of the positions, empty for a layer that returns one number per channel.

    Raises:
        ValueError: It is of several images.
    """
    tensor = first_tensor(value)
    if tensor is None or not is_observable(tensor):
        return None
    # Three axes are read as tokens: images have four.
    maps = as_maps(tensor, axes_of(module, tensor.shape)).maps
    if maps.shape[0] == 1:
        maps = maps.expand(images, *maps.shape[1:])
    elif maps.shape[0] != images:
        if images != 1:
            raise ValueError(f"{maps.shape[0]} samples in the output for {images} images")
        maps = maps.movedim(0, 1).unsqueeze(0)  # [1, C, N, *spatial]
    grid = tuple(maps.shape[2:])
    return maps.reshape(*maps.shape[:2], math.prod(grid)), grid


def place_in_image(
    position: int, grid: tuple[int, ...], image: tuple[int, int]
) -> tuple[float, float] | None:
    """Where in the image a position lies, as (y, x) in px; None if the axes are not an image's.

    Maps are taken to cover the image evenly, as do tokens that fill a square after the prefix
    tokens.
    """
    square = square_of(grid[0]) if len(grid) == 1 else None
    if square is not None:
        prefix, side = square
        grid, position = (side, side), position - prefix
    if len(grid) != 2 or position < 0:
        return None
    y, x = divmod(position, grid[1])
    return (y + 0.5) / grid[0] * image[0], (x + 0.5) / grid[1] * image[1]
