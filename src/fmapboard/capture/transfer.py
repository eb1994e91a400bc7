"""Copies the tensors of one logged step to the host without blocking the training thread.

The tensors of one device are packed into a single one on the stream on which training runs; of a
step of more than 16 MB, not the largest. A stream of fmapboard's own copies it, and the others,
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
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from fmapboard.capture.compiled import CAPTURES
from fmapboard.errors import WarnOnce, first_line
from fmapboard.interrupts import interrupt_in
from fmapboard.model.tensors import as_bytes, map_tensors, tensors

T = TypeVar("T")

Groups = list[list[int]]
"""Numbers of the tensors in each piece that is copied."""

_REFUSALS_UNTIL_PAGEABLE = 3
"""After this many failed allocations in a row, pinned memory is not tried any more."""

_MOST_PACKED = 2**24
"""At most this many bytes are packed, which takes their memory twice, or all small tensors."""

_LARGE = 2**18
"""The largest tensors beyond it are copied as they are, if they have at least this many bytes."""

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
        if held is None:
            held = tensors(value)
        if all(map(_IS_CPU, held)):
            return lambda: value
        contents: dict[torch.device, list[Tensor]] = {}
        order: list[torch.device] = []

        def take(tensor: Tensor) -> Tensor:
            if tensor.is_cpu:
                return tensor
            device = tensor.device
            contents.setdefault(device, []).append(tensor)
            order.append(device)
            return _IN_TRANSIT

        without = map_tensors(value, take)
        parcels = {device: self._parcel(own) for device, own in contents.items()}

        def receive() -> T:
            arrived = {device: iter(parcel.open()) for device, parcel in parcels.items()}
            devices = iter(order)

            def put_back(tensor: Tensor) -> Tensor:
                if tensor is not _IN_TRANSIT:
                    return tensor
                device = next(devices)
                return next(arrived[device])

            received: T = map_tensors(without, put_back)
            return received

        return receive

    def _parcel(self, contents: list[Tensor]) -> _Parcel:
        """Start the copies of tensors of one device; no reference to them is kept."""
        device = contents[0].device
        groups = _groups(contents)
        module = _streams(device)
        pinned = None if module is None else self._pinned(contents, groups)
        if pinned is None:
            everything = range(len(contents))
            groups = [_widest_first(contents, everything)]
        with torch.no_grad():
            pieces = list[Tensor]()
            for group in groups:
                parts = [as_bytes(contents[number]) for number in group]
                is_copied_as_it_is = len(parts) == 1 and pinned is not None
                piece = parts[0] if is_copied_as_it_is else torch.cat(parts)
                pieces.append(piece)
            del parts
        stream = None if module is None else module.current_stream(device)
        if pinned is not None:
            side = _side_stream(device)
            side.wait_stream(stream)
            with module.stream(side), torch.no_grad():
                for to, piece in zip(pinned, pieces, strict=True):
                    to.copy_(piece, non_blocking=True)
            for piece in pieces:
                piece.record_stream(side)  # its memory is not used again before the copy is done
            pieces = pinned
            stream = side
        like = [[_Like(contents[n].shape, contents[n].dtype) for n in group] for group in groups]
        event = None if stream is None else _event(module, stream)
        return _Parcel(groups, like, pieces, event)

    def _pinned(self, contents: list[Tensor], groups: Groups) -> list[Tensor] | None:
        """Pinned memory for each group; None if it cannot be allocated."""
        if self._refusals >= _REFUSALS_UNTIL_PAGEABLE:
            return None
        sizes = []
        for group in groups:
            nbytes = [contents[number].nbytes for number in group]
            sizes.append(sum(nbytes))
        try:
            pinned = [pinned_memory((size,), torch.uint8) for size in sizes]
        except RuntimeError as error:
            if interrupt_in(error) is not None:
                raise
            self._refusals += 1
            if self._warn is not None:
                self._warn.warn(
                    "pinned memory",
                    f"pinned memory cannot be allocated ({first_line(error)}); the worker thread "
                    "copies logged steps from the device without it",
                )
            return None
        self._refusals = 0
        return pinned


class _Like(NamedTuple):
    """What the bytes of a tensor are put back into."""

    shape: torch.Size
    dtype: torch.dtype

    @property
    def nbytes(self) -> int:
        """Size of the tensor."""
        return self.shape.numel() * self.dtype.itemsize


@dataclass(slots=True)
class _Parcel:
    """Tensors of one device that are being copied to the host.

    Attributes:
        groups: the numbers of the tensors in each piece.
        like: their shapes and dtypes.
        pieces: the bytes of each group, pinned or on the device.
        event: recorded behind the copies; None for a device without events.
    """

    groups: Groups
    like: list[list[_Like]]
    pieces: list[Tensor]
    event: Any

    def open(self) -> list[Tensor]:
        """Wait for the copies and return the tensors, in the original order.

        The only place where a worker thread waits for a device.
        """
        with CAPTURES.none_open():
            if self.event is not None:
                self.event.synchronize()
            self.pieces = [piece.cpu() for piece in self.pieces]
        found: dict[int, Tensor] = {}
        for group, likes, piece in zip(self.groups, self.like, self.pieces, strict=True):
            sizes = [like.nbytes for like in likes]
            parts = piece.split_with_sizes(sizes)
            for number, like, part in zip(group, likes, parts, strict=True):
                typed = part.view(like.dtype)
                found[number] = typed.view(like.shape)
        return [found[number] for number in range(len(found))]


def _groups(contents: list[Tensor]) -> Groups:
    """The numbers of the tensors that are copied together; of a large step the largest alone."""
    sizes = [tensor.nbytes for tensor in contents]
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    together = sum(sizes)
    alone: Groups = []
    while order and together > _MOST_PACKED:
        largest = order[-1]
        if sizes[largest] < _LARGE:
            break
        order.pop()
        alone.append([largest])
        together -= sizes[largest]
    if not order:
        return alone
    return [_widest_first(contents, order), *alone]


def _widest_first(contents: list[Tensor], numbers: Iterable[int]) -> list[int]:
    """Widest types first, so that every tensor in a piece is aligned for its dtype."""
    return sorted(numbers, key=lambda n: -contents[n].element_size())


def _event(module: Any, stream: Any) -> Any:
    """An event behind what a stream has to do."""
    try:
        event = module.Event(blocking=True)  # the waiting thread sleeps, does not spin
    except TypeError:  # not every accelerator has such events
        event = module.Event()
    event.record(stream)
    return event


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
    for name in ("Stream", "Event", "stream", "current_stream"):
        if not hasattr(module, name):
            return None
    return module


@functools.cache
def _side_stream(device: torch.device) -> Any:
    """The stream on which all steps of a device are copied."""
    return torch.get_device_module(device).Stream(device)
