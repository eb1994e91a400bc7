"""Turns a photograph into a network's input, as the network's weights want it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode, functional

from fmapboard.errors import ConfigurationError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
IMAGENET_SIZE, IMAGENET_RESIZE = 224, 256

_LONGEST = 20
"""A picture longer than this many times its width is cut to its middle: enlarging a strip of one
pixel's height to the network's size would fill the memory."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Resizes, crops and normalizes one picture.

    Called with a `PIL.Image.Image` of any size it returns float32 [C, H, W]: C is ``channels``,
    and H, W are ``size`` where that is set. The picture is not changed.
    """

    size: tuple[int, int] | None
    """Height and width of the centre crop, px; None keeps the whole picture."""
    resize: int | tuple[int, int]
    """What the shorter side becomes before the crop, px; two numbers: height and width, whatever
    the picture's proportions."""
    mean: tuple[float, ...]
    """Subtracted, a channel, from values in 0 … 1."""
    std: tuple[float, ...]
    """Divided by, a channel, after that; ``input * std + mean`` is the picture again."""
    source: str
    """Where these numbers come from, for people."""
    channels: int = 3
    """3 for colour, 1 for grey."""
    interpolation: str = "bilinear"
    """As torchvision names it, such as ``"bicubic"``."""

    def __call__(self, image: Image.Image) -> Tensor:
        """The network's input, float32 [C, H, W]."""
        return self.normalize(self.fit(image))

    def fit(self, image: Image.Image) -> Tensor:
        """The picture resized and cropped, u8 [C, H, W]; may run in any thread."""
        mode = "L" if self.channels == 1 else "RGB"
        image = _without_ends(image if image.mode == mode else image.convert(mode))
        edges = [self.resize] if isinstance(self.resize, int) else list(self.resize)
        image = functional.resize(image, edges, InterpolationMode(self.interpolation))
        if self.size is not None:
            image = functional.center_crop(image, list(self.size))
        # Pillow's channels lie together; a network given them so would run in that layout.
        fitted: Tensor = functional.pil_to_tensor(image).contiguous()
        return fitted

    def normalize(self, fitted: Tensor) -> Tensor:
        """One fitted picture or a batch of them, u8 [..., C, H, W], as float32 of that shape."""
        values = fitted.to(torch.float32) / 255
        normalized: Tensor = functional.normalize(values, list(self.mean), list(self.std))
        return normalized

    def with_input_size(self, side: int) -> Preprocessing:
        """The same for a square input of ``side`` px, with as much of the picture cropped away."""
        resize: int | tuple[int, int] = (side, side)
        if isinstance(self.resize, int):
            crop = min(self.size) if self.size else self.resize
            resize = max(side, math.floor(side * self.resize / crop))
        return replace(self, size=(side, side), resize=resize)


def from_preset(preset: Any, source: str, *, whole: int) -> Preprocessing:
    """What a torchvision weights' ``transforms()`` does.

    Presets that do not resize (detection) keep the whole picture at a shorter side of ``whole``
    px, as those networks take any size; presets that do not normalize leave values in 0 … 1.
    """
    crop = getattr(preset, "crop_size", None)
    resize = getattr(preset, "resize_size", None) or [whole]
    return Preprocessing(
        size=(crop[0], crop[-1]) if crop else None,
        resize=resize[0] if len(resize) == 1 else (resize[0], resize[1]),
        mean=tuple(getattr(preset, "mean", (0.0, 0.0, 0.0))),
        std=tuple(getattr(preset, "std", (1.0, 1.0, 1.0))),
        interpolation=getattr(preset, "interpolation", InterpolationMode.BILINEAR).value,
        source=source,
    )


def from_timm(config: Mapping[str, Any], source: str) -> Preprocessing:
    """What timm's ``resolve_model_data_config`` says, as its own evaluation transform does it."""
    channels, height, width = config["input_size"]
    _check_channels(channels)
    exactly = config.get("crop_mode") == "squash" or height != width
    scaled = [math.floor(side / config["crop_pct"]) for side in (height, width)]
    return Preprocessing(
        size=(height, width),
        resize=(scaled[0], scaled[1]) if exactly else scaled[0],
        mean=_fit(config["mean"], channels),
        std=_fit(config["std"], channels),
        channels=channels,
        interpolation=config["interpolation"],
        source=source,
    )


def from_huggingface(config: Mapping[str, Any], source: str, *, whole: int) -> Preprocessing:
    """What an image processor of Hugging Face does, from its ``to_dict()``.

    Processors that bound both the shorter and the longer side (detection) keep the whole picture
    at a shorter side of ``whole`` px; those that do not normalize leave values in 0 … 1.
    """
    size, crop = config.get("size") or {}, config.get("crop_size") or {}
    shortest = size.get("shortest_edge")
    exact = (size["height"], size["width"]) if "height" in size else None
    side = (crop["height"], crop["width"]) if config.get("do_center_crop") and crop else exact
    resize: int | tuple[int, int] = exact or shortest or whole
    if "longest_edge" in size:
        side, resize = None, whole
    elif config.get("crop_pct") and shortest:  # ConvNeXt's: small sizes are cropped, others not
        side = (shortest, shortest)
        resize = int(shortest / config["crop_pct"]) if shortest < 384 else side
    normalizes = config.get("do_normalize", True)
    return Preprocessing(
        size=side,
        resize=resize,
        mean=tuple(config["image_mean"]) if normalizes else (0.0, 0.0, 0.0),
        std=tuple(config["image_std"]) if normalizes else (1.0, 1.0, 1.0),
        interpolation=Image.Resampling(config.get("resample", 2)).name.lower(),
        source=source,
    )


def assumed(model: nn.Module) -> Preprocessing:
    """ImageNet's size, mean and standard deviation, for a model that comes without any.

    A model whose first `torch.nn.Conv2d` has one input channel gets grey pictures.

    Raises:
        ConfigurationError: that convolution has neither 1 nor 3 input channels.
    """
    convolutions = (layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
    first = next(convolutions, None)
    channels = (first.in_channels if first is not None else 0) or 3  # a lazy layer has 0
    _check_channels(channels)
    return Preprocessing(
        size=(IMAGENET_SIZE, IMAGENET_SIZE),
        resize=IMAGENET_RESIZE,
        mean=_fit(IMAGENET_MEAN, channels),
        std=_fit(IMAGENET_STD, channels),
        channels=channels,
        source="ImageNet mean and std (assumed)",
    )


def _check_channels(channels: int) -> None:
    if channels not in (1, 3):
        raise ConfigurationError(
            f"the model takes {channels} input channels; images have 1 (grey) or 3 (colour)"
        )


def _fit(values: Sequence[float], channels: int) -> tuple[float, ...]:
    """As many values as channels: one for grey is the mean over the colours."""
    if len(values) == channels:
        return tuple(values)
    return (sum(values) / len(values),) * channels


def _without_ends(image: Image.Image) -> Image.Image:
    height, width = (
        min(image.height, _LONGEST * image.width),
        min(image.width, _LONGEST * image.height),
    )
    if (width, height) == image.size:
        return image
    left, top = (image.width - width) // 2, (image.height - height) // 2
    return image.crop((left, top, left + width, top + height))
