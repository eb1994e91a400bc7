"""Find and write the patches of images that excite channels: the function and the command."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from types import MappingProxyType
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor, nn

from fmapboard.errors import CaptureError, log, writing
from fmapboard.image_passes import NOTHING_RAN
from fmapboard.imaging.forward_inputs import ForwardInputs
from fmapboard.imaging.read_images import ReadImages, given_images
from fmapboard.imaging.visualize import AllImages, Drawing, batched, check_run, draw_folder
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, select, unwrap
from fmapboard.options import Normalizing
from fmapboard.printing import Table, add_row, as_text, new_table
from fmapboard.records import Bytes8, InputImage, LayerPatches, Normalization
from fmapboard.render.grid import draw_input_image
from fmapboard.top_patches.pictures import draw_patches, patches_step, patches_tag
from fmapboard.top_patches.search import PatchSearch
from fmapboard.writers.event_file import has_foreign_events, has_own_events
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.remote import RemoteDirectory, local_directory, log_directory, make_directory
from fmapboard.writers.tensorboard import KEEP_EARLIER, TensorBoardWriter

Tensors = Generator[Tensor, None, None]


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

    log_dir: Path | RemoteDirectory | None = None
    out: Path | None = None
    files: Mapping[str, list[Path]] = MappingProxyType({})
    images: AllImages
    left_out: tuple[tuple[str, str], ...] = ()

    def picture(self, label: str, page: int = 0) -> Image.Image:
        """The crops of 64 channels of a layer, one row per channel, as the PNG files show them.

        Args:
            label: Of the layer call.
            page: Which 64 channels, counted from 0.
        """
        return Image.fromarray(draw_patches(self[label])[page].pixels)

    def __repr__(self) -> str:
        return as_text(patches_table(self, {}))


def patches_table(found: Patches, unloaded: Mapping[str, str]) -> Table:
    """One row per layer: kernel shape or type, channels, largest field in px, file.

    Args:
        found: the crops.
        unloaded: as for `layer_table`.
    """
    table = new_table()
    headings = ["layer", "kernel shape", "channels", "field, px", "file"]
    if unloaded:
        headings.insert(2, "weights")
    for heading in headings:
        table.add_column(heading, no_wrap=heading != "file", overflow="fold")
    for label, layer in found.items():
        call = layer.layer_call
        cells: list[object] = [label, call.group]
        if unloaded:
            cells.append(unloaded.get(call.layer, ""))
        cells.append(f"{len(layer.crops)} of {layer.channels}")
        field = "×".join(str(side) for side in layer.cell)
        if layer.lost_at:
            field += f" ({layer.lost_at})"
        cells.append(field)
        files = found.files.get(label)
        cells.append(files[0] if files else "–")
        add_row(table, *cells)
    return table


def _make_directories(*places: Path | RemoteDirectory | None) -> None:
    """Create the directories that are written to after a long search.

    Raises:
        FmapboardError: One cannot be created, or nothing can be written in it.
    """
    for place in places:
        if isinstance(place, RemoteDirectory):
            place.make()
        elif place is not None:
            make_directory(place)
            with writing(f"to {place}"):
                TemporaryFile(dir=place).close()


def find_patches(
    search: PatchSearch,
    images: ReadImages,
    *,
    log_dir: Path | RemoteDirectory | None,
    out: Path | None,
    step: int,
    inputs: ForwardInputs,
    follow: Callable[[Tensors], Tensors] = lambda images: images,
) -> Patches:
    """Run the model once on each image, then write the pictures and the records of the tab.

    In a run directory without feature maps, those of the first image are written, too: the tab
    shows patches beside the maps of a channel.

    Args:
        search: The model, and what is searched.
        images: The images.
        log_dir: The run directory, or None.
        out: Folder for PNG files, or None.
        step: Number of the step.
        inputs: What the model takes in addition to images, the same for all of them.
        follow: Yields the images that it is given, and shows how many.

    Raises:
        FmapboardError: As ``PatchSearch`` does, no selected layer ran, or something cannot be
            written.
    """
    _make_directories(log_dir, out)
    names = images.names
    with inputs.applied(search.model), closing(follow(images.tensors())) as tensors:
        for batch in batched(tensors, search.batch_size):
            _search_batch(search, images, batch, names)
    found = Patches(search.result())
    if not found:
        raise CaptureError(NOTHING_RAN)
    ran = {layer.layer_call.layer for layer in found.values()}
    found.images = AllImages(search.images, search.nan, search.infinite, ran=ran)
    found.left_out = tuple(images.left_out)
    found.log_dir = log_dir
    found.out = out
    written = patches_step(found.values(), step, time.time(), one_per_image=search.one_per_image)
    if out is not None:
        folder = FolderWriter(out)
        folder.write(written)
        found.images.replaced = folder.replaced
        files = {}
        for label, layer in found.items():
            tag = patches_tag(layer)
            files[label] = folder.files.get(tag, [])
        found.files = files
    if log_dir is not None:
        drawing = Drawing(search.layers, step=step, inputs=inputs)
        _draw_first(drawing, search, images, log_dir)
        with closing(TensorBoardWriter(log_dir, start_step=KEEP_EARLIER)) as board:
            board.write(written)
    return found


def _search_batch(
    search: PatchSearch, images: ReadImages, batch: Tensor, names: Sequence[str]
) -> None:
    """Search the next images, [B, C, H, W] as they were read; ``names`` are those of all."""
    given = images.prepare(batch)
    pictures = []
    for image, prepared in zip(batch, given, strict=True):
        pictures.append(_picture(image, prepared, images.normalization))
    unsearched = images.numbers[search.images :]
    own_names = [names[number] for number in unsearched[: len(batch)]]
    search.add(given, pictures, own_names)


def _draw_first(
    drawing: Drawing, search: PatchSearch, images: ReadImages, log_dir: Path | RemoteDirectory
) -> None:
    """Write the feature maps of the first image into a run directory that has none."""
    place = log_dir / "fmapboard" if has_foreign_events(log_dir) else log_dir
    if has_own_events(place):
        return
    draw_folder(
        drawing,
        search.model,
        images.only(images.numbers[0]),
        logdir=log_dir,
        out=None,
        say=search.say,
        each=lambda name, written: None,
    )


def _picture(image: Tensor, given: Tensor, normalization: Normalization | None) -> Bytes8:
    """An image as the model sees it, without its normalization, u8 [H, W, 3]."""
    if image.dtype.itemsize == 1 and not image.is_floating_point():
        pixels: Bytes8 = image.permute(1, 2, 0).cpu().numpy()  # [H, W, C]
    else:
        values = given.detach().float().cpu().numpy()
        drawn, *_ = draw_input_image(InputImage(0, values, normalization))
        pixels = drawn.pixels if drawn.pixels.ndim == 3 else drawn.pixels[..., None]
    if pixels.shape[2] == 3:
        return pixels
    grey: Bytes8 = pixels.mean(-1, keepdims=True).round().astype(np.uint8)
    return np.repeat(grey, 3, -1)


def patches(
    model: nn.Module,
    images: Any,
    layers: Layers = None,
    *,
    k: int = 9,
    channels: int | None = 64,
    one_per_image: bool = True,
    log_dir: str | Path | None = None,
    out: str | Path | None = None,
    step: int = 0,
    transform: Callable[[Image.Image], Tensor] | None = None,
    normalization: Normalization | Normalizing | None = None,
    batch_size: int = 4,
) -> Patches:
    """Find the parts of images that excite each channel most: its largest values, with their crops.

    The model runs once on each image, in eval mode, on its own device. A crop is the receptive
    field of the position with that value: no pixel outside of it changes the value. The fields are
    measured on the model itself, which takes about 180 further passes for images of 224 px, once
    per size of image. Memory does not grow with the number of images.

    Args:
        model: Any module that takes images [N, C, H, W].
        images: A tensor [N, C, H, W] or [C, H, W], as the model takes it; or an image file, a
            folder with its subfolders, a ``PIL.Image.Image``, or a list of these. A file in a
            folder that cannot be read is left out, with a warning.
        layers: Layers to search, such as 'layer1.*'. As in ``extract``.
        k: Number of crops per channel.
        channels: The first channels of each layer that are searched; None for all.
        one_per_image: Take at most one crop of an image per channel; False takes the ``k`` largest
            values over all positions, which often lie side by side in one image.
        log_dir: Run directory or URL for TensorBoard, to whose run the patches are added. In the
            directory of an earlier run of fmapboard, the tab shows them beside the channels' maps.
            Without an earlier run, the maps of the first image are written, too.
        out: Folder of the PNG files: one picture per layer, with one row per channel.
        step: Number of the step for TensorBoard: how far the model was trained.
        transform: As in ``visualize``.
        normalization: Mean and standard deviation per channel with which ``images`` were
            normalized, or torchvision's ``Normalize``, to draw the crops as they were before.
        batch_size: Maximum number of images per forward pass.

    Returns:
        A dict in call order, label of the layer call -> its crops, best first. Of equal values, the
        earlier image comes first, then the earlier position; NaN is left out, and counted.

    Raises:
        LayerNotFound: A pattern in ``layers`` matches no layer.
        ConfigurationError: An argument is invalid.
        ImageError: A file cannot be read as an image.
        ForwardError: The model raised an exception, as in ``extract``.
        WriteError: A directory or file cannot be written to.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> import fmapboard
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 2, 3))
        >>> found = fmapboard.patches(net, torch.rand(20, 3, 40, 40), k=5)
        >>> found
        layer  kernel shape  channels  field, px  file
        0      8x3x3x3       8 of 8    3×3        –
        2      2x8x3x3       2 of 2    5×5        –
        >>> best = found["2"].crops[1][0]
        >>> best.pixels.shape, len(found["2"].crops[1])
        ((5, 5, 3), 5)
    """
    check_model(model)
    model = unwrap(model)
    select(model, layers)  # an invalid pattern fails before anything is written
    check_run(step, batch_size)
    given = given_images(images, model, transform, normalization)
    place = None if log_dir is None else log_directory(log_dir)
    folder = None if out is None else local_directory(out, "a folder of PNG files")
    say = partial(log.info, "%s")
    search = PatchSearch(
        model,
        layers,
        k=k,
        channels=channels,
        one_per_image=one_per_image,
        batch_size=batch_size,
        say=say,
    )
    found = find_patches(
        search, given, log_dir=place, out=folder, step=step, inputs=ForwardInputs()
    )
    warn = partial(log.warning, "%s")
    found.images.say_overwritten(folder, warn)
    given.say_left_out(warn)
    return found
