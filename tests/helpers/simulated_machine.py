"""Streams, events and pinned memory of the simulated device, and what the host waited for."""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

GARBAGE = 0xAB


class Wait(NamedTuple):
    """One time at which the host waited for the device."""

    reason: str
    thread: str
    by_fmapboard: bool


class Stream:
    """Copies that arrive in order; a side stream sees the work that it has waited for."""

    def __init__(self, device: object = None) -> None:
        self.seen = 0
        self.launched = self.arrived = 0
        self._arriving: deque[Callable[[], object]] = deque()

    def wait_stream(self, other: Stream) -> None:
        self.seen = machine_now().launches

    def launch(self, arrive: Callable[[], object]) -> None:
        self.launched += 1
        self._arriving.append(arrive)

    def finish(self, number: int) -> None:
        """The first copies, up to this number, arrive."""
        with machine_now().lock:
            while self.arrived < number:
                self._arriving.popleft()()
                self.arrived += 1

    def synchronize(self) -> None:
        machine_now().wait("stream", self)


@dataclass
class Machine:
    """What happened on the simulated device.

    Attributes:
        waits: what the host waited for.
        launches: operations on the device.
        uploads: copies from the host to the device.
        refuses_pinned: pinned memory cannot be allocated.
        refused: how often it could not.
        random_states: state of each device's random generator, by type and index of the device.
        compute: the stream on which everything runs that is not inside a `stream` block.
    """

    waits: list[Wait] = field(default_factory=list)
    launches: int = 0
    uploads: int = 0
    refuses_pinned: bool = False
    refused: int = 0
    compute: Stream = field(default_factory=Stream)
    random_states: dict[tuple[str, object], int] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)
    _current: Any = field(default_factory=threading.local)
    _pinned: list[Tensor] = field(default_factory=list)
    _alive: dict[int, weakref.ref[Any]] = field(default_factory=dict)

    def wait(self, reason: str, stream: Stream | None = None) -> None:
        """The host waits for everything that was launched on a stream."""
        thread = threading.current_thread().name
        self.waits.append(Wait(reason, thread, _is_called_by_fmapboard()))
        stream = stream or self.current_stream()
        stream.finish(stream.launched)

    def waits_on(self, thread: str) -> list[str]:
        """What fmapboard, not the training itself, waited for on one thread."""
        return [wait.reason for wait in self.waits if wait.thread == thread and wait.by_fmapboard]

    def reasons(self) -> list[str]:
        """What any code waited for."""
        return [wait.reason for wait in self.waits]

    def current_stream(self) -> Stream:
        """The stream of this thread."""
        return getattr(self._current, "stream", self.compute)

    def allocate_pinned(self, nbytes: int) -> Tensor:
        """Pinned memory: a freed block if one is large enough."""
        if self.refuses_pinned:
            self.refused += 1
            raise RuntimeError("CUDA error: out of memory")
        for block in self._pinned:
            if block.numel() >= nbytes and _references(block) == 1:
                return block.fill_(GARBAGE)[:nbytes]
        self._pinned.append(torch.zeros(max(nbytes, 1), dtype=torch.uint8, device="cpu"))
        return self._pinned[-1][:nbytes]

    def is_pinned(self, tensor: Tensor) -> bool:
        """True if the memory was allocated as pinned memory."""
        start = tensor.untyped_storage().data_ptr()
        return any(block.data_ptr() == start for block in self._pinned)

    def held_bytes(self) -> int:
        """Size of all memory on the device that a tensor refers to."""
        tensors = [tensor for ref in list(self._alive.values()) if (tensor := ref()) is not None]
        storages = [tensor.values.untyped_storage() for tensor in tensors]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def _references(block: Tensor) -> int:
    """How many tensors and arrays share the memory."""
    return torch._C._storage_Use_Count(block.untyped_storage()._cdata) - 1


def _is_called_by_fmapboard() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").split(".")[0] == "fmapboard":
            return True
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return False


class Event:
    """An event of the device; waiting for it lets the copies before it arrive."""

    def __init__(self, *, blocking: bool = False) -> None:
        self.blocking = blocking
        self._after: tuple[Stream, int] | None = None

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or machine_now().current_stream()
        self._after = stream, stream.launched

    def synchronize(self) -> None:
        if threading.current_thread() is threading.main_thread():
            machine_now().waits.append(Wait("event", "MainThread", _is_called_by_fmapboard()))
        if self._after is not None:
            self._after[0].finish(self._after[1])


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    before = machine_now().current_stream()
    machine_now()._current.stream = stream
    try:
        yield
    finally:
        machine_now()._current.stream = before


_now = [Machine()]


def machine_now() -> Machine:
    """The machine that runs."""
    return _now[0]


def start() -> Machine:
    """A new machine, which replaces the one that runs."""
    _now[0] = Machine()
    return _now[0]
