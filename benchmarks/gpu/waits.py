"""Waits: a logged step never makes the training thread wait for the device.

torch's synchronization debug mode knows most waits and tells where they are. It does not know waits
for events, for pinned memory and for a full launch queue; so a logged step must also end while the
device is still held by a kernel that began before it.
"""

from __future__ import annotations

import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

import fmapboard
from fmapboard.writers.folder import MemoryWriter
from gpu.device import Device, Settings
from gpu.networks import Work
from gpu.report import Check, Report
from gpu.right import PlantedNet
from gpu.trainings import Training

PACKAGE = str(Path(fmapboard.__file__).parent)
TRAININGS = str(Path(__file__).parent)
WORKER = "fmapboard"
"""Name of the threads that may wait."""
HELD_S = 0.3


@dataclass(frozen=True)
class Case:
    """A training and the options of its logger.

    Attributes:
        mode: Mode of the training.
        fused: Use the fused optimizer.
        scaler: Pass the GradScaler to the logger.
        loss_scale: Initial scale of the GradScaler.
        planted: The model's feature maps have NaN and infinite values.
        probe: Draw probe images.
        options: Further options of ``watch``.
    """

    mode: str = "eager"
    fused: bool = False
    scaler: bool = False
    loss_scale: float = 256.0
    planted: bool = False
    probe: bool = False
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "default": Case(),
    "inputs and gradients": Case(options={"inputs": True, "activation_gradients": True}),
    "probe": Case(probe=True),
    "no limits": Case(options={"max_channels": None, "max_tile": None, "samples": 4}),
    "NaN and infinity": Case(planted=True),
    "reduce_statistics": Case(options={"reduce_statistics": True}),
    "autocast": Case("amp"),
    "GradScaler": Case("amp16"),
    "GradScaler given": Case("amp16", scaler=True),
    "GradScaler given, skipped steps": Case("amp16", scaler=True, loss_scale=2.0**100),
    "GradScaler given, fused optimizer": Case("amp16", fused=True, scaler=True),
    "GradScaler, fused optimizer, skipped steps": Case("amp16", fused=True, loss_scale=2.0**100),
    "fused optimizer": Case(fused=True),
    "reduce-overhead": Case("reduce_overhead"),
}


def run(report: Report, settings: Settings) -> None:
    for name, case in CASES.items():
        report.run("waits", name, partial(no_waits, case, settings))


def no_waits(case: Case, settings: Settings, check: Check) -> None:
    device = settings.device
    device.require_cuda()
    work = Work("planted", PlantedNet, (8, 3, 64, 64))
    train = Training(work, case.mode, device, fused=case.fused)
    train.raw.first.plants = case.planted  # type: ignore[union-attr]
    if train.scaler is not None:
        train.scaler = torch.amp.GradScaler(device.type, init_scale=case.loss_scale)
    for _ in range(3):
        train()
    with fmapboard.watch(
        train.model,
        writer=MemoryWriter(),
        every=1,
        kernels=1,
        scaler=train.scaler if case.scaler else None,
        probe=torch.randn(2, *work.shape[1:]) if case.probe else None,
        **case.options,
    ) as board:

        def logged() -> None:
            with board.step():
                train()

        def settle() -> None:
            board.flush()
            device.sync()

        for _ in range(2):  # libraries initialize, memory is allocated
            logged()
            settle()
        with noted_waits() as bare:
            train()
        settle()
        with noted_waits() as found:
            logged()
        settle()
        ours = sorted({wait.place for wait in found if wait.is_ours})
        check.figures["waits of the training itself"] = len(bare)
        check.expect_none(ours, "waits on the training thread")
        if not bare:
            with error_at_a_wait():
                logged()
            settle()
        _held(check, device, train, logged)
        settle()
    check.expect_none([text for text in check.said if "synchronizing" in text], "errors")


def _held(
    check: Check, device: Device, train: Callable[[], object], logged: Callable[[], object]
) -> None:
    """The training thread passes a logged step while the device is held."""
    waits = []
    for act in (train, logged):
        device.sync()
        free, begun = device.hold(HELD_S), time.perf_counter()
        act()
        waits.append(bool(free.query()))
        seconds = time.perf_counter() - begun
    device.sync()
    check.figures[f"ms per logged step while the device is held for {HELD_S * 1e3:.0f} ms"] = round(
        seconds * 1e3
    )
    if not waits[0]:  # otherwise the training waits without fmapboard, too
        check.expect(not waits[1], "the logged step ended only after the device was free")


@dataclass(frozen=True)
class Wait:
    """A wait for the device.

    Attributes:
        place: File and line of the innermost frame of fmapboard or of the training.
        is_ours: True if fmapboard waited, and not in its worker thread.
    """

    place: str
    is_ours: bool


@contextmanager
def noted_waits() -> Iterator[list[Wait]]:
    """Collect the waits that torch knows of."""
    found: list[Wait] = []

    def note(message: Any, *_: Any, **__: Any) -> None:
        if not str(message).startswith("called a synchronizing"):
            return
        stack = traceback.extract_stack()[:-1]
        known = [frame for frame in stack if frame.filename.startswith((PACKAGE, TRAININGS))]
        last = (known or stack)[-1]  # fmapboard calls forward, which is the training's
        in_worker = threading.current_thread().name == WORKER
        is_ours = last.filename.startswith(PACKAGE) and not in_worker
        found.append(Wait(f"{Path(last.filename).name}:{last.lineno}", is_ours))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode("default")


@contextmanager
def error_at_a_wait() -> Iterator[None]:
    """Raise an error where anything waits for the device; fmapboard logs errors of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")
