"""The size of updates on an accelerator: few launches, no wait, the CPU's numbers."""

from __future__ import annotations

import pytest
import torch
from device_trace import Tracer
from simulated_device import moved, simulated_device
from torch import Tensor, nn
from torch._subclasses import FakeTensorMode

from fmapboard.capture import isolation
from fmapboard.gradients.update_ratios import UpdateReader, rows_of

SIZES = [(7,), (64, 3, 7, 7), (400, 300), (4096,), (1,), (40, 30, 3, 3)]
CHANGE = 0.25


def parameters(*dtypes: torch.dtype) -> dict[str, Tensor]:
    torch.manual_seed(0)
    found = {}
    for number, (size, dtype) in enumerate((size, dtype) for size in SIZES for dtype in dtypes):
        weight = torch.randn(size, dtype=dtype)
        if len(size) == 4:
            weight = weight.to(memory_format=torch.channels_last)
        found[f"{number}"] = nn.Parameter(weight)
        found[f"{number}"].grad = torch.randn(size, dtype=dtype)
    return found


def ratios(parameters: dict[str, Tensor]) -> dict[str, float]:
    """What an update by a quarter of each parameter is read as."""
    reader = UpdateReader(nn.Module())
    optimizer = torch.optim.SGD(parameters.values(), lr=0.1)
    reader.announce(optimizer, ())
    reader.before(optimizer, parameters)
    for parameter in parameters.values():
        with torch.no_grad():
            parameter += CHANGE * parameter
    reader.after(optimizer)
    found: dict[str, float] = {}
    for update in reader.pending():
        found |= {n: one.value for n, one in update.ratios({}).items()}
    return found


@pytest.mark.parametrize(
    "dtypes",
    [
        (torch.float32,),
        (torch.bfloat16,),
        (torch.float32, torch.float16, torch.float64),
        (torch.complex64,),
    ],
)
def test_the_ratios_are_those_of_the_cpu(dtypes: tuple[torch.dtype, ...]) -> None:
    expected = ratios(parameters(*dtypes))
    with simulated_device():
        on_device = {
            name: moved(p.detach(), "cuda").requires_grad_()
            for name, p in parameters(*dtypes).items()
        }
        for name, p in parameters(*dtypes).items():
            assert p.grad is not None
            on_device[name].grad = moved(p.grad, "cuda")
        found = ratios(on_device)
    assert found == pytest.approx(expected, rel=1e-3)
    assert expected == pytest.approx(dict.fromkeys(expected, CHANGE), rel=0.01)
    assert len(expected) == len(SIZES) * len(dtypes)


def test_all_parameters_share_a_few_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "_set_dispatch_modes", lambda modes: None)
    with FakeTensorMode(), torch.device("cuda"):
        own = {f"{n}": nn.Parameter(torch.empty(300, 300)) for n in range(12)}
        for parameter in own.values():
            parameter.grad = torch.empty_like(parameter)
        reader, optimizer = UpdateReader(nn.Module()), torch.optim.SGD(own.values())
        reader.announce(optimizer, ())
        with Tracer() as tracer:
            reader.before(optimizer, own)
            reader.after(optimizer)
    assert tracer.trace.launches == 5
    assert tracer.trace.waits == []


@pytest.mark.parametrize(
    ("shape", "read"),
    [
        ((3, 1), (3, 16)), ((64,), (4, 16)), ((64, 64, 3, 3), (2304, 16)), ((1030,), (64, 16)),
        ((512, 512, 3, 3), (3986, 16)), ((400, 300), (7500, 16)), ((3, 100_003), (3750, 16)),
    ],
)  # fmt: skip
def test_small_parameters_are_read_whole_and_large_ones_in_part(
    shape: tuple[int, ...], read: tuple[int, ...]
) -> None:
    found = rows_of(torch.zeros(shape))
    assert found is not None
    assert found.shape == read


def test_rows_of_a_permuted_parameter_are_in_memory_order() -> None:
    weight = torch.arange(2.0 * 32 * 3).reshape(2, 32, 3)
    for order in ((0, 1, 2), (2, 0, 1)):
        found = rows_of(weight.permute(order))
        assert found is not None
        assert found.flatten().tolist() == weight.flatten().tolist()


def test_a_parameter_that_is_not_dense_in_memory_is_left_out() -> None:
    assert rows_of(torch.zeros(4, 1).expand(4, 8)) is None
    assert rows_of(torch.zeros(4, 16)[:, ::2]) is None
