"""``visualize``: draw a network's feature maps for images, for TensorBoard and as PNG files."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from fmapboard.capture.step_parts import PendingStep
from fmapboard.cli.attributed import SIDE, with_attributions
from fmapboard.cli.images import decoding, find_images, read_fitted
from fmapboard.cli.models.arguments import check_forward
from fmapboard.cli.models.load import LoadedModel, load_model
from fmapboard.cli.prefetch import prefetched
from fmapboard.cli.run_dirs import new_directory, to_paste
from fmapboard.cli.table import console, group_table, layer_table
from fmapboard.cli.write_images import ImageWriter
from fmapboard.demo.bundled import bundled
from fmapboard.errors import ConfigurationError
from fmapboard.image_passes import ImagePasses
from fmapboard.measure.reducer import Reducer
from fmapboard.model.layers import Layers, kernel_groups, kernel_shape, select
from fmapboard.records import Scale
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers.folder import free_name
from fmapboard.writers.remote import RemoteDirectory
from fmapboard.writers.tensorboard import TensorBoardWriter

TABLES = 3
"""With more images than this, only the first one's table is printed."""

READERS = min(4, os.cpu_count() or 1)
"""Threads that read images ahead of the forward passes."""


@dataclass(frozen=True, slots=True)
class Request:
    """The command-line options; ``visualize --help`` describes them."""

    images: tuple[Path, ...] = ()
    spec: str = "demo"
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    checkpoint_key: str | None = None
    model_args: tuple[str, ...] = ()
    forward_args: tuple[str, ...] = ()
    logdir: Path | RemoteDirectory | None = None
    out: Path | None = None
    layers: tuple[str, ...] = ()
    only_list: bool = False
    input_size: int | None = None
    samples: int | None = None
    batch_size: int = 4
    colormap: str = "grey"
    scale: Scale = "channel"
    depth: int | None = None
    kernels: bool = False
    attribution: bool = False
    class_number: int | None = None
    device: str = "cpu"

    @property
    def chosen(self) -> Layers:
        """The argument of `layers.select`: the patterns, or None if no ``--layers`` was given."""
        return list(self.layers) or None


def visualize_images(request: Request) -> None:
    """Load the model, then draw its feature maps, or with ``--list`` print its layers.

    Raises:
        FmapboardError: the request is invalid or failed; the message is one line.
    """
    if request.class_number is not None and not request.attribution:
        raise ConfigurationError("--class needs --attribution")
    paths = find_images(request.images or [bundled("photographs") / "chelsea.jpg"])
    loaded = load_model(
        request.spec,
        weights=request.weights,
        checkpoint=request.checkpoint,
        checkpoint_key=request.checkpoint_key,
        input_size=request.input_size,
        model_args=request.model_args,
        forward_args=request.forward_args,
    )
    if loaded.report is not None:
        console(stderr=True).print(str(loaded.report), markup=False)
    if request.only_list:
        _print_layers(loaded, request.chosen)
        return
    draw_images(request, loaded, paths[: request.samples])


def _print_layers(loaded: LoadedModel, layers: Layers) -> None:
    chosen = select(loaded.model, layers)
    others = {n: type(m).__name__ for n, m in chosen.items() if kernel_shape(m) is None}
    console().print(group_table(kernel_groups(loaded.model, layers), others))


