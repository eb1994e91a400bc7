"""``visualize --embedding``: a layer's output for each image, as a vector for the Projector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.errors import ConfigurationError, LayerNotFound, closest
from fmapboard.extraction.of_outputs import extracted
from fmapboard.imaging.projector import ProjectorData, thumbnail_side, write_projector
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.write_images import WrittenImage
from fmapboard.measure.layout import as_maps
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import first_tensor
from fmapboard.records import Bytes8, Picture
from fmapboard.writers.remote import RemoteDirectory


def check_embedding(
    layer: str | None, model: nn.Module, directory: Path | RemoteDirectory | None
) -> Path:
    """Check that a layer's outputs can be written for the Projector, before anything is written.

    Returns:
        The directory.

    Raises:
        LayerNotFound: The model has no such layer.
        ConfigurationError: There is no local directory to write to.
    """
    if layer is None:
        return Path()
    if not isinstance(directory, Path):
        raise ConfigurationError(
            "embedding needs a local run directory (--logdir, log_dir=): TensorBoard's Projector "
            "reads files there"
        )
    known = named_layers(model)
    if _module_of(layer, known) not in known:
        near = closest(layer, known)
        raise LayerNotFound(f"no layer {layer!r} among {len(known)}{near}")
    return directory


def _module_of(layer: str, known: Mapping[str, nn.Module]) -> str:
    """The name of the module of a layer call such as ``relu.call2``."""
    return layer if layer in known else re.sub(r"\.call\d+$", "", layer)


class Embedding:
    """Collects a vector and a thumbnail per image.

    Args:
        model: Any module.
        layer: Name of a layer, or of one of its calls, such as ``relu.call2``.
        images: The images, whose names label the vectors.
        directory: Where ``write`` writes.
    """

    def __init__(self, model: nn.Module, layer: str, images: ReadImages, directory: Path) -> None:
        name = _module_of(layer, named_layers(model))
        self._layer, self._labels = layer, images.of_read(images.names)
        self._directory, self._side = directory, thumbnail_side(len(images.sources))
        self._registry = HookRegistry(model, lambda other, _: other == name)
        self._vectors: list[Any] = []
        self._thumbnails: list[Bytes8] = []
        self._note = ""

    def read(self, images: Tensor) -> None:
        """Run the model on images [B, C, H, W], as it takes them, and keep a vector of each.

        Raises:
            ConfigurationError: The layer did not run, or does not return one row per image.
        """
        found = extracted(self._registry, images, "output", {})
        output = first_tensor(found.get(self._layer))
        if output is None:
            raise ConfigurationError(f"layer {self._layer!r} did not run, or returned no tensor")
        maps = as_maps(output, found.axes[self._layer]).maps  # [B, C, *spatial]
        if len(maps) != len(images):
            raise ConfigurationError(
                f"layer {self._layer!r} returned {list(output.shape)} for {len(images)} images: "
                "expected one row per image"
            )
        if maps[0, 0].numel() > 1:
            size = "×".join(map(str, maps.shape[2:]))
            self._note = f"averaged over {size} positions, since the output is not a vector"
        self._vectors.append(maps.flatten(2).mean(-1) if maps.dim() > 2 else maps)  # [B, C]

    def add_thumbnail(self, written: WrittenImage) -> None:
        """Keep a small copy of the network's input, if that is an image."""
        inputs = [one for one in written.step.pictures if one.kind == "network_input"]
        if inputs:
            self._thumbnails.append(_thumbnail(inputs[0].samples[0], self._side))

    def write(self) -> str:
        """Write the Projector's files and describe them in one line."""
        vectors = np.concatenate([one.float().cpu().numpy() for one in self._vectors])
        complete = len(self._thumbnails) == len(vectors)
        data = ProjectorData(
            self._layer,
            vectors,
            tuple(self._labels),
            np.stack(self._thumbnails) if complete else None,
        )
        write_projector(self._directory, data)
        notes = [self._note, "" if complete else "without thumbnails: the input is no image"]
        count, values = vectors.shape
        text = f"Projector: {count} vectors of {values} values from {self._layer}"
        return ", ".join([text, *filter(None, notes)])


def _thumbnail(picture: Picture, side: int) -> Bytes8:
    """The picture in the middle of a white square, u8 [side, side, 3]."""
    image = Image.fromarray(picture.colours).convert("RGB")
    return np.asarray(ImageOps.pad(image, (side, side), color="white"))
