"""Copies the tensors of one logged step to the host without blocking the training thread.

All tensors of one device are packed into a single copy. On CUDA, ROCm (which calls itself CUDA) and
XPU it goes to pinned memory in stream order, and the worker thread waits for an event. On any other
accelerator, such as MPS, the worker thread makes the copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from fmapboard.capture.cuda_graphs import CAPTURES
from fmapboard.model.tensors import map_tensors, tensors

T = TypeVar("T")

_WITH_PINNED_MEMORY = ("cuda", "xpu")
"""Types of devices that copy to pinned memory in stream order."""


def send(value: T, held: Iterable[Tensor]) -> Callable[[], T]:
    """Start copying every tensor inside tuples, lists, mappings and dataclasses to the host.

    Args:
        value: the structure that holds the tensors; CPU tensors are passed on without a copy.
        held: the same tensors in any order; searching the structure for them would take longer.

    Returns:
        A function to be called on another thread. It waits for the copy and returns the same
        structure with CPU tensors.
    """
    devices = {tensor.device for tensor in held if not tensor.is_cpu}
    if not devices:
        return lambda: value
    inside = list(tensors(value))
    parcels = {
        device: _Parcel([tensor for tensor in inside if tensor.device == device])
        for device in devices
    }

    def receive() -> T:
        arrived = {device: iter(parcel.open()) for device, parcel in parcels.items()}

        def exchange(tensor: Tensor) -> Tensor:
            return tensor if tensor.device.type == "cpu" else next(arrived[tensor.device])

        received: T = map_tensors(value, exchange)
        return received

    return receive


class _Parcel:
    """Tensors of one device, packed into one tensor that is being copied to the host."""

    def __init__(self, contents: list[Tensor]) -> None:
        self._like = [(tensor.shape, tensor.dtype) for tensor in contents]
        # Widest types first, so that every part is aligned for its dtype.
        self._order = sorted(range(len(contents)), key=lambda n: -contents[n].element_size())
        with torch.no_grad():
            parts = [contents[n].contiguous().view(-1).view(torch.uint8) for n in self._order]
            packed = torch.cat(parts)
        device = packed.device
        self._packed: Tensor | None = None
        self._event: Any = None
        if device.type in _WITH_PINNED_MEMORY:
            self._bytes = torch.empty(packed.shape, dtype=torch.uint8, pin_memory=True)
            self._bytes.copy_(packed, non_blocking=True)
            module = torch.get_device_module(device)
            # With `blocking`, which only CUDA has, the worker thread sleeps instead of spinning.
            self._event = module.Event(**({"blocking": True} if device.type == "cuda" else {}))
            self._event.record(module.current_stream(device))
        else:
            self._packed = packed

    def open(self) -> list[Tensor]:
        """Wait for the copy and unpack it, in the original order."""
        if self._event is not None:
            with CAPTURES.none_open():
                self._event.synchronize()
        if self._packed is not None:
            self._bytes, self._packed = self._packed.cpu(), None
        found: list[Tensor] = [torch.empty(0)] * len(self._like)
        start = 0
        for number in self._order:
            shape, dtype = self._like[number]
            size = shape.numel() * dtype.itemsize
            found[number] = self._bytes[start : start + size].view(dtype).view(shape)
            start += size
        return found
