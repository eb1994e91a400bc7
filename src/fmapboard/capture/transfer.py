"""Everything that one logged step keeps on a device, to the host in one copy that nobody waits for.

On CUDA the copy goes into pinned memory in stream order, and an event tells the worker thread when
it is there; the training thread never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from fmapboard.model.tensors import map_tensors, tensors

T = TypeVar("T")


def send(value: T, held: Iterable[Tensor]) -> Callable[[], T]:
    """Begin to copy every tensor inside tuples, lists, dicts and dataclasses to the host.

    Args:
        value: what holds them; tensors on the CPU are handed on as they are.
        held: the same tensors in any order: to find them by `tensors.tensors` takes longer.

    Returns:
        A function for another thread: waits, and gives the same structure with CPU tensors.
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
    """Tensors of one device on their way, packed into one."""

    def __init__(self, contents: list[Tensor]) -> None:
        self._like = [(tensor.shape, tensor.dtype) for tensor in contents]
        # Wide types first, so that every part is aligned for its type.
        self._order = sorted(range(len(contents)), key=lambda n: -contents[n].element_size())
        with torch.no_grad():
            parts = [contents[n].contiguous().view(-1).view(torch.uint8) for n in self._order]
            packed = torch.cat(parts)
        device = packed.device
        self._event: Any = None
        if device.type == "cuda":
            self._bytes = torch.empty(packed.shape, dtype=torch.uint8, pin_memory=True)
            self._bytes.copy_(packed, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no types here
            self._event.record(torch.cuda.current_stream(device))
        else:
            self._bytes = packed.cpu()

    def open(self) -> list[Tensor]:
        """Wait until everything is there."""
        if self._event is not None:
            self._event.synchronize()
        found: list[Tensor] = [torch.empty(0)] * len(self._like)
        start = 0
        for number in self._order:
            shape, dtype = self._like[number]
            size = shape.numel() * dtype.itemsize
            found[number] = self._bytes[start : start + size].view(dtype).view(shape)
            start += size
        return found
