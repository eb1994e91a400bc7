"""``visualize``: draw a network's feature maps for images, for TensorBoard and as PNG files."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from fmapboard.cli.all_images import AllImages, not_shown, selected_layers
from fmapboard.cli.attributed import scored
from fmapboard.cli.checkpoint_series import Checkpoint, SeriesOptions, draw_series, series_of
from fmapboard.cli.drawing import Drawing, folders_of
from fmapboard.cli.embedding import check_embedding, with_embedding
from fmapboard.cli.forward_inputs import ForwardInputs
from fmapboard.cli.images import ImageFile, find_images
from fmapboard.cli.input_files import inputs_from
from fmapboard.cli.layer_list import print_layers
from fmapboard.cli.model_request import ModelRequest
from fmapboard.cli.models.load import LoadedModel
from fmapboard.cli.read_images import ReadImages
from fmapboard.cli.report import is_temporary, logged_for, say_report
from fmapboard.cli.run_dirs import new_directory
from fmapboard.cli.silenced import Silenced, class_names
from fmapboard.cli.table import console, layer_table
from fmapboard.cli.terminal import say_model, say_overwritten, say_where, what_ran
from fmapboard.cli.write_images import WrittenImage
from fmapboard.demo.bundled import bundled
from fmapboard.errors import ConfigurationError, escaped
from fmapboard.model.layers import Layers
from fmapboard.records import Scale
from fmapboard.writers.remote import RemoteDirectory
from fmapboard.writers.tensorboard import TensorBoardWriter

TABLES = 3
"""With more images than this, only the first one's table is printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(ModelRequest):
    """The command-line options; ``visualize --help`` describes them."""

    spec: str = "demo"
    weights: str = "DEFAULT"
    checkpoint: Path | None = None
    logdir: Path | RemoteDirectory | None = None
    out: Path | None = None
    html: Path | None = None
    step: int = 0
    only_list: bool = False
    samples: int | None = None
    batch_size: int = 4
    colormap: str = "grey"
    scale: Scale = "channel"
    depth: int | None = None
    kernels: bool = False
    attribution: bool = False
    class_number: int | None = None
    silence: tuple[str, ...] = ()
    effective: bool = False
    labels: bool = False
    embedding: str | None = None

    @property
    def chosen(self) -> Layers:
        """The argument of `layers.select`: the patterns, or None if no ``--layers`` was given."""
        return list(self.layers) or None

    @property
    def drawing(self) -> Drawing:
        """What is drawn of each image, and how."""
        return Drawing(
            layers=self.chosen,
            batch_size=self.batch_size,
            colormap=self.colormap,
            scale=self.scale,
            depth=self.depth,
            kernels=self.kernels,
            attribution=self.attribution,
            class_number=self.class_number,
            first_step=self.step,
            effective=self.effective,
            labels=self.labels,
        )

    def class_names(self, model: nn.Module) -> tuple[str, ...]:
        """Names of the classes of a network with its own weights; empty if they are not known."""
        has_own = self.checkpoint is None and self.weights.lower() != "none"
        return class_names(self.spec, self.weights, model) if has_own else ()

    def silenced(self, model: nn.Module) -> Silenced | None:
        """What ``--silence`` asks for, or None."""
        if not self.silence:
            return None
        return Silenced(model, self.silence, self.class_names(model))


def visualize_images(request: Request) -> None:
    """Load the model, then draw its feature maps, or with ``--list`` print its layers.

    Raises:
        FmapboardError: the request is invalid or failed; the message is one line.
    """
    if request.class_number is not None and not request.attribution:
        raise ConfigurationError("--class needs --attribution")
    files = find_images(request.images or [bundled("photographs") / "chelsea.jpg"])
    inputs = inputs_from(request.inputs, len(files))
    series = series_of(request.checkpoint)
    for option in ("silence", "embedding", "step"):
        if series and getattr(request, option):
            raise ConfigurationError(f"--{option} takes one checkpoint, not several")
    loaded = request.load(
        request.spec,
        series[0].path if series else request.checkpoint,
        weights=request.weights,
        checkpoint_key=request.checkpoint_key,
    )
    if loaded.report is not None:
        console(stderr=True).print(str(loaded.report))
    if request.only_list:
        print_layers(loaded, files[0].path if request.images else None, request.chosen, inputs)
        return
    images = ReadImages(
        files[: request.samples], loaded.preprocessing.fit, ahead=2 * request.batch_size
    )
    steps = len(series or images.sources)
    with logged_for(request.html, request.logdir, steps, say_report) as logdir:
        request = replace(request, logdir=logdir)
        if series:
            _draw_series(request, loaded, series, images, inputs)
        else:
            draw_images(request, loaded, images, inputs)
    images.check_complete()


