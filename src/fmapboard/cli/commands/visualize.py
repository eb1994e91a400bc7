"""``visualize`` and ``fmapboard patches``: run a network on images, draw its maps, find patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fmapboard.cli.commands.report import say_report
from fmapboard.cli.commands.serve import KEPT_STEPS
from fmapboard.cli.run_dirs import to_paste
from fmapboard.demo.bundled import PHOTOGRAPH
from fmapboard.errors import CaptureError, ConfigurationError, ForwardError, escaped
from fmapboard.extraction.layer_table import layers
from fmapboard.imaging.forward_inputs import ForwardInputs, inputs_from
from fmapboard.imaging.images import ImageFile, evenly, find_images, read_image
from fmapboard.imaging.layer_table import layer_table
from fmapboard.imaging.models.checkpoints import Checkpoint, load_checkpoint, series_of
from fmapboard.imaging.models.load import device_named, load_model
from fmapboard.imaging.models.request import LoadedModel, ModelRequest
from fmapboard.imaging.patches import Tensors, find_patches, patches_table
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.visualize import (
    AllImages,
    Drawing,
    draw_folder,
    draw_series,
    logged_for,
    selected_layers,
)
from fmapboard.imaging.write_images import WrittenImage, places
from fmapboard.model.layers import Layers
from fmapboard.printing import console, note, progress_bar, track
from fmapboard.top_patches.search import PatchSearch
from fmapboard.writers.remote import RemoteDirectory

TABLES = 3
"""With more images than this, only the first one's table is printed."""


def say_model(loaded: LoadedModel, *, stderr: bool = False) -> None:
    """Print the model's name and its preprocessing."""
    line = f"{loaded.name}, preprocessing: {loaded.preprocessing}"
    console(stderr=stderr).print(line, soft_wrap=True)


@contextmanager
def what_ran() -> Iterator[None]:
    """If the model raises, print what ran before: the message on the command line is one line."""
    try:
        yield
    except ForwardError as error:
        if error.ran:
            note("\n  ".join(["ran before the error:", *error.ran]))
        raise CaptureError(error.summary) from error


def say_where(
    logdir: Path | RemoteDirectory | None, folder: Path | None, *, images: int = 1
) -> None:
    """Print where PNG files were written, and the command that shows the run in TensorBoard."""
    out = console()
    if folder is not None:
        out.print(f"\nPNG files: {folder}", soft_wrap=True)
    if logdir is not None:
        steps = " (one step per image)" if images > 1 else ""
        to_show = to_paste("serve", logdir)
        out.print(f"\nTensorBoard{steps}:\n  {to_show}", soft_wrap=True)


def visualize_images(
    request: ModelRequest,
    drawing: Drawing,
    images: Sequence[Path],
    *,
    log_dir: Path | RemoteDirectory | None,
    out: Path | None,
    html: Path | None,
    only_list: bool,
    samples: int | None,
) -> None:
    """Load the model, then draw its feature maps, or with ``--list`` print its layers.

    Args:
        request: The model.
        drawing: What is drawn.
        images: Image files and folders; empty for the bundled photograph.
        log_dir: The run directory, or None.
        out: The folder of PNG files, or None.
        html: The report, or None.
        only_list: List the layers and draw nothing; with IMAGES, also the shapes that they return.
        samples: Draw only N images, evenly from the folders that they are in.

    Raises:
        FmapboardError: an option is invalid, or the model or a file fails; the message is one line.
            The output of earlier images is kept.
    """
    if drawing.target is not None and not drawing.attribution:
        raise ConfigurationError("--class needs --attribution")
    files = find_images(images or [PHOTOGRAPH])
    inputs = inputs_from(request.inputs, len(files), request.forward_args)
    request, series = _first_of_series(request, drawing.step)
    loaded = load_model(request)
    if loaded.report is not None:
        console(stderr=True).print(str(loaded.report))
    if only_list:
        _print_layers(loaded, files[0].path if images else None, drawing.layers, inputs)
        return
    files = evenly(files, samples)
    read = ReadImages.of(files, loaded.preprocessing, ahead=2 * drawing.batch_size)
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(loaded.model, drawing.layers)
    inputs.check(loaded.model)
    loaded.model.to(device_named(request.device))
    say_model(loaded)
    if html is None:
        log_dir, out = places("visualize", log_dir, out)
    drawing = replace(drawing, inputs=inputs, classes=loaded.classes)
    with logged_for(html, log_dir, len(series or files), say_report) as logdir:
        if series:
            found = _draw_series(request, drawing, loaded, read, series, logdir=logdir, out=out)
        else:
            found = _draw_each(drawing, loaded, read, logdir, out)
        say_where(log_dir, out, images=1 if series else len(files))
        found.say_overwritten(out, note)
        _say_found(found, len(files), len(series), chosen=chosen, log_dir=log_dir)
    read.check_complete()


