"""The simulated device of the tests does what a device would do to the host."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
import torch
from simulated_device import DeviceTensor, moved, simulated_device
from simulated_machine import Stream
from torch import Tensor


def test_values_and_operations_are_real() -> None:
    with simulated_device() as machine:
        found = moved(torch.arange(3.0), "cuda") * 2 + 1
        assert found.device == torch.device("cuda:0")
        assert not found.is_cpu
        assert machine.launches == 2
        assert machine.waits == []
        assert found.cpu().tolist() == [1.0, 3.0, 5.0]
    assert machine.waits == [("copy of pageable memory", "MainThread", False)]


@pytest.mark.parametrize(
    "read",
    [
        lambda t: t.sum().item(),
        lambda t: bool((t > 0).all()),
        lambda t: float(t[0]),
        lambda t: t.tolist(),
        lambda t: t.nonzero(),
        lambda t: t[t > 0],
    ],
)
def test_reading_a_value_waits(read: Callable[[Tensor], object]) -> None:
    with simulated_device() as machine:
        read(moved(torch.ones(3), "cuda"))
    assert len(machine.waits) == 1


@pytest.mark.parametrize(
    "copy",
    [
        lambda here, there: torch.empty(2).copy_(there, non_blocking=True),
        lambda here, there: there.cpu(),
        lambda here, there: here.to("cuda:0"),
        lambda here, there: here.to("cuda:0", non_blocking=True),
        lambda here, there: there.copy_(here, non_blocking=True),
    ],
)
def test_a_copy_of_pageable_memory_waits(copy: Callable[[Tensor, Tensor], object]) -> None:
    with simulated_device() as machine:
        copy(torch.ones(2), moved(torch.ones(2), "cuda"))
    assert machine.reasons() == ["copy of pageable memory"]


def test_a_copy_from_pinned_memory_does_not_wait() -> None:
    with simulated_device() as machine:
        images = pinned(2).fill_(3)
        there = images.to("cuda:0", non_blocking=True)
        assert machine.reasons() == []
        assert there.cpu().tolist() == [3, 3]


def pinned(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def on_device(*values: int) -> DeviceTensor:
    return moved(torch.tensor(values, dtype=torch.uint8), "cuda")


def test_a_copy_to_pinned_memory_arrives_when_its_event_is_waited_for() -> None:
    with simulated_device() as machine:
        target = torch.empty(2, dtype=torch.uint8, pin_memory=True)
        target.copy_(moved(torch.tensor([1, 2], dtype=torch.uint8), "cuda"), non_blocking=True)
        event = torch.get_device_module("cuda").Event()
        event.record()
        assert target.tolist() == [0xAB, 0xAB]
        assert machine.waits == []
        event.synchronize()
        assert target.tolist() == [1, 2]


def copied_on_a_side_stream(
    *, waits: bool = True, records: bool = True, frees: bool = True
) -> list[int]:
    """What arrives of [1, 2] that a side stream copies."""
    module, source, target = torch.get_device_module("cuda"), on_device(0, 1) + 1, pinned(2)
    side, event = module.Stream(), module.Event(blocking=True)
    if waits:
        side.wait_stream(module.current_stream())
    with module.stream(side):
        target.copy_(source, non_blocking=True)
        event.record()
    if records:
        source.record_stream(side)
    if frees:
        del source
    event.synchronize()
    values: list[int] = target.tolist()
    return values


def test_a_side_stream_that_waited_delivers_what_was_computed_before() -> None:
    with simulated_device():
        assert copied_on_a_side_stream() == [1, 2]
        assert copied_on_a_side_stream(records=False, frees=False) == [1, 2]


def test_a_side_stream_that_did_not_wait_delivers_garbage() -> None:
    with simulated_device():
        assert copied_on_a_side_stream(waits=False) == [0xAB, 0xAB]


def test_a_tensor_freed_without_record_stream_delivers_garbage() -> None:
    with simulated_device():
        assert copied_on_a_side_stream(records=False) == [0xAB, 0xAB]


def test_an_event_of_another_stream_does_not_wait_for_the_copy() -> None:
    with simulated_device():
        module, source, target, side = (
            torch.get_device_module("cuda"),
            on_device(1),
            pinned(1),
            Stream(),
        )
        side.wait_stream(module.current_stream())
        with module.stream(side):
            target.copy_(source, non_blocking=True)
        event = module.Event()
        event.record(module.current_stream())
        event.synchronize()
        assert target.tolist() == [0xAB]
        side.synchronize()
        assert target.tolist() == [1]


def test_freed_pinned_memory_is_handed_out_again_and_used_memory_is_not() -> None:
    with simulated_device():
        first = pinned(4).fill_(1)
        unsafe = np.ctypeslib.as_array((ctypes.c_uint8 * 4).from_address(first.data_ptr()))
        array = first.numpy()
        del first
        second = pinned(4)  # the array still refers to the first block
        assert array.tolist() == [1, 1, 1, 1]
        del array
        third = pinned(4)
        assert third.data_ptr() != second.data_ptr()
        assert unsafe.tolist() == third.tolist() == [0xAB] * 4


def test_pinned_memory_can_be_refused() -> None:
    with simulated_device() as machine:
        machine.refuses_pinned = True
        with pytest.raises(RuntimeError, match="out of memory"):
            pinned(1)


def test_memory_on_the_device_is_held_as_long_as_a_tensor_refers_to_it() -> None:
    with simulated_device() as machine:
        values = on_device(1, 2, 3)
        part = values[:1]
        assert machine.held_bytes() == 3
        del values
        assert machine.held_bytes() == 3
        del part
        assert machine.held_bytes() == 0


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_float64_is_refused_where_the_device_lacks_it(kind: str) -> None:
    with simulated_device():
        tensor = moved(torch.ones(2), kind)
        with pytest.raises(TypeError, match="does not support float64"):
            tensor.double()
        with pytest.raises(TypeError, match="does not support float64"):
            tensor.sum(dtype=torch.float64)


def test_tensors_of_two_devices_cannot_be_combined() -> None:
    with simulated_device():
        tensor = moved(torch.ones(2), "cuda")
        with pytest.raises(RuntimeError, match="on the CPU"):
            tensor + torch.ones(2)
        assert (tensor + torch.tensor(1.0)).cpu().tolist() == [2.0, 2.0]


def test_an_operation_in_place_returns_the_tensor_that_was_given() -> None:
    with simulated_device():
        tensor = moved(torch.ones(2), "cuda")
        assert tensor.add_(1) is tensor
        assert tensor.cpu().tolist() == [2.0, 2.0]
