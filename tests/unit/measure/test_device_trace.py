"""The tracer of the tests counts what a device would do, of fmapboard's own work alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from device_trace import Trace, Tracer, touched
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode
from traced_step import traced_step

import fmapboard
from fmapboard.capture.collector import ActivationCollector
from fmapboard.measure.reducer import Reducer


def traced(act: Callable[[Tensor], object], *shape: int) -> Trace:
    """Everything that is done with a tensor of the device."""
    with FakeTensorMode():
        tensor = torch.empty(shape, device="cuda")
        with Tracer(everything=True) as tracer:
            act(tensor)
    return tracer.trace


@pytest.mark.parametrize(
    ("act", "launches", "nbytes"),
    [
        (lambda t: t + 1, 1, 2 * 400),
        (lambda t: t.add_(1), 1, 2 * 400),
        (lambda t: t.sum(), 1, 400 + 4),
        (lambda t: t.view(-1)[3:].detach().reshape(97, 1).expand(97, 9), 0, 0),
        (lambda t: torch.empty_like(t), 0, 0),
        (lambda t: t.new_zeros(100), 1, 400),
        (lambda t: t[::10].clone(), 1, 10 * 32 + 40),
        (lambda t: t.expand(50, 100).sum(1), 1, 400 + 200),
        (lambda t: t.double(), 1, 400 + 800),
        (lambda t: torch.var_mean(t), 1, 400 + 8),
        (lambda t: torch.cat([t] * 129), 2, 400 + 129 * 400),
        (lambda t: torch.cat([t, t + 1, *t.split(1)]), 2, 800 + 2 * 1200),
        (lambda t: torch.cat([t[n::50] for n in range(17)]), 2, 17 * 2 * 32 + 17 * 8),
        (lambda t: torch.cat([t.view(1, 1, 10, 10)] * 3), 1, 4 * 400),
        (lambda t: torch.cat([t.view(1, 1, 1, 10, 10)] * 3), 3, 4 * 400),
        (lambda t: torch._foreach_norm(t.split(1)), 2 + 1 + 1, 400 + 400),
    ],
)
def test_launches_and_bytes_are_those_of_cuda(
    act: Callable[[Tensor], object], launches: int, nbytes: int
) -> None:
    trace = traced(act, 100)
    assert trace.launches == launches
    assert trace.nbytes == nbytes


@pytest.mark.parametrize(
    ("sizes", "launches"),
    [([10] * 110, 1), ([10] * 111, 2), ([65536 * 320], 1), ([65536 * 320 + 1], 2)],
)
def test_norms_of_many_tensors_are_launched_in_blocks(sizes: list[int], launches: int) -> None:
    trace = traced(lambda t: torch._foreach_norm(t.split(sizes)), sum(sizes))
    assert trace.launches == 2 + launches + 1


def test_repeated_values_are_read_once_and_strided_ones_by_sector() -> None:
    assert touched(torch.zeros(4, 1).expand(4, 100)) == 16
    assert touched(torch.zeros(64)[::2]) == 32 * 8
    assert touched(torch.zeros(64)[::16]) == 4 * 32
    assert touched(torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)) == 96 * 4


@pytest.mark.parametrize(
    ("act", "waits"),
    [
        (lambda t: t.sum().item(), 1),
        (lambda t: bool((t > 0).all()), 1),
        (lambda t: t.cpu(), 1),
        (lambda t: t.copy_(torch.empty(100, device="cpu"), non_blocking=True), 1),
        (lambda t: torch.empty(100, device="cpu").copy_(t), 1),
        (lambda t: torch.where(t > 0, t, 0.0), 0),
    ],
)
def test_waits_of_the_host_are_counted(act: Callable[[Tensor], object], waits: int) -> None:
    assert len(traced(act, 100).waits) == waits


def test_a_copy_to_pinned_memory_does_not_wait() -> None:
    with FakeTensorMode():
        tensor, target = torch.empty(100, device="cuda"), torch.empty(100)
        with Tracer(everything=True) as tracer:
            tracer.pin(target)
            target.copy_(tensor, non_blocking=True)
    assert tracer.trace.waits == []
    assert tracer.trace.to_host == 400


def test_the_peak_is_of_what_is_alive_at_one_time() -> None:
    def one_after_the_other(tensor: Tensor) -> None:
        for _ in range(5):
            tensor + 1

    assert traced(one_after_the_other, 1024).peak == 4096
    assert traced(lambda t: [t + n for n in range(5)], 1024).peak == 5 * 4096
    assert traced(lambda t: (t + 1).view(-1).view(4, -1), 1000).peak == 4096  # blocks of 512


def convolutions() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3))


SHAPE = (4, 3, 32, 32)


def test_a_step_watches_every_layer() -> None:
    trace = traced_step(convolutions, SHAPE)
    assert trace.watched == [4 * 4 * 8 * side * side for side in (30, 30, 28)]
    every = traced_step(convolutions, SHAPE, inputs=True, activation_gradients=True)
    assert len(every.watched) == 3 + 2 + 2


def test_the_operations_of_the_user_are_not_counted() -> None:
    class Busy(nn.Sequential):
        def forward(self, images: Tensor) -> Tensor:
            output = super().forward(images)
            assert not output.mean().item()
            return output

    quiet = traced_step(convolutions, SHAPE)
    assert traced_step(lambda: Busy(*convolutions()), SHAPE) == quiet
    modules = {op.module for op in quiet.ops}
    assert {"measure.norms", "measure.sample", "capture.transfer"} <= modules


def test_the_pass_of_a_probe_is_the_users_own_work() -> None:
    trace = traced_step(convolutions, SHAPE, probe=torch.zeros(1, 3, 32, 32))
    assert "convolution" not in {op.name for op in trace.ops}
    assert len(trace.watched) == 3 + 2


def as_if_in_fmapboard(source: str) -> dict[str, Any]:
    """Functions whose file is in the package."""
    found: dict[str, Any] = {}
    exec(compile(source, str(Path(fmapboard.__file__).with_name("extra.py")), "exec"), found)
    return found


MORE = """
def keep(self, call, kind, tensor, *args, **options):
    extra = {}
    original(self, call, kind, tensor, *args, **options)
