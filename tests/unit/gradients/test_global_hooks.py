"""Hooks on all optimizers, installed and removed while other threads train."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import warm_python
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


TRAINING = """
import importlib.machinery, sys

class Renamed(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        source = self.get_source(fullname)
        assert "_global_optimizer_p" in source
        return compile(source.replace("_global_optimizer_p", "_hooks_of_all_p"), self.path, "exec")

class Finder:
    def find_spec(self, fullname, path, target=None):
        if fullname == "torch.optim.optimizer":
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            spec.loader = Renamed(fullname, spec.origin)
            return spec

sys.meta_path.insert(0, Finder())

import torch
import fmapboard
from fmapboard.writers.folder import MemoryWriter

def norms(optimizer_of):
    torch.manual_seed(0)
    model, writer = torch.nn.Linear(2, 1), MemoryWriter()
    optimizer = optimizer_of(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(3, 2)).square().sum()
        loss.backward()
        return loss

    with fmapboard.watch(model, writer=writer, every=2) as board:
        for number in range(4):
            with board.step(number):
                optimizer.step(closure)
    return [
        [step.scalars[name] for name in ("gradient_norm/weight", "update_ratio/weight")]
        for step in writer.steps
    ]

found = norms(lambda p: torch.optim.SGD(p, lr=0.1)) + norms(lambda p: torch.optim.LBFGS(p, lr=0.1))
print(hasattr(sys.modules["torch.optim.optimizer"], "_hooks_of_all_pre_hooks"), found)
"""


def test_a_torch_without_the_private_dictionaries_still_gives_norms_and_update_ratios() -> None:
    def printed(done: subprocess.CompletedProcess[str]) -> str:
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    renamed = printed(
        subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True)
    )
    usual = printed(warm_python.run(TRAINING.replace("sys.meta_path.insert(0, Finder())", "")))
    assert renamed.startswith("True [[")
    assert renamed.removeprefix("True") == usual.removeprefix("False")
    assert renamed.count("], [") == 3  # two logged steps of two optimizers
