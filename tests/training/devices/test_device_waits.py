"""On an accelerator (a simulated one) the training thread never waits for a logged step."""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
from typing import Any

import pytest
import torch
from device_training import (
    STEPS,
    Scaled,
    assert_same_records,
    batch_with_nonfinite_values,
    logged,
    network,
    on_device,
    plain_batch,
)
from simulated_device import move, moved, simulated_device

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

PROBE = torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)

OPTIONS = {
    "default": {},
    "all": {"inputs": True, "activation_gradients": True, "samples": 2},
    "probe": {"probe": PROBE},
    "normalization": {"normalization": ([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])},
    "kernels at the last step": {"kernels": 2},
    "locked": {"scale": "locked", "max_tile": 8},
}
KINDS = ("cuda", "mps", "xpu")
OFTEN = {*(("cuda", name) for name in OPTIONS), *((kind, "all") for kind in KINDS)}
"""What CI trains; `pytest -m sweep` trains with the other options on each kind of device."""
EACH = itertools.product(KINDS, OPTIONS)


@pytest.mark.parametrize(
    ("kind", "name"),
    [pytest.param(*each, marks=() if each in OFTEN else pytest.mark.sweep) for each in EACH],
)
def test_no_logged_step_waits_for_the_device(kind: str, name: str) -> None:
    options = OPTIONS[name]
    steps, machine = on_device(kind, plain_batch(), **options)
    assert machine.waits_on("MainThread") == []
    assert machine.uploads == 0  # `watch` has copied the probe
    expected = logged("cpu", plain_batch(), **options)
    assert [step.step for step in steps] == list(range(STEPS))
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)


def test_nonfinite_values_make_no_step_wait() -> None:
    steps, machine = on_device("cuda", batch_with_nonfinite_values())
    assert len(steps) == STEPS
    assert machine.waits_on("MainThread") == []


@pytest.mark.each_once
@pytest.mark.parametrize(
    ("kind", "skipped"), [("cuda", ()), ("cuda", (0,)), ("cuda", (0, 2)), ("mps", (1,))]
)
@pytest.mark.parametrize("scaled", ["unfused", "fused"])
def test_a_grad_scaler_makes_no_marked_step_wait(
    kind: str, scaled: Scaled, skipped: tuple[int, ...]
) -> None:
    how = {"scaled": scaled, "skipped": skipped, "activation_gradients": True}
    steps, machine = on_device(kind, plain_batch(), **how)
    assert machine.waits_on("MainThread") == []
    expected = logged("cpu", plain_batch(), **how)
    assert [step.step for step in steps] == [step.step for step in expected] == [0, 1, 2]
    for number, (step, other) in enumerate(zip(steps, expected, strict=True)):
        assert_same_records(step, other)
        assert ("gradient_norm/total" in step.scalars) is (number not in skipped)
        count = sum(one <= number for one in skipped)
        assert step.scalars["fmapboard/skipped_steps"] == count


@pytest.mark.parametrize("scaled", ["unfused", "fused"])
def test_activation_gradients_are_those_of_the_unscaled_loss(scaled: Scaled) -> None:
    steps, _ = on_device("cuda", plain_batch(), scaled=scaled, activation_gradients=True)
    expected = logged("cpu", plain_batch(), activation_gradients=True)
    for step, other in zip(steps, expected, strict=True):
        for own, unscaled in zip(step.statistics, other.statistics, strict=True):
            assert own.statistics is not None
            assert unscaled.statistics is not None
            maximum = pytest.approx(unscaled.statistics.maximum, rel=1e-4, abs=1e-9)
            assert own.statistics.maximum == maximum


@pytest.mark.parametrize(("kind", "skipped"), [("cuda", (0,)), ("cuda", (0, 1)), ("mps", (1,))])
def test_steps_of_an_optimizer_that_the_scaler_skips_are_replaced_without_waiting(
    kind: str, skipped: tuple[int, ...]
) -> None:
    how = {"scaled": "unfused", "skipped": skipped, "counted": True}
    steps, machine = on_device(kind, plain_batch(), **how)
    assert machine.waits_on("MainThread") == []
    expected = logged("cpu", plain_batch(), **how)
    assert [step.step for step in steps] == list(range(STEPS - len(skipped)))
    for step, other in zip(steps, expected, strict=True):
        assert_same_records(step, other)
        assert step.scalars["fmapboard/skipped_steps"] == other.scalars["fmapboard/skipped_steps"]


