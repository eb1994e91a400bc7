"""One logged step of a model, and single measurements and pictures of it."""

from __future__ import annotations

from typing import Any

from torch import nn

import fmapboard
from fmapboard.records import LayerMeasurement, LoggedStep, Statistics, TaggedPictures
from fmapboard.writers.folder import MemoryWriter


def log_pass(model: nn.Module, x: Any, **options: Any) -> LoggedStep:
    """The logged step of one forward pass; ``options`` are those of `fmapboard.watch`."""
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, **options) as board, board.step(0):
        model(x)
    return kept.steps[0]


def measurement(step: LoggedStep, label: str, kind: str = "feature_maps") -> LayerMeasurement:
    """What was measured of a layer call's output, input or gradient."""
    return next(m for m in step.statistics if (m.layer_call.label, m.kind) == (label, kind))


def statistics_of(step: LoggedStep, label: str, kind: str = "feature_maps") -> Statistics:
    """Per-channel statistics of a layer call; fails where there are none."""
    found = measurement(step, label, kind).statistics
    assert found is not None
    return found


def pictures(step: LoggedStep, tag: str) -> TaggedPictures:
    return next(pictures for pictures in step.pictures if pictures.tag == tag)


def picture_tags(step: LoggedStep) -> set[str]:
    return {pictures.tag for pictures in step.pictures}
