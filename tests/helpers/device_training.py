"""Training on a simulated device, its records, and their comparison with those of the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
import torch
from simulated_device import move, moved, simulated_device
from simulated_machine import Machine, machine_now
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS = 3
Scaled = Literal["", "unfused", "fused"]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Conv2d(8, 80, 3),
        nn.ReLU(), nn.Flatten(), nn.Linear(80 * 28 * 28, 5),
    )  # fmt: skip


def plain_batch() -> Tensor:
    return torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def batch_with_nonfinite_values() -> Tensor:
    images = plain_batch()
    images[0, 0, 3, 3], images[1, 1, 8, 8] = torch.nan, torch.inf
    return images


def offset_batch() -> Tensor:
    """Values far from 0, so that squares would cancel in float32."""
    return plain_batch() * 1e-2 + 1e3


def logged(
    kind: str,
    images: Tensor,
    *,
    scaled: Scaled = "",
    skipped: Sequence[int] = (),
    counted: bool = False,
    clips: bool = False,
    steps_optimizer: bool = True,
    **options: Any,
) -> list[LoggedStep]:
    """Train for three steps, each of which is logged; what `watch` waits for is not noted.

    Args:
        kind: type of the device.
        images: a batch of 4.
        scaled: with a GradScaler, and a fused optimizer or one that is not.
        skipped: which steps the GradScaler skips.
        counted: let fmapboard count the optimizer's steps, instead of marking steps.
        clips: read the norms before clipping.
        steps_optimizer: False never updates the weights.
        options: of `watch`.
    """
    model, labels, writer = network(), torch.tensor([0, 1, 2, 3]), MemoryWriter()
    if kind != "cpu":
        move(model, kind)
        images, labels = moved(images, kind), moved(labels, kind)
    fused = scaled == "fused"
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, foreach=None if fused else False, fused=fused
    )
    scaler = torch.amp.GradScaler(kind, init_scale=8.0, enabled=bool(scaled))
    if scaled:
        options["scaler"] = scaler
    if counted:
        options["optimizer"] = optimizer
    board = fmapboard.watch(model, **{"writer": writer, "every": 1, "kernels": 1, **options})
    machine_now().waits.clear()  # watch() may wait
    machine_now().uploads = 0

    def train(number: int) -> None:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        scaler.scale(loss * math.inf if number in skipped else loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            board.before_clipping()
        if steps_optimizer:
            scaler.step(optimizer)
            scaler.update()

    with board:
        for number in range(STEPS):
            if counted:
                train(number)
            else:
                with board.step(number):
                    train(number)
                board.flush()
    return writer.steps


def on_device(kind: str, images: Tensor, **options: Any) -> tuple[list[LoggedStep], Machine]:
    with simulated_device() as machine:
        return logged(kind, images, **options), machine


def assert_same_records(step: LoggedStep, expected: LoggedStep) -> None:
    """Compare with a step of the CPU; where values were not counted, only which are not finite."""
    assert [p.tag for p in step.pictures] == [p.tag for p in expected.pictures]
    for own, other in zip(step.pictures, expected.pictures, strict=True):
        if own.tag.endswith("highest_loss"):
            continue  # these images leave an accelerator in bfloat16
        for one, two in zip(own.samples, other.samples, strict=True):
            difference = one.pixels.astype(int) - two.pixels.astype(int)
            assert abs(difference).max() <= 1, own.tag  # 1 of 255 where float32 sums differ
    assert step.scalars.keys() == expected.scalars.keys()
    for tag in expected.scalars.keys() - {"fmapboard/logged_step_ms"}:
        # Of large weights, a CPU reads other values to estimate the size of an update.
        close = 0.02 if tag.startswith("update_ratio/") else 1e-4
        assert step.scalars[tag] == pytest.approx(expected.scalars[tag], rel=close, nan_ok=True), (
            tag
        )
    assert len(step.statistics) == len(expected.statistics)
    for own, other in zip(step.statistics, expected.statistics, strict=True):
        assert own.statistics is not None
        assert other.statistics is not None
        if not own.statistics.counted:
            np.testing.assert_array_equal(own.statistics.nonfinite, other.statistics.nonfinite)
            continue
        # Layers that are not drawn, activations, need no mean.
        moments = ("mean", "std") if own.layer_call.pictures else ()
        for name in ("minimum", "maximum", *moments):
            ours, theirs = getattr(own.statistics, name), getattr(other.statistics, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)
        for name in ("nan", "positive_infinity", "negative_infinity", "constant"):
            ours, theirs = getattr(own.statistics, name), getattr(other.statistics, name)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert {h.tag for h in step.histograms} == {h.tag for h in expected.histograms}
