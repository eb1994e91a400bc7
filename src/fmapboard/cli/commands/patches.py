"""``fmapboard patches``: find the parts of images that excite channels, and print a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import track

from fmapboard.cli.console import console, note, say_model, say_where, what_ran
from fmapboard.imaging.drawing import selected_layers
from fmapboard.imaging.forward_inputs import inputs_from
from fmapboard.imaging.images import find_images
from fmapboard.imaging.models.load import device_named, load_model
from fmapboard.imaging.models.request import ModelRequest
from fmapboard.imaging.patches import Tensors, find_patches, patches_table
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.write_images import places
from fmapboard.top_patches.search import PatchSearch
from fmapboard.writers.remote import RemoteDirectory


def search_images(
    request: ModelRequest,
    images: Sequence[Path],
    *,
    log_dir: Path | RemoteDirectory | None,
    out: Path | None,
    step: int,
    batch_size: int,
    **options: Any,
) -> None:
    """Load the model, search the images, write everything, and print a table.

    Args:
        request: The model.
        images: Image files and folders.
        log_dir: The run directory, or None.
        out: The folder of PNG files, or None.
        step: Number of the step.
        batch_size: Maximum number of images per forward pass.
        options: Those of `PatchSearch`.

    Raises:
        FmapboardError: An option is invalid, or something failed; the message is one line.
    """
    files = find_images(images)
    inputs = inputs_from(request.inputs, len(files), request.forward_args)
    loaded = load_model(request)
    model = loaded.model.to(device_named(request.device))
    if loaded.report is not None:
        console(stderr=True).print(str(loaded.report))
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(model, options["layers"])
    inputs.check(model)
    read = ReadImages.of(files, loaded.preprocessing, ahead=2 * batch_size)
    search = PatchSearch(model, batch_size=batch_size, say=note, **options)
    log_dir, out = places("patches", log_dir, out)
    say_model(loaded)
    with what_ran():
        followed = partial(_followed, len(files))
        found = find_patches(search, read, log_dir, out, step, inputs, followed)
    console().print(patches_table(found, loaded.not_loaded()))
    say_where(log_dir, out)
    found.images.say_overwritten(out, note)
    console().print(f"\n{found.images.line(len(files), chosen=chosen)}", soft_wrap=True)
    read.check_complete()


def _followed(count: int, images: Tensors) -> Tensors:
    """The images, with a progress bar on stderr if that is a terminal."""
    errors = console(stderr=True)
    with closing(images):
        yield from track(
            images, "searching", count, console=errors, disable=not errors.is_terminal,
            transient=True,
        )  # fmt: skip
