"""``visualize --checkpoint 'ckpt_*.pt'``: one step per checkpoint, for each image."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from fmapboard.errors import CheckpointError
from fmapboard.formats.overview import StepSource
from fmapboard.imaging.drawing import Drawing, Pass, folders_of
from fmapboard.imaging.images import natural_order
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


def series_passes(
    drawing: Drawing,
    series: Sequence[Checkpoint],
    images: ReadImages,
    load: Callable[[Checkpoint], object],
    *,
    logdir: Path | RemoteDirectory | None,
    out: Path | None,
) -> Generator[Pass, None, None]:
    """The passes that draw every image with every checkpoint, for `drawing.draw_all`.

    Each image has a run of its own, in which each checkpoint is a step.

    Args:
        drawing: What is drawn of each image.
        series: The checkpoints.
        images: The images, all of which are held in memory.
        load: Loads a checkpoint into the model.
        logdir: Directory of the run; of one run per image if there are several. None writes none.
        out: Folder of PNG files: one folder per step, below one per image if there are several.

    Raises:
        FmapboardError: An image cannot be read, or what ``load`` raises. The output of earlier
            checkpoints is complete.
    """
    pixels, names = list(images.tensors()), images.names
    places = [place or Path() for place in folders_of(Path(), names)]
    composers = [drawing.composing(same_image=True) for _ in pixels]
    with ExitStack() as stack:
        boards: list[TensorBoardWriter | None] = [None] * len(pixels)
        if logdir is not None:
            own_places = [places[number] for number in images.numbers]
            runs = [logdir / one.as_posix() if one.parts else logdir for one in own_places]
            boards = [stack.enter_context(closing(TensorBoardWriter(run))) for run in runs]
        for checkpoint in series:
            load(checkpoint)
            source = StepSource("checkpoint", checkpoint.path.name)
            own = replace(drawing, step=checkpoint.step, source=source)
            each = zip(images.numbers, pixels, boards, composers, strict=True)
            for number, image, board, compose in each:
                folder = None if out is None else out / places[number] / f"step{checkpoint.step}"
                name = f"{names[number]} ({source.name})"
                found_as = source.name if len(pixels) == 1 else name
                only = images.only(number, image)
                yield Pass(own, only, board, [folder] * len(names), name, found_as, compose)
                if board is not None:
                    board.flush()  # Ctrl-C while the next checkpoint loads ends the process
