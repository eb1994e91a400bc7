"""`reduce_statistics` on a simulated device: the training thread waits for nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
import torch
from simulated_device import move, moved, simulated_device
from torch import nn

import fmapboard
from fmapboard.errors import WarnOnce
from fmapboard.measure.merge_ranks import RankExchange, Share
from fmapboard.writers.folder import MemoryWriter


@pytest.fixture
def exchanging_threads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Pretend that a second rank has the same batches; the threads that exchange with it."""
    threads: list[str] = []

    def gather(own: Share) -> Sequence[Share]:
        threads.append(threading.current_thread().name)
        return [own, own]

    monkeypatch.setattr(
        RankExchange, "among_all", classmethod(lambda cls, warn: cls(gather, WarnOnce()))
    )
    return threads


def test_statistics_are_merged_in_the_worker_without_a_wait_on_the_training_thread(
    exchanging_threads: list[str],
) -> None:
    writer = MemoryWriter()
    with simulated_device() as machine:
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
        move(model, "cuda")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        images = moved(torch.rand(2, 3, 8, 8), "cuda")
        with fmapboard.watch(model, writer=writer, every=1, reduce_statistics=True) as board:
            for number in range(3):
                with board.step(number):
                    model(images).square().mean().backward()
                    optimizer.step()
            assert machine.waits_on(threading.current_thread().name) == []
    assert [step.step for step in writer.steps] == [0, 1, 2]
    assert exchanging_threads == ["fmapboard"] * 3


def test_a_step_in_which_nothing_was_collected_is_exchanged_too(
    exchanging_threads: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    writer = MemoryWriter()
    model = nn.Conv2d(3, 4, 3)
    with fmapboard.watch(model, writer=writer, every=1, reduce_statistics=True) as board:
        with board.step(0):
            pass
        with board.step(1):
            model(torch.rand(2, 3, 8, 8)).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert [step.step for step in writer.steps] == [1]
    assert board.logged_steps == 1
    assert exchanging_threads == ["fmapboard"] * 2
    assert "no watched layer ran" in caplog.text
