"""Hooks on all optimizers, installed and removed while other threads train."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from fmapboard.gradients.optimizer_hook import listen, stop_listening


def optimizer() -> torch.optim.SGD:
    return torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)


def hooks_of_torch() -> tuple[Any, Any]:
    return torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks


def pair(act: Callable[[str], object]) -> tuple[Callable[..., None], Callable[..., None]]:
    """A hook before and one after each step, which call ``act`` with their place."""

    def before(*given: object) -> None:
        act("before")

    def after(*given: object) -> None:
        act("after")

    return before, after


@pytest.fixture(autouse=True)
def _hooks_are_restored() -> Iterator[None]:
    before = hooks_of_torch()
    entries = [dict(one) for one in before]
    yield
    after = hooks_of_torch()
    assert (after[0], after[1]) == before
    assert [one is two for one, two in zip(before, after, strict=True)] == [True, True]
    assert [dict(one) for one in before] == entries


def test_torchs_own_dictionaries_are_never_modified() -> None:
    torchs, seen = hooks_of_torch(), list[str]()
    ours = pair(seen.append)
    listen(*ours)
    assert [len(one) for one in torchs] == [0, 0]
    assert [len(one) for one in hooks_of_torch()] == [1, 1]
    stepped = optimizer()
    stepped.step()
    assert seen == ["before", "after"]
    stop_listening(*ours)
    stepped.step()
    assert len(seen) == 2


def test_hooks_may_be_added_and_removed_while_an_optimizer_calls_them() -> None:
    """As when another thread opens and closes a logged step at the same time."""
    calls, others = list[str](), [pair(lambda place: None)]
    listen(*others[0])

    def disturb(place: str) -> None:
        calls.append(place)
        others.append(pair(lambda place: None))
        listen(*others[-1])
        stop_listening(*others.pop(0))

    ours = pair(disturb)
    listen(*ours)
    for _ in range(5):
        optimizer().step()
    stop_listening(*ours)
    assert calls == ["before", "after"] * 5
    stop_listening(*others[0])


def test_other_hooks_are_called_and_can_be_removed_no_matter_when_they_were_added() -> None:
    seen: list[str] = []
    first = register_optimizer_step_pre_hook(lambda *given: seen.append("first"))
    ours = pair(seen.append)
    listen(*ours)
    during = register_optimizer_step_pre_hook(lambda *given: seen.append("during"))
    optimizer().step()
    assert seen == ["first", "during", "before", "after"]
    first.remove()
    stop_listening(*ours)
    seen.clear()
    optimizer().step()
    assert seen == ["during"]
    during.remove()
    optimizer().step()
    assert seen == ["during"]


def test_our_hooks_are_removed_in_any_order_and_removing_twice_does_nothing() -> None:
    seen: list[str] = []
    first, second = pair(seen.append), pair(lambda place: seen.append(f"{place} 2"))
    listen(*first)
    listen(*second)
    stop_listening(*first)
    stop_listening(*first)
    optimizer().step()
    assert seen == ["before 2", "after 2"]
    stop_listening(*second)
