"""Images passed to ``fmapboard.visualize`` or ``patches``: a tensor, files, or PIL images."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.images import decoding, find_images, read_fitted, to_rgb
from fmapboard.cli.models.preprocessing import Preprocessing, assumed
from fmapboard.errors import ConfigurationError
from fmapboard.model.given import described
from fmapboard.records import Normalization

Prepare = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class GivenImages:
    """Images that were passed to ``visualize`` or ``patches``.

    Attributes:
        names: One per image: that of its file, or its number.
        tensors: Yields the images, all of one kind.
        prepare: Turns a batch of them into the model's input.
        normalization: Mean and standard deviation of that input, if known.
    """

    names: list[str]
    tensors: Callable[[], Generator[Tensor, None, None]]
    prepare: Prepare
    normalization: Normalization | None

    @classmethod
    def of(
        cls,
        images: Any,
        model: nn.Module,
        transform: Callable[[Image.Image], Tensor] | None,
        normalization: Normalization | None,
        *,
        has_inputs: bool = False,
    ) -> GivenImages:
        """Check the images and find out how to prepare them."""
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
            return cls(names, lambda: (image for image in batch.detach()), _as_it_is, normalization)
        sources = _sources(images)
        names = [_name(one, number) for number, one in enumerate(sources)]
        if transform is not None:
            return cls(names, lambda: _read(sources, transform), _as_it_is, normalization)
        own: Preprocessing = assumed(model, has_inputs=has_inputs)
        return cls(names, lambda: _read(sources, own.fit), own.normalize, (own.mean, own.std))


def _sources(images: Any) -> list[Path | Image.Image]:
    """Image files and PIL images, in order; folders are replaced by the files in them."""
    several = images if isinstance(images, (list, tuple)) else [images]
    found: list[Path | Image.Image] = []
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


def _read(
    sources: Sequence[Path | Image.Image], fit: Callable[[Image.Image], Tensor]
) -> Generator[Tensor, None, None]:
    with decoding():
        for one in sources:
            yield read_fitted(one, fit) if isinstance(one, Path) else fit(to_rgb(one))


def _name(source: Path | Image.Image, number: int) -> str:
    return source.name if isinstance(source, Path) else f"image{number}"


def _as_it_is(batch: Tensor) -> Tensor:
    return batch
