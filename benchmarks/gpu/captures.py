"""Hazards of CUDA graphs: fmapboard stays out of graphs that users capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch.nn import functional

import fmapboard
from fmapboard.writers.folder import MemoryWriter
from gpu import compare
from gpu.device import Settings
from gpu.networks import Work, small
from gpu.report import Check
from gpu.right import PlantedNet
from gpu.trainings import Training


@contextmanager
def without_synchronizing(graph: torch.cuda.CUDAGraph, error_mode: str) -> Iterator[None]:
    """Capture as ``torch.cuda.graph`` does, which first waits until the device is idle."""
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode=error_mode)
        try:
            yield
        finally:
            graph.capture_end()


def capture_behind_a_step(
    error_mode: str, worker_waits: bool, settings: Settings, check: Check
) -> None:
    """A user captures a graph right behind a logged step, which the worker still processes.

    Args:
        error_mode: Which calls of which threads end the capture with an error.
        worker_waits: The device is held, so that the worker waits for it during the capture.
        settings: See ``Settings``.
        check: See ``Check``.
    """
    device, writer = settings.device, MemoryWriter()
    device.require_cuda()
    train = Training(small(tiny=settings.tiny), "eager", device)
    static = torch.ones(8, 8, device=device.name)
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        with board.step(0):
            train()
        board.flush()
        device.sync()
        for number in range(1, 4):
            device.hold(0.3)
            with board.step(number):
                train()
            graph = torch.cuda.CUDAGraph()
            capturing = torch.cuda.graph(graph, capture_error_mode=error_mode)
            with without_synchronizing(graph, error_mode) if worker_waits else capturing:
                result = static
                for _ in range(200):
                    result = result + 1.0
            graph.replay()
            board.flush()
            device.sync()
            check.expect(bool((result == 201.0).all()), f"replay {number} gave another result")
    check.expect(len(writer.steps) == 4, f"{len(writer.steps)} of 4 steps written")
    check.expect_silence()


def capture_of_a_logged_step(settings: Settings, check: Check) -> None:
    """A whole training step captured inside ``board.step`` is the user's graph, and no more."""
    settings.device.require_cuda()
    bare, _ = _captured(settings, logged=False)
    with_board, steps = _captured(settings, logged=True)
    check.figures["steps written"] = steps
    check.expect_none(compare.differing(bare, with_board), "parameters differ after three replays")
    check.expect(steps == [1], f"steps {steps} written, expected the one after the capture")


def _captured(settings: Settings, *, logged: bool) -> tuple[dict[str, torch.Tensor], list[int]]:
    """Parameters after three replays and one eager step; numbers of written steps."""
    device, writer = settings.device, MemoryWriter()
    work = Work("captured", PlantedNet, (4, 3, 32, 32))
    train = Training(work, "eager", device)

    def step() -> None:
        train.optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(train.model(train.x), train.y).backward()  # type: ignore[no-untyped-call]
        train.optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    if not logged:
        with torch.cuda.graph(graph):
            step()
        for _ in range(3):
            graph.replay()
        step()
    else:
        with fmapboard.watch(train.raw, writer=writer, every=1) as board:
            with torch.cuda.graph(graph), board.step(0):
                step()
            for _ in range(3):
                graph.replay()
            with board.step(1):
                step()
    device.sync()
    parameters = {name: value.detach().cpu() for name, value in train.raw.named_parameters()}
    return parameters, [written.step for written in writer.steps]


def graphed_callables(settings: Settings, check: Check) -> None:
    """Hooks do not run in ``make_graphed_callables``: training goes on, and the user is told."""
    device, writer = settings.device, MemoryWriter()
    device.require_cuda()
    train = Training(Work("graphed", PlantedNet, (4, 3, 32, 32)), "eager", device)
    train.model = torch.cuda.make_graphed_callables(train.raw, (train.x,))
    with fmapboard.watch(train.raw, writer=writer, every=1) as board:
        for number in range(3):
            with board.step(number):
                loss = train()
    check.figures["steps written"] = len(writer.steps)
    check.expect(bool(loss.isfinite()), "the loss is not finite")
    layers = [len(step.statistics) for step in writer.steps]
    check.expect(bool(check.said) or all(layers), "nothing was logged, and no warning said so")


CHECKS: dict[str, Callable[[Settings, Check], None]] = {
    "make_graphed_callables": graphed_callables,
    "a step captured inside board.step": capture_of_a_logged_step,
    **{
        f"a capture ({mode}) {when}": partial(capture_behind_a_step, mode, waits)
        for when, waits in (("behind a logged step", False), ("while the worker waits", True))
        for mode in ("thread_local", "global")
    },
}
