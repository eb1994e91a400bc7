"""Turn an image into a network's input, as its weights expect it or with the user's own numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode, functional

from fmapboard.errors import ConfigurationError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
IMAGENET_SIZE, IMAGENET_RESIZE = 224, 256

WHOLE_SIDE = 320
"""Default shorter side of a detector's input, px; the usual 800 would make runs slow and large."""

Size: TypeAlias = int | tuple[int, int] | Literal["none"]
"""One number, height and width, or ``"none"``."""

_MAX_ASPECT = 20
"""Largest ratio of the longer to the shorter side; a longer image is cropped to its middle.
Otherwise resizing a strip one pixel high would fill the memory."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Resizes, crops and normalizes one image.

    Called with a `PIL.Image.Image` of any size, it returns float32 [C, H, W]: C is ``channels``,
    and H, W are ``size`` if that is set. The image is not changed.

    Raises:
        ConfigurationError: ``channels`` is neither 1 nor 3.
    """

    size: tuple[int, int] | None
    """Height and width of the centre crop, px; None for no crop."""
    resize: int | tuple[int, int] | None
    """Length of the shorter side before the crop, px; or height and width, px, which may change
    the aspect ratio; None keeps the size."""
    mean: tuple[float, ...]
    """Subtracted per channel from values in 0 to 1."""
    std: tuple[float, ...]
    """Divides each channel after that; ``input * std + mean`` restores the image."""
    source: str
    """Where these numbers come from, for people to read."""
    channels: int = 3
    """3 for colour, 1 for grey."""
    interpolation: str = "bilinear"
    """A value of torchvision's ``InterpolationMode``, such as ``"bicubic"``."""

    def __post_init__(self) -> None:
        if self.channels not in (1, 3):
            raise ConfigurationError(
                f"the model takes {self.channels} input channels; images have 1 (grey) or 3 "
                "(colour); a function can make its input from images: --input "
                "package.module:function"
            )

    def __call__(self, image: Image.Image) -> Tensor:
        """The network's input, float32 [C, H, W]."""
        return self.normalize(self.fit(image))

    def fit(self, image: Image.Image) -> Tensor:
        """The image, resized and cropped, uint8 [C, H, W]; may run in any thread."""
        mode = "L" if self.channels == 1 else "RGB"
        image = image if image.mode == mode else image.convert(mode)
        height = min(image.height, _MAX_ASPECT * image.width)
        width = min(image.width, _MAX_ASPECT * image.height)
        left, top = (image.width - width) // 2, (image.height - height) // 2
        image = image.crop((left, top, left + width, top + height))
        if self.resize is not None:
            edges = [self.resize] if isinstance(self.resize, int) else list(self.resize)
            image = functional.resize(image, edges, InterpolationMode(self.interpolation))
        if self.size is not None:
            if image.height < self.size[0] or image.width < self.size[1]:
                raise ConfigurationError(
                    f"an image of {image.height}×{image.width} px (height×width) is smaller than "
                    f"the crop, {_by(self.size)}; give a larger --resize, or --crop none"
                )
            image = functional.center_crop(image, list(self.size))
        # Pillow stores channels last; without `contiguous` the network would run in that layout.
        fitted: Tensor = functional.pil_to_tensor(image).contiguous()
        return fitted

    def normalize(self, fitted: Tensor) -> Tensor:
        """Normalize a fitted image or a batch, uint8 [..., C, H, W]; float32, same shape."""
        values = fitted.to(torch.float32) / 255
        normalized: Tensor = functional.normalize(values, list(self.mean), list(self.std))
        return normalized

    def with_input_size(self, side: int) -> Preprocessing:
        """A copy for a square input of ``side`` px that crops away the same fraction of an image.

        Preprocessing that changes the aspect ratio resizes to the square without a crop.
        """
        resize: int | tuple[int, int] = (side, side)
        if isinstance(self.resize, int):
            crop = min(self.size) if self.size else self.resize
            resize = max(side, math.floor(side * self.resize / crop))
        return replace(self, size=(side, side), resize=resize)

    def __str__(self) -> str:
        """Where the numbers come from, and all of them, on one line."""
        if isinstance(self.resize, int):
            resized = f"shorter side {self.resize} px"
        else:
            resized = "size kept" if self.resize is None else f"resized to {_by(self.resize)} px"
        cropped = "" if self.size in (None, self.resize) else f", crop {_by(self.size)}"
        mean, std = (" ".join(f"{n:.4g}" for n in numbers) for numbers in (self.mean, self.std))
        grey = ", grey" if self.channels == 1 else ""
        return f"{self.source}: {resized}{cropped}{grey}, mean {mean}, std {std}"

    @classmethod
    def from_preset(cls, preset: Any, source: str) -> Preprocessing:
        """The preprocessing of ``transforms()`` of torchvision weights.

        Presets without a size (detection) resize the shorter side to `WHOLE_SIDE` px, without crop,
        as those networks take any size. Presets that do not normalize leave values in 0 to 1.
        """
        crop = getattr(preset, "crop_size", None)
        resize = getattr(preset, "resize_size", None) or [WHOLE_SIDE]
        return cls(
            size=(crop[0], crop[-1]) if crop else None,
            resize=resize[0] if len(resize) == 1 else (resize[0], resize[1]),
            mean=tuple(getattr(preset, "mean", (0.0, 0.0, 0.0))),
            std=tuple(getattr(preset, "std", (1.0, 1.0, 1.0))),
            interpolation=getattr(preset, "interpolation", InterpolationMode.BILINEAR).value,
            source=source,
        )

    @classmethod
    def from_timm(cls, config: Mapping[str, Any]) -> Preprocessing:
        """The preprocessing of timm's evaluation transform for a ``resolve_model_data_config``."""
        channels, height, width = config["input_size"]
        exactly = config.get("crop_mode") == "squash" or height != width
        scaled = [math.floor(side / config["crop_pct"]) for side in (height, width)]
        return cls(
            size=(height, width),
            resize=(scaled[0], scaled[1]) if exactly else scaled[0],
            mean=_fit(config["mean"], channels),
            std=_fit(config["std"], channels),
            channels=channels,
            interpolation=config["interpolation"],
            source="timm pretrained_cfg",
        )

    @classmethod
    def from_huggingface(cls, config: Mapping[str, Any], channels: int = 3) -> Preprocessing:
        """The preprocessing of a Hugging Face image processor, given its ``to_dict()``.

        Processors with limits for both the shorter and longer side (detection) resize the shorter
        side to `WHOLE_SIDE` px and do not crop. Those that do not normalize leave values in 0 to 1.

        Raises:
            ConfigurationError: ``channels`` is neither 1 nor 3.
        """
        size, crop = config.get("size") or {}, config.get("crop_size") or {}
        shortest = size.get("shortest_edge")
        exact = (size["height"], size["width"]) if "height" in size else None
        side = (crop["height"], crop["width"]) if config.get("do_center_crop") and crop else exact
        resize: int | tuple[int, int] = exact or shortest or WHOLE_SIDE
        if "longest_edge" in size:
            side, resize = None, WHOLE_SIDE
        elif config.get("crop_pct") and shortest:  # ConvNeXt: only sizes below 384 px are cropped
            side = (shortest, shortest)
            resize = int(shortest / config["crop_pct"]) if shortest < 384 else side
        normalizes = config.get("do_normalize", True)
        mean, std = (
            (config["image_mean"], config["image_std"]) if normalizes else ([0.0] * 3, [1.0] * 3)
        )
        factor = config.get("rescale_factor", 1 / 255) if config.get("do_rescale", True) else 1.0
        scale = round(255 * factor, 9)  # of the processor's values; ours go from 0 to 1
        return cls(
            size=side,
            resize=resize if config.get("do_resize", True) else None,
            mean=_fit([number / scale for number in mean], channels),
            std=_fit([number / scale for number in std], channels),
            channels=channels,
            interpolation=Image.Resampling(config.get("resample", 2)).name.lower(),
            source="the model's image processor",
        )

    @classmethod
    def assumed(cls, model: nn.Module, *, has_inputs: bool = False) -> Preprocessing:
        """ImageNet preprocessing, for a model that does not define its own.

        If the model's first `torch.nn.Conv2d` has one input channel, images are converted to grey.

        Args:
            model: Any module.
            has_inputs: it takes more than images, so any `torch.nn.Conv2d` may be that for images:
                they are grey only if one has one input channel and none has three.

        Raises:
            ConfigurationError: that convolution has neither 1 nor 3 input channels.
        """
        convolutions = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d)]
        taken = [layer.in_channels or 3 for layer in convolutions]  # 0 in a lazy layer
        channels = taken[0] if taken else 3
        if has_inputs:
            channels = 1 if 1 in taken and 3 not in taken else 3
        return cls(
            size=(IMAGENET_SIZE, IMAGENET_SIZE),
            resize=IMAGENET_RESIZE,
            mean=_fit(IMAGENET_MEAN, channels),
            std=_fit(IMAGENET_STD, channels),
            channels=channels,
            source="ImageNet mean and std (assumed)",
        )

    def changed(
        self,
        *,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
        resize: Size | None = None,
        crop: Size | None = None,
    ) -> Preprocessing:
        """Preprocessing with these numbers, and ``self`` where they are None.

        A crop that is not given fits: after ``resize=96`` it is at most 96×96, and after a resize
        to height and width, or to none, nothing is cropped. A resize that is not given is raised to
        the crop.

        Raises:
            ConfigurationError: the numbers of channels differ.
        """
        given = {"--mean": mean, "--std": std, "--resize": resize, "--crop": crop}
        named = [name for name, value in given.items() if value is not None]
        if not named:
            return self
        side, size = self.resize, self.size
        if crop is not None:
            size = None if crop == "none" else (crop, crop) if isinstance(crop, int) else crop
        elif not isinstance(resize, int):
            size = size if resize is None else None
        elif size is not None:
            size = min(resize, size[0]), min(resize, size[1])
        if resize is not None:
            side = None if resize == "none" else resize
        elif isinstance(side, int):
            side = max(side, *(size or (0, 0)))
        elif side is not None and size is not None:
            side = max(side[0], size[0]), max(side[1], size[1])
        source = f"{', '.join(named)} as given" + (
            "" if len(named) == len(given) else f", otherwise {self.source}"
        )
        return replace(
            self,
            mean=self.mean if mean is None else _per_channel(mean, self.channels, "--mean"),
            std=self.std if std is None else _per_channel(std, self.channels, "--std"),
            resize=side,
            size=size,
            source=source,
        )


def _by(sides: tuple[int, int] | None) -> str:
    return "×".join(map(str, sides or ()))


def _fit(values: Sequence[float], channels: int) -> tuple[float, ...]:
    """One value per channel; for a different number of channels, the mean of the values."""
    if len(values) == channels:
        return tuple(values)
    return (sum(values) / len(values),) * channels


def _per_channel(numbers: tuple[float, ...], channels: int, option: str) -> tuple[float, ...]:
    if len(numbers) not in (1, channels):
        raise ConfigurationError(
            f"{option} has {len(numbers)} numbers: expected 1 or {channels}, one per channel of "
            "the model's input"
        )
    return numbers * (channels // len(numbers))
