"""Transfer of a step to the host: CPU tensors pass through, device tensors come in one copy."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from simulated_device import moved, simulated_device
from torch import Tensor

from fmapboard.capture import transfer as transfer_module
from fmapboard.capture.transfer import _LARGE, Transfer
from fmapboard.errors import WarnOnce


@dataclass(frozen=True, slots=True)
class Holder:
    name: str
    values: Tensor
    more: tuple[Tensor, ...] = ()


def test_tensors_on_the_cpu_are_passed_through_unchanged() -> None:
    holder = Holder("a", torch.rand(3), (torch.zeros(1),))
    assert Transfer()(holder, [holder.values, *holder.more])() is holder


def test_a_parcel_returns_every_tensor_with_its_shape_and_dtype(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contents = [
        torch.arange(3, dtype=torch.uint8),
        torch.rand(2, 5),
        torch.rand(4, 3, dtype=torch.float64).t(),
        torch.tensor(2.5, dtype=torch.float16),
        torch.empty(0, 7),
        torch.arange(_LARGE + 1, dtype=torch.int64).to(torch.uint8),
        torch.rand(_LARGE),
        torch.rand(4)[1::2][:1],
    ]
    monkeypatch.setattr(transfer_module, "_MOST_PACKED", 0)
    monkeypatch.setattr(transfer_module, "_streams", lambda _: None)  # they are on the CPU
    opened = Transfer()._parcel(contents).open()
    for sent, got in zip(contents, opened, strict=True):
        assert got.dtype == sent.dtype
        assert torch.equal(got, sent)


def holder(*values: float, kind: str = "cuda") -> Holder:
    """Tensors on a simulated device and on the CPU, computed on the device just now."""
    first = moved(torch.tensor(values, dtype=torch.float32), kind) + 1
    return Holder("a", first, (torch.zeros(1), first[:1] * 2))


def send(held: Holder, transfer: Transfer | None = None) -> Any:
    return (transfer or Transfer())(held, [held.values, *held.more])


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_tensors_of_a_device_arrive_with_their_values_and_in_their_order(kind: str) -> None:
    with simulated_device() as machine:
        receive = send(holder(1, 2, kind=kind))
        assert machine.reasons() == []
        arrived = receive()
    assert arrived.name == "a"
    assert arrived.values.is_cpu
    assert arrived.values.tolist() == [2, 3]
    assert [tensor.tolist() for tensor in arrived.more] == [[0], [4]]


@pytest.mark.parametrize("limit", [2**18, 2**25])
@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_large_tensors_of_a_large_step_are_not_packed_and_all_keep_their_places(
    kind: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[int] = []
    cat = torch.cat
    monkeypatch.setattr(transfer_module, "_MOST_PACKED", limit)
    monkeypatch.setattr(torch, "cat", lambda parts: packed.append(len(parts)) or cat(parts))
    with simulated_device() as machine:
        odd = moved(torch.arange(_LARGE + 3).to(torch.uint8), kind)
        wide = moved(torch.rand(_LARGE), kind)
        small = moved(torch.tensor([1.5, 2.5]), kind)
        contents = (odd, small, wide, small[:1])
        expected = [tensor.values.clone() for tensor in contents]
        receive = Transfer()(contents, contents)
        del contents, odd, wide, small
        arrived = receive()
        assert machine.held_bytes() == 0
    for sent, got in zip(expected, arrived, strict=True):
        assert torch.equal(sent, got)
    if limit == 2**25:
        assert packed == [4]
    else:
        assert packed == [4 if kind == "mps" else 2]


def test_the_default_device_does_not_matter() -> None:
    with simulated_device() as machine:
        held = holder(1, 2)
        with torch.device("cuda:0"):
            receive = send(held)
        assert receive().values.tolist() == [2, 3]
        assert machine.reasons() == ["event"]


def test_tensors_of_several_devices_are_not_mixed_up() -> None:
    with simulated_device():
        first, second = moved(torch.ones(1), "cuda"), moved(torch.full((1,), 2.0), "xpu")
        tensors = (second, first, torch.zeros(1), first + 2, second + 2)
        arrived = Transfer()(tensors, tensors)()
    assert [tensor.item() for tensor in arrived] == [2, 1, 0, 3, 4]


@pytest.mark.parametrize(("kind", "packed"), [("cuda", 0), ("xpu", 0), ("mps", 12)])
def test_no_tensor_of_the_step_stays_on_the_device(kind: str, packed: int) -> None:
    with simulated_device() as machine:
        held = holder(1, 2, kind=kind)
        alive = [weakref.ref(held.values), weakref.ref(held.more[1])]
        receive = send(held)
        del held
        assert [ref() for ref in alive] == [None, None]
        assert machine.held_bytes() == packed  # on MPS, until the worker has copied it
        receive()
        assert machine.held_bytes() == 0


def test_pinned_memory_is_not_used_again_while_an_array_of_the_step_is_alive() -> None:
    with simulated_device():
        first = send(holder(1, 2))().values.numpy()
        second = send(holder(5, 6))().values.numpy()
        assert first.tolist() == [2, 3]
        assert second.tolist() == [6, 7]


def test_the_worker_copies_if_pinned_memory_cannot_be_allocated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transfer, tries = Transfer(WarnOnce()), 0
    with simulated_device() as machine:
        machine.refuses_pinned = True
        for number in range(5):
            held = holder(number)
            before = machine.refused
            receive = send(held, transfer)
            tries += machine.refused - before
            del held
            assert machine.reasons() == []
            assert receive().values.tolist() == [number + 1]
            assert machine.reasons() == ["event", "copy of pageable memory"]
            machine.waits.clear()
            assert machine.held_bytes() == 0
    assert tries == 3
    assert len(caplog.messages) == 1
    assert "pinned memory cannot be allocated (CUDA error: out of memory)" in caplog.text


def test_the_event_blocks_where_the_device_has_such_events() -> None:
    with simulated_device():
        for kind, blocks in (("cuda", True), ("xpu", False)):
            parcel = Transfer()._parcel([moved(torch.ones(1), kind)])
            assert parcel.event.blocking is blocks


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_tensors_on_a_device_arrive_without_blocking_the_sender() -> None:
    holder = Holder("a", torch.rand(3, device="cuda"), (torch.zeros(1), torch.ones(2).cuda()))
    torch.cuda.set_sync_debug_mode("error")
    try:
        receive = Transfer()(holder, [holder.values, *holder.more])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    arrived = receive()
    assert arrived.name == "a"
    assert arrived.values.is_cpu
    assert torch.equal(arrived.values, holder.values.cpu())
    assert arrived.more[1].tolist() == [1.0, 1.0]
