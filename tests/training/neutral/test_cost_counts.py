"""The cost of a step that is not logged, counted: no hook and no call of ours in its passes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from controlled_writers import HeldWriter
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import module as global_hooks
from torch.optim import optimizer as global_optimizer_hooks

import fmapboard
from fmapboard.writers import pipeline
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.worker import WhenFull, Worker

PACKAGE = str(Path(fmapboard.__file__).parent)
PASSES = {"forward", "backward", "optimizer"}
EVERYWHERE = (
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
)
OF_A_MODULE = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
)


class Frames:
    """Counts calls of fmapboard's functions in this thread, per phase of the step."""

    def __init__(self) -> None:
        self.phase = ""
        self.calls: Counter[tuple[str, str]] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            self.calls[self.phase, code.co_name] += 1

    @contextmanager
    def counting(self) -> Iterator[None]:
        before = sys.getprofile()
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)


class Loop:
    """A training loop that records which phase it is in."""

    def __init__(self) -> None:
        self.model = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(64, 3)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.frames = Frames()

    def step(self, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> Tensor:
        x, y = torch.randn(2, 3, 8, 8), torch.randint(0, 3, (2,))
        self.frames.phase = "around"
        with around():
            self.frames.phase = "forward"
            loss = functional.cross_entropy(self.model(x), y)
            self.frames.phase = "backward"
            loss.backward()
            self.frames.phase = "optimizer"
            self.optimizer.step()
            self.frames.phase = "around"
            self.optimizer.zero_grad()
        return loss

    def hooks(self) -> list[str]:
        """Every hook on a module, a parameter or the optimizer, and every global hook."""
        found = [
            f"{name}.{kind}"
            for name, module in self.model.named_modules()
            for kind in OF_A_MODULE
            if getattr(module, kind)
        ]
        found += [
            name
            for name, parameter in self.model.named_parameters()
            if parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)
        ]
        found += [kind for kind in EVERYWHERE if getattr(global_hooks, kind)]
        found += ["pre-step"] * len(self.optimizer._optimizer_step_pre_hooks)
        found += ["post-step"] * len(self.optimizer._optimizer_step_post_hooks)
        found += ["any pre-step"] * len(global_optimizer_hooks._global_optimizer_pre_hooks)
        return found


def test_with_an_optimizer_an_unlogged_step_costs_one_call_after_it() -> None:
    loop = Loop()
    with fmapboard.watch(loop.model, writer=MemoryWriter(), optimizer=loop.optimizer, every=1000):
        loop.step()  # step 0 is logged
        with loop.frames.counting():
            for _ in range(100):
                loop.step()
                assert loop.hooks() == ["post-step"]
    assert loop.frames.calls == {("optimizer", "_after_step"): 100}


def test_with_marked_steps_no_function_of_fmapboard_runs_inside_an_unlogged_step() -> None:
    loop = Loop()
    board = fmapboard.watch(loop.model, writer=MemoryWriter(), every=1000)
    with board.step():
        pass
    with loop.frames.counting():
        for _ in range(100):
            loop.step(board.step)
            assert loop.hooks() == []
    assert {phase for phase, _ in loop.frames.calls} == {"around"}
    assert loop.frames.calls["around", "__call__"] == 100  # the schedule: one comparison
    assert sum(loop.frames.calls.values()) <= 8 * 100
    board.close()


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_output_and_graph_of_an_unlogged_step_carry_no_hook(by_hand: bool) -> None:
    loop = Loop()
    optimizer = None if by_hand else loop.optimizer
    board = fmapboard.watch(loop.model, writer=MemoryWriter(), optimizer=optimizer, every=1000)
    for _ in range(2):
        loss = loop.step(board.step if by_hand else nullcontext)
    assert not loss._backward_hooks
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        # A Python hook on a tensor is in the dict of the node that made it.
        assert not getattr(node, "_backward_hooks", None)
        variable = getattr(node, "variable", None)
        assert variable is None or not variable._backward_hooks
        waiting += [next_node for next_node, _ in node.next_functions]
    assert len(seen) > 5
    board.close()


