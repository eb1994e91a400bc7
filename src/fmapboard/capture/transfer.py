"""Copies the tensors of one logged step to the host without blocking the training thread.

All tensors of one device are packed into a single tensor on the stream on which training runs, and
a stream of fmapboard's own copies it to pinned memory while training goes on; the worker thread
waits for an event. This holds for every accelerator whose ``torch.get_device_module`` has streams:
CUDA, ROCm (which calls itself CUDA), XPU. On MPS, on accelerators without streams, and if pinned
memory cannot be allocated, the worker thread makes the copy, and the packed tensor stays on the
device until then.

Nothing else of the step stays on the device once ``Transfer`` returns. The host memory of a step is
freed when no tensor and no NumPy array refers to it any more.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from fmapboard.capture.cuda_graphs import CAPTURES
from fmapboard.capture.tensor_swap import swapped
from fmapboard.errors import WarnOnce, first_line

T = TypeVar("T")

_REFUSALS_UNTIL_PAGEABLE = 3
"""After this many failed allocations in a row, pinned memory is not tried any more."""

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

    def __call__(self, value: T, held: Iterable[Tensor]) -> Callable[[], T]:
        """Start copying every tensor inside tuples, lists, mappings and dataclasses to the host.

        Args:
            value: the structure that holds the tensors; CPU tensors are passed on without a copy.
            held: the same tensors in any order; searching the structure for them would take longer.

        Returns:
            A function to be called on another thread. It waits for the copy and returns the
            same structure with CPU tensors. It keeps none of the device tensors alive.
        """
        if all(tensor.is_cpu for tensor in held):
            return lambda: value
        contents: dict[torch.device, list[Tensor]] = {}
        order: list[torch.device] = []

        def take(tensor: Tensor) -> Tensor:
            if tensor.is_cpu:
                return tensor
            contents.setdefault(tensor.device, []).append(tensor)
            order.append(tensor.device)
            return _IN_TRANSIT

        without = swapped(value, take)
        parcels = {device: self._parcel(tensors) for device, tensors in contents.items()}

        def receive() -> T:
            arrived = {device: iter(parcel.open()) for device, parcel in parcels.items()}
            devices = iter(order)

            def put_back(tensor: Tensor) -> Tensor:
                return next(arrived[next(devices)]) if tensor is _IN_TRANSIT else tensor

            return swapped(without, put_back)

        return receive

    def _parcel(self, contents: list[Tensor]) -> _Parcel:
        parcel, module = _Parcel(contents), _streams(contents[0].device)
        if module is None:
            return parcel
        if self._refusals < _REFUSALS_UNTIL_PAGEABLE:
            try:
                pinned = pinned_memory((parcel.nbytes,), torch.uint8)
            except RuntimeError as error:
                self._refusals += 1
                self._report(error)
            else:
                self._refusals = 0
                parcel.copy_aside(pinned, module)
                return parcel
        parcel.hold(module)
        return parcel

    def _report(self, error: RuntimeError) -> None:
        if self._warn is not None:
            self._warn.warn(
                "pinned memory",
                f"pinned memory cannot be allocated ({first_line(error)}); the worker thread "
                "copies logged steps from the device without it",
            )


class _Parcel:
    """Tensors of one device, packed into one tensor there.

    Attributes:
        nbytes: size of the packed tensor.
    """

    def __init__(self, contents: list[Tensor]) -> None:
        self._like = [(tensor.shape, tensor.dtype) for tensor in contents]
        # Widest types first, so that every part is aligned for its dtype.
        self._order = sorted(range(len(contents)), key=lambda n: -contents[n].element_size())
        with torch.no_grad():
            parts = [contents[n].contiguous().view(-1).view(torch.uint8) for n in self._order]
            self._bytes = torch.cat(parts)
        self.nbytes = self._bytes.numel()
        self._event: Any = None

    def copy_aside(self, pinned: Tensor, module: Any) -> None:
        """Start the copy to pinned memory on a side stream, and release the packed tensor."""
        packed, self._bytes = self._bytes, pinned
        current, side = module.current_stream(packed.device), _side_stream(packed.device)
        side.wait_stream(current)
        with module.stream(side):
            pinned.copy_(packed, non_blocking=True)
        packed.record_stream(side)  # its memory is not used again before the copy is done
        self._record(module, side)

    def hold(self, module: Any) -> None:
        """Keep the packed tensor, to be copied by `open`."""
        self._record(module, module.current_stream(self._bytes.device))

    def open(self) -> list[Tensor]:
        """Wait for the copy and unpack it, in the original order."""
        self._wait()
        found = [_IN_TRANSIT] * len(self._like)
        start = 0
        for number in self._order:
            shape, dtype = self._like[number]
            size = shape.numel() * dtype.itemsize
            found[number] = self._bytes[start : start + size].view(dtype).view(shape)
            start += size
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
        except TypeError:  # XPU up to torch 2.9 has no such argument
            self._event = module.Event()
        self._event.record(stream)


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
