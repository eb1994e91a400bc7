"""Copies the tensors of one logged step to the host without blocking the training thread.

The tensors of one device are packed into a single one on the stream on which training runs; of a
step of more than 32 MB, not the largest. A stream of fmapboard's own copies it, and the others,
to pinned memory while training goes on; the worker thread waits for an event. This holds for every
accelerator whose ``torch.get_device_module`` has streams: CUDA, ROCm (which calls itself CUDA),
XPU. On MPS, on accelerators without streams, and if pinned memory cannot be allocated, everything
is packed into one tensor, which stays on the device until the worker thread has copied it.

Nothing else of the step stays on the device once ``Transfer`` returns. The host memory of a step is
freed when no tensor and no NumPy array refers to it any more.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from fmapboard.capture.compiled import CAPTURES
from fmapboard.errors import WarnOnce, first_line, interrupt_in
from fmapboard.model.tensors import map_tensors, tensors

T = TypeVar("T")

_REFUSALS_UNTIL_PAGEABLE = 3
"""After this many failed allocations in a row, pinned memory is not tried any more."""

_MOST_PACKED = 2**25
"""At most this many bytes are packed, which takes their memory twice, or all small tensors."""

_LARGE = 2**18
"""The largest tensors beyond it are copied as they are, if they have at least this many bytes."""

_ALIGNMENT = 16
"""Bytes; no dtype is wider."""

_IS_CPU = operator.attrgetter("is_cpu")

_IN_TRANSIT = torch.empty(0, device="cpu")
"""Stands for a tensor that is being copied."""


class Transfer:
    """Starts to copy steps to the host.

    Args:
        warn: where it is reported that pinned memory cannot be allocated; None does not report it.
    """

    def __init__(self, warn: WarnOnce | None = None) -> None:
        self._warn = warn
        self._refusals = 0

    def __call__(self, value: T, held: Iterable[Tensor] | None = None) -> Callable[[], T]:
        """Start copying every tensor inside tuples, lists, mappings and dataclasses to the host.

        Args:
            value: the structure that holds the tensors; CPU tensors are passed on without a copy.
            held: all its tensors; None searches the structure for them.

        Returns:
            A function to be called on another thread. It waits for the copy and returns the
            same structure with CPU tensors. It keeps none of the device tensors alive.
        """
        if all(map(_IS_CPU, tensors(value) if held is None else held)):
            return lambda: value
        contents: dict[torch.device, list[Tensor]] = {}
        order: list[torch.device] = []

        def take(tensor: Tensor) -> Tensor:
            if tensor.is_cpu:
                return tensor
            contents.setdefault(tensor.device, []).append(tensor)
            order.append(tensor.device)
            return _IN_TRANSIT

        without = map_tensors(value, take)
        parcels = {device: self._parcel(own) for device, own in contents.items()}

        def receive() -> T:
            arrived = {device: iter(parcel.open()) for device, parcel in parcels.items()}
            devices = iter(order)

            def put_back(tensor: Tensor) -> Tensor:
                return next(arrived[next(devices)]) if tensor is _IN_TRANSIT else tensor

            received: T = map_tensors(without, put_back)
            return received

        return receive

    def _parcel(self, contents: list[Tensor]) -> _Parcel:
        parcel, module = _Parcel(contents), _streams(contents[0].device)
        if module is not None and self._refusals < _REFUSALS_UNTIL_PAGEABLE:
            try:
                pinned = pinned_memory((parcel.nbytes,), torch.uint8)
            except RuntimeError as error:
                if interrupt_in(error) is not None:
                    raise
                self._refusals += 1
                self._report(error)
            else:
                self._refusals = 0
                parcel.copy_aside(contents, pinned, module)
                return parcel
        parcel.pack(contents, module)
        return parcel

    def _report(self, error: RuntimeError) -> None:
        if self._warn is not None:
            self._warn.warn(
                "pinned memory",
                f"pinned memory cannot be allocated ({first_line(error)}); the worker thread "
                "copies logged steps from the device without it",
            )


class _Parcel:
    """Tensors of one device, laid out in one piece of memory.

    Args:
        contents: the tensors; no reference to them is kept.

    Attributes:
        nbytes: size of that memory.
    """

    def __init__(self, contents: list[Tensor]) -> None:
        self._like = [(tensor.shape, tensor.dtype) for tensor in contents]
        sizes = [tensor.numel() * tensor.element_size() for tensor in contents]
        self._is_large = _not_packed(sizes)
        # Widest types first, so that every part is aligned for its dtype.
        self._order = sorted(
            range(len(contents)),
            key=lambda n: (self._is_large[n], -contents[n].element_size()),
        )
        self._starts = [0] * len(contents)
        self.nbytes = 0
        for n in self._order:
            if self._is_large[n]:
                self.nbytes = -(-self.nbytes // _ALIGNMENT) * _ALIGNMENT
            self._starts[n] = self.nbytes
            self.nbytes += sizes[n]
        self._bytes = _IN_TRANSIT
        self._event: Any = None

    def copy_aside(self, contents: list[Tensor], pinned: Tensor, module: Any) -> None:
        """Start the copies to pinned memory on a side stream.

        Tensors are packed into one first, except for the largest ones of a large step.
        """
        with torch.no_grad():
            small, large = self._parts(contents)
            copies = [(0, torch.cat(small))] if small else []
            copies += large
            device = contents[0].device
            current, side = module.current_stream(device), _side_stream(device)
            side.wait_stream(current)
            with module.stream(side):
                for start, part in copies:
                    pinned[start : start + part.numel()].copy_(part, non_blocking=True)
        for _, part in copies:
            part.record_stream(side)  # its memory is not used again before the copy is done
        self._bytes = pinned
        self._record(module, side)

    def pack(self, contents: list[Tensor], module: Any) -> None:
        """Pack all tensors into one on the device, to be copied by `open`."""
        with torch.no_grad():
            small, large = self._parts(contents)
            for start, part in large:
                gap = start - sum(one.numel() for one in small)
                small += [part.new_empty(gap), part]
            self._bytes = torch.cat(small)
        if module is not None:
            self._record(module, module.current_stream(self._bytes.device))

    def _parts(self, contents: list[Tensor]) -> tuple[list[Tensor], list[tuple[int, Tensor]]]:
        """The bytes of the small tensors, and of each large one with its place."""
        parts = [(n, contents[n].contiguous().view(-1).view(torch.uint8)) for n in self._order]
        small = [part for n, part in parts if not self._is_large[n]]
        return small, [(self._starts[n], part) for n, part in parts if self._is_large[n]]

    def open(self) -> list[Tensor]:
        """Wait for the copy and unpack it, in the original order."""
        self._wait()
        found = []
        for (shape, dtype), start in zip(self._like, self._starts, strict=True):
            size = shape.numel() * dtype.itemsize
            found.append(self._bytes[start : start + size].view(dtype).view(shape))
        return found

    def _wait(self) -> None:
        """Wait until everything is on the host; the only place where a worker thread waits."""
        with CAPTURES.none_open():
            if self._event is not None:
                self._event.synchronize()
            self._bytes = self._bytes.cpu()

    def _record(self, module: Any, stream: Any) -> None:
        try:
            self._event = module.Event(blocking=True)  # the waiting thread sleeps, does not spin
        except TypeError:  # not every accelerator has such events
            self._event = module.Event()
        self._event.record(stream)


def _not_packed(sizes: list[int]) -> list[bool]:
    """For each size in bytes, True if the tensor is copied on its own: the largest ones are."""
    is_large, packed = [False] * len(sizes), sum(sizes)
    for n in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        if packed <= _MOST_PACKED or sizes[n] < _LARGE:
            break
        is_large[n] = True
        packed -= sizes[n]
    return is_large


def pinned_memory(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Uninitialized memory of the host that is pinned, whatever the default device is.

    Raises:
        RuntimeError: it cannot be allocated, or torch has no accelerator.
    """
    return torch.empty(shape, dtype=dtype, device="cpu", pin_memory=True)


def _streams(device: torch.device) -> Any:
    """The device's module if it copies to pinned memory in stream order, otherwise None."""
    if device.type == "mps":  # one queue, in memory that it shares with the host
        return None
    try:
        module = torch.get_device_module(device)
    except RuntimeError:  # a device that torch has no module for
        return None
    needed = ("Stream", "Event", "stream", "current_stream")
    return module if all(hasattr(module, name) for name in needed) else None


@functools.cache
def _side_stream(device: torch.device) -> Any:
    """The stream on which all steps of a device are copied."""
    return torch.get_device_module(device).Stream(device)
