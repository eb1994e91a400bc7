"""``fmapboard patches``: find the parts of images that excite channels, and print a table."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.progress import track

from fmapboard.cli.console import console, say_model, say_overwritten, say_where, what_ran
from fmapboard.cli.model_request import ModelRequest, device_named
from fmapboard.imaging.all_images import selected_layers
from fmapboard.imaging.images import find_images
from fmapboard.imaging.patches import PatchFinder, Tensors, make_directories, patches_table
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.write_images import new_directory
from fmapboard.model.layers import Layers
from fmapboard.writers.remote import RemoteDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(ModelRequest):
    """The command-line options; ``fmapboard patches --help`` describes them."""

    spec: str
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    layers: Layers = None
    k: int = 9
    channels: int = 64
    several_per_image: bool = False
    log_dir: Path | RemoteDirectory | None = None
    out: Path | None = None
    step: int = 0
    batch_size: int = 4


def search_images(request: Request) -> None:
    """Load the model, search the images, write everything, and print a table.

    Raises:
        FmapboardError: The request is invalid or failed; the message is one line.
    """
    files = find_images(request.images)
    loaded = request.load(
        request.spec,
        request.checkpoint,
        weights=request.weights,
        checkpoint_key=request.checkpoint_key,
    )
    model = loaded.model.to(device_named(request.device))
    errors, output = console(stderr=True), console()
    if loaded.report is not None:
        errors.print(str(loaded.report))
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(model, request.layers)
    images = ReadImages.of(files, loaded.preprocessing, ahead=2 * request.batch_size)
    finder = PatchFinder(
        model, images, partial(errors.print, soft_wrap=True), request.layers, request.k,
        request.channels or None, not request.several_per_image, request.batch_size, request.step,
    )  # fmt: skip
    log_dir, out = request.log_dir, request.out
    if log_dir is None and out is None:
        log_dir = new_directory(Path("runs/patches"))
        out = log_dir / "png"
    make_directories(log_dir, out)
    say_model(loaded)
    with what_ran():
        found = finder.find(partial(_followed, len(files)))
    finder.write(found, log_dir, out)
    output.print(patches_table(found, loaded.not_loaded()))
    say_where(log_dir, out)
    say_overwritten(found.images.replaced, out)
    output.print(f"\n{found.images.line(len(files), chosen=chosen)}", soft_wrap=True)
    images.check_complete()


def _followed(count: int, images: Tensors) -> Tensors:
    """The images, with a progress bar on stderr if that is a terminal."""
    errors = console(stderr=True)
    with closing(images):
        yield from track(
            images, "searching", count, console=errors, disable=not errors.is_terminal,
            transient=True,
        )  # fmt: skip
