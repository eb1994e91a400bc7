"""``fmapboard.visualize``: the ``visualize`` command for a model that is a Python object."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image
from torch import Tensor, nn

from fmapboard.errors import ConfigurationError, log
from fmapboard.imaging.drawing import Drawing, draw_folder, selected_layers
from fmapboard.imaging.embedding import check_embedding
from fmapboard.imaging.forward_inputs import ForwardInputs
from fmapboard.imaging.read_images import given_images
from fmapboard.imaging.tables import as_text, layer_table
from fmapboard.imaging.write_images import WrittenImage, places
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, unwrap
from fmapboard.options import Normalizing, check_depth
from fmapboard.records import Normalization, Scale
from fmapboard.render.palettes import checked_colormap
from fmapboard.report.choice import CHART_STEPS
from fmapboard.report.result import Report
from fmapboard.report.write import write_report
from fmapboard.writers.remote import RemoteDirectory, local_directory, log_directory


@dataclass(frozen=True, slots=True, repr=False)
class Visualized:
    """What ``visualize`` has written. It prints itself as a table of the first image's layers.

    Attributes:
        log_dir: The run directory of the event file; None if there is none.
        out: The folder of the PNG files; None if there is none.
        steps: Number of each image's step.
        files: For each image: layer name -> the PNG files of its maps.
        table: One row per layer of the first image, as the command prints it.
        found: What was found in all images, in one line.
        scores: For each image, name and value of the score whose attribution was drawn, such as
            ``("class 281", 12.3)``; empty without ``attribution``.
        left_out: Name and reason of the files in folders that could not be read.
        projector: What was written for the Projector; empty without ``embedding=``.
        html: The report; None if there is none.
    """

    log_dir: Path | RemoteDirectory | None
    out: Path | None
    steps: tuple[int, ...]
    files: tuple[dict[str, list[Path]], ...]
    table: str
    found: str
    scores: tuple[tuple[str, float], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    projector: str = ""
    html: Path | None = None

    def __repr__(self) -> str:
        images = f"{len(self.steps)} image" + ("s" if len(self.steps) > 1 else "")
        written = ("log_dir", self.log_dir), ("out", self.out), ("html", self.html)
        places = [f"{name}={place}" for name, place in written if place is not None]
        scores = [f"{name}, score {value:.4g}" for name, value in self.scores[:3]]
        shown = [self.table, *scores, self.found, *filter(None, [self.projector])]
        return "\n".join([f"{images} at step {self.steps[0]}, {', '.join(places)}", *shown])


def visualize(
    model: nn.Module,
    images: Any,
    *,
    log_dir: str | Path | None = None,
    out: str | Path | None = None,
    html: str | Path | None = None,
    step: int = 0,
    layers: Layers = None,
    transform: Callable[[Image.Image], Tensor] | None = None,
    normalization: Normalization | Normalizing | None = None,
    inputs: Mapping[str, Any] | Callable[[Tensor], Any] | None = None,
    batch_size: int = 4,
    colormap: str = "grey",
    scale: Scale = "channel",
    depth: int | None = None,
    kernels: bool = False,
    attribution: bool = False,
    target: int | None = None,
    effective: bool = False,
    labels: bool = False,
    embedding: str | None = None,
) -> Visualized:
    """Draw a model's feature maps for images, for TensorBoard and as PNG files.

    Does what the ``visualize`` command does. The model runs in eval mode on its own device; its
    parameters, buffers, modes and the random states are left as they were.

    Args:
        model: Any module that takes images [N, C, H, W].
        images: A tensor [N, C, H, W] or [C, H, W], as the model takes it; or an image file, a
            folder with its subfolders, a ``PIL.Image.Image``, or a list of these. A file in a
            folder that cannot be read is left out, with a warning.
        log_dir: Run directory or URL of the event file for TensorBoard.
        out: Folder of the PNG files; with several images, each has a folder inside it. Without
            ``log_dir``, ``out`` and ``html``, the first two are written below ``runs/visualize``.
        html: File of a report, which opens in a browser without TensorBoard.
        step: Number of the first image's step; the others follow.
        layers: Layers to draw, such as 'layer1.*'; '!*.downsample.*' excludes layers. As in
            ``extract``.
        transform: Turns a PIL image into the model's input [C, H, W], such as the ``transforms()``
            of torchvision weights; for files and PIL images only. None resizes to 224 px and
            applies ImageNet's mean and standard deviation.
        normalization: Mean and standard deviation per channel with which ``images`` were
            normalized, or torchvision's ``Normalize``, to draw the input as it was before; None
            draws it as it is.
        inputs: What ``forward`` takes in addition to images: keyword arguments by name, whose
            tensors have one row for all images or one per image; or a function from a batch of
            images [B, C, H, W] to all arguments: a tensor, a tuple of positional arguments, a dict
            of keyword arguments, or a pair of such a tuple and dict.
        batch_size: Maximum number of images per forward pass; it does not change the result.
        colormap: ``"grey"``, ``"viridis"``, ``"magma"`` or the zero-centered ``"signed"``.
        scale: ``"channel"``: each channel between its own extremes; ``"layer"``: one scale for all.
        depth: Depth slice of 3-D maps to draw, counted from 0; None draws the middle one.
        kernels: Also draw the convolution kernels.
        attribution: Also draw where larger activations raise the score of a class.
        target: Which class, counted from 0; None takes the one with the highest score.
        effective: Draw what the next layer receives, after all forward hooks on a layer, instead of
            what its ``forward`` returned. Under ``intervene`` that is always so.
        labels: Write the layer's name and the channels' numbers into the PNG files.
        embedding: Also write this layer's output for each image, averaged over space, with a
            thumbnail for TensorBoard's Projector. Needs a local ``log_dir``.

    Returns:
        Where everything was written; it prints itself as a table of layers.

    Raises:
        LayerNotFound: A pattern in ``layers`` matches no layer.
        ConfigurationError: An argument is invalid.
        ImageError: A file cannot be read as an image.
        ForwardError: The model raised an exception. The message names the layer that raised and
            lists the layers that ran before it, with shapes.
        WriteError: A directory or file cannot be written to.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> import fmapboard
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
        >>> done = fmapboard.visualize(net, torch.rand(1, 3, 40, 40), out="maps", step=322)
        >>> done.steps, [path.name for path in done.files[0]["0"]]
        ((322,), ['0.png'])
    """
    check_model(model)
    model = unwrap(model)
    # An invalid pattern fails before anything is written.
    chosen = selected_layers(model, layers)
    check_depth(depth)
    check_run(step, batch_size)
    if scale not in ("channel", "layer"):
        raise ConfigurationError(f"scale={scale!r}: expected 'channel' or 'layer'")
    if target is not None and not attribution:
        raise ConfigurationError("target= needs attribution=True")
    colormap = checked_colormap(colormap)
    given = given_images(images, model, transform, normalization, has_inputs=inputs is not None)
    own = ForwardInputs.of(inputs, len(given.sources))
    own.check(model)
    drawing = Drawing(
        layers, batch_size, colormap, scale, depth, kernels, attribution, target,
        step=step, effective=effective, labels=labels, embedding=embedding, inputs=own,
    )  # fmt: skip
    place = None if log_dir is None else log_directory(log_dir)
    folder = None if out is None else local_directory(out, "a folder of PNG files")
    if html is None:
        place, folder = places("visualize", place, folder)
    check_embedding(embedding, model, place)
    report = None if html is None else Path(html)
    table, steps, files = list[str](), list[int](), list[dict[str, list[Path]]]()
    scores = list[tuple[str, float]]()
    warn = partial(log.warning, "%s")

    def each(name: str, one: WrittenImage) -> None:
        table.extend([] if table else [as_text(layer_table(one.step, one.files))])
        scores.extend([] if one.score is None else [one.score])
        steps.append(one.step.step)
        files.append(one.files)

    with logged_for(report, place, len(given.sources), _say_report) as logdir:
        found = draw_folder(
            drawing, model, given, logdir=logdir, out=folder, say=partial(log.info, "%s"), each=each
        )
        found.say_overwritten(folder, warn)
    given.say_left_out(warn)
    line = found.line(len(given.sources), chosen=chosen)
    return Visualized(
        place, folder, tuple(steps), tuple(files), "".join(table), line, tuple(scores),
        tuple(given.left_out), found.projector, report,
    )  # fmt: skip


def _say_report(report: Report) -> None:
    for text in report.left_out:
        log.info("left out of %s: %s", report.path, text)


def check_run(step: Any, batch_size: Any) -> None:
    """Check the number of a step, and the maximum number of images per forward pass.

    Raises:
        ConfigurationError: One of them is invalid.
    """
    if isinstance(step, bool) or not isinstance(step, int) or step < 0:
        raise ConfigurationError(f"step={step!r}: expected a step number, 0 or more")
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ConfigurationError(f"batch_size={batch_size!r}: expected at least 1")


@contextmanager
def logged_for(
    html: Path | None,
    logdir: Path | RemoteDirectory | None,
    steps: int,
    say: Callable[[Report], None],
) -> Iterator[Path | RemoteDirectory | None]:
    """A log directory to write to; afterwards, a report of it, with pictures of all steps.

    Args:
        html: the report; None for none.
        logdir: the log directory that was asked for. If there is none, a report gets a temporary
            one, which is removed.
        steps: number of steps that will be logged.
        say: called with the report.

    Raises:
        ConfigurationError: a report of a remote directory was asked for.
    """
    if html is None:
        yield logdir
        return
    if isinstance(logdir, RemoteDirectory):
        raise ConfigurationError(f"a report needs a local log directory, not {logdir}")
    with tempfile.TemporaryDirectory(prefix="fmapboard-report-") as folder:
        place = Path(folder) / "visualize" if logdir is None else logdir
        yield place
        say(write_report([place], html, steps=min(max(steps, 8), CHART_STEPS)))