def test_functions_of_fmapboard_run_in_the_passes_of_a_logged_step() -> None:
    loop = Loop()
    writer, optimizer = MemoryWriter(), loop.optimizer
    with (
        fmapboard.watch(loop.model, writer=writer, optimizer=optimizer, every=2),
        loop.frames.counting(),
    ):
        loop.step()
    phases = {phase for phase, _ in loop.frames.calls}
    assert {"forward", "optimizer"} <= phases


def test_a_user_schedule_is_called_once_per_step() -> None:
    loop, asked = Loop(), []

    def at_three(step: int) -> bool:
        asked.append(step)
        return step == 3

    writer = MemoryWriter()
    with fmapboard.watch(loop.model, writer=writer, optimizer=loop.optimizer, every=at_three):
        for _ in range(6):
            loop.step()
    assert asked == [0, 1, 2, 3, 4, 5, 6]
    assert [step.step for step in writer.steps] == [3]


@pytest.mark.each_once
@pytest.mark.parametrize("every", [1, 2, 7])
@pytest.mark.parametrize("start", [0, 5, 7])
def test_unlogged_steps_are_counted(every: int, start: int) -> None:
    loop, writer = Loop(), MemoryWriter()
    with fmapboard.watch(
        loop.model, writer=writer, optimizer=loop.optimizer, every=every, start_step=start
    ) as board:
        for _ in range(20):
            loop.step()
        assert f"next step {start + 20}" in repr(board)
    due = [step for step in range(start, start + 20) if step % every == 0]
    assert [step.step for step in writer.steps] == due


def test_steps_marked_by_hand_take_over_from_an_optimizer_that_counted() -> None:
    loop, writer = Loop(), MemoryWriter()
    with fmapboard.watch(loop.model, writer=writer, optimizer=loop.optimizer, every=10) as board:
        for _ in range(4):
            loop.step()
        assert "next step 4" in repr(board)
        for _ in range(8):
            loop.step(board.step)
        assert "next step 12" in repr(board)
    assert [step.step for step in writer.steps] == [0, 10]


@pytest.mark.parametrize("when_full", ["wait", "drop_oldest"])
def test_the_queue_never_holds_more_than_its_bound(
    when_full: WhenFull, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, held = Loop(), []
    monkeypatch.setattr(pipeline, "MAX_QUEUE_BYTES", 60_000)

    class Recorded(Worker[Any]):
        def _wake_worker(self) -> None:  # called after each addition
            held.append(self.nbytes)
            super()._wake_worker()

    monkeypatch.setattr(pipeline, "Worker", Recorded)
    writer = MemoryWriter()
    board = fmapboard.watch(loop.model, writer=writer, every=1, when_full=when_full)
    for number in range(25):
        with board.step(number):
            loop.step()
    board.close()
    assert 0 < max(held) <= 60_000
    written = [step.step for step in writer.steps]
    assert written == sorted(written)
    assert len(written) == 25 - board.dropped_steps
    assert when_full == "drop_oldest" or board.dropped_steps == 0


def test_dropped_steps_are_counted_in_the_run_and_reported_once_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "MAX_QUEUE_BYTES", 1)
    loop, writer = Loop(), HeldWriter()
    board = fmapboard.watch(loop.model, writer=writer, every=1, when_full="drop_oldest")
    with board.step(0):
        loop.step()
    assert writer.begun.wait(20.0)
    for number in range(1, 6):
        with board.step(number):
            loop.step()
    writer.go_on.set()
    board.close()
    assert [step.step for step in writer.steps] == [0, 5]
    assert [step.scalars["fmapboard/dropped_steps"] for step in writer.steps] == [0.0, 4.0]
    assert board.dropped_steps == 4
    assert [record.message for record in caplog.records] == [
        "fmapboard: step 5: 4 logged steps dropped so far, since they are logged faster than they "
        "are written (see the scalar fmapboard/dropped_steps); log less often, or use "
        "when_full='wait'"
    ]


def test_dropped_steps_are_not_counted_if_no_step_may_be_dropped() -> None:
    loop, writer = Loop(), MemoryWriter()
    with fmapboard.watch(loop.model, writer=writer, optimizer=loop.optimizer, every=1):
        loop.step()
    assert "fmapboard/dropped_steps" not in writer.steps[0].scalars
