"""Transfer of a step to the host: CPU tensors pass through, device tensors come in one copy."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from fmapboard.capture.transfer import _Parcel, send


@dataclass(frozen=True, slots=True)
class Holder:
    name: str
    values: Tensor
    more: tuple[Tensor, ...] = ()


def test_tensors_on_the_cpu_are_passed_through_unchanged() -> None:
    holder = Holder("a", torch.rand(3), (torch.zeros(1),))
    assert send(holder, [holder.values, *holder.more])() is holder


def test_a_parcel_returns_every_tensor_with_its_shape_and_dtype() -> None:
    contents = [
        torch.arange(3, dtype=torch.uint8),
        torch.rand(2, 5),
        torch.rand(4, 3, dtype=torch.float64).t(),
        torch.tensor(2.5, dtype=torch.float16),
        torch.empty(0, 7),
    ]
    opened = _Parcel(contents).open()
    for sent, got in zip(contents, opened, strict=True):
        assert got.dtype == sent.dtype
        assert torch.equal(got, sent)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_tensors_on_a_device_arrive_without_blocking_the_sender() -> None:
    holder = Holder("a", torch.rand(3, device="cuda"), (torch.zeros(1), torch.ones(2).cuda()))
    torch.cuda.set_sync_debug_mode("error")
    try:
        receive = send(holder, [holder.values, *holder.more])
    finally:
        torch.cuda.set_sync_debug_mode("default")
    arrived = receive()
    assert arrived.name == "a"
    assert arrived.values.is_cpu
    assert torch.equal(arrived.values, holder.values.cpu())
    assert arrived.more[1].tolist() == [1.0, 1.0]
