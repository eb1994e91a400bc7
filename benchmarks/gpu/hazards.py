"""Hazards: a busy device, several streams and devices, full memory, and CUDA graphs."""

from __future__ import annotations

import time
from functools import partial

import torch
from torch import Tensor, nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter
from gpu import captures, compare
from gpu.device import Device, Settings
from gpu.networks import Work, small, works
from gpu.report import Check, Report, Skip
from gpu.right import overwrite_freed_memory
from gpu.trainings import Training

MB = 1e6


def run(report: Report, settings: Settings) -> None:
    checks = {
        "memory stays the same": memory_stays,
        "ten logged steps behind a busy device": behind_a_busy_device,
        "the worker sleeps while the device is busy": worker_sleeps,
        "a model on two streams": two_streams,
        "a model on two devices": two_devices,
        "no memory left, eager": partial(no_memory_left, "eager"),
        "no memory left, reduce-overhead": partial(no_memory_left, "reduce_overhead"),
        **captures.CHECKS,  # last: an error in a capture may break the process
    }
    for name, body in checks.items():
        report.run("hazards", name, partial(body, settings))


def memory_stays(settings: Settings, check: Check) -> None:
    """Device memory and pinned memory after the first and after the last logged steps."""
    device, writer = settings.device, MemoryWriter()
    train = Training(small(tiny=settings.tiny), "eager", device)
    first, last = (3, 6) if settings.tiny else (10, 40)
    marks, written = [], []
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        for number in range(1, last + 1):
            with board.step(number):
                train()
            board.flush()
            written.append(len(writer.steps))
            writer.steps.clear()  # they hold the pinned memory in which they arrived
            if number in (first, last):
                device.sync()
                marks.append(_memory() if device.is_cuda else (0, 0, 0))
    check.expect(sum(written) == last, f"{sum(written)} of {last} steps written")
    check.expect_silence()
    if device.is_cuda:
        for n, what in enumerate(("allocated", "reserved", "pinned")):
            check.figures[f"{what} (MB)"] = f"{marks[0][n] / MB:.1f}, then {marks[1][n] / MB:.1f}"
            check.expect(marks[1][n] <= marks[0][n] + 2 * MB, f"more memory {what}")


def _memory() -> tuple[int, int, int]:
    """Memory allocated, reserved, and pinned on the host, bytes."""
    host = getattr(torch.cuda, "host_memory_stats", dict)()
    pinned = int(host.get("allocated_bytes.current", 0))
    return torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), pinned


def behind_a_busy_device(settings: Settings, check: Check) -> None:
    """Logged steps queue up behind a kernel; none is lost, and their records are right."""
    device, writer = settings.device, MemoryWriter()
    device.require_cuda()
    train = Training(small(tiny=settings.tiny), "eager", device)
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        with board.step(0):
            train()
        board.flush()
        device.sync()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        for number in range(1, 11):
            device.hold(0.1)
            with board.step(number), compare.clones(train.raw) as kept:
                train()
                overwrite_freed_memory(device)
        board.flush()
        device.sync()
        peak = torch.cuda.max_memory_allocated() - before
    check.figures["peak memory (MB)"] = round(peak / MB)
    check.expect(len(writer.steps) == 11, f"{len(writer.steps)} of 11 steps written")
    check.expect_none(compare.of_step(writer.steps[-1], kept), "differences")
    check.expect_silence()


def worker_sleeps(settings: Settings, check: Check) -> None:
    """CPU time of the process while its worker waits for a device that is held for a second."""
    device = settings.device
    device.require_cuda()
    train = Training(small(tiny=settings.tiny), "eager", device)
    with fmapboard.watch(train.raw, writer=MemoryWriter(), every=1) as board:
        for _ in range(2):
            with board.step():
                train()
            board.flush()
        device.sync()
        free = device.hold(1.5)
        with board.step():
            train()
        begun, used = time.perf_counter(), time.process_time()
        while time.perf_counter() - begun < 1.0 and not free.query():
            time.sleep(0.05)
        busy, passed = time.process_time() - used, time.perf_counter() - begun
        device.sync()
    check.figures["CPU time"] = f"{busy * 1e3:.0f} ms in {passed * 1e3:.0f} ms"
    if passed < 0.5:
        raise Skip("the device was free too early")
    check.expect(busy < 0.25 * passed, "a thread spins")


