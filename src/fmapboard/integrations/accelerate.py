"""accelerate: ``board = watch(accelerator, model, optimizer, every=100)`` after ``prepare``."""

from __future__ import annotations

from typing import Any

from torch import nn
from typing_extensions import Unpack

import fmapboard.logger
from fmapboard.errors import optional
from fmapboard.integrations.training_run import PlacedOptions, checked, placed
from fmapboard.logger import FeatureMapLogger
from fmapboard.schedule import Schedule

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
    """Watch a prepared model below the directory of the accelerator's TensorBoard tracker.

    Args:
        accelerator: an `Accelerator`; call this after ``init_trackers``.
        model: what ``prepare`` returned; also the model inside.
        optimizer: what ``prepare`` returned: its completed steps are counted, accumulation and
            skipped steps as accelerate does them; without it mark steps: ``with board.step(i):``.
        every: log each optimizer step whose number it divides, or a function of the number.
        start_step: steps done before, on resume.
        options: see `training_run.PlacedOptions`.

    Raises:
        ConfigurationError, LayerNotFound, NoConvolution: at once, for what cannot be done.
    """
    checked(every, **options)
    has_tensorboard = any(tracker.name == "tensorboard" for tracker in accelerator.trackers)
    return fmapboard.logger.watch(
        model,
        optimizer=optimizer,
        scaler=accelerator.scaler,
        every=every,
        start_step=start_step,
        **placed(
            options,
            accelerator.get_tracker("tensorboard", unwrap=True) if has_tensorboard else None,
            accelerator.project_dir or ".",
        ),
    )
