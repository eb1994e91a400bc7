"""Norms and samples of many parameters on an accelerator: few launches, the CPU's numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from device_trace import Trace, Tracer
from simulated_device import moved, simulated_device
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from fmapboard.gradients.reader import sample_parameters
from fmapboard.measure.norms import GradientNorms, PendingNorms
from fmapboard.measure.sample import PendingSample

SIZES = [(7,), (64, 3, 7, 7), (300, 200), (4096,), (1,), (40, 30, 3, 3)]
SCALE = 1024.0


def parameters(*dtypes: torch.dtype) -> dict[str, Tensor]:
    torch.manual_seed(0)
    found = {}
    for number, (size, dtype) in enumerate((size, dtype) for size in SIZES for dtype in dtypes):
        weight, gradient = torch.randn(2, *size, dtype=dtype)
        if len(size) == 4:
            weight = weight.to(memory_format=torch.channels_last)
        found[f"{number}"] = nn.Parameter(weight)
        found[f"{number}"].grad = gradient.to(memory_format=torch.preserve_format) * SCALE
    del found["3"].grad
    return found


def norms_of(gradients: dict[str, Tensor], scale: Tensor | None) -> PendingNorms:
    norms = GradientNorms()
    norms.read(gradients, scale)
    return norms.pending()


@pytest.mark.parametrize("is_scaled", [False, True])
@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.float32,),
        (torch.bfloat16,),
        (torch.float32, torch.float16, torch.float64),
        (torch.complex64,),
    ],
)
def test_norms_and_samples_are_those_of_the_cpu(
    dtypes: tuple[torch.dtype, ...], is_scaled: bool
) -> None:
    of_cpu = parameters(*dtypes)
    scale = torch.tensor(SCALE) if is_scaled else None
    gradients = {name: p.grad for name, p in of_cpu.items() if p.grad is not None}
    expected = norms_of(gradients, scale).to_host()
    samples = sample_parameters(of_cpu, scale)
    with simulated_device() as machine:
        there, on_device = {}, None if scale is None else moved(scale, "cuda")
        for name, parameter in of_cpu.items():
            there[name] = moved(parameter, "cuda")
            if parameter.grad is not None:
                there[name].grad = moved(parameter.grad, "cuda")
        own = {name: p.grad for name, p in there.items() if p.grad is not None}
        norms, taken = norms_of(own, on_device), sample_parameters(there, on_device)
        assert machine.waits == []
        assert norms.names == tuple(expected)
        assert norms.values is not None
        assert norms.values.cpu().tolist() == pytest.approx([*expected.values()], rel=1e-5)
        assert list(taken) == list(samples)
        for name, (weight, gradient) in samples.items():
            assert_same(taken[name][0], weight)
            assert (taken[name][1] is None) == (gradient is None) == (name == "3")
            if gradient is not None:
                assert_same(taken[name][1], gradient)


def assert_same(found: PendingSample | None, expected: PendingSample) -> None:
    assert found is not None
    assert found.total == expected.total
    assert found.values.dtype == expected.values.dtype
    np.testing.assert_array_equal(found.to_host().values, expected.to_host().values)


def test_only_the_weights_are_sampled_on_demand() -> None:
    with simulated_device():
        there = {name: moved(p, "mps") for name, p in parameters(torch.float32).items()}
        for parameter in there.values():
            parameter.grad = moved(parameter, "mps")
        taken = sample_parameters(there, gradients=False)
    assert [gradient for _, gradient in taken.values()] == [None] * len(there)


def traced(count: int, act: Callable[[dict[str, Tensor]], object], dtype: torch.dtype) -> Trace:
    with FakeTensorMode(), torch.device("cuda"):
        found = {}
        for number in range(count):
            found[f"{number}"] = nn.Parameter(torch.empty(64, 32, 3, 3, dtype=dtype))
            found[f"{number}"].grad = torch.empty(64, 32, 3, 3, dtype=dtype)
        with Tracer(everything=True) as tracer:
            act(found)
    return tracer.trace


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("is_scaled", [False, True])
def test_the_norms_of_160_gradients_take_a_few_launches(
    is_scaled: bool, dtype: torch.dtype
) -> None:
    def read(found: dict[str, Tensor]) -> None:
        scale = torch.empty((), device="cuda") if is_scaled else None
        norms_of({name: p.grad for name, p in found.items() if p.grad is not None}, scale)

    trace = traced(160, read, dtype)
    assert trace.launches <= 2 + 2 + 1 + 2 + 2 + is_scaled  # zeros, norms, clean-up, two stacks
    assert trace.nbytes < 1.01 * 160 * 64 * 32 * 9 * dtype.itemsize


@pytest.mark.parametrize(
    ("dtype", "launches"), [(torch.float32, 20), (torch.float64, 20), (torch.bfloat16, 21)]
)
def test_the_samples_of_160_weights_and_gradients_take_a_launch_per_16(
    dtype: torch.dtype, launches: int
) -> None:
    trace = traced(160, sample_parameters, dtype)
    assert trace.launches == launches