def draw_images(request: Request, loaded: LoadedModel, paths: list[Path]) -> None:
    """Draw a loaded network's feature maps for images, and print tables of its layers.

    Raises:
        FmapboardError: the request is invalid or failed; the output of earlier images is kept.
    """
    select(loaded.model, request.chosen)  # an invalid pattern fails before anything is written
    check_forward(loaded.model)
    loaded.model.to(_device(request.device))
    out = console()
    out.print(f"{loaded.name}, preprocessing: {loaded.preprocessing.source}", markup=False)
    logdir, folder = _places(request)
    board = None if logdir is None else TensorBoardWriter(logdir)
    compose = SummaryBuilder(colormap=request.colormap, scale=request.scale, attribution_side=SIDE)
    writer = ImageWriter(compose, board, _folders(folder, paths))
    progress = _progress(len(paths))
    say = partial(progress.console.print, markup=False, soft_wrap=True)
    images = _recorded(request, loaded, paths, say)
    try:
        with closing(images), closing(writer.write(images)) as done:
            for path, written in zip(paths, done, strict=True):
                progress.advance(progress.task_ids[0])
                if written.step.step == 0 or len(paths) <= TABLES:
                    out.print(f"\n{path}", markup=False, soft_wrap=True)
                    out.print(layer_table(written.step, written.files))
                    progress.start()  # not earlier: the bar would interrupt the first table
    finally:
        if progress.live.is_started:
            progress.stop()
        if board is not None:
            board.close()
    _say_where(logdir, folder, len(paths))


def _recorded(
    request: Request, loaded: LoadedModel, paths: list[Path], say: Callable[[str], object]
) -> Generator[PendingStep, None, None]:
    """Yield one recorded step per image, numbered from 0; images are read ahead in threads."""
    prepare, size = loaded.preprocessing, request.batch_size
    passes = ImagePasses(
        loaded.model,
        Reducer.for_model(
            loaded.model,
            max_channels=None,
            max_tile=None,
            scale=request.scale,
            colormap=request.colormap,
            depth=request.depth,
        ),
        layers=request.chosen,
        normalization=(prepare.mean, prepare.std),
        kernels=request.kernels,
        refused=lambda reason: say(f"Running one image per forward pass: {reason}"),
    )

    def read(path: Path) -> Tensor:
        return read_fitted(path, prepare.fit)

    first = 0
    fitted = prefetched(read, paths, ahead=2 * size, threads=READERS)
    with decoding(), closing(fitted):
        for batch in batched(fitted, size):
            images = prepare.normalize(batch)
            steps: Iterable[PendingStep] = passes(images, first)
            if request.attribution:
                steps = with_attributions(steps, loaded.model, images, request.class_number)
            yield from steps
            first += len(batch)


def batched(images: Iterable[Tensor], size: int) -> Iterator[Tensor]:
    """Stack up to ``size`` consecutive images of equal shape [C, H, W] into batches [B, C, H, W].

    If ``images`` raises an error, the images before it are yielded as a batch first.
    """
    together: list[Tensor] = []
    try:
        for image in images:
            if together and (len(together) == size or image.shape != together[0].shape):
                yield torch.stack(together)
                together = []
            together.append(image)
    except Exception:
        if together:
            yield torch.stack(together)
        raise
    if together:
        yield torch.stack(together)


def _progress(images: int) -> Progress:
    """A progress bar on stderr; disabled for few images or if stderr is not a terminal."""
    where = console(stderr=True)
    progress = Progress(
        TextColumn("visualizing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=where,
        disable=images <= TABLES or not where.is_terminal,
    )
    progress.add_task("", total=images)
    return progress


def _places(request: Request) -> tuple[Path | RemoteDirectory | None, Path | None]:
    """The run directory for TensorBoard and the folder for PNG files; None if not used."""
    if request.logdir is None and request.out is None:
        fresh = new_directory(Path("runs/visualize"))
        return fresh, fresh / "png"
    return request.logdir, request.out


def _folders(folder: Path | None, paths: list[Path]) -> list[Path | None]:
    """The folder for each image's PNG files: ``folder`` for a single image, else one per image."""
    if folder is None or len(paths) == 1:
        return [folder] * len(paths)
    taken: set[str] = set()
    return [folder / free_name(path.stem, taken) for path in paths]


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(f"--device {name!r} cannot be used: {reason}") from error
    return device


def _say_where(logdir: Path | RemoteDirectory | None, folder: Path | None, images: int) -> None:
    out = console()
    if folder is not None:
        out.print(f"\nPNG files: {folder}", markup=False, soft_wrap=True)
    if logdir is not None:
        each = " (one step per image)" if images > 1 else ""
        out.print(
            f"\nTensorBoard{each}:\n  {to_paste('serve', logdir)}", markup=False, soft_wrap=True
        )
