"""Right: everything logged equals what ``forward`` returned, also non-finite values."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter
from gpu import compare
from gpu.device import Device, Settings
from gpu.hard import DTYPES, hard_tensors
from gpu.networks import Work, small
from gpu.report import Check, Report
from gpu.trainings import MODES, Training

EVERYTHING: dict[str, Any] = {"inputs": True, "activation_gradients": True, "samples": 2}
WHOLE = {"max_channels": None, "max_tile": None}
AVERAGED = {"max_channels": 8, "max_tile": 8}


def run(report: Report, settings: Settings) -> None:
    for mode in settings.modes or MODES:
        report.run("right", mode, partial(records, mode, WHOLE, settings))
    for mode in ("eager", "amp"):
        body = partial(records, mode, AVERAGED, settings)
        report.run("right", f"averaged tiles, {mode}", body)
        report.run("right", f"NaN and infinity, {mode}", partial(nonfinite, mode, settings))
    for name, dtype in DTYPES.items():
        report.run("right", f"hard tensors, {name}", partial(hard_tensors, dtype, settings))


def records(mode: str, sizes: dict[str, int | None], settings: Settings, check: Check) -> None:
    """All records of two logged steps, with the device held so that copies arrive late.

    The maps of a compiled model are those of an uncompiled pass: they are compared with the maps of
    another such pass, on a copy of the model.
    """
    device = settings.device
    compiled = MODES[mode].compiled is not None
    options = {**EVERYTHING, **sizes, "activation_gradients": not compiled}
    train, writer = Training(small(tiny=settings.tiny), mode, device), MemoryWriter()
    for _ in range(3):
        train()
    wrong: list[str] = []
    compared = 0
    with fmapboard.watch(
        train.model, writer=writer, every=1, kernels=1, scaler=train.scaler, **options
    ) as board:
        for number in range(2):
            scale = 1.0 if train.scaler is None else train.scaler.get_scale()
            device.sync()
            if device.is_cuda:
                device.hold(0.2)
            copied = copy.deepcopy(train.raw) if compiled else train.raw
            with board.step(number), compare.clones(copied) as kept:
                train()
                overwrite_freed_memory(device)
                if compiled:
                    with torch.no_grad():
                        copied(train.x)
            overwrite_freed_memory(device)
            board.flush()
            step = writer.steps[-1]
            wrong += compare.of_step(step, kept, loss_scale=scale)
            wrong += compare.of_gradients(step, train.raw) + _missing(step, kept)
            compared += len(step.statistics)
            train()
    check.figures["tensors"] = compared
    check.expect(len(writer.steps) == 2, f"{len(writer.steps)} of 2 steps written")
    check.expect_none(wrong, "differences")
    check.expect_silence()


def _missing(step: LoggedStep, kept: compare.Clones) -> list[str]:
    """Tensors that are not in the step; inputs and gradients are those of drawn layers only."""
    drawn = {m.layer_call.label for m in step.statistics if m.layer_call.pictures}
    logged = {(m.layer_call.label, m.kind) for m in step.statistics}
    expected = {key for key in kept if key[0] in drawn or key[1] == "feature_maps"}
    return [f"{kind} of {label}: not recorded" for label, kind in sorted(expected - logged)]


def overwrite_freed_memory(device: Device) -> None:
    """Allocate and fill what the allocator has free, so that a tensor freed too early is lost."""
    for size in (2**10, 2**16, 2**20, 2**22):
        held = [torch.full((size,), 7.0, device=device.name) for _ in range(16)]
        if device.is_cuda:
            held.append(torch.full((size,), 7.0).pin_memory())
        del held


class Planting(nn.Conv2d):
    """A convolution that adds ``bad`` to its output while ``plants`` is true."""

    plants = False

    def forward(self, x: Tensor) -> Tensor:
        output = super().forward(x)
        if not self.plants:
            return output
        bad = torch.zeros_like(output)
        bad[0, 1, 2, 3] = torch.nan
        bad[1, 1, 0, 0] = bad[0, 2, 1, 1] = torch.inf
        bad[:, 3, 1] = -torch.inf
        bad[1, 4] = torch.nan
        return output + bad


class PlantedNet(nn.Module):
    """A network in which only one convolution and one ReLU see non-finite values."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu = Planting(3, 8, 3), nn.ReLU()
        self.last, self.head = nn.Conv2d(8, 8, 3), nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        maps = torch.nan_to_num(self.relu(self.first(x)), 0.0, 0.0, 0.0)
        logits: Tensor = self.head(self.last(maps).mean((2, 3)))
        return logits


def nonfinite(mode: str, settings: Settings, check: Check) -> None:
    """Planted from the second logged step on: flagged there, counted at the third at the latest."""
    work = Work("planted", PlantedNet, (2, 3, 32, 32))
    train, writer = Training(work, mode, settings.device), MemoryWriter()
    truths = []
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        for number in range(3):
            train.raw.first.plants = number > 0  # type: ignore[union-attr]
            with board.step(number), compare.clones(train.raw) as kept:
                train()
            board.flush()  # what is counted next depends on what was found
            truths.append(kept)
    wrong = [
        f"step {step.step}: {text}"
        for step, kept in zip(writer.steps, truths, strict=True)
        for text in compare.of_step(step, kept)
    ]
    last = writer.steps[-1].statistics
    late = [m.layer_call.label for m in last if not getattr(m.statistics, "counted", True)]
    flagged = [m for m in last if m.statistics is not None and m.statistics.nonfinite.any()]
    check.figures["layers with non-finite values"] = len(flagged)
    check.expect(len(flagged) == 2, "expected the planted convolution and its ReLU")
    check.expect_none(wrong, "differences")
    check.expect_none(late, "layers not counted at the next step")
    check.said.clear()  # that there are non-finite values
