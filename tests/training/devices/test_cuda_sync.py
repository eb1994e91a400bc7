"""On a GPU the training thread queues the work of a logged step and never waits for the device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@contextmanager
def no_waiting() -> Iterator[None]:
    """Raise an error if anything in the block waits for the device."""
    torch.cuda.synchronize()
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def network() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)),
        *(nn.Conv2d(8, 80, 3), nn.ReLU(), nn.Flatten(), nn.Linear(80 * 28 * 28, 5)),
    ).cuda()


def steps(count: int, *, bad: bool = False, **options: object) -> list[LoggedStep]:
    """Train with every step logged; nothing from the forward pass to the end of a step may wait."""
    torch.manual_seed(0)
    model, writer = network(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(4, 3, 32, 32).cuda(), torch.randint(0, 5, (4,)).cuda()
    if bad:
        x[0, 0, 3, 3] = torch.nan
    functional.cross_entropy(model(x), y).backward()  # libraries initialize at first use
    optimizer.zero_grad()
    board = fmapboard.watch(
        model,
        writer=writer,
        every=1,
        kernels=1,
        **options,  # type: ignore[arg-type]
    )
    for number in range(count):
        with no_waiting(), board.step(number):
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
        board.flush()
    board.close()
    return writer.steps


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"inputs": True, "activation_gradients": True},
        {"max_channels": None, "max_tile": None, "samples": 4},
        {"max_tile": 8, "scale": "layer", "colormap": "signed"},
        {"scale": "locked"},
        {"probe": torch.linspace(-1, 1, 2 * 3 * 32 * 32).reshape(2, 3, 32, 32)},
        {"normalization": ([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])},
    ],
    ids=lambda options: ",".join(options) or "default",
)
def test_no_hook_of_a_logged_step_waits_for_the_device(options: dict[str, object]) -> None:
    written = steps(3, **options)
    assert [step.step for step in written] == [0, 1, 2]
    assert all("gradient_norm/total" in step.scalars for step in written)


def test_no_hook_waits_for_the_device_because_of_non_finite_values() -> None:
    (step,) = steps(1, bad=True)
    statistics = step.statistics[0].statistics
    assert statistics is not None
    assert statistics.nan.sum() > 0


@pytest.mark.parametrize("skipped", [(), (1,)])
def test_a_grad_scaler_with_a_fused_optimizer_makes_no_step_wait(skipped: tuple[int, ...]) -> None:
    """Without a fused optimizer the scaler itself waits for its result in each step."""
    model, writer = network(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    x, y = torch.randn(4, 3, 32, 32).cuda(), torch.randint(0, 5, (4,)).cuda()

    def train(factor: float) -> None:
        scaler.scale(functional.cross_entropy(model(x), y) * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()

    train(1.0)
    board = fmapboard.watch(
        model, writer=writer, optimizer=optimizer, scaler=scaler, every=1, activation_gradients=True
    )
    with board, no_waiting():
        for number in range(3):
            train(float("inf") if number in skipped else 1.0)
    counts = [step.scalars["fmapboard/skipped_steps"] for step in writer.steps]
    assert counts == [sum(one <= number for one in skipped) for number in range(3)]
    has_norms = ["gradient_norm/total" in step.scalars for step in writer.steps]
    assert has_norms == [number not in skipped for number in range(3)]


def test_counting_by_an_optimizer_does_not_wait_between_logged_steps() -> None:
    model, writer = network(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(4, 3, 32, 32).cuda(), torch.randint(0, 5, (4,)).cuda()

    def train() -> None:
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    train()
    board = fmapboard.watch(model, writer=writer, optimizer=optimizer, every=4)
    with board, no_waiting():
        for _ in range(9):
            train()
    assert [step.step for step in writer.steps] == [0, 4, 8]


def test_a_gpu_and_the_cpu_give_the_same_pictures_and_statistics() -> None:
    x = torch.randn(4, 3, 32, 32)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())

    def written(device: str) -> LoggedStep:
        writer = MemoryWriter()
        moved = model.to(device)
        board = fmapboard.watch(moved, writer=writer, every=1)
        with board.step(0):
            out: Tensor = moved(x.to(device))
            out.sum().backward()
        board.close()
        return writer.steps[0]

    cpu, gpu = written("cpu"), written("cuda")
    for here, there in zip(cpu.pictures, gpu.pictures, strict=True):
        assert here.tag == there.tag
        difference = here.samples[0].pixels.astype(int) - there.samples[0].pixels.astype(int)
        assert np.abs(difference).max() <= 2
    for one, other in zip(cpu.statistics, gpu.statistics, strict=True):
        assert one.statistics is not None
        assert other.statistics is not None
        np.testing.assert_allclose(one.statistics.mean, other.statistics.mean, atol=1e-3)
