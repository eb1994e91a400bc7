"""``visualize --checkpoint 'ckpt_*.pt'``: one step per checkpoint, for each image."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fmapboard.cli.console import console
from fmapboard.errors import CheckpointError
from fmapboard.formats.overview import StepSource
from fmapboard.imaging.all_images import AllImages
from fmapboard.imaging.drawing import Drawing, folders_of, scored
from fmapboard.imaging.images import natural_order
from fmapboard.imaging.models.checkpoints import load_checkpoint
from fmapboard.imaging.models.load import LoadedModel
from fmapboard.imaging.read_images import ReadImages
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


def draw_series(
    drawing: Drawing,
    loaded: LoadedModel,
    series: Sequence[Checkpoint],
    images: ReadImages,
    *,
    checkpoint_key: str | None,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
) -> AllImages:
    """Draw every image with every checkpoint; one step per checkpoint, one run per image.

    Args:
        drawing: What is drawn of each image.
        loaded: The model; its weights are replaced.
        series: The checkpoints.
        images: The images, all of which are held in memory.
        checkpoint_key: Where the weights are inside a checkpoint, or None.
        logdir: Directory of the run; of one run per image if there are several. None writes none.
        out: Folder of PNG files: one folder per step, below one per image if there are several.

    Returns:
        What was found in all of them.

    Raises:
        FmapboardError: A checkpoint or an image cannot be read, the model cannot run, or a file
            cannot be written. The output of earlier checkpoints is complete.
    """
    pixels = list(images.tensors())
    say, found = partial(console(stderr=True).print, soft_wrap=True), AllImages()
    places = [place or Path() for place in folders_of(Path(), images.names)]
    runs = [_Run(places[number], drawing, logdir) for number in images.numbers]
    with ExitStack() as stack:
        for run in runs:
            stack.callback(run.close)
        for checkpoint in series:
            report = load_checkpoint(loaded.model, checkpoint.path, key=checkpoint_key)
            say(f"step {checkpoint.step}: {checkpoint.path}: {report}")
            source = StepSource("checkpoint", checkpoint.path.name)
            own = replace(drawing, step=checkpoint.step, source=source)
            for number, image, run in zip(images.numbers, pixels, runs, strict=True):
                folder = None if out is None else out / run.place / f"step{checkpoint.step}"
                written = own.written(
                    loaded.model, images.only(number, image), run.board, [folder], say=say,
                    compose=run.compose,
                )  # fmt: skip
                name = f"{images.names[number]} ({source.name})"
                for one in written:
                    found.add(source.name if len(runs) == 1 else name, one.step, one.replaced)
                    if one.score is not None:
                        console().print(scored(name, one.score), soft_wrap=True)
                if run.board is not None:
                    run.board.flush()  # Ctrl-C while the next checkpoint loads ends the process
    return found


class _Run:
    """The steps of one image.

    Args:
        place: The image's folder within the run directory and the folder of PNG files.
        drawing: What is drawn.
        logdir: The run directory, or None.
    """

    def __init__(
        self, place: Path, drawing: Drawing, logdir: Path | RemoteDirectory | None
    ) -> None:
        self.place, self.compose = place, drawing.composing(same_image=True)
        self.board: TensorBoardWriter | None = None
        if logdir is not None:
            self.board = TensorBoardWriter(logdir / place.as_posix() if place.parts else logdir)

    def close(self) -> None:
        if self.board is not None:
            self.board.close()
