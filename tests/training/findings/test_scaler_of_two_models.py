"""A GradScaler that is updated for another model's optimizer, which it does not skip.

As in a GAN whose discriminator accumulates gradients before and after the generator's step.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from device_training import network, plain_batch
from simulated_device import move, moved, simulated_device
from simulated_machine import Machine
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter


def first_batch() -> Tensor:
    return plain_batch()


def second_batch() -> Tensor:
    return plain_batch() * 2 + 1


def logged(
    kind: str, *, own_is_skipped: bool = False, steps: int = 1
) -> tuple[list[LoggedStep], Machine]:
    """The model sees one batch before and one after the other model's step.

    Args:
        kind: type of the device.
        own_is_skipped: before all this, the scaler skips a step of both models.
        steps: number of logged steps.
    """
    model, other, writer = network(), nn.Conv2d(3, 3, 1), MemoryWriter()
    batches = [first_batch(), second_batch()]
    with simulated_device() as machine:
        if kind != "cpu":
            move(model, kind)
            move(other, kind)
            batches = [moved(images, kind) for images in batches]
        own, others = (
            torch.optim.SGD(m.parameters(), lr=0.01, foreach=False) for m in (model, other)
        )
        scaler = torch.amp.GradScaler(kind, init_scale=8.0)

        def backward(model: Callable[[Tensor], Tensor], images: Tensor, factor: float = 1) -> None:
            scaler.scale(model(images).square().mean() * factor).backward()

        board = fmapboard.watch(model, writer=writer, every=1, scaler=scaler)
        machine.waits.clear()
        with board:
            for number in range(steps):
                with board.step(number):
                    if own_is_skipped:
                        backward(model, batches[1], math.inf)
                        backward(other, batches[1])
                        for optimizer in (own, others):
                            scaler.step(optimizer)
                        scaler.update()
                    own.zero_grad()
                    others.zero_grad()
                    backward(model, batches[0])
                    backward(other, batches[0])
                    scaler.step(others)
                    scaler.update()
                    backward(model, batches[1])
                    scaler.step(own)
                    scaler.update()
        assert own.state is not None
    return writer.steps, machine


@pytest.mark.parametrize("own_is_skipped", [False, True])
def test_the_first_pass_of_the_models_own_step_is_shown(own_is_skipped: bool) -> None:
    (step,), machine = logged("cpu", own_is_skipped=own_is_skipped)
    assert machine.waits_on("MainThread") == []
    shown = step.statistics[0].statistics
    assert shown is not None
    expected = network()[0](first_batch()).amax((0, 2, 3)).tolist()
    assert shown.maximum.tolist() == pytest.approx(expected, rel=1e-4)
    assert step.scalars["fmapboard/skipped_steps"] == own_is_skipped
