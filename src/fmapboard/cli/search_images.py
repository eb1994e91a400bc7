"""``fmapboard patches``: find the parts of image files that excite the channels of a network."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.progress import track
from rich.table import Table
from torch import Tensor, nn

from fmapboard.cli.all_images import selected_layers
from fmapboard.cli.finding_patches import HEADINGS, Patches, PatchFinder, make_directories
from fmapboard.cli.images import find_images
from fmapboard.cli.model_request import ModelRequest
from fmapboard.cli.models.load import Preprocessing
from fmapboard.cli.read_images import ReadImages
from fmapboard.cli.run_dirs import new_directory
from fmapboard.cli.table import add_row, console
from fmapboard.cli.terminal import say_model, say_overwritten, say_where, what_ran
from fmapboard.cli.visualize import device_named
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
    model, prepare = loaded.model.to(device_named(request.device)), loaded.preprocessing
    errors, output = console(stderr=True), console()
    if loaded.report is not None:
        errors.print(str(loaded.report))
    chosen = selected_layers(
        model, request.layers
    )  # an invalid pattern fails before anything is written
    finder = _finder(request, model, prepare)
    log_dir, out = _directories(request)
    say_model(loaded)
    images = ReadImages(files, prepare.fit, ahead=2 * request.batch_size)
    names = images.of_read([one.name for one in files])
    with what_ran():
        found = finder.find(_followed(images.tensors(), len(files)), names)
    finder.write(found, log_dir, out, images.first(), names[0])
    output.print(_table(found, loaded.not_loaded()))
    say_where(log_dir, out)
    say_overwritten(found.images.replaced, out)
    output.print(f"\n{found.images.line(len(files), chosen=chosen)}", soft_wrap=True)
    images.check_complete()


def _finder(request: Request, model: nn.Module, prepare: Preprocessing) -> PatchFinder:
    """The search with the request's options; its warnings go to stderr."""
    return PatchFinder(
        model,
        prepare.normalize,
        (prepare.mean, prepare.std),
        partial(console(stderr=True).print, soft_wrap=True),
        request.layers,
        request.k,
        request.channels or None,
        not request.several_per_image,
        request.batch_size,
        request.step,
    )


def _directories(request: Request) -> tuple[Path | RemoteDirectory | None, Path | None]:
    """The run directory and the folder for PNG files, created; None if not used."""
    log_dir, out = request.log_dir, request.out
    if log_dir is None and out is None:
        log_dir = new_directory(Path("runs/patches"))
        out = log_dir / "png"
    make_directories(log_dir, out)
    return log_dir, out


def _table(found: Patches, unloaded: Mapping[str, str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in (*HEADINGS[:2], *["weights"] * bool(unloaded), *HEADINGS[2:]):
        table.add_column(heading, no_wrap=heading != "file", overflow="fold")
    for (name, shape, *others), one in zip(found.rows(), found.values(), strict=True):
        weights = [unloaded.get(one.layer_call.layer, "")] if unloaded else []
        add_row(table, name, shape, *weights, *others)
    return table


def _followed(images: Generator[Tensor, None, None], count: int) -> Generator[Tensor, None, None]:
    """The images, with a progress bar on stderr if that is a terminal."""
    errors = console(stderr=True)
    with closing(images):
        yield from track(
            images, "searching", count, console=errors, disable=not errors.is_terminal,
            transient=True,
        )  # fmt: skip
