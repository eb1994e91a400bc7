"""Measures an action on a device: times, kernels and copies, peak memory."""

from __future__ import annotations

import json
import math
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from gpu.device import Device

Act = Callable[[], object]
BLOCKING = (
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaMalloc",
    "cudaFree",
    "cudaHostAlloc",
    "cudaFreeHost",
)
"""Calls that may wait for the device."""


@dataclass(frozen=True)
class Times:
    """Times of a call that began on an idle device, ms.

    Attributes:
        wall: Until the device was idle again.
        host: Until the call returned.
        gpu: Between events before and after the call's work, in stream order; NaN without CUDA.
    """

    wall: float
    host: float
    gpu: float


def timed(device: Device, act: Act) -> Times:
    device.sync()
    events = []
    if device.is_cuda:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
    begun = time.perf_counter()
    act()
    host = time.perf_counter() - begun
    if events:
        events[1].record()
    device.sync()
    wall = time.perf_counter() - begun
    gpu = events[0].elapsed_time(events[1]) if events else math.nan
    return Times(wall * 1e3, host * 1e3, gpu)


def peaks(device: Device, act: Act) -> tuple[int, int]:
    """Peak memory allocated and reserved during a call, bytes; zeros without CUDA."""
    if not device.is_cuda:
        act()
        return 0, 0
    device.sync()
    torch.cuda.reset_peak_memory_stats()
    act()
    device.sync()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


@dataclass(frozen=True)
class Activity:
    """What the profiler saw of a call.

    Attributes:
        launches: Kernels, copies and fills on the device; operations on the CPU.
        busy: Sum of their durations, ms; 0 on the CPU.
        to_host: Copies from the device to the host.
        blocking: Calls in ``BLOCKING`` by the thread that made the call.
        longest: Duration of the longest kernel, ms.
    """

    launches: int
    busy: float
    to_host: int
    blocking: int
    longest: float


def profiled(device: Device, act: Act) -> Activity:
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.is_cuda else [])]
    device.sync()
    with profile(activities=activities) as profiler:
        act()
        device.sync()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    return _activity([event for event in events if event.get("ph") == "X"], device)


def _activity(events: list[dict[str, Any]], device: Device) -> Activity:
    if not device.is_cuda:
        return Activity(sum(one.get("cat") == "cpu_op" for one in events), 0.0, 0, 0, 0.0)
    there = [one for one in events if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    thread = threading.get_native_id()
    calls = [one for one in events if one.get("cat") == "cuda_runtime" and one["tid"] == thread]
    kernels = [one["dur"] for one in there if one["cat"] == "kernel"]
    return Activity(
        len(there),
        sum(one["dur"] for one in there) / 1e3,
        sum("DtoH" in one["name"] for one in there),
        sum(one["name"].startswith(BLOCKING) for one in calls),
        max(kernels, default=0.0) / 1e3,
    )
