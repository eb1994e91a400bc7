"""Hooks on all optimizers, installed and removed while other threads train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from fmapboard.gradients.optimizer_hook import before_each_optimizer_step


def optimizer() -> torch.optim.SGD:
    return torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)


def hooks_of_torch() -> Any:
    return torch_optimizer._global_optimizer_pre_hooks


@pytest.fixture(autouse=True)
def _hooks_are_restored() -> Iterator[None]:
    before, entries = hooks_of_torch(), dict(hooks_of_torch())
    yield
    assert hooks_of_torch() is before
    assert dict(before) == entries


def test_torchs_own_dictionary_is_never_modified() -> None:
    torchs, seen = hooks_of_torch(), []
    remove = before_each_optimizer_step(lambda *given: seen.append(given[0]))
    assert len(torchs) == 0
    stepped = optimizer()
    stepped.step()
    assert seen == [stepped]
    remove()
    assert hooks_of_torch() is torchs
    stepped.step()
    assert len(seen) == 1


def test_hooks_may_be_added_and_removed_while_an_optimizer_calls_them() -> None:
    """As when another thread opens and closes a logged step at the same time."""
    removers: list[Any] = []

    def disturb(*given: object) -> None:
        removers.append(before_each_optimizer_step(lambda *given: None))
        removers.pop(0)()

    removers.append(before_each_optimizer_step(lambda *given: None))
    remove = before_each_optimizer_step(disturb)
    for _ in range(5):
        optimizer().step()
    remove()
    for last in removers:
        last()


def test_other_hooks_are_called_and_can_be_removed_no_matter_when_they_were_added() -> None:
    seen: list[str] = []
    before = register_optimizer_step_pre_hook(lambda *given: seen.append("before"))
    remove = before_each_optimizer_step(lambda *given: seen.append("ours"))
    during = register_optimizer_step_pre_hook(lambda *given: seen.append("during"))
    optimizer().step()
    assert seen == ["before", "during", "ours"]
    before.remove()
    remove()
    seen.clear()
    optimizer().step()
    assert seen == ["during"]
    during.remove()
    optimizer().step()
    assert seen == ["during"]


def test_our_hooks_are_removed_in_any_order_and_removing_twice_does_nothing() -> None:
    seen: list[int] = []
    first, second = (
        before_each_optimizer_step(lambda *given, number=number: seen.append(number))
        for number in (1, 2)
    )
    first()
    first()
    optimizer().step()
    assert seen == [2]
    second()


def test_without_that_dictionary_torchs_public_function_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fmapboard.gradients.optimizer_hook._NAME", "_not_there")
    seen: list[object] = []
    remove = before_each_optimizer_step(lambda *given: seen.append(given[0]))
    assert len(hooks_of_torch()) == 1
    optimizer().step()
    assert len(seen) == 1
    remove()
