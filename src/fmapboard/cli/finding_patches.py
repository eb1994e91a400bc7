"""Find and write the patches of images that excite channels: what command and function share."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.all_images import AllImages
from fmapboard.cli.drawing import Drawing, batched
from fmapboard.errors import CaptureError, ConfigurationError, WriteError, escaped
from fmapboard.formats.overview import StepSource
from fmapboard.model.layers import Layers
from fmapboard.records import Bytes8, InputImage, LayerPatches, LoggedStep, Normalization
from fmapboard.render.grid import draw_input_image
from fmapboard.top_patches.pictures import draw_patches, patches_step, patches_tag
from fmapboard.top_patches.search import PatchSearch
from fmapboard.writers.event_file import has_foreign_events, has_own_events
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.remote import RemoteDirectory
from fmapboard.writers.tensorboard import KEEP_EARLIER, TensorBoardWriter


class Patches(dict[str, LayerPatches]):
    """The crops by label of the layer call, in call order; prints itself as a table.

    ``found["conv1"].crops[3][0]`` is the best crop of channel 3 of ``conv1``.

    Attributes:
        log_dir: The run directory of the event file; None if there is none.
        out: The folder of the PNG files; None if there is none.
        files: Label -> the PNG files.
        images: What was found in all images.
        left_out: Name and reason of the files in folders that could not be read.
    """

    def __init__(self, found: Mapping[str, LayerPatches]) -> None:
        super().__init__(found)
        self.log_dir: Path | RemoteDirectory | None = None
        self.out: Path | None = None
        self.files: dict[str, list[Path]] = {}
        self.images = AllImages()
        self.left_out: tuple[tuple[str, str], ...] = ()

    def picture(self, label: str, page: int = 0) -> Image.Image:
        """The crops of 64 channels of a layer, one row per channel, as the PNG files show them.

        Args:
            label: Of the layer call.
            page: Which 64 channels, counted from 0.
        """
        return Image.fromarray(draw_patches(self[label])[page].pixels)

    def rows(self) -> list[tuple[str, ...]]:
        """The table: layer, kernel shape or type, channels, largest field in px, file."""
        return [
            (
                label,
                one.layer_call.group,
                f"{len(one.crops)} of {one.channels}",
                "×".join(map(str, one.cell)) + (f" ({one.lost_at})" if one.lost_at else ""),
                str(self.files[label][0]) if self.files.get(label) else "–",
            )
            for label, one in self.items()
        ]

    def __repr__(self) -> str:
        lines = [HEADINGS, *(tuple(escaped(cell, keep="") for cell in row) for row in self.rows())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


HEADINGS = ("layer", "kernel shape", "channels", "field, px", "file")


def make_directories(*places: Path | RemoteDirectory | None) -> None:
    """Create the directories that are written to after a long search.

    Raises:
        FmapboardError: One cannot be created, or nothing can be written in it.
    """
    for place in places:
        if place is None:
            continue
        if isinstance(place, RemoteDirectory):
            place.make()
            continue
        try:
            place.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=place):
                pass
        except OSError as error:
            raise WriteError(f"cannot write to {place}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class PatchFinder:
    """What is searched and written, and how; ``fmapboard patches --help`` describes the options.

    Attributes:
        model: Any module.
        prepare: Turns a batch of images [B, C, H, W] into the model's input.
        normalization: Mean and standard deviation per channel of that input, if known.
        say: Called with messages.
    """

    model: nn.Module
    prepare: Callable[[Tensor], Tensor]
    normalization: Normalization | None
    say: Callable[[str], object]
    layers: Layers = None
    k: int = 9
    channels: int | None = 64
    one_per_image: bool = True
    batch_size: int = 4
    step: int = 0

    def __post_init__(self) -> None:
        for name, value in (("k", self.k), ("channels", self.channels)):
            if value is None and name == "channels":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name}={value!r}: expected at least 1")

    def find(self, images: Generator[Tensor, None, None], names: Sequence[str]) -> Patches:
        """Run the model once on each image.

        Args:
            images: [C, H, W] each, before ``prepare``.
            names: One per image; it may grow while they are read.

        Raises:
            FmapboardError: As ``PatchSearch`` does, or no selected layer ran.
        """
        search = PatchSearch(
            self.model, self.layers, self.k, self.channels, self.one_per_image, self.batch_size,
            say=self.say,
        )  # fmt: skip
        with closing(images):
            for batch in batched(images, self.batch_size):
                given = self.prepare(batch)
                pictures = [self._picture(*one) for one in zip(batch, given, strict=True)]
                search.add(given, pictures, names[search.images :][: len(batch)])
        found = search.result()
        if not found:
            raise CaptureError("no selected layer ran, or none returned a tensor")
        patches = Patches(found)
        ran = {one.layer_call.layer for one in found.values()}
        patches.images = AllImages(search.images, search.nan, search.infinite, ran=ran)
        return patches

    def write(
        self,
        found: Patches,
        log_dir: Path | RemoteDirectory | None,
        out: Path | None,
        first: Generator[Tensor, None, None],
        name: str,
    ) -> None:
        """Write the pictures, and for TensorBoard also the records of the tab.

        In a run directory without feature maps, those of the first image are written, too: the tab
        shows patches beside the maps of a channel.

        Args:
            found: What ``find`` returned; its `log_dir`, `out` and `files` are set.
            log_dir: The run directory, or None.
            out: Folder for PNG files, or None.
            first: Yields the first image, before ``prepare``.
            name: Of that image.

        Raises:
            WriteError: Something cannot be written.
        """
        written = patches_step(
            found.values(), self.step, time.time(), one_per_image=self.one_per_image
        )
        found.log_dir, found.out = log_dir, out
        if out is not None:
            folder = FolderWriter(out)
            folder.write(written)
            found.images.replaced = folder.replaced
            found.files = {
                label: folder.files.get(patches_tag(one), []) for label, one in found.items()
            }
        if log_dir is not None:
            self._log(written, log_dir, first, name)
        first.close()

    def _log(
        self,
        written: LoggedStep,
        log_dir: Path | RemoteDirectory,
        first: Generator[Tensor, None, None],
        name: str,
    ) -> None:
        place = log_dir / "fmapboard" if has_foreign_events(log_dir) else log_dir
        if not has_own_events(place):
            board = TensorBoardWriter(log_dir, start_step=self.step)
            source = StepSource("image", name)
            drawing = Drawing(layers=self.layers, step=self.step, sources=[source])
            drawn = drawing.written(
                self.model, first, board, [None], prepare=self.prepare,
                normalization=self.normalization, say=self.say,
            )  # fmt: skip
            with closing(board), closing(drawn):
                next(drawn)
        with closing(TensorBoardWriter(log_dir, start_step=KEEP_EARLIER)) as board:
            board.write(written)

    def _picture(self, image: Tensor, given: Tensor) -> Bytes8:
        """An image as the model sees it, without its normalization, u8 [H, W, 3]."""
        if image.dtype.itemsize == 1 and not image.is_floating_point():
            pixels: Bytes8 = image.permute(1, 2, 0).cpu().numpy()  # [H, W, C]
        else:
            values = given.detach().float().cpu().numpy()
            drawn = draw_input_image(InputImage(0, values, self.normalization))[0]
            pixels = drawn.pixels if drawn.pixels.ndim == 3 else drawn.pixels[..., None]
        if pixels.shape[2] == 3:
            return pixels
        grey: Bytes8 = pixels.mean(-1, keepdims=True).round().astype(np.uint8)
        return np.repeat(grey, 3, -1)
