"""The slow half of a logged step, in the worker thread."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
import torch
from composed_steps import CALL, measured
from compressed_pictures import record_compressions
from controlled_writers import HeldWriter
from held_work import LIMIT, Clock
from interruptions import TimesUp, ctrl_c, handling, on_alarm
from torch import nn

import fmapboard
from fmapboard.errors import WarnOnce
from fmapboard.formats.overview import unpack_overview
from fmapboard.formats.tab_records import unpack
from fmapboard.options import Options
from fmapboard.records import Parameter, Picture, Sample, StepData
from fmapboard.render import grid, png
from fmapboard.summary import pictures
from fmapboard.writers import worker
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.pipeline import MAX_QUEUE_BYTES, Pipeline


@pytest.mark.parametrize("max_bytes", [10**7, 9_000])
def test_with_a_bound_on_bytes_each_picture_is_compressed_once(
    max_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressions, compressed = record_compressions(monkeypatch), []
    encode = png.encode

    def encoding(picture: Picture, factor: int = 1) -> bytes:
        before = len(compressions)
        data = encode(picture, factor)
        if len(compressions) > before:  # otherwise the picture had its PNG with it
            compressed.append(picture)
        return data

    monkeypatch.setattr(png, "encode", encoding)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
    board = fmapboard.watch(model, tmp_path, every=1, max_bytes_per_step=max_bytes)
    for number in range(3):
        with board.step(number):
            model(torch.rand(1, 3, 24, 24)).sum().backward()
            torch.optim.SGD(model.parameters(), lr=0.0).step()
    board.close()
    kernels, inputs = 2, 3
    if max_bytes == 10**7:
        assert len(compressed) == 2 * 3 + kernels + inputs
    assert len({id(picture.pixels) for picture in compressed}) == len(compressed)
    assert len(compressed) == len(compressions)


def test_the_step_after_a_wait_for_the_queue_records_its_duration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on, clock, writer = threading.Event(), threading.Event(), Clock(), MemoryWriter()

    def receive(step: int) -> StepData:
        begun.set()
        assert go_on.wait(LIMIT)
        return StepData(step, 0.0)

    def pass_time() -> None:
        clock.now += 1.5
        go_on.set()

    monkeypatch.setitem(worker.Worker.__init__.__kwdefaults__, "clock", clock)
    pipeline = Pipeline(writer, Options(), WarnOnce())
    clock.at_reading[1] = go_on.set
    clock.at_reading[2] = pass_time
    pipeline.put(partial(receive, 0), 1)
    assert begun.wait(LIMIT)
    pipeline.put(partial(receive, 1), MAX_QUEUE_BYTES)
    pipeline.put(partial(receive, 2), MAX_QUEUE_BYTES)
    pipeline.put(partial(receive, 3), 1)
    pipeline.flush()
    pipeline.put(partial(receive, 4), 1)
    pipeline.close()
    waited = [step.scalars.get("fmapboard/waited_ms") for step in writer.steps]
    assert waited == [None, None, None, 1500.0, None]


def test_writing_a_step_may_switch_threads_before_it_is_composed_and_before_it_is_written() -> None:
    writer, received = MemoryWriter(), []

    def receive() -> StepData:
        received.append(1)
        return StepData(7, 0.0)

    pipeline = Pipeline(writer, Options(), WarnOnce())
    parts = [(len(received), len(writer.steps)) for _ in pipeline._work((receive, 0.0))]
    assert parts == [(1, 0), (1, 0)]
    assert [step.step for step in writer.steps] == [7]


def held_pipeline(monkeypatch: pytest.MonkeyPatch) -> tuple[Pipeline, HeldWriter]:
    """A pipeline with three steps, the first of which is being written until it is let go."""
    monkeypatch.setattr("fmapboard.writers.pipeline.SECONDS_AFTER_INTERRUPT", 0.05)
    writer = HeldWriter()
    pipeline = Pipeline(writer, Options(), WarnOnce())
    for step in range(3):
        pipeline.put(partial(StepData, step, 0.0), 1)
    assert writer.begun.wait(LIMIT)
    return pipeline, writer


LOST = (
    "fmapboard: 0.05 s after the interrupt, logged steps are still being written: the last 3 of "
    "them are lost if the process ends now"
)


@pytest.mark.parametrize("handler", [ctrl_c, on_alarm])
def test_after_an_interrupt_close_waits_for_a_limited_time_and_says_what_is_lost(
    handler: Callable[[int, FrameType | None], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline, writer = held_pipeline(monkeypatch)
    with handling(handler):
        try:
            signal.raise_signal(signal.SIGALRM)
        except BaseException:
            pipeline.close()
    assert caplog.messages == [LOST]
    writer.go_on.set()
    assert pipeline._worker.flush(LIMIT)
    assert [step.step for step in writer.steps] == [0, 1, 2]


def test_an_interrupt_while_close_waits_reaches_the_caller_after_a_limited_time(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, writer = held_pipeline(monkeypatch)
    with handling(on_alarm):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        with pytest.raises(TimesUp):
            pipeline.close()
    assert caplog.messages == [LOST]
    writer.go_on.set()
    assert pipeline._worker.flush(LIMIT)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), None])
def test_without_an_interrupt_close_waits_for_everything(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, writer = held_pipeline(monkeypatch)
    limits: list[float | None] = []
    close = pipeline._worker.close

    def noted(seconds: float | None = None) -> bool:
        limits.append(seconds)
        writer.go_on.set()
        return close(seconds)

    monkeypatch.setattr(pipeline._worker, "close", noted)
    try:
        if error is not None:
            raise error
    except BaseException:
        pipeline.close()
    pipeline.close()
    assert limits == [None]
    assert [step.step for step in writer.steps] == [0, 1, 2]


def test_a_step_that_cannot_be_drawn_leaves_the_stored_step_before_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drawn(*args: object, **options: object) -> Picture:
        if build_now == 3:
            raise MemoryError
        return grid.draw_maps(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(pictures, "draw_maps", drawn)
    writer = MemoryWriter()
    pipeline = Pipeline(writer, Options(checks=False), WarnOnce())
    for build_now in range(1, 6):
        weight = Sample(np.full(64 * 147, build_now, np.float32), 64 * 147)
        pipeline.put(
            partial(
                StepData, build_now, 0.0,
                measured=(measured(torch.rand(1, 64, 6, 6), CALL),),
                parameters=(Parameter("conv1.weight", weight, norm=1.0),),
            ), 1,
        )  # fmt: skip
        pipeline.flush()
    pipeline.close()
    records = [{each.tag: each.blobs for each in step.records} for step in writer.steps]
    headers = [unpack(of["fmapboard/conv1"])[0] for of in records]
    written = [(of["step"], of["steps_written"], of.get("change_since")) for of in headers]
    assert written == [
        (1, 1, None), (2, 2, {"weights": 1}), (4, 3, {"weights": 2}), (5, 4, {"weights": 4})
    ]  # fmt: skip
    overviews = [unpack_overview(of["fmapboard_overview"]) for of in records]
    assert [(of.step, of.steps_written) for of in overviews] == [(1, 1), (2, 2), (4, 3), (5, 4)]
