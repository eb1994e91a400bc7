"""The simulated device of the tests does what a device would do to the host."""

from __future__ import annotations

import pytest
import torch
from simulated_device import moved, simulated_device


def test_values_and_operations_are_real() -> None:
    with simulated_device() as machine:
        found = moved(torch.arange(3.0), "cuda") * 2 + 1
        assert found.device == torch.device("cuda:0")
        assert not found.is_cpu
        assert machine.launches == 2
        assert machine.waits == []
        assert found.cpu().tolist() == [1.0, 3.0, 5.0]
    assert machine.waits == [("copy of pageable memory", "MainThread")]


@pytest.mark.parametrize(
    "read", [lambda t: t.sum().item(), lambda t: bool((t > 0).all()), lambda t: t.nonzero()]
)
def test_reading_a_value_waits(read: object) -> None:
    with simulated_device() as machine:
        tensor = moved(torch.ones(3), "cuda")
        read(tensor)  # type: ignore[operator]
    assert len(machine.waits_on("MainThread")) == 1


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


def test_a_copy_to_other_memory_waits() -> None:
    with simulated_device() as machine:
        torch.empty(2).copy_(moved(torch.ones(2), "cuda"), non_blocking=True)
    assert machine.waits_on("MainThread") == ["copy of pageable memory"]


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
