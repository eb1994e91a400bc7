"""What surrounds a pass of a twin leaves the process as it was."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
import torch.distributed as dist
from simulated_device import move, simulated_device
from torch import Tensor, nn

from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.twin import NoTwin, Twin


def random_state() -> list[object]:
    return [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]


@pytest.mark.parametrize("error", [None, RuntimeError, KeyboardInterrupt])
def test_the_global_random_states_are_put_back(error: type[BaseException] | None) -> None:
    before = random_state()

    def draw() -> None:
        with own_pass(Twin(nn.Dropout())):
            random.random(), np.random.rand(), torch.rand(1)
            assert random_state() != before
            if error is not None:
                raise error

    if error is None:
        draw()
    else:
        with pytest.raises(error):
            draw()
    assert random_state() == before


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_the_random_states_of_the_models_devices_are_restored(kind: str) -> None:
    model = nn.Conv2d(1, 1, 1)
    with simulated_device() as machine:
        move(model, kind)
        machine.random_states[kind, 0] = 5
        with own_pass(Twin(model)):
            machine.random_states[kind, 0] = 6
        assert machine.random_states == {(kind, 0): 5}
        assert machine.reasons() == []


def test_each_module_keeps_its_mode_unless_one_is_requested() -> None:
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm2d(2).eval())
    twin = Twin(model)
    with own_pass(twin):
        assert [m.training for m in twin.module] == [True, False]
    with own_pass(twin, training=False):
        assert [m.training for m in twin.module] == [False, False]
    assert [m.training for m in model] == [True, False]


class Decays(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.weight.view(-1)[:2].mul_(0.5)
        return super().forward(x)


class Catches(Decays):
    def forward(self, x: Tensor) -> Tensor:
        try:
            return super().forward(x)
        except Exception:
            return x


@pytest.mark.parametrize("kind", [Decays, Catches])
def test_an_operation_that_writes_into_a_parameter_is_refused_before_it_does(
    kind: type[nn.Linear],
) -> None:
    model = nn.Sequential(kind(2, 2))
    before, version = model[0].weight.tolist(), model[0].weight._version
    twin = Twin(model)
    with (
        pytest.raises(NoTwin, match=r"^forward\(\) changes parameters \(0\.weight\)$"),
        own_pass(twin, keeps_parameters=True),
    ):
        twin.module(torch.ones(1, 2))
    assert model[0].weight.tolist() == before
    assert model[0].weight._version == version


def test_a_parameter_whose_data_was_replaced_gets_it_back() -> None:
    class Normalizes(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            self.weight.data = torch.renorm(self.weight.data, 2, 0, 0.1)
            return super().forward(x)

    model = Normalizes(2, 2)
    before, memory = model.weight.tolist(), model.weight.data_ptr()
    twin = Twin(model)
    with own_pass(twin, keeps_parameters=True):
        twin.module(torch.ones(1, 2))
    assert (model.weight.tolist(), model.weight.data_ptr()) == (before, memory)


def test_without_other_processes_a_collective_is_none() -> None:
    model = nn.Identity()
    with own_pass(Twin(model)):
        assert not dist.is_initialized()
        assert torch._C._len_torch_dispatch_stack() == 0
