"""Out of device memory inside fmapboard: training goes on unchanged, and fewer steps are tried."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor
from torch.nn import functional
from torch.optim import optimizer as global_optimizer_hooks
from watched_training import batch, numbers, train_step

import fmapboard
import fmapboard.capture.collector
import fmapboard.session.session
from fmapboard.capture.guard import MemoryPressure, is_out_of_memory
from fmapboard.capture.transfer import Transfer
from fmapboard.errors import WarnOnce
from fmapboard.measure.merge_ranks import RankExchange
from fmapboard.measure.norms import GradientNorms
from fmapboard.measure.reducer import Reducer
from fmapboard.model.tensors import tensors
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS = 40
TRIED = [0, 2, 6, 14, 30]
"""Steps that are tried if all of them fail: 1, 3, 7 and 15 are left out in between."""

Fails = Callable[..., bool]

PLACES: dict[str, tuple[Any, str, Fails]] = {
    "forward pass": (Reducer, "__call__", lambda self, call, *_, **__: call.layer == "inner.0.0"),
    "backward pass": (Reducer, "__call__", lambda _, __, kind, *___, **____: "gradients" in kind),
    "optimizer step": (GradientNorms, "read", lambda *_: True),
    "packing": (Transfer, "__call__", lambda *_: True),
    "kernels": (fmapboard.session.session, "read_kernels", lambda *_: True),
    "probe": (Reducer, "__call__", lambda *_, numbers=True, **__: not numbers),
    "network input": (fmapboard.capture.collector, "input_images", lambda *_, **__: True),
}


class Faults:
    """Makes one function of fmapboard run out of memory in chosen steps of the training."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: str, steps: Container[int]) -> None:
        owner, name, fails = PLACES[place]
        original = getattr(owner, name)
        self.now, self.tried = 0, list[int]()

        def faulty(*args: Any, **kwargs: Any) -> Any:
            if self.now in steps and fails(*args, **kwargs):
                self.tried.append(self.now)
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, faulty)


