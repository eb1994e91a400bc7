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
IMAGENET_SIZE = 224
IMAGENET_RESIZE = 256

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
        left = (image.width - width) // 2
        top = (image.height - height) // 2
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
        grey = ", grey" if self.channels == 1 else ""
        mean = " ".join(f"{number:.4g}" for number in self.mean)
        std = " ".join(f"{number:.4g}" for number in self.std)
        return f"{self.source}: {resized}{cropped}{grey}, mean {mean}, std {std}"

    @classmethod
    def from_preset(cls, preset: Any, source: str) -> Preprocessing:
        """The preprocessing of ``transforms()`` of torchvision weights.

        Presets without a size (detection) resize the shorter side to `WHOLE_SIDE` px, without crop,
        as those networks take any size. Presets that do not normalize leave values in 0 to 1.
        """
        crop = getattr(preset, "crop_size", None)
        resize = getattr(preset, "resize_size", None) or [WHOLE_SIDE]
        mean = getattr(preset, "mean", (0.0, 0.0, 0.0))
        std = getattr(preset, "std", (1.0, 1.0, 1.0))
        interpolation = getattr(preset, "interpolation", InterpolationMode.BILINEAR)
        return cls(
            size=(crop[0], crop[-1]) if crop else None,
            resize=resize[0] if len(resize) == 1 else (resize[0], resize[1]),
            mean=tuple(mean),
            std=tuple(std),
            interpolation=interpolation.value,
            source=source,
        )

    @classmethod
    def from_timm(cls, config: Mapping[str, Any]) -> Preprocessing:
        """The preprocessing of timm's evaluation transform for a ``resolve_model_data_config``."""
        channels, height, width = config["input_size"]
        crop_pct = config["crop_pct"]
        resize: int | tuple[int, int] = math.floor(height / crop_pct)
        if config.get("crop_mode") == "squash" or height != width:
            resize = (math.floor(height / crop_pct), math.floor(width / crop_pct))
        return cls(
            size=(height, width),
            resize=resize,
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
        size = config.get("size") or {}
        crop = config.get("crop_size")
        shortest = size.get("shortest_edge")
        exact = (size["height"], size["width"]) if "height" in size else None
        side = exact
        resize: int | tuple[int, int] | None = exact or shortest or WHOLE_SIDE
        if crop and config.get("do_center_crop"):
            side = (crop["height"], crop["width"])
        if "longest_edge" in size:
            side = None
            resize = WHOLE_SIDE
        elif config.get("crop_pct") and shortest:  # ConvNeXt: only sizes below 384 px are cropped
            side = (shortest, shortest)
            resize = int(shortest / config["crop_pct"]) if shortest < 384 else side
        if not config.get("do_resize", True):
            resize = None
        mean = [0.0] * 3
        std = [1.0] * 3
        if config.get("do_normalize", True):
            mean = config["image_mean"]
            std = config["image_std"]
        factor = 1.0
        if config.get("do_rescale", True):
            factor = config.get("rescale_factor", 1 / 255)
        scale = round(255 * factor, 9)  # of the processor's values; ours go from 0 to 1
        resampling = Image.Resampling(config.get("resample", 2))
        return cls(
            size=side,
            resize=resize,
            mean=_fit([number / scale for number in mean], channels),
            std=_fit([number / scale for number in std], channels),
            channels=channels,
            interpolation=resampling.name.lower(),
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
        size = _cropped_to(self.size, resize, crop)
        side: int | tuple[int, int] | None = None
        if resize is None:
            side = _raised(self.resize, size)
        elif resize != "none":
            side = resize
        options = ", ".join(named)
        source = f"{options} as given"
        if len(named) < len(given):
            source += f", otherwise {self.source}"
        changed = replace(self, resize=side, size=size, source=source)
        if mean is not None:
            changed = replace(changed, mean=_per_channel(mean, self.channels, "--mean"))
        if std is not None:
            changed = replace(changed, std=_per_channel(std, self.channels, "--std"))
        return changed


def _cropped_to(
    size: tuple[int, int] | None, resize: Size | None, crop: Size | None
) -> tuple[int, int] | None:
    """Height and width of the crop: ``size``, unless the user's resize or crop changes it."""
    if crop == "none":
        return None
    if isinstance(crop, int):
        return crop, crop
    if crop is not None:
        return crop
    if resize is None or size is None:
        return size
    if not isinstance(resize, int):
        return None
    height, width = size
    return min(resize, height), min(resize, width)


def _raised(
    resize: int | tuple[int, int] | None, size: tuple[int, int] | None
) -> int | tuple[int, int] | None:
    """A resize that is at least as large as the crop."""
    if resize is None or size is None:
        return resize
    height, width = size
    if isinstance(resize, int):
        return max(resize, height, width)
    return max(resize[0], height), max(resize[1], width)


def _by(sides: tuple[int, int] | None) -> str:
    return "×".join(str(side) for side in sides or ())


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