def _first_of_series(request: ModelRequest, step: int) -> tuple[ModelRequest, list[Checkpoint]]:
    """The request for a series' first checkpoint, and the series; empty for a single checkpoint."""
    series = series_of(request.checkpoint)
    if not series:
        return request, series
    if step:
        raise ConfigurationError(
            "--step takes one checkpoint, not several: the steps of several are the numbers in "
            "their file names. Leave --step out, or give one file"
        )
    return replace(request, checkpoint=series[0].path), series


def _say_found(
    found: AllImages,
    images: int,
    checkpoints: int,
    *,
    chosen: Sequence[str],
    log_dir: Path | RemoteDirectory | None,
) -> None:
    """Print what was found in all images, and how many of the steps TensorBoard does not show.

    Args:
        found: What was found.
        images: Number of image files.
        checkpoints: Number of checkpoints in a series; 0 for none.
        chosen: Names of the selected layers.
        log_dir: The run directory, or None.
    """
    if checkpoints:
        text = found.line(images * checkpoints, noun="picture", chosen=chosen)
    else:
        text = found.line(images, noun="image", chosen=chosen)
    steps = checkpoints or found.count
    if log_dir is not None and steps > KEPT_STEPS:
        text += (
            f"; TensorBoard shows {KEPT_STEPS} of {steps:,} images per layer; for all of them: "
            f"tensorboard --logdir {log_dir} --samples_per_plugin images={steps}"
        )
    console().print(f"\n{text}", soft_wrap=True)


def _draw_series(
    request: ModelRequest,
    drawing: Drawing,
    loaded: LoadedModel,
    images: ReadImages,
    series: Sequence[Checkpoint],
    *,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
) -> AllImages:
    """Draw each image with each checkpoint, and print scores."""

    def load(checkpoint: Checkpoint) -> None:
        report = load_checkpoint(loaded.model, checkpoint.path, key=request.checkpoint_key)
        note(f"step {checkpoint.step}: {checkpoint.path}: {report}")

    with what_ran():
        return draw_series(
            drawing, loaded.model, images, series, load,
            logdir=logdir, out=out, say=note, each=_print_score,
        )  # fmt: skip


def scored(name: str, score: tuple[str, float]) -> str:
    """One line: the class whose attribution was drawn, and its score.

    Args:
        name: Of the image.
        score: Name and value of the score.

    Example:
        >>> scored("cat.jpg", ("class 1 (tabby)", 12.3456))
        'cat.jpg: class 1 (tabby), score 12.35'
    """
    shown, value = score
    text = escaped(f"{name}: {shown}", keep="")
    return f"{text}, score {value:.4g}"


def _print_score(name: str, written: WrittenImage) -> None:
    if written.score is not None:
        console().print(scored(name, written.score), soft_wrap=True)


def _draw_each(
    drawing: Drawing,
    loaded: LoadedModel,
    images: ReadImages,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
) -> AllImages:
    """Draw each image as a step of its own, and print tables of the layers."""
    count = len(images.sources)
    unloaded = loaded.not_loaded()
    has_bar = count > TABLES and console(stderr=True).is_terminal
    progress = progress_bar("visualizing", disable=not has_bar)
    task = progress.add_task("", total=count)

    def each(name: str, written: WrittenImage) -> None:
        number = images.numbers[written.step.step - drawing.step]
        progress.update(task, completed=number + 1)
        if written.step.step == drawing.step or count <= TABLES:
            source = images.sources[number]
            path = source.path if isinstance(source, ImageFile) else name
            console().print(f"\n{escaped(path, keep='')}", soft_wrap=True)
            console().print(layer_table(written.step, written.files, unloaded))
            progress.start()  # not earlier: the bar would interrupt the first table
        _print_score(name, written)

    say = partial(progress.console.print, soft_wrap=True)
    with what_ran():
        try:
            return draw_folder(
                drawing, loaded.model, images, logdir=logdir, out=out, say=say, each=each
            )
        finally:
            if progress.live.is_started:
                progress.stop()


def _print_layers(
    loaded: LoadedModel, path: Path | None, chosen: Layers, inputs: ForwardInputs
) -> None:
    """Print the table of layers; with output shapes if there is an image to run the model on."""
    if path is None:
        console().out(layers(loaded.model, only=chosen))
        return
    inputs.check(loaded.model)
    say_model(loaded, stderr=True)
    image = loaded.preprocessing(read_image(path))
    with what_ran(), inputs.applied(loaded.model):
        console().out(layers(loaded.model, image[None], only=chosen))


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
        found = find_patches(
            search, read, log_dir=log_dir, out=out, step=step, inputs=inputs, follow=followed
        )
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