class TwoStreams(nn.Module):
    """Two branches, one on a stream of its own that is slow; the caller's stream joins it."""

    def __init__(self) -> None:
        super().__init__()
        self.here, self.there = nn.Conv2d(3, 16, 3), nn.Conv2d(3, 16, 3)
        self.head, self.stream = nn.Linear(16, 10), torch.cuda.Stream()

    def forward(self, x: Tensor) -> Tensor:
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            torch.cuda._sleep(50_000_000)
            slow = self.there(x)
            x.record_stream(self.stream)
        fast = self.here(x)
        current.wait_stream(self.stream)
        slow.record_stream(current)
        logits: Tensor = self.head((fast + slow).mean((2, 3)))
        return logits


def two_streams(settings: Settings, check: Check) -> None:
    settings.device.require_cuda()
    _records_are_right(Work("streams", TwoStreams, (4, 3, 64, 64)), settings.device, check)


class TwoDevices(nn.Module):
    """A convolution on each of two devices."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3), nn.Conv2d(16, 16, 3)
        self.head = nn.Linear(16, 10)

    def to(self, *_: object, **__: object) -> TwoDevices:
        self.first.to("cuda:0")
        self.second.to("cuda:1")
        self.head.to("cuda:0")
        return self

    def forward(self, x: Tensor) -> Tensor:
        maps = self.second(self.first(x).to("cuda:1")).mean((2, 3))
        logits: Tensor = self.head(maps.to("cuda:0"))
        return logits


def two_devices(settings: Settings, check: Check) -> None:
    settings.device.require_cuda()
    if torch.cuda.device_count() < 2:
        raise Skip("needs two CUDA devices")
    _records_are_right(Work("devices", TwoDevices, (4, 3, 64, 64)), Device("cuda:0"), check)


def _records_are_right(work: Work, device: Device, check: Check) -> None:
    train, writer, wrong = Training(work, "eager", device), MemoryWriter(), []
    train()
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        for number in range(5):
            with board.step(number), compare.clones(train.raw) as kept:
                train()
                overwrite_freed_memory(device)
            board.flush()
            wrong += compare.of_step(writer.steps[-1], kept)
    check.expect_none(wrong, "differences")
    check.expect_silence()


def _trains_alone(train: Training) -> None:
    try:
        for _ in range(3):
            train()
    except torch.OutOfMemoryError as error:
        raise Skip("the training alone does not fit into its own peak memory") from error


def no_memory_left(mode: str, settings: Settings, check: Check) -> None:
    """Training goes on where the logged step finds no memory, whatever it can log."""
    device, writer = settings.device, MemoryWriter()
    device.require_cuda()
    train = Training(works(tiny=settings.tiny)[1], mode, device)
    for _ in range(4):
        train()
    device.sync()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    train()
    device.sync()
    total = torch.cuda.get_device_properties(device.name).total_memory
    needed = torch.cuda.max_memory_reserved() + 16 * 2**20
    retries = torch.cuda.memory_stats()["num_alloc_retries"]
    try:
        torch.cuda.set_per_process_memory_fraction(min(1.0, needed / total))
        _trains_alone(train)
        with fmapboard.watch(train.model, writer=writer, every=1) as board:
            losses = []
            for number in range(6):
                with board.step(number):
                    losses.append(train())
            board.flush()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    check.figures |= {
        "memory of the training (MB)": round(needed / MB),
        "allocations that were tried again": torch.cuda.memory_stats()["num_alloc_retries"]
        - retries,
        "steps written": len(writer.steps),
    }
    check.expect(bool(torch.stack(losses).isfinite().all()), "the loss is not finite")
