"""Logged steps of a model with CUDA graphs (simulated) leave out what may not fit on the device."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_device import move, moved, simulated_device
from torch import nn

import fmapboard
from fmapboard.capture.graph_memory import shortage
from fmapboard.writers.memory import MemoryWriter

MB = 10**6
Device = Callable[..., None]


def segment(pool: tuple[int, int], total: int, allocated: int, device: int = 0) -> dict[str, Any]:
    return {
        "device": device,
        "segment_pool_id": pool,
        "total_size": total * MB,
        "allocated_size": allocated * MB,
    }


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device with some free memory (in MB), and graphs of `torch.compile` on some devices."""

    def prepare(free: int, *segments: dict[str, Any], graphs_on: tuple[int, ...] = (0,)) -> None:
        def manager(index: int, create_if_none_exists: bool = True) -> object:
            assert not create_if_none_exists
            return object() if index in graphs_on else None

        trees = SimpleNamespace(get_manager=manager)
        monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", trees)
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (free * MB, 80_000 * MB))
        monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: list(segments))

    return prepare


def network() -> nn.Sequential:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    move(model, "cuda")
    return model


def test_the_estimate_is_twice_the_pools_of_the_models_device(device: Device) -> None:
    others = segment((0, 0), 900, 800), segment((0, 7), 9000, 0, device=1)
    with simulated_device():
        model = network()
        device(1100, segment((0, 1), 400, 10), segment((0, 2), 200, 200), *others)
        assert shortage(model) is None  # 1100 + 100 MB are free, 2 * 600 needed
        device(1099, segment((0, 1), 400, 10), segment((0, 2), 200, 200), *others)
        assert shortage(model) == (
            "logged steps of a model compiled with mode='reduce-overhead' run uncompiled, beside "
            "the memory of its CUDA graphs (600 MB), and may need 1200 MB, but cuda:0 has 1199 MB "
            "left; use a smaller batch, or compile with another mode"
        )


@pytest.mark.parametrize("graphs_on", [(), (1,)])
def test_without_graphs_on_the_models_device_the_device_is_asked_for_nothing(
    device: Device, graphs_on: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    device(0, segment((0, 1), 400, 0), graphs_on=graphs_on)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: pytest.fail("snapshot"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: pytest.fail("free memory"))
    with simulated_device():
        assert shortage(network()) is None


def test_a_model_on_the_cpu_is_not_checked(device: Device) -> None:
    device(0, segment((0, 1), 400, 0))
    assert shortage(nn.Conv2d(3, 4, 3)) is None


def test_a_step_that_may_not_fit_is_not_logged_with_one_warning_until_it_fits(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    writer = MemoryWriter()
    pool = segment((0, 1), 400, 0)
    device(799, pool)
    with simulated_device() as machine:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        images = moved(torch.rand(2, 3, 8, 8), "cuda")

        def step() -> int:
            before = machine.launches
            model(images).square().mean().backward()
            optimizer.step()
            return machine.launches - before

        bare = step()
        board = fmapboard.watch(model, writer=writer, optimizer=optimizer, every=1)
        with caplog.at_level(logging.WARNING):
            assert step() == bare
            assert step() == bare
        device(800, pool)
        step()  # the next step opens at the end of this one
        assert step() > bare
        assert machine.waits_on("MainThread") == []
        board.close()
    assert [step.step for step in writer.steps] == [3]
    (record,) = caplog.records
    assert record.getMessage().startswith("fmapboard: step 0 is not logged: logged steps of")


def test_if_no_step_fits_the_end_does_not_say_that_none_was_due(
    device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    device(0, segment((0, 1), 400, 0))
    with simulated_device(), caplog.at_level(logging.WARNING):
        model = network()
        with fmapboard.watch(model, writer=MemoryWriter(), every=1) as board, board.step(0):
            model(moved(torch.rand(2, 3, 8, 8), "cuda"))
    (record,) = caplog.records
    assert "step 0 is not logged" in record.getMessage()


@pytest.mark.usefixtures("errors_are_only_logged")
def test_if_the_memory_cannot_be_read_the_step_is_logged(
    device: Device, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = MemoryWriter()
    device(0, segment((0, 1), 400, 0))
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: 1 / 0)
    with simulated_device():
        model = network()
        with fmapboard.watch(model, writer=writer, every=1) as board, board.step(0):
            model(moved(torch.rand(2, 3, 8, 8), "cuda")).square().mean().backward()
            torch.optim.SGD(model.parameters(), lr=0.1, foreach=False).step()
    assert [step.step for step in writer.steps] == [0]
    assert "device memory: ZeroDivisionError" in caplog.text


def test_torch_says_whether_it_has_graphs_on_a_device() -> None:
    trees = pytest.importorskip("torch._inductor.cudagraph_trees")
    assert trees.get_manager(0, create_if_none_exists=False) is None
