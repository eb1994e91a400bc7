"""Images passed to ``fmapboard.visualize`` or ``patches``: a tensor, files, or PIL images."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.images import ImageFile, find_images
from fmapboard.cli.models.preprocessing import Preprocessing, assumed
from fmapboard.cli.read_images import OfRead, ReadImages
from fmapboard.errors import ConfigurationError, log
from fmapboard.model.given import described
from fmapboard.options import Normalizing, checked_normalization
from fmapboard.records import Normalization

T = TypeVar("T")
Prepare = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class GivenImages:
    """Images that were passed to ``visualize`` or ``patches``.

    Attributes:
        names: One per image: that of its file, or its number.
        read: Reads image files and PIL images; None for a tensor.
        batch: The tensor [N, C, H, W], if one was passed.
        prepare: Turns a batch of them into the model's input.
        normalization: Mean and standard deviation of that input, if known.
    """

    names: list[str]
    read: ReadImages | None
    batch: Tensor | None
    prepare: Prepare
    normalization: Normalization | None

    @classmethod
    def of(
        cls,
        images: Any,
        model: nn.Module,
        transform: Callable[[Image.Image], Tensor] | None,
        normalization: Normalization | Normalizing | None,
        *,
        has_inputs: bool = False,
    ) -> GivenImages:
        """Check the images and find out how to prepare them."""
        if normalization is not None:
            normalization = checked_normalization(normalization)
        if isinstance(images, Tensor):
            if transform is not None:
                raise ConfigurationError(
                    "transform= is for image files and PIL images, not tensors"
                )
            batch = images[None] if images.dim() == 3 else images
            if batch.dim() < 3 or len(batch) == 0:
                raise ConfigurationError(
                    f"images of shape {list(images.shape)}: expected [N, C, H, W] or [C, H, W]"
                )
            names = [f"image{number}" for number in range(len(batch))]
            return cls(names, None, batch.detach(), _as_it_is, normalization)
        sources = _sources(images)
        names = [_name(one, number) for number, one in enumerate(sources)]
        if transform is not None:
            return cls(names, ReadImages(sources, transform), None, _as_it_is, normalization)
        own: Preprocessing = assumed(model, has_inputs=has_inputs)
        read = ReadImages(sources, own.fit)
        return cls(names, read, None, own.normalize, (own.mean, own.std))

    def tensors(self) -> Generator[Tensor, None, None]:
        """Yield the images that can be read, all of one kind."""
        if self.read is not None:
            yield from self.read.tensors()
        elif self.batch is not None:
            yield from self.batch

    def first(self) -> Generator[Tensor, None, None]:
        """Yield the first image again."""
        if self.read is not None:
            yield from self.read.first()
        elif self.batch is not None:
            yield from self.batch[:1]

    @property
    def numbers(self) -> Sequence[int]:
        """Which of the images were read so far."""
        return range(len(self.names)) if self.read is None else self.read.numbers

    def of_read(self, values: Sequence[T]) -> Sequence[T]:
        """Of one value per image, those of the images read so far; it grows with them."""
        return OfRead(values, self.numbers)

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Name and reason of the files in folders that could not be read."""
        return () if self.read is None else tuple(self.read.left_out)

    def warn_left_out(self) -> None:
        """Log a warning for each file that was left out."""
        if self.read is not None:
            self.read.say_left_out(lambda line: log.warning("%s", line))


def _sources(images: Any) -> list[ImageFile | Image.Image]:
    """Image files and PIL images, in order; folders are replaced by the files in them."""
    several = images if isinstance(images, (list, tuple)) else [images]
    found: list[ImageFile | Image.Image] = []
    for one in several:
        if isinstance(one, (str, os.PathLike)):
            found += find_images([Path(one)])
        elif isinstance(one, Image.Image):
            found.append(one)
        else:
            raise ConfigurationError(
                f"images={described(one)}: expected a tensor [N, C, H, W], image files, a folder, "
                "or PIL images (torch.stack(images) for a list of tensors)"
            )
    if not found:
        raise ConfigurationError("images=[]: expected at least one image")
    return found


def _name(source: ImageFile | Image.Image, number: int) -> str:
    return source.name if isinstance(source, ImageFile) else f"image{number}"


def _as_it_is(batch: Tensor) -> Tensor:
    return batch
