"""``fmapboard.patches``: the ``fmapboard patches`` command for a model that is a Python object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from fmapboard.cli.all_images import overwritten
from fmapboard.cli.finding_patches import Patches, PatchFinder, make_directories
from fmapboard.cli.from_python import check_run
from fmapboard.cli.given_images import GivenImages
from fmapboard.errors import log
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, select, unwrap
from fmapboard.options import Normalizing
from fmapboard.records import Normalization
from fmapboard.writers.remote import local_directory, log_directory


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
        layers: Which layers, as in ``extract``.
        k: Number of crops per channel.
        channels: The first channels of each layer that are searched; None for all.
        one_per_image: Take at most one crop of an image per channel; False takes the ``k`` largest
            values over all positions, which often lie side by side in one image.
        log_dir: Run directory or URL of the event file for TensorBoard. In a directory with an
            earlier run of fmapboard, the patches are added to it: give the run's directory to see
            them in the tab beside the channels' maps. Otherwise the maps of the first image are
            written, too.
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
    given = GivenImages.of(images, model, transform, normalization)
    place = None if log_dir is None else log_directory(log_dir)
    folder = None if out is None else local_directory(out, "a folder of PNG files")
    finder = PatchFinder(
        model, given.prepare, given.normalization, lambda text: log.info("%s", text),
        layers, k, channels, one_per_image, batch_size, step,
    )  # fmt: skip
    make_directories(place, folder)
    names = given.of_read(given.names)
    found = finder.find(given.tensors(), names)
    found.left_out = given.left_out
    finder.write(found, place, folder, given.first(), names[0])
    if found.images.replaced:
        log.warning("%s", overwritten(found.images.replaced, folder))
    given.warn_left_out()
    return found
