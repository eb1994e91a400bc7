"""``visualize``: draw a network's feature maps for images, for TensorBoard and as PNG files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from fmapboard.cli.checkpoint_series import Checkpoint, draw_series, series_of
from fmapboard.cli.console import (
    console,
    not_shown,
    progress_bar,
    say_model,
    say_overwritten,
    say_where,
    what_ran,
)
from fmapboard.cli.model_request import ModelRequest, device_named
from fmapboard.cli.report import say_report
from fmapboard.demo.bundled import bundled
from fmapboard.errors import ConfigurationError, escaped
from fmapboard.extraction.layer_table import layers
from fmapboard.imaging.all_images import AllImages, selected_layers
from fmapboard.imaging.drawing import Drawing, class_names, scored
from fmapboard.imaging.embedding import check_embedding
from fmapboard.imaging.forward_inputs import ForwardInputs, inputs_from
from fmapboard.imaging.images import ImageFile, find_images, read_fitted
from fmapboard.imaging.models.load import LoadedModel
from fmapboard.imaging.read_images import ReadImages
from fmapboard.imaging.tables import layer_table
from fmapboard.imaging.visualize import is_temporary, logged_for
from fmapboard.imaging.write_images import WrittenImage, new_directory
from fmapboard.interventions.channels import ChannelChange, silence
from fmapboard.interventions.context import Intervention, intervene
from fmapboard.model.layers import Layers
from fmapboard.writers.remote import RemoteDirectory

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
    only_list: bool = False
    samples: int | None = None
    silence: tuple[str, ...] = ()
    embedding: str | None = None
    drawing: Drawing = field(default_factory=Drawing)

    @classmethod
    def of(cls, **options: Any) -> Request:
        """The options by name; all that a request has no field for are those of its `Drawing`."""
        drawn = options.keys() - {one.name for one in fields(cls)}
        return cls(drawing=Drawing(**{name: options.pop(name) for name in drawn}), **options)

    def class_names(self, model: nn.Module) -> tuple[str, ...]:
        """Names of the classes of a network with its own weights; empty if they are not known."""
        has_own = self.checkpoint is None and self.weights.lower() != "none"
        return class_names(self.spec, self.weights, model) if has_own else ()


def visualize_images(request: Request) -> None:
    """Load the model, then draw its feature maps, or with ``--list`` print its layers.

    Raises:
        FmapboardError: the request is invalid or failed; the message is one line.
    """
    drawing = request.drawing
    if drawing.class_number is not None and not drawing.attribution:
        raise ConfigurationError("--class needs --attribution")
    files = find_images(request.images or [bundled("photographs") / "chelsea.jpg"])
    inputs = inputs_from(request.inputs, len(files))
    series = series_of(request.checkpoint)
    for option, value in (
        ("silence", request.silence), ("embedding", request.embedding), ("step", drawing.step),
    ):  # fmt: skip
        if series and value:
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
        _print_layers(loaded, files[0].path if request.images else None, drawing.layers, inputs)
        return
    images = ReadImages.of(
        files[: request.samples], loaded.preprocessing, ahead=2 * drawing.batch_size
    )
    steps = len(series or images.sources)
    with logged_for(request.html, request.logdir, steps, say_report) as logdir:
        draw_images(replace(request, logdir=logdir), loaded, images, inputs, series)
    images.check_complete()


def draw_images(
    request: Request,
    loaded: LoadedModel,
    images: ReadImages,
    inputs: ForwardInputs,
    series: Sequence[Checkpoint] = (),
) -> None:
    """Draw a loaded network's feature maps for images, once or with each checkpoint of a series.

    Raises:
        FmapboardError: the request is invalid or failed; the output of earlier images is kept.
    """
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(loaded.model, request.drawing.layers)
    inputs.check(loaded.model)
    around = silenced(loaded.model, request.silence) if request.silence else None
    loaded.model.to(device_named(request.device))
    say_model(loaded)
    logdir, folder = request.logdir, request.out
    if logdir is None and folder is None:
        logdir = new_directory(Path("runs/visualize"))
        folder = logdir / "png"
    request = replace(
        request, logdir=logdir, out=folder, drawing=replace(request.drawing, inputs=inputs)
    )
    if around is not None:
        console().print(f"silenced: {', '.join(request.silence)}", soft_wrap=True)
        drawing = replace(request.drawing, around=lambda images, first: around)
        request = replace(request, drawing=drawing)
    with what_ran():
        if series:
            found = draw_series(
                request.drawing, loaded, series, images,
                checkpoint_key=request.checkpoint_key, logdir=logdir, out=folder,
            )  # fmt: skip
        else:
            found = _draw_each(request, loaded, images)
    given = len(images.sources)
    say_where(logdir, folder, images=1 if series else given)
    say_overwritten(found.replaced, folder)
    noun, of = ("picture", given * len(series)) if series else ("image", given)
    said = [found.line(of, noun=noun, chosen=chosen)]
    if logdir is not None and not is_temporary(logdir):
        said.append(not_shown(len(series) or found.count, logdir))
    console().print(f"\n{'; '.join(filter(None, said))}", soft_wrap=True)


def _draw_each(request: Request, loaded: LoadedModel, images: ReadImages) -> AllImages:
    """Draw each image as a step of its own, and print tables of the layers."""
    out, logdir = console(), request.logdir
    stays = logdir is not None and not is_temporary(logdir)
    check_embedding(request.embedding, loaded.model, logdir if stays else None)
    count, unloaded = len(images.sources), loaded.not_loaded()
    errors = console(stderr=True)
    progress = progress_bar("visualizing", disable=count <= TABLES or not errors.is_terminal)
    task = progress.add_task("", total=count)
    classes = request.class_names(loaded.model) if request.drawing.attribution else ()

    def each(name: str, written: WrittenImage) -> None:
        number = images.numbers[written.step.step - request.drawing.step]
        progress.update(task, completed=number + 1)
        if written.step.step == request.drawing.step or count <= TABLES:
            source = images.sources[number]
            path = source.path if isinstance(source, ImageFile) else name
            out.print(f"\n{escaped(path, keep='')}", soft_wrap=True)
            out.print(layer_table(written.step, written.files, unloaded))
            progress.start()  # not earlier: the bar would interrupt the first table
        if written.score is not None:
            out.print(scored(name, written.score, classes), soft_wrap=True)

    try:
        return request.drawing.drawn(
            loaded.model, images, logdir=logdir, out=request.out, embedding=request.embedding,
            say=partial(progress.console.print, soft_wrap=True),
            tell=partial(out.print, soft_wrap=True), each=each,
        )  # fmt: skip
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
    prepare = loaded.preprocessing
    image = prepare.normalize(read_fitted(path, prepare.fit))
    with what_ran(), inputs.applied(loaded.model):
        console().out(layers(loaded.model, image[None], only=chosen))


def silenced(model: nn.Module, given: Sequence[str]) -> Intervention:
    """A context manager that silences channels of a network.

    Args:
        model: Any module.
        given: The values of ``--silence``, ``LAYER:CHANNELS`` or ``LAYER`` each.

    Raises:
        ConfigurationError: A value is invalid, or there is no such layer or channel.
    """
    changes: dict[str | re.Pattern[str] | type[nn.Module], list[ChannelChange]] = {}
    for value in given:
        layer, change = parsed(value)
        changes.setdefault(layer, []).append(change)
    return intervene(model, changes)


def parsed(value: str) -> tuple[str, ChannelChange]:
    """The layer, or glob, and the channels of a value of ``--silence``.

    >>> parsed("layer1.0.conv1:3,17")
    ('layer1.0.conv1', silence([3, 17]))

    Raises:
        ConfigurationError: The value is invalid.
    """
    layer, colon, numbers = value.partition(":")
    channels = [int(n) for n in numbers.split(",") if n.strip().isdecimal()] if colon else None
    if not layer or (channels is not None and len(channels) < len(numbers.split(","))):
        raise ConfigurationError(
            f"--silence {value!r}: expected LAYER:CHANNELS, such as layer1.0.conv1:3,17, or LAYER"
        )
    return layer, silence(channels)
