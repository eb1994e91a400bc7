"""Steps that a GradScaler skips are noticed, and counted once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_device import moved, simulated_device
from torch import Tensor

from fmapboard.gradients.loss_scale import LossScale, PendingSkips, found_on_device, is_skipped

COUNT = "fmapboard/skipped_steps"


class Scaler:
    """A gradient scaler with the scale that the test sets."""

    scale = 8.0
    reads = 0

    def get_scale(self) -> float:
        self.reads += 1
        return self.scale


class DeviceScaler:
    """What of a GradScaler on a simulated device is looked at."""

    def __init__(self, scale: float | None = 8.0) -> None:
        self._scale = None if scale is None else moved(torch.tensor(scale), "cuda")
        self._per_optimizer_states: dict[int, Any] = {}

    def get_scale(self) -> float:
        return 8.0 if self._scale is None else float(self._scale)

    def update(self, scale: float) -> None:
        self._scale = self._scale if self._scale is not None else moved(torch.tensor(8.0), "cuda")
        self._scale.fill_(scale)
        self._per_optimizer_states = {}


def stepped(found_inf: float | None) -> Any:
    return (
        SimpleNamespace()
        if found_inf is None
        else SimpleNamespace(found_inf=torch.tensor(found_inf))
    )


def found(value: float) -> tuple[frozenset[str], Tensor]:
    return frozenset({"weight"}), moved(torch.tensor(value), "cuda")


def on_host(skips: PendingSkips) -> PendingSkips:
    """What the worker thread has of it."""
    count = None if skips.on_device is None else skips.on_device.cpu()
    return PendingSkips(skips.count, count, tuple((n, f.cpu()) for n, f in skips.fused))


def test_without_a_scaler_nothing_is_scaled_skipped_or_written() -> None:
    loss_scale = LossScale(None)
    loss_scale.pass_begins()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (None, False)
    assert loss_scale.step_closes().scalars() == {}


def test_a_scale_that_halved_since_the_forward_pass_is_a_skipped_step() -> None:
    scaler = Scaler()
    loss_scale = LossScale(scaler)
    loss_scale.step_opens()
    loss_scale.pass_begins()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (8.0, False)
    scaler.scale = 4.0
    assert loss_scale.was_skipped()
    assert loss_scale.step_closes().scalars() == {COUNT: 1.0}


def test_on_the_cpu_a_step_reads_the_scale_once_and_once_for_each_question() -> None:
    scaler = Scaler()
    loss_scale = LossScale(scaler)
    loss_scale.step_opens()
    loss_scale.pass_begins()
    assert scaler.reads == 1
    loss_scale.was_skipped()
    assert scaler.reads == 2
    loss_scale.step_closes()
    assert scaler.reads == 2


def test_a_fused_optimizer_skips_its_step_if_its_scaler_found_infinities() -> None:
    assert [is_skipped(stepped(found)) for found in (0.0, None, 1.0)] == [False, False, True]


def test_a_new_step_starts_without_the_state_of_the_previous_one() -> None:
    scaler = Scaler()
    loss_scale = LossScale(scaler)
    loss_scale.pass_begins()
    scaler.scale = 4.0
    loss_scale.step_opens()
    assert (loss_scale.at_forward, loss_scale.was_skipped()) == (None, False)


def test_on_a_device_the_factor_is_copied_and_not_read() -> None:
    with simulated_device() as machine:
        scaler = DeviceScaler()
        loss_scale = LossScale(scaler)
        loss_scale.pass_begins()
        scaler.update(4.0)
        at_forward = loss_scale.at_forward
        assert machine.reasons() == []
        assert float(at_forward) == 8.0  # type: ignore[arg-type]


def test_before_the_scaler_has_a_tensor_its_initial_factor_is_used() -> None:
    with simulated_device() as machine:
        scaler = DeviceScaler(None)
        loss_scale = LossScale(scaler)
        loss_scale.pass_begins()
        assert loss_scale.at_forward == 8.0
        scaler.update(4.0)
        assert loss_scale.was_skipped()
        skips = loss_scale.step_closes()
        assert machine.reasons() == []
        assert on_host(skips).scalars() == {COUNT: 1.0}


@pytest.mark.parametrize(
    ("scale", "found_inf", "count"), [(8.0, 0.0, 0), (8.0, 1.0, 1), (4.0, 0.0, 1), (4.0, 1.0, 1)]
)
def test_on_a_device_a_skipped_step_is_counted_once_and_there(
    scale: float, found_inf: float, count: float
) -> None:
    with simulated_device() as machine:
        scaler = DeviceScaler()
        loss_scale = LossScale(scaler)
        for _ in range(2):
            scaler.update(8.0)
            loss_scale.step_opens()
            loss_scale.pass_begins()
            scaler.update(scale)
            skips = loss_scale.step_closes([found(found_inf)])
        assert machine.reasons() == []
        assert on_host(skips).scalars() == {COUNT: 2.0 * count}
        assert on_host(skips).parameters() == ({"weight"} if found_inf else set())


def test_on_a_device_an_update_without_an_optimizer_step_is_a_skipped_step() -> None:
    with simulated_device() as machine:
        scaler = DeviceScaler()
        loss_scale = LossScale(scaler)
        loss_scale.pass_begins()
        assert not loss_scale.was_skipped()  # another pass of the same iteration
        scaler.update(4.0)
        assert not loss_scale.was_skipped(stepped=True)
        assert loss_scale.was_skipped()
        loss_scale.pass_begins()  # of the next iteration
        assert not loss_scale.was_skipped()
        skips = loss_scale.step_closes()
        assert machine.reasons() == []
        assert on_host(skips).scalars() == {COUNT: 1.0}


def test_what_a_fused_optimizer_found_on_a_device_is_copied_and_not_read() -> None:
    with simulated_device() as machine:
        optimizer: Any = SimpleNamespace(found_inf=moved(torch.tensor(1.0), "cuda"))
        copied = found_on_device(optimizer)
        optimizer.found_inf.fill_(0.0)
        assert machine.reasons() == []
        assert copied is not None
        assert copied.item() == 1.0
    assert found_on_device(stepped(1.0)) is None
    assert found_on_device(stepped(None)) is None
