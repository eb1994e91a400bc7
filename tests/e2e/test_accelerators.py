"""On accelerators (simulated ones), also without float64, the records are those of the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from simulated_device import Machine, move, moved, simulated_device
from torch import Tensor, nn
from torch.nn import functional as F

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.memory import MemoryWriter

STEPS = 2


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


def logged(kind: str, images: Tensor, **options: Any) -> list[LoggedStep]:
    """Train for two logged steps on a device."""
    model, labels, writer = network(), torch.tensor([0, 1, 2, 3]), MemoryWriter()
    if kind != "cpu":
        move(model, kind)
        images, labels = moved(images, kind), moved(labels, kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
    with fmapboard.watch(model, writer=writer, every=1, kernels=1, **options) as board:
        for number in range(STEPS):
            with board.step(number):
                F.cross_entropy(model(images), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
            board.flush()
    return writer.steps


def on_device(kind: str, images: Tensor, **options: Any) -> tuple[list[LoggedStep], Machine]:
    with simulated_device() as machine:
        return logged(kind, images, **options), machine


def assert_same_records(step: LoggedStep, expected: LoggedStep) -> None:
    assert [p.tag for p in step.pictures] == [p.tag for p in expected.pictures]
    for own, other in zip(step.pictures, expected.pictures, strict=True):
        for one, two in zip(own.samples, other.samples, strict=True):
            difference = one.pixels.astype(int) - two.pixels.astype(int)
            assert abs(difference).max() <= 1, own.tag  # 1 of 255 where float32 sums differ
    assert step.scalars.keys() == expected.scalars.keys()
    for tag in expected.scalars.keys() - {"fmapboard/logged_step_ms"}:
        assert step.scalars[tag] == pytest.approx(expected.scalars[tag], rel=1e-4, nan_ok=True), tag
    assert len(step.statistics) == len(expected.statistics)
    for own, other in zip(step.statistics, expected.statistics, strict=True):
        # Layers that are not drawn, activations, need no mean.
        moments = ("mean", "std") if own.layer_call.pictures else ()
        for name in ("minimum", "maximum", *moments):
            ours, theirs = getattr(own.statistics, name), getattr(other.statistics, name)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6, err_msg=name)
        for name in ("nan", "positive_infinity", "negative_infinity", "constant"):
            ours, theirs = getattr(own.statistics, name), getattr(other.statistics, name)
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
    assert {h.tag for h in step.histograms} == {h.tag for h in expected.histograms}


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("batch", [plain_batch, batch_with_nonfinite_values, offset_batch])
def test_every_step_is_logged_with_the_records_of_the_cpu(
    kind: str, batch: Callable[[], Tensor]
) -> None:
    steps, _ = on_device(kind, batch())
    expected = logged("cpu", batch())
    assert [step.step for step in steps] == list(range(STEPS))
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize(
    "options", [{}, {"inputs": True, "activation_gradients": True}], ids=["default", "all"]
)
def test_the_training_thread_does_not_wait_for_the_device(
    kind: str, options: dict[str, Any]
) -> None:
    steps, machine = on_device(kind, plain_batch(), **options)
    assert len(steps) == STEPS
    assert machine.waits_on("MainThread") == []


def test_the_training_thread_does_not_wait_for_the_device_with_nonfinite_values() -> None:
    steps, machine = on_device("cuda", batch_with_nonfinite_values())
    assert len(steps) == STEPS
    assert machine.waits_on("MainThread") == []
