"""The statistics of a layer over the steps, of which only those of new steps are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

import fmapboard
from fmapboard.plugin.routes.history import history
from fmapboard.runs.find import entries, event_files
from fmapboard.runs.log import EventLog
from fmapboard.runs.provider import Blob, Files

KEY = "fmapboard/Conv2d"


class Counting(Files):
    """A provider that keeps the steps whose records are read."""

    def __init__(self, log: EventLog) -> None:
        super().__init__({"run": log})
        self.read: list[int] = []

    def blobs(self, requested: Sequence[Blob], *, keep: bool = True) -> list[bytes | None]:
        self.read += [point.step for point, index in requested if index == 0]
        return super().blobs(requested, keep=keep)


def test_only_the_records_of_new_steps_are_read_again(tmp_path: Path) -> None:
    model = nn.Conv2d(1, 1, 1, bias=False)
    nn.init.ones_(model.weight)
    with fmapboard.watch(model, tmp_path, every=1, checks=False) as board:

        def log_step(step: int) -> None:
            with board.step(step):
                model(torch.tensor([[[[1.0, 2 + step]]]]))
            board.flush()

        for step in range(4):
            log_step(step)
        log = EventLog(tmp_path)
        provider = Counting(log)
        first = history(provider, "run", KEY)
        assert first.arrays["feature_maps.maximum"].tolist() == [[2], [3], [4], [5]]
        provider.read.clear()
        log_step(4)
        log.read_on(event_files(entries(tmp_path)))
        second = history(provider, "run", KEY)
    assert second.steps == [0, 1, 2, 3, 4]
    assert second.arrays["feature_maps.maximum"].tolist() == [[2], [3], [4], [5], [6]]
    assert 4 in provider.read
    assert 3 not in provider.read  # others are read again to choose the channel that is shown


def test_a_layer_of_which_only_kernels_are_stored_has_a_history_without_numbers(
    tmp_path: Path,
) -> None:
    model = nn.ModuleDict({"used": nn.Conv2d(1, 1, 1), "unused": nn.Conv2d(1, 1, 1)})
    with fmapboard.watch(model, tmp_path, every=1, checks=False) as board:
        for step in range(2):
            with board.step(step):
                model["used"](torch.ones(1, 1, 2, 2))
    found = history(Files({"run": EventLog(tmp_path)}), "run", "fmapboard/unused")
    assert (len(found.steps), found.arrays) == (len(found.kernels), {})