def _draw_series(
    request: Request,
    loaded: LoadedModel,
    series: list[Checkpoint],
    images: ReadImages,
    inputs: ForwardInputs,
) -> None:
    """Draw the images with each checkpoint of a series."""
    inputs.check(loaded.model)
    loaded.model.to(device_named(request.device))
    say_model(loaded)
    logdir, folder = _places(request)
    options = SeriesOptions(
        replace(request.drawing, inputs=inputs), request.checkpoint_key, logdir, folder
    )
    with what_ran():
        found = draw_series(options, loaded, series, images)
    say_where(logdir, folder)
    say_overwritten(found.replaced, folder)
    chosen = selected_layers(loaded.model, request.chosen)
    pictures = len(images.sources) * len(series)
    _say_last(found.line(pictures, noun="picture", chosen=chosen), logdir, len(series))


def draw_images(
    request: Request, loaded: LoadedModel, images: ReadImages, inputs: ForwardInputs
) -> None:
    """Draw a loaded network's feature maps for images, and print tables of its layers.

    Raises:
        FmapboardError: the request is invalid or failed; the output of earlier images is kept.
    """
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(loaded.model, request.chosen)
    inputs.check(loaded.model)
    silenced = request.silenced(loaded.model)
    loaded.model.to(device_named(request.device))
    out = console()
    say_model(loaded)
    logdir, folder = _places(request)
    stays = logdir is not None and not is_temporary(logdir)
    check_embedding(request.embedding, loaded.model, logdir if stays else None)
    board = None if logdir is None else TensorBoardWriter(logdir, start_step=request.step)
    files = [one for one in images.sources if isinstance(one, ImageFile)]
    progress = _progress(len(files))
    labels, tell = images.of_read([one.name for one in files]), partial(out.print, soft_wrap=True)
    drawing = replace(request.drawing, inputs=inputs, names=labels, numbers=images.numbers)
    say = partial(progress.console.print, soft_wrap=True)
    if silenced is not None:
        out.print(str(silenced), soft_wrap=True)
        drawing = replace(drawing, around=silenced.around)
    drawing, collected = with_embedding(
        request.embedding, drawing, loaded.model, len(files), board, tell
    )
    written_images = drawing.written(
        loaded.model,
        images.tensors(),
        board,
        images.of_read(folders_of(folder, [one.stem for one in files])),
        prepare=loaded.preprocessing.normalize,
        normalization=(loaded.preprocessing.mean, loaded.preprocessing.std),
        say=say,
    )
    found, unloaded = AllImages(), loaded.not_loaded()
    names = request.class_names(loaded.model) if request.attribution else ()
    try:
        with what_ran(), closing(collected(written_images)) as done:
            for number, written in enumerate(done):
                file = files[images.numbers[number]]
                found.add(file.name, written.step, written.replaced)
                progress.update(progress.task_ids[0], completed=images.numbers[number] + 1)
                if number == 0 or len(files) <= TABLES:
                    _print_tables(file.path, written, silenced, number, unloaded)
                    progress.start()  # not earlier: the bar would interrupt the first table
                if written.score is not None:
                    out.print(scored(file.name, written.score, names), soft_wrap=True)
    finally:
        if progress.live.is_started:
            progress.stop()
        if board is not None:
            board.close()
    if silenced is not None and len(files) > 1:
        out.print(f"\n{silenced.summary()}")
    say_where(logdir, folder, images=len(files))
    say_overwritten(found.replaced, folder)
    _say_last(found.line(len(files), chosen=chosen), logdir, found.count)


def _say_last(line: str, logdir: Path | RemoteDirectory | None, steps: int) -> None:
    """Print what was found in all images, and what TensorBoard will not show of the run."""
    missing = "" if logdir is None or is_temporary(logdir) else not_shown(steps, logdir)
    console().print(f"\n{'; '.join(filter(None, [line, missing]))}", soft_wrap=True)


def _print_tables(
    path: Path,
    written: WrittenImage,
    silenced: Silenced | None,
    number: int,
    unloaded: Mapping[str, str],
) -> None:
    """Print the layers of an image, and what was silenced in it; ``number`` counts from 0."""
    out = console()
    out.print(f"\n{escaped(path, keep='')}", soft_wrap=True)
    out.print(layer_table(written.step, written.files, unloaded))
    if silenced is not None:
        out.print("", silenced.table(number), sep="\n")


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


def device_named(name: str) -> torch.device:
    """The torch device with this name.

    Raises:
        ConfigurationError: it cannot be used.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(f"--device {name!r} cannot be used: {reason}") from error
    return device
