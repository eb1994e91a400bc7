"""``visualize``: draw a model's feature maps for images, once or with each checkpoint of a series.

The last line that ``visualize`` and ``patches`` print says what was found in all images.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor, nn

from fmapboard.capture.hooks import HookRegistry
from fmapboard.errors import ConfigurationError, few, log
from fmapboard.extraction.class_attribution import class_attributions
from fmapboard.formats.overview import StepSource
from fmapboard.image_passes import ImagePasses
from fmapboard.imaging.embedding import Embedding, check_embedding
from fmapboard.imaging.forward_inputs import ForwardInputs
from fmapboard.imaging.layer_table import layer_table
from fmapboard.imaging.models.checkpoints import Checkpoint
from fmapboard.imaging.read_images import ReadImages, given_images
from fmapboard.imaging.write_images import ImageWriter, WrittenImage, places
from fmapboard.measure.layout import Sequences
from fmapboard.measure.reducer import Reducer
from fmapboard.model.given import check_model
from fmapboard.model.layers import Layers, unwrap
from fmapboard.options import Normalizing, check_depth
from fmapboard.printing import as_text
from fmapboard.records import Attribution, LoggedStep, Normalization, Scale, StepData
from fmapboard.render.palettes import checked_colormap, palette
from fmapboard.render.quantize import Quantizer
from fmapboard.report.choice import CHART_STEPS
from fmapboard.report.result import Report
from fmapboard.report.write import write_report
from fmapboard.session.step import PendingStep
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers import Writer
from fmapboard.writers.folder import free_name
from fmapboard.writers.remote import RemoteDirectory, local_directory, log_directory
from fmapboard.writers.tensorboard import TensorBoardWriter


@dataclass(slots=True)
class AllImages:
    """Collects findings over images; ``line`` says them.

    Attributes:
        count: Number of images.
        nan: Names of those with NaN in a layer's output.
        infinite: Names of those with infinity in a layer's output.
        dead: Label of a layer call -> bool [C], the channels that are dead in all images so far.
        ran: Names of the layers that returned a tensor for an image.
        replaced: Number of PNG files from before that were overwritten.
        projector: What was written for the Projector, in one line; empty for nothing.
    """

    count: int = 0
    nan: list[str] = field(default_factory=list)
    infinite: list[str] = field(default_factory=list)
    dead: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    replaced: int = 0
    projector: str = ""

    def add(self, name: str, step: LoggedStep, replaced: int = 0) -> None:
        """Add an image, given by its name and its recorded step."""
        self.count += 1
        self.replaced += replaced
        has_nan = False
        has_infinity = False
        for measured in step.statistics:
            statistics = measured.statistics
            if statistics is None:
                continue
            if statistics.nan.any():
                has_nan = True
            if statistics.positive_infinity.any() or statistics.negative_infinity.any():
                has_infinity = True
            call = measured.layer_call
            self.ran.add(call.layer)
            if statistics.dead is not None:
                self._add_dead(call.label, statistics.dead)
        if has_nan:
            self.nan.append(name)
        if has_infinity:
            self.infinite.append(name)

    def _add_dead(self, label: str, dead: npt.NDArray[np.bool_]) -> None:
        """Keep the channels that are dead in this image, too; none if their number differs."""
        before = self.dead.get(label, dead)
        if before.shape == dead.shape:
            self.dead[label] = before & dead
        else:
            self.dead[label] = np.zeros_like(before)

    def line(self, given: int, *, noun: str = "image", chosen: Collection[str] = ()) -> str:
        """The findings in one line.

        Args:
            given: Number of files that were given.
            noun: What is counted.
            chosen: Names of the layers that were selected.

        Example:
            >>> AllImages(7, nan=["a4.png"]).line(8)
            '7 of 8 images; NaN in 1: a4.png; no infinity'
        """
        counted = f"{self.count:,}"
        if given != self.count:
            counted += f" of {given:,}"
        plural = "" if given == 1 else "s"
        parts = [f"{counted} {noun}{plural}"]
        for kind, names in (("NaN", self.nan), ("infinity", self.infinite)):
            if names:
                parts.append(f"{kind} in {len(names):,}: {few(names)}")
            else:
                parts.append(f"no {kind}")
        layers = []
        for label, flags in self.dead.items():
            count = int(flags.sum())
            if count:
                layers.append(f"{label} {count} of {flags.size}")
        if layers:
            everywhere = " in all of them" if self.count > 1 else ""
            parts.append(f"dead channels{everywhere}: {few(layers)}")
        never = [name for name in chosen if name not in self.ran]
        if never:
            parts.append(f"no output of {few(never)}")
        return "; ".join(parts)

    def say_overwritten(self, folder: Path | None, say: Callable[[str], object]) -> None:
        """Say that PNG files from before were overwritten, if there were any."""
        if not self.replaced:
            return
        files = "1 PNG file" if self.replaced == 1 else f"{self.replaced:,} PNG files"
        say(f"overwrote {files} in {folder}; give each run another folder")


def selected_layers(model: nn.Module, layers: Layers) -> list[str]:
    """Names of the selected layers that have a ``forward`` of their own.

    Raises:
        ConfigurationError: The selection is invalid, or selects nothing.
    """
    never = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
    found = HookRegistry(model, layers).layers
    return [name for name, module in found.items() if not isinstance(module, never)]


SIDE = 256
"""Length in px of the longer side of a picture; smaller inputs are not enlarged."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn of each image, and how; ``visualize --help`` describes the options.

    Attributes:
        step: Number of the first image's step; the others follow.
        source: What each step shows, for the tab; None for the image.
        effective: As in ``extract``.
        inputs: What the model takes in addition to images; by default nothing.
        labels: PNG files bear the layer's name and the channels' numbers.
        embedding: The layer whose outputs are written for the Projector, or None.
        classes: Names of the classes, in order; empty if unknown.
    """

    layers: Layers = None
    batch_size: int = 4
    colormap: str = "grey"
    scale: Scale = "channel"
    depth: int | None = None
    kernels: bool = False
    attribution: bool = False
    target: int | None = None
    step: int = 0
    source: StepSource | None = None
    effective: bool = False
    inputs: ForwardInputs = field(default_factory=ForwardInputs)
    labels: bool = False
    embedding: str | None = None
    classes: Sequence[str] = ()

    def checked(self) -> Drawing:
        """With the colormap's own name.

        Raises:
            ConfigurationError: An option is invalid.
        """
        check_depth(self.depth)
        check_run(self.step, self.batch_size)
        if self.scale not in ("channel", "layer"):
            raise ConfigurationError(f"scale={self.scale!r}: expected 'channel' or 'layer'")
        if self.target is not None and not self.attribution:
            raise ConfigurationError("target= needs attribution=True")
        return replace(self, colormap=checked_colormap(self.colormap))

    def composing(self, *, same_image: bool = False) -> SummaryBuilder:
        """What makes the summaries of a run; ``same_image`` if each step shows the same one."""
        return SummaryBuilder(
            colormap=self.colormap, scale=self.scale, attribution_side=SIDE, has_probe=same_image
        )


Each = Callable[[str, WrittenImage], object]
"""Called with the name of each image and what was written of it."""


def drawn(
    model: nn.Module,
    drawing: Drawing,
    images: ReadImages,
    *,
    board: Writer | None,
    folders: Iterable[Path | None],
    say: Callable[[str], object],
    compose: SummaryBuilder | None = None,
    embedding: Embedding | None = None,
) -> Generator[WrittenImage, None, None]:
    """Draw images with the weights that the model has now; yield each after it is written.

    Args:
        model: Runs in eval mode, on the device of its parameters.
        drawing: What is drawn, with the number of the first step.
        images: The images.
        board: Writes the steps for TensorBoard, or None.
        folders: Folder for the PNG files of each image that can be read, or None.
        say: Called with a message if the model runs on one image at a time.
        compose: Made the summaries of earlier steps of the same run, by `Drawing.composing`; None
            begins a run.
        embedding: Reads each batch of images, too, and keeps thumbnails.

    Raises:
        FmapboardError: As ``ImagePasses`` and ``ImageWriter`` do; the output of earlier images is
            kept.
    """
    writer = ImageWriter(compose or drawing.composing(), board, folders, labels=drawing.labels)
    quantize = Quantizer(None, drawing.scale, palette(drawing.colormap).zero_centered)
    reducer = Reducer(
        max_channels=None, depth=drawing.depth, sequences=Sequences.of(model), quantize=quantize
    )
    passes = ImagePasses(
        model, reducer,
        layers=drawing.layers, normalization=images.normalization, kernels=drawing.kernels,
        refused=lambda reason: say(f"Running one image per forward pass: {reason}"),
        effective=drawing.effective,
    )  # fmt: skip
    recorded = _recorded(passes, drawing, images, embedding)
    with drawing.inputs.applied(model), closing(recorded), closing(writer.write(recorded)) as done:
        for written in done:
            if embedding is not None:
                embedding.add_thumbnail(written)
            yield written


def _recorded(
    passes: ImagePasses, drawing: Drawing, images: ReadImages, embedding: Embedding | None
) -> Generator[PendingStep, None, None]:
    """Yield one recorded step per image."""
    inputs = drawing.inputs
    names = images.names
    batch_size = 1 if inputs.per_image else drawing.batch_size
    first = 0
    with closing(images.tensors()) as tensors:
        for batch in batched(tensors, batch_size):
            prepared = images.prepare(batch)
            inputs.number = images.numbers[first]
            if embedding is not None:
                embedding.read(prepared)
            steps = passes(prepared, first)
            for step, image in zip(steps, prepared, strict=True):
                found: Sequence[Attribution] = ()
                if drawing.attribution:
                    found = class_attributions(
                        passes.model, image[None], drawing.target, classes=drawing.classes
                    )
                number = images.numbers[step.step]
                yield _completed(step, drawing, names[number], found)
            first += len(batch)


def _completed(
    recorded: PendingStep, drawing: Drawing, name: str, found: Sequence[Attribution]
) -> PendingStep:
    """A step with its number in the run, what it shows, and its attribution.

    Args:
        recorded: Numbered from 0.
        drawing: With the number of the first step.
        name: Of the image.
        found: Drawn over the de-normalized image.
    """
    source = drawing.source or StepSource("image", name)

    def to_host() -> StepData:
        data = recorded.to_host()
        attributions = tuple(found)
        if data.inputs:
            image = data.inputs[0]
            attributions = tuple(replace(attribution, image=image) for attribution in found)
        number = drawing.step + data.step
        return replace(data, step=number, source=source, attributions=attributions)

    return replace(recorded, to_host=to_host)


def draw_folder(
    drawing: Drawing,
    model: nn.Module,
    images: ReadImages,
    *,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
    say: Callable[[str], object],
    each: Each,
) -> AllImages:
    """Draw every image as a step of its own, all in one run.

    Args:
        drawing: What is drawn of each image.
        model: As for `drawn`, as are all errors.
        images: Each with its row of ``inputs``.
        logdir: The run directory for TensorBoard, or None.
        out: The folder of PNG files, or None.
        say: Called with a message if the model runs on one image at a time.
        each: Called for every image.
    """
    found = AllImages()
    names = images.names
    with ExitStack() as stack:
        board = None
        if logdir is not None:
            board = TensorBoardWriter(logdir, start_step=drawing.step)
            stack.enter_context(closing(board))
        vectors = None
        if drawing.embedding is not None:
            directory = None if board is None else board.log_dir
            place = check_embedding(drawing.embedding, model, directory)
            vectors = Embedding(model, drawing.embedding, images, place)
        places = folders_of(out, names)
        folders = (places[number] for number in images.numbers)
        written = drawn(
            model, drawing, images, board=board, folders=folders, say=say, embedding=vectors
        )
        stack.enter_context(closing(written))
        for index, image in enumerate(written):
            number = images.numbers[index]
            name = names[number]
            found.add(name, image.step, image.replaced)
            each(name, image)
        if vectors is not None:
            found.projector = vectors.write()
    return found


def draw_series(
    drawing: Drawing,
    model: nn.Module,
    images: ReadImages,
    series: Sequence[Checkpoint],
    load: Callable[[Checkpoint], object],
    *,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
    say: Callable[[str], object],
    each: Each,
) -> AllImages:
    """Draw every image with every checkpoint.

    Each image has a run of its own, in which each checkpoint is a step.

    Args:
        drawing: What is drawn of each image.
        model: As for `drawn`.
        images: The images, all of which are held in memory.
        series: The checkpoints.
        load: Loads a checkpoint into the model.
        logdir: Directory of the run; of one run per image if there are several. None writes none.
        out: Folder of PNG files: one folder per step, below one per image if there are several.
        say: Called with a message if the model runs on one image at a time.
        each: Called for every image of every checkpoint.

    Raises:
        FmapboardError: An image cannot be read, or what ``load`` raises. The output of earlier
            checkpoints is complete.
    """
    found = AllImages()
    pixels = list(images.tensors())
    names = images.names
    places = [place or Path() for place in folders_of(Path(), names)]
    composers = [drawing.composing(same_image=True) for _ in pixels]
    with ExitStack() as stack:
        own_places = [places[number] for number in images.numbers]
        boards = _opened(stack, logdir, own_places)
        for checkpoint in series:
            load(checkpoint)
            source = StepSource("checkpoint", checkpoint.path.name)
            own = replace(drawing, step=checkpoint.step, source=source)
            parts = zip(images.numbers, pixels, boards, composers, strict=True)
            for number, image, board, compose in parts:
                folder = None if out is None else out / places[number] / f"step{checkpoint.step}"
                name = f"{names[number]} ({source.name})"
                only = images.only(number, image)
                writing = drawn(
                    model, own, only, board=board, folders=[folder], say=say, compose=compose
                )
                with closing(writing):
                    for written in writing:
                        counted = source.name if len(pixels) == 1 else name
                        found.add(counted, written.step, written.replaced)
                        each(name, written)
                if board is not None:
                    board.flush()  # Ctrl-C while the next checkpoint loads ends the process
    return found


def _opened(
    stack: ExitStack, logdir: Path | RemoteDirectory | None, places: Sequence[Path]
) -> list[TensorBoardWriter | None]:
    """A writer for each place below a log directory, which the stack closes; None without one."""
    if logdir is None:
        return [None] * len(places)
    boards: list[TensorBoardWriter | None] = []
    for place in places:
        run = logdir / place.as_posix() if place.parts else logdir
        board = TensorBoardWriter(run)
        stack.enter_context(closing(board))
        boards.append(board)
    return boards


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


def folders_of(folder: Path | None, names: Sequence[str]) -> list[Path | None]:
    """The folder for each image's PNG files: ``folder`` for a single image, else one per image.

    Args:
        folder: Contains them; None for no files.
        names: Name of each image, whose suffix is left out; slashes in it make subfolders.
    """
    if folder is None or len(names) == 1:
        return [folder] * len(names)
    taken: defaultdict[str, set[str]] = defaultdict(set)
    places: list[Path | None] = []
    for name in names:
        path = PurePosixPath(name).with_suffix("")
        names_there = taken[str(path.parent).lower()]
        own = free_name(path.name, names_there)
        places.append(folder / path.parent / own)
    return places


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
        plural = "s" if len(self.steps) > 1 else ""
        places = [f"at step {self.steps[0]}"]
        for name in ("log_dir", "out", "html"):
            place = getattr(self, name)
            if place is not None:
                places.append(f"{name}={place}")
        lines = [f"{len(self.steps)} image{plural} {', '.join(places)}", self.table]
        for name, value in self.scores[:3]:
            lines.append(f"{name}, score {value:.4g}")
        lines.append(self.found)
        if self.projector:
            lines.append(self.projector)
        return "\n".join(lines)


class _Written:
    """Collects what `Visualized` says of each image."""

    def __init__(self) -> None:
        self.table = ""
        self.steps: list[int] = []
        self.files: list[dict[str, list[Path]]] = []
        self.scores: list[tuple[str, float]] = []

    def add(self, name: str, image: WrittenImage) -> None:
        """Add an image; the table is that of the first."""
        if not self.table:
            self.table = as_text(layer_table(image.step, image.files, {}))
        self.steps.append(image.step.step)
        self.files.append(image.files)
        if image.score is not None:
            self.scores.append(image.score)


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
    drawing = Drawing(
        layers=layers, batch_size=batch_size, colormap=colormap, scale=scale, depth=depth,
        kernels=kernels, attribution=attribution, target=target, step=step,
        effective=effective, labels=labels, embedding=embedding,
    )  # fmt: skip
    drawing = drawing.checked()
    given = given_images(images, model, transform, normalization, has_inputs=inputs is not None)
    own = ForwardInputs.of(inputs, len(given.sources))
    own.check(model)
    drawing = replace(drawing, inputs=own)
    place = None if log_dir is None else log_directory(log_dir)
    folder = None if out is None else local_directory(out, "a folder of PNG files")
    report = None if html is None else Path(html)
    return _visualized(drawing, model, given, log_dir=place, out=folder, html=report, chosen=chosen)


def _visualized(
    drawing: Drawing,
    model: nn.Module,
    images: ReadImages,
    *,
    log_dir: Path | RemoteDirectory | None,
    out: Path | None,
    html: Path | None,
    chosen: Collection[str],
) -> Visualized:
    """Draw the images and say what was written; ``chosen`` are the names of selected layers."""
    if html is None:
        log_dir, out = places("visualize", log_dir, out)
    check_embedding(drawing.embedding, model, log_dir)
    written = _Written()
    count = len(images.sources)
    say = partial(log.info, "%s")
    warn = partial(log.warning, "%s")
    with logged_for(html, log_dir, count, _say_report) as logdir:
        found = draw_folder(
            drawing, model, images, logdir=logdir, out=out, say=say, each=written.add
        )
        found.say_overwritten(out, warn)
    images.say_left_out(warn)
    return Visualized(
        log_dir=log_dir,
        out=out,
        steps=tuple(written.steps),
        files=tuple(written.files),
        table=written.table,
        found=found.line(count, chosen=chosen),
        scores=tuple(written.scores),
        left_out=tuple(images.left_out),
        projector=found.projector,
        html=html,
    )


def _say_report(report: Report) -> None:
    for text in report.left_out:
        log.info("left out of %s: %s", report.path, text)


def check_run(step: Any, batch_size: Any) -> None:
    """Check the number of a step, and the maximum number of images per forward pass.

    Raises:
        ConfigurationError: One of them is invalid.
    """
    is_whole = isinstance(step, int) and not isinstance(step, bool)
    if not is_whole or step < 0:
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
        raise ConfigurationError(
            f"a report needs a local log directory, not {logdir}: give the path of one as log_dir= "
            "(--logdir), or none"
        )
    shown = min(max(steps, 8), CHART_STEPS)
    with tempfile.TemporaryDirectory(prefix="fmapboard-report-") as folder:
        place = Path(folder) / "visualize" if logdir is None else logdir
        yield place
        report = write_report([place], html, steps=shown)
        say(report)
