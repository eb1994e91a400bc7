"""``visualize(embedding=...)``: a layer's output for each image, as a vector for the Projector."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf import text_format
from PIL import Image, ImageOps
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.errors import ConfigurationError, LayerNotFound, WriteError, closest, first_line
from fmapboard.extraction.of_outputs import extracted
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.write_images import WrittenImage
from fmapboard.measure.layout import as_maps
from fmapboard.model.layers import named_layers
from fmapboard.model.tensors import first_tensor
from fmapboard.records import Bytes8, Picture
from fmapboard.render import png
from fmapboard.render.grid import grid
from fmapboard.writers.folder import file_stem, store
from fmapboard.writers.remote import RemoteDirectory, make_directory

CONFIG = "projector_config.pbtxt"
"""Name of the file, in a run's directory, that lists its data sets."""

_SHEET = 4096
"""Maximum side in px of a sheet of thumbnails: what every graphics card can hold."""

_THUMBNAIL = 128
"""Maximum side in px of a thumbnail."""


_ANOTHER = "name another layer as embedding, such as the one before the classifier"


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
            "embedding needs a local run directory for the files that TensorBoard's Projector "
            "reads. Pass log_dir= with a path on this machine"
        )
    known = named_layers(model)
    module = _module_of(layer, known)
    if module not in known:
        near = closest(layer, known) or "; for the names: visualize --list"
        raise LayerNotFound(f"no layer {layer!r} among {len(known)}{near}")
    return directory


def _module_of(layer: str, known: Mapping[str, nn.Module]) -> str:
    """The name of the module of a layer call such as ``relu.call2``."""
    if layer in known:
        return layer
    return re.sub(r"\.call\d+$", "", layer)


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
        self._layer = layer
        self._images = images
        self._directory = directory
        self._side = thumbnail_side(len(images.sources))
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
            raise ConfigurationError(
                f"layer {self._layer!r} did not run, or returned no tensor; {_ANOTHER}"
            )
        maps = as_maps(output, found.axes[self._layer]).maps  # [B, C, *spatial]
        if len(maps) != len(images):
            raise ConfigurationError(
                f"layer {self._layer!r} returned {list(output.shape)} for {len(images)} images: "
                f"expected one row per image; {_ANOTHER}"
            )
        if maps[0, 0].numel() > 1:
            size = "×".join(str(side) for side in maps.shape[2:])
            self._note = f"averaged over {size} positions, since the output is not a vector"
        if maps.dim() > 2:
            maps = maps.flatten(2).mean(-1)  # [B, C]
        self._vectors.append(maps)

    def add_thumbnail(self, written: WrittenImage) -> None:
        """Keep a small copy of the network's input in a white square, if that is an image."""
        for tagged in written.step.pictures:
            if tagged.kind == "network_input":
                image = Image.fromarray(tagged.samples[0].colours).convert("RGB")
                padded = ImageOps.pad(image, (self._side, self._side), color="white")
                self._thumbnails.append(np.asarray(padded))  # [side, side, 3]
                return

    def write(self) -> str:
        """Write the data set into the run's directory and describe it in one line.

        Its files are in a folder inside ``directory / "projector"``. A data set of the same layer
        is replaced, others are kept.

        Raises:
            WriteError: A file cannot be written, or the list of data sets cannot be read.
        """
        batches = [batch.float().cpu().numpy() for batch in self._vectors]
        vectors = np.concatenate(batches)  # [N, D]
        folder = self._directory / "projector" / file_stem(self._layer)
        config = _listed(self._directory / CONFIG)
        kept = [entry for entry in config.embeddings if entry.tensor_name != self._layer]
        place = f"projector/{folder.name}"
        entry = EmbeddingInfo(
            tensor_name=self._layer,
            tensor_shape=vectors.shape,
            tensor_path=f"{place}/vectors.tsv",
            metadata_path=f"{place}/labels.tsv",
        )
        names = self._images.names
        labels = [_one_line(names[number]) for number in self._images.numbers]
        lines = "".join(f"{label}\n" for label in labels)
        complete = len(self._thumbnails) == len(vectors)
        table = io.BytesIO()
        np.savetxt(table, vectors, fmt="%.9g", delimiter="\t")
        make_directory(folder)
        store(folder / "vectors.tsv", table.getvalue())
        store(folder / "labels.tsv", lines.encode())
        if complete:
            thumbnails = np.stack(self._thumbnails)  # [N, side, side, 3]
            sheet = Picture(_sheet(thumbnails))
            store(folder / "thumbnails.png", png.encode(sheet))
            entry.sprite.image_path = f"{place}/thumbnails.png"
            entry.sprite.single_image_dim.extend([self._side, self._side])
        config = ProjectorConfig(embeddings=[*kept, entry])
        text = text_format.MessageToString(config)
        store(self._directory / CONFIG, text.encode())
        count, values = vectors.shape
        notes = [f"Projector: {count} vectors of {values} values from {self._layer}"]
        if self._note:
            notes.append(self._note)
        if not complete:
            notes.append("without thumbnails: the input is no image")
        return ", ".join(notes)


def thumbnail_side(number: int) -> int:
    """Side in px of each of this many square thumbnails.

    Example:
        >>> thumbnail_side(12), thumbnail_side(10_000)
        (128, 40)
    """
    columns = math.ceil(math.sqrt(number))
    return max(1, min(_THUMBNAIL, _SHEET // columns))


def _listed(path: Path) -> ProjectorConfig:
    config = ProjectorConfig()
    try:
        if path.exists():
            text_format.Parse(path.read_text(encoding="utf-8"), config)
    except (OSError, ValueError, text_format.ParseError) as error:
        raise WriteError(f"cannot read {path}: {first_line(error)}; move it away") from error
    return config


def _sheet(thumbnails: Bytes8) -> Bytes8:
    """The thumbnails in rows on a square sheet, as the Projector expects them."""
    count = len(thumbnails)
    columns = math.ceil(math.sqrt(count))
    padded = np.zeros((columns * columns, *thumbnails.shape[1:]), np.uint8)
    padded[:count] = thumbnails
    return grid(padded, columns, 0, 0)


def _one_line(label: str) -> str:
    """A label as a line of its own; a tab would make the first line a header."""
    text = label.encode("utf-8", "backslashreplace").decode()
    return " ".join(text.split()) or "?"
