"""The crops of images that excite the channels of a layer most."""

from __future__ import annotations

from dataclasses import dataclass

from fmapboard.records.layer_call import Bytes8, LayerCall


@dataclass(frozen=True, slots=True)
class Crop:
    """The part of an image that a channel's value at a position depends on.

    Attributes:
        value: The channel's value there.
        image: Number of the image, from 0.
        name: Name of the image.
        position: Index of the position along each axis of the layer's output after samples and
            channels; empty for a layer that returns one number per channel.
        field: Top, left, bottom and right in px of the image as the network saw it, the latter two
            exclusive. No pixel outside changes the value.
        size: Height and width in px of that image.
        spot: (y, x) in px of the position in the image, if the layer's output covers it as a map.
        pixels: u8 [H, W, 3], the field as the network saw it, without its normalization.
        block: Side in px of the squares that were averaged into one of ``pixels``.
        is_whole: True if the field is the whole image.
    """

    value: float
    image: int
    name: str
    position: tuple[int, ...]
    field: tuple[int, int, int, int]
    size: tuple[int, int]
    spot: tuple[float, float] | None
    pixels: Bytes8
    block: int = 1
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class LayerPatches:
    """The crops that excite each channel of a layer most.

    Attributes:
        layer_call: The layer call.
        channels: Number of channels of the layer; the first ``len(crops)`` were searched.
        crops: For each searched channel, its crops by descending value; of equal values the earlier
            image, then the earlier position. May be fewer than asked for.
        k: Number of crops asked for.
        images: Number of images that were searched.
        cell: (height, width) in px of the largest field.
        nan: Per searched channel, number of NaN values, which are left out.
        lost_at: Name of an operation because of which the field counts as the whole image; None
            otherwise.
    """

    layer_call: LayerCall
    channels: int
    crops: tuple[tuple[Crop, ...], ...]
    k: int
    images: int
    cell: tuple[int, int]
    nan: tuple[int, ...] = ()
    lost_at: str | None = None
