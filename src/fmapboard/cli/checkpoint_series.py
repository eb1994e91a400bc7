"""``visualize --checkpoint 'ckpt_*.pt'``: one step per checkpoint, for each image."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from fmapboard.capture.kernels import read_kernels
from fmapboard.cli.all_images import AllImages
from fmapboard.cli.attributed import SIDE, scored, with_attributions
from fmapboard.cli.drawing import Drawing, folders_of
from fmapboard.cli.forward_inputs import ForwardInputs
from fmapboard.cli.images import ImageFile, natural_order
from fmapboard.cli.models.checkpoints import load_checkpoint
from fmapboard.cli.models.load import LoadedModel
from fmapboard.cli.read_images import ReadImages
from fmapboard.cli.table import console
from fmapboard.errors import CheckpointError
from fmapboard.formats.overview import StepSource
from fmapboard.image_passes import ImagePasses
from fmapboard.measure.reducer import Reducer
from fmapboard.model.layers import select
from fmapboard.records import LoggedStep, StepData
from fmapboard.render.labels import labelled
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers import Writer
from fmapboard.writers.folder import FolderWriter
from fmapboard.writers.remote import RemoteDirectory
from fmapboard.writers.tensorboard import TensorBoardWriter

_COUNTERS = ("step", "iter(?:ation)?", "epoch")
"""Words before the number of a step in a file name, the most specific first."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint of a series.

    Attributes:
        step: Number of its step.
        path: The file or folder.
    """

    step: int
    path: Path


def series_of(pattern: Path | None) -> list[Checkpoint]:
    """The checkpoints that a glob pattern matches, in the order of their steps.

    The number of the step is that after "step", "iter" or "epoch" in the file name, otherwise the
    last number in it. If a name has none, or two have the same, all are numbered from 0 in natural
    order (``ckpt_2`` before ``ckpt_10``).

    Example:
        >>> series_of(Path("weights.pt"))
        []

    Returns:
        An empty list if the path is not a pattern.

    Raises:
        CheckpointError: The pattern matches nothing.
    """
    if pattern is None or pattern.exists() or not glob.has_magic(str(pattern)):
        return []
    paths = sorted(map(Path, glob.glob(str(pattern))), key=natural_order)
    if not paths:
        raise CheckpointError(f"no checkpoint matches {str(pattern)!r}")
    found = [step_in(path.name) for path in paths]
    steps = [step for step in found if step is not None]
    if len(set(steps)) < len(paths):
        steps = list(range(len(paths)))
    numbered = (Checkpoint(step, path) for step, path in zip(steps, paths, strict=True))
    return sorted(numbered, key=lambda checkpoint: checkpoint.step)


def step_in(name: str) -> int | None:
    """The number of a step in a checkpoint's file name; None if it has none.

    Example:
        >>> step_in("ckpt_0120.pt"), step_in("epoch=3-step=1200-v1.ckpt"), step_in("last.pt")
        (120, 1200, None)
    """
    stem = re.sub(r"\.[A-Za-z]\w*$", "", name)
    for word in _COUNTERS:
        counted = re.findall(rf"{word}s?[=_-]?(\d+)", stem, re.IGNORECASE)
        if counted:
            return int(counted[-1])
    numbers = re.findall(r"\d+", stem)
    return int(numbers[-1]) if numbers else None


@dataclass(frozen=True, slots=True)
class SeriesOptions:
    """What is drawn of each image, and where; see ``visualize --help``.

    Attributes:
        drawing: What is drawn of each image.
        checkpoint_key: Where the weights are inside a checkpoint, or None.
        logdir: Directory of the run; of one run per image if there are several. None writes none.
        out: Folder of PNG files: one folder per step, below one per image if there are several.
    """

    drawing: Drawing
    checkpoint_key: str | None
    logdir: Path | RemoteDirectory | None
    out: Path | None


def draw_series(
    options: SeriesOptions, loaded: LoadedModel, series: Sequence[Checkpoint], images: ReadImages
) -> AllImages:
    """Draw every image with every checkpoint; one step per checkpoint, one run per image.

    Args:
        options: What is drawn, and where.
        loaded: The model; its weights are replaced.
        series: The checkpoints.
        images: The images, all of which are held in memory.

    Returns:
        What was found in all of them.

    Raises:
        FmapboardError: A checkpoint or an image cannot be read, the model cannot run, or a file
            cannot be written. The output of earlier checkpoints is complete.
    """
    prepare = loaded.preprocessing
    pixels = list(images.tensors())
    say, found = console(stderr=True), AllImages()
    inputs = options.drawing.inputs or ForwardInputs.of(None, 1)
    files = [one for one in images.sources if isinstance(one, ImageFile)]
    places = list(images.of_read(folders_of(Path(), [one.stem for one in files])))
    names = images.of_read([one.name for one in files])
    with ExitStack() as stack:
        stack.enter_context(inputs.applied(loaded.model))
        runs = [_Run(options, place or Path()) for place in places]
        for run in runs:
            stack.callback(run.close)
        passes = _passes(options, loaded)
        for checkpoint in series:
            report = load_checkpoint(loaded.model, checkpoint.path, key=options.checkpoint_key)
            line = f"step {checkpoint.step}: {checkpoint.path}: {report}"
            say.print(line, soft_wrap=True)
            for number, (run, image) in enumerate(zip(runs, pixels, strict=True)):
                with inputs.of_image(images.numbers[number]):
                    step = _recorded(options, loaded, passes, prepare.normalize(image), checkpoint)
                at = checkpoint.path.name
                for one in step.attributions[:1]:
                    if one.value is not None:
                        line = scored(f"{names[number]} ({at})", (one.score, one.value))
                        console().print(line, soft_wrap=True)
                found.add(at if len(runs) == 1 else f"{names[number]} ({at})", run.write(step))
    found.replaced = sum(run.replaced for run in runs)
    return found


def _passes(options: SeriesOptions, loaded: LoadedModel) -> ImagePasses:
    reducer = Reducer.for_model(
        loaded.model,
        max_channels=None,
        max_tile=None,
        scale=options.drawing.scale,
        colormap=options.drawing.colormap,
        depth=options.drawing.depth,
    )
    prepare = loaded.preprocessing
    return ImagePasses(
        loaded.model,
        reducer,
        layers=options.drawing.layers,
        normalization=(prepare.mean, prepare.std),
        effective=options.drawing.effective,
    )


def _recorded(
    options: SeriesOptions,
    loaded: LoadedModel,
    passes: ImagePasses,
    image: Tensor,
    checkpoint: Checkpoint,
) -> StepData:
    batch = torch.stack([image])
    steps = passes(batch, checkpoint.step)
    if options.drawing.attribution:
        steps = with_attributions(steps, loaded.model, batch, options.drawing.class_number)
    (step,) = (pending.to_host() for pending in steps)
    source = StepSource("checkpoint", checkpoint.path.name)
    if not options.drawing.kernels:
        return replace(step, source=source)
    kernels = read_kernels(select(loaded.model, options.drawing.layers), None)
    drawn = tuple(pending.to_host() for pending in kernels)
    return replace(step, kernels=drawn, source=source)


class _Run:
    """Writes the steps of one image.

    Args:
        options: What is drawn, and where.
        place: The image's folder within the run directory and the folder of PNG files.
    """

    def __init__(self, options: SeriesOptions, place: Path) -> None:
        self._summarize = SummaryBuilder(
            colormap=options.drawing.colormap,
            scale=options.drawing.scale,
            attribution_side=SIDE,
            has_probe=True,
        )
        self._boards: list[Writer] = []
        self._folders: list[FolderWriter] = []
        self._labels = options.drawing.labels
        if options.logdir is not None:
            logdir = options.logdir / place.as_posix() if place.parts else options.logdir
            self._boards.append(TensorBoardWriter(logdir))
        if options.out is not None:
            self._folders.append(FolderWriter(options.out / place, per_step=True))

    def write(self, step: StepData) -> LoggedStep:
        summary = self._summarize(step)
        for board in self._boards:
            board.write(summary)
            board.flush()  # Ctrl-C while the next checkpoint loads ends the process
        for folder in self._folders:
            folder.write(labelled(summary) if self._labels else summary)
        return summary

    @property
    def replaced(self) -> int:
        """Number of PNG files from before that were overwritten."""
        return sum(folder.replaced for folder in self._folders)

    def close(self) -> None:
        for writer in self._boards:
            writer.close()