def test_a_skipped_step_of_a_fused_optimizer_counts_as_a_step_without_gradients() -> None:
    """The CPU knows at once that it was skipped, and logs the next one instead."""
    steps, machine = on_device("cuda", plain_batch(), scaled="fused", skipped=[1], counted=True)
    assert machine.waits_on("MainThread") == []
    assert [step.step for step in steps] == [0, 1, 2]
    assert [step.scalars["fmapboard/skipped_steps"] for step in steps] == [0, 1, 1]
    has_norms = [any(tag.startswith("gradient_norm/") for tag in s.scalars) for s in steps]
    assert has_norms == [True, False, True]
    groups = [{h.tag.split("/")[0] for h in step.histograms} for step in steps]
    assert "gradients" in groups[0]
    assert not {"gradients", "weights"} & groups[1]
    assert all(step.pictures for step in steps)


@pytest.mark.parametrize("scaled", ["", "unfused", "fused"])
def test_norms_before_clipping_make_no_step_wait(scaled: Scaled) -> None:
    steps, machine = on_device("cuda", plain_batch(), scaled=scaled, clips=True)
    assert machine.waits_on("MainThread") == []
    expected = logged("cpu", plain_batch(), scaled=scaled, clips=True)
    for step, other in zip(steps, expected, strict=True):
        assert "gradient_norm_before_clipping/total" in step.scalars
        assert_same_records(step, other)


def test_a_step_without_an_optimizer_step_is_told_from_a_skipped_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    on_device("cuda", plain_batch(), scaled="unfused", skipped=[0])
    assert caplog.messages == []
    on_device("cuda", plain_batch(), scaled="unfused", steps_optimizer=False)
    assert len(caplog.messages) == 1
    assert "no optimizer stepped on the model's parameters" in caplog.text


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_block_of_several_scaled_iterations_shows_the_first(kind: str) -> None:
    first, second = plain_batch(), plain_batch() * 2 + 1
    model, writer = network(), MemoryWriter()
    with simulated_device() as machine:
        if kind != "cpu":
            move(model, kind)
            first, second = moved(first, kind), moved(second, kind)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
        scaler = torch.amp.GradScaler(kind, init_scale=8.0)
        board = fmapboard.watch(model, writer=writer, every=1, scaler=scaler)
        with board, board.step(0):
            for images in (first, second):
                optimizer.zero_grad()
                scaler.scale(model(images).square().mean()).backward()
                scaler.step(optimizer)
                scaler.update()
    assert machine.waits_on("MainThread") == []
    expected = network()[0](plain_batch()).amax((0, 2, 3)).tolist()
    shown = writer.steps[0].statistics[0].statistics
    assert shown is not None
    assert shown.maximum.tolist() == pytest.approx(expected, rel=1e-4)


class HeldUpWriter(MemoryWriter):
    """Holds up the worker thread at its first step, so that it opens no other."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()

    def write(self, step: LoggedStep) -> None:
        self.may_write.wait()
        super().write(step)


def test_no_memory_of_a_step_is_held_on_the_device_once_it_has_ended() -> None:
    def train(writer: HeldUpWriter | None) -> list[int]:
        """Bytes that are held on the device after each of three steps."""
        model, held = network(), []
        with simulated_device() as machine, contextlib.ExitStack() as closed:
            move(model, "cuda")
            images = moved(plain_batch(), "cuda")
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, foreach=False)
            if writer is not None:
                options: dict[str, Any] = {"inputs": True, "activation_gradients": True}
                board = fmapboard.watch(
                    model, writer=writer, optimizer=optimizer, every=2, kernels=1, **options
                )
                closed.enter_context(board)
            for _ in range(STEPS):
                model(images).square().mean().backward()
                optimizer.step()
                gc.collect()
                held.append(machine.held_bytes())
            if writer is not None:
                writer.may_write.set()
        return held

    writer = HeldUpWriter()
    assert train(writer) == train(None)
    assert [step.step for step in writer.steps] == [0, 2]
