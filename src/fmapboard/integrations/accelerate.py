"""For accelerate: ``board = watch(accelerator, model, optimizer, every=100)`` after ``prepare``."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn
from typing_extensions import Unpack

import fmapboard.logger
from fmapboard.errors import optional
from fmapboard.integrations.training_run import PlacedOptions, checked, placed
from fmapboard.logger import FeatureMapLogger
from fmapboard.schedule import Schedule
from fmapboard.writers import WandbWriter

optional("accelerate", extra="accelerate", why="fmapboard.integrations.accelerate")


def watch(
    accelerator: Any,
    model: nn.Module,
    optimizer: Any = None,
    *,
    every: int | Schedule = 100,
    start_step: int = 0,
    **options: Unpack[PlacedOptions],
) -> FeatureMapLogger:
    """Watch a prepared model, and log below the directory of accelerate's TensorBoard tracker.

    Args:
        accelerator: an `Accelerator`, after ``init_trackers``.
        model: the model that ``prepare`` returned, or the unwrapped one.
        optimizer: the optimizer that ``prepare`` returned. Its completed steps are counted, as
            accelerate counts accumulated and skipped ones. Without it, mark steps yourself:
            ``with board.step(i):``.
        every: log each optimizer step whose number it divides, or a function from number to bool.
        start_step: number of steps completed before a resume.
        options: see `training_run.PlacedOptions`.

    Raises:
        ConfigurationError: an option is unknown or invalid.
        LayerNotFound, NoConvolution: there is no such layer to watch.
    """
    checked(every, **options)
    names = {tracker.name for tracker in accelerator.trackers} & {"tensorboard", "wandb"}
    tracked = {name: accelerator.get_tracker(name, unwrap=True) for name in names}
    return fmapboard.logger.watch(
        model,
        optimizer=optimizer,
        scaler=accelerator.scaler,
        every=every,
        start_step=start_step,
        **placed(
            options,
            tracked.get("tensorboard"),
            accelerator.project_dir or ".",
            partial(WandbWriter, tracked["wandb"]) if "wandb" in tracked else None,
        ),
    )