"""
VALUES = 4 * 8 * (30**2 + 30**2 + 28**2)


@pytest.mark.parametrize(
    ("extra", "launches", "nbytes", "waits"),
    [
        ("tensor.amax()", 3, 4 * VALUES + 12, 0),
        ("tensor * 2", 3, 8 * VALUES, 0),
        ("tensor[0].mul_(2)", 3, 8 * VALUES // 4, 0),
        ("tensor.sum().item()", 6, 4 * VALUES + 12 + 12, 3),
        ("tensor[0].view(-1).to('cpu')", 3, 4 * VALUES // 4, 3),
        ("tensor.detach()", 0, 0, 0),
    ],
)
def test_one_more_operation_of_fmapboard_is_counted(
    extra: str, launches: int, nbytes: int, waits: int
) -> None:
    before, found = traced_step(convolutions, SHAPE), as_if_in_fmapboard(MORE.format(extra))
    found["original"] = ActivationCollector._keep
    with mock.patch.object(ActivationCollector, "_keep", found["keep"]):
        after = traced_step(convolutions, SHAPE)
    assert after.launches - before.launches == launches
    assert after.nbytes - before.nbytes == nbytes
    assert len(after.waits) - len(before.waits) == waits
    assert after.watched == before.watched
    assert set(after.by_module()) - set(before.by_module()) == ({"extra"} if launches else set())


def test_a_temporary_of_full_size_raises_the_peak() -> None:
    before = traced_step(convolutions, SHAPE)
    found = as_if_in_fmapboard(MORE.format("tensor.expand(9, *tensor.shape).clone()"))
    found["original"] = ActivationCollector._keep
    with mock.patch.object(ActivationCollector, "_keep", found["keep"]):
        peak = traced_step(convolutions, SHAPE).peak
    assert 9 * max(before.watched) <= peak <= 9 * max(before.watched) + before.peak


def test_an_error_of_fmapboard_is_not_swallowed() -> None:
    with (
        mock.patch.object(Reducer, "__call__", side_effect=ZeroDivisionError),
        pytest.raises(ZeroDivisionError),
    ):
        traced_step(convolutions, SHAPE)
