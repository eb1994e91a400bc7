"""A forward pass on fixed images that leaves the model and the process unchanged."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
import torchvision
from model_state import assert_unchanged, state_of
from networks import Raises
from simulated_device import move, simulated_device
from torch import Tensor, nn

from fmapboard.capture.probe import check_probe
from fmapboard.capture.side_pass import Probe, run_side_pass


class _RecordsModes(nn.Module):
    """An identity that records the modes it ran in and draws from every random generator."""

    records: ClassVar[list[Any]] = []  # of the model and its copies

    def forward(self, x: Tensor) -> Tensor:
        random.random()
        np.random.rand()
        noise = torch.rand(1)
        autocast = torch.is_autocast_enabled("cpu")
        self.records.append(
            (self.training, torch.is_grad_enabled(), autocast, x.dtype, noise.item())
        )
        return x


def _net() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), _RecordsModes(), nn.BatchNorm2d(4)
    )


def test_a_probe_runs_in_eval_mode_without_gradients_and_changes_nothing() -> None:
    model, x = _net(), torch.rand(2, 3, 8, 8)
    model(x).sum().backward()
    model[4].eval()  # frozen by the user
    before = state_of(model)
    out = run_side_pass(model, x)
    assert_unchanged(before, state_of(model))
    assert model[3].records[-1][:4] == (False, False, False, torch.float32)
    assert not out.requires_grad
    assert [m.training for m in model] == [True, True, True, True, False]
    model.eval()
    with torch.no_grad():
        assert torch.equal(out, model(x))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "densenet121"])
def test_a_real_network_in_training_is_left_unchanged(name: str) -> None:
    model = getattr(torchvision.models, name)().train()
    x = torch.rand(1, 3, 32, 32)
    before = state_of(model)
    run_side_pass(model, x)
    assert_unchanged(before, state_of(model))


def test_a_probe_between_a_forward_and_its_backward_does_not_change_the_gradients() -> None:
    model, x = _net(), torch.rand(4, 3, 8, 8)
    model[2].p = 0.0
    model[4].eval()
    gradients = []
    for probe in (False, True):
        model[1].reset_running_stats()
        loss = model(x).square().sum()
        versions = [b._version for b in model.buffers()]
        if probe:
            run_side_pass(model, x[:1])
        assert [b._version for b in model.buffers()] == versions
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_a_probe_inside_the_users_autocast_runs_in_full_precision_and_keeps_the_gradients() -> None:
    model, x = _net(), torch.rand(2, 3, 8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        run_side_pass(model, x)
        assert torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_cache_enabled()
        assert model[3].records[-1][2:4] == (False, torch.float32)
        model(x).float().sum().backward()
    assert model[0].weight.grad is not None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_probe_that_fails_leaves_everything_unchanged(error: type[BaseException]) -> None:
    model = nn.Sequential(*_net(), Raises(error()))
    x = torch.rand(1, 3, 8, 8)
    before = state_of(model)
    with pytest.raises(error):
        run_side_pass(model, x)
    assert_unchanged(before, state_of(model))


def test_a_probe_is_converted_to_the_models_dtype_and_may_be_several_arguments() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 1).double()

        def forward(self, image: Tensor, index: Tensor) -> Tensor:
            return self.conv(image)[index]  # type: ignore[no-any-return]

    out = run_side_pass(Two(), (torch.rand(2, 3, 4, 4), torch.tensor([1])))
    assert (out.dtype, tuple(out.shape)) == (torch.float64, (1, 2, 4, 4))


def test_the_model_inside_a_wrapper_is_probed() -> None:
    def compiles(*args: Any) -> Any:
        raise AssertionError("a probe must not cost a compilation")

    model = _net()
    before = len(model[3].records)
    wrapped = torch.compile(model, backend=compiles)
    assert run_side_pass(wrapped, torch.rand(1, 3, 8, 8)).shape == (1, 4, 6, 6)
    assert len(model[3].records) == before + 1


class _ChangesItsInput(nn.Module):
    """A convolution on an input that is changed in place."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv(x.mul_(2))
        return out


def test_a_probe_on_the_cpu_is_not_changed_by_the_model() -> None:
    images = torch.ones(1, 1, 2, 2)
    first = run_side_pass(_ChangesItsInput(), images)
    assert images.eq(1).all()
    assert first.shape == (1, 1, 2, 2)


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_a_probe_is_copied_to_the_device_once_and_stays_the_same_there(kind: str) -> None:
    model, probe = _ChangesItsInput(), Probe(torch.ones(1, 1, 2, 2))
    expected = run_side_pass(model, torch.ones(1, 1, 2, 2))
    with simulated_device() as machine:
        move(model, kind)
        check_probe(model, probe)
        machine.waits.clear()
        machine.refuses_pinned = True  # another copy to the device would wait
        held = machine.held_bytes()
        for _ in range(2):
            out = run_side_pass(model, probe)
            assert machine.reasons() == []
            assert torch.equal(out.cpu(), expected)
            machine.waits.clear()
            del out
        assert machine.held_bytes() == held
    assert probe.images.eq(1).all()


def test_a_probe_follows_the_model_to_another_device_and_dtype_without_waiting() -> None:
    probe = Probe(torch.ones(1, 1, 2, 2))
    check_probe(_ChangesItsInput(), probe)
    with simulated_device() as machine:
        for kind, dtype in (("cuda", torch.float32), ("xpu", torch.float32), ("xpu", torch.half)):
            model = _ChangesItsInput().to(dtype)
            move(model, kind)
            out = run_side_pass(model, probe)
            assert (out.device.type, out.dtype) == (kind, dtype)
        assert machine.reasons() == []