def train(faults: Faults | None, *, counted: bool = False, **options: Any) -> tuple[Any, ...]:
    """Train for 40 steps; what is logged, and everything that training has computed."""
    torch.manual_seed(0)
    model, writer, losses = NestedNet(), MemoryWriter(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    board = None
    if faults is not None:
        options["optimizer"] = optimizer if counted else None
        board = fmapboard.watch(model, writer=writer, every=1, kernels=1, **options)

    def step() -> None:
        x, y = batch()
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    for number in range(STEPS):
        if faults is not None:
            faults.now = number
        if board is None or counted:
            step()
        else:
            with board.step(number):
                step()
    if board is not None:
        board.close()
    assert hook_count(model) == 0
    return writer.steps, [*losses, *model.state_dict().values()]


def assert_equal(one: list[Tensor], other: list[Tensor]) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.each_once
@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_steps_without_memory_are_tried_less_and_less_and_training_is_the_same(
    place: str, counted: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, expected = train(None)
    probe = {"probe": torch.ones(1, 3, 12, 12)} if place == "probe" else {}
    faults = Faults(monkeypatch, place, range(STEPS))
    steps, results = train(faults, counted=counted, activation_gradients=True, **probe)
    assert faults.tried == TRIED  # and only once in each of these steps
    assert steps == []
    assert_equal(results, expected)
    first, last = caplog.messages
    assert first.startswith("fmapboard: memory: OutOfMemoryError: CUDA out of memory")
    assert "step 0 is not logged; training continues" in first
    assert "watch fewer layers" in first
    assert last.startswith("fmapboard: step 30: fmapboard ran out of memory 5 times in a row")
    assert last.endswith("call watch() again, with fewer layers (layers=) or less of each")


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize("place", ["forward pass", "packing"])
def test_a_step_that_succeeds_ends_the_waiting(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faults = Faults(monkeypatch, place, {1, 3, 20})
    steps: list[LoggedStep]
    steps, _ = train(faults)
    assert faults.tried == [1, 3, 20]
    assert numbers(steps) == [0, *range(7, 20), *range(22, STEPS)]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_what_was_collected_is_freed_before_the_forward_pass_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, kept = NestedNet(), list[weakref.ref[Tensor]]()
    faults = Faults(monkeypatch, "forward pass", range(1))
    faulty = Reducer.__call__

    def followed(*args: Any, **kwargs: Any) -> Any:
        measured = faulty(*args, **kwargs)
        kept.extend(weakref.ref(tensor) for tensor in tensors(measured))
        return measured

    monkeypatch.setattr(Reducer, "__call__", followed)
    with fmapboard.watch(model, writer=MemoryWriter()) as board, board.step(0):
        loss = model(batch()[0]).sum()
        assert faults.tried == [0]
        assert kept
        assert [ref() for ref in kept] == [None] * len(kept)
        loss.backward()


@pytest.mark.each_once
@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_nothing_stays_installed_after_a_step_without_memory(
    place: str, counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._dynamo

    model, faults = NestedNet(), Faults(monkeypatch, place, {0})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = torch.ones(1, 3, 12, 12) if place == "probe" else None
    board = fmapboard.watch(
        model,
        writer=MemoryWriter(),
        optimizer=optimizer if counted else None,
        every=10,
        probe=probe,
        kernels=1,
        activation_gradients=True,
    )
    for number in range(10):
        faults.now = number
        with nullcontext() if counted else board.step(number):
            train_step(model, optimizer)
        assert board._run.session.open_step is None or number == 9
        if number < 9:
            assert hook_count(model) == 0
            assert len(optimizer._optimizer_step_post_hooks) == counted
            assert not global_optimizer_hooks._global_optimizer_pre_hooks
            assert torch._dynamo.eval_frame._stance.stance == "default"
    assert faults.tried == [0]
    board.close()


@pytest.mark.usefixtures("errors_are_only_logged")
@pytest.mark.parametrize(("place", "before"), [("forward pass", []), ("kernels", [0])])
def test_nothing_more_is_read_in_a_step_without_memory(
    place: str, before: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, reads = Faults(monkeypatch, place, {0}), []
    read = GradientNorms.read

    def followed(*args: Any) -> None:
        reads.append(faults.now)
        read(*args)

    monkeypatch.setattr(GradientNorms, "read", followed)
    train(faults)
    # Until an optimizer is known, gradients are read when the backward pass has ended too.
    first = [*before, 2]
    assert reads == [*first, *range(2, STEPS)]


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_step_that_fails_when_it_ends_is_not_explained(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Faults(monkeypatch, "kernels", {0})
    model = NestedNet()
    with fmapboard.watch(model, writer=MemoryWriter(), kernels=1) as board, board.step(0):
        model(batch()[0]).sum().backward()  # no optimizer steps, so kernels are read at the end
    (message,) = caplog.messages
    assert message.startswith("fmapboard: memory: OutOfMemoryError")


def test_after_five_failures_no_step_is_tried() -> None:
    pressure, tried = MemoryPressure(WarnOnce()), []
    for step in range(1000):
        if pressure.allows_step(step):
            tried.append(step)
            pressure.failed(step, torch.OutOfMemoryError())
    assert tried == TRIED


def test_a_step_that_begins_in_several_parts_is_left_out_as_one() -> None:
    pressure = MemoryPressure(WarnOnce())
    assert pressure.allows_step(7)
    pressure.failed(7, torch.OutOfMemoryError())
    assert [pressure.allows_step(step) for step in (8, 8, 8, 9, 9)] == [False] * 3 + [True] * 2


@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_rank_that_others_wait_for_leaves_out_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    with_others = classmethod(lambda cls, warn: cls(lambda own: [own], warn))
    monkeypatch.setattr(RankExchange, "among_all", with_others)
    faults = Faults(monkeypatch, "optimizer step", range(STEPS))
    steps, _ = train(faults, reduce_statistics=True)
    assert numbers(steps) == list(range(STEPS))
    # In the first step also after the backward pass: no optimizer is known yet.
    assert faults.tried == [0, *range(STEPS)]


def test_errors_of_every_device_are_recognized() -> None:
    for error in (
        torch.OutOfMemoryError("Tried to allocate"),
        RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
        RuntimeError("CUDA error: out of memory"),
    ):
        assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))
