"""PendingStep images are written in order, in threads, and never too many wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

import fmapboard.cli.write_images as delivery_module
from fmapboard.capture.step_parts import PendingStep
from fmapboard.cli.write_images import Delivered, Delivery
from fmapboard.errors import ImageError, WriteError
from fmapboard.records import InputImage, LoggedStep, StepData
from fmapboard.render import png
from fmapboard.summary.build import Composer
from fmapboard.writers.memory import MemoryWriter
from fmapboard.writers.tensorboard import TensorBoardWriter

LIMIT = 20.0  # s; only broken code takes that long


def data(step: int) -> StepData:
    values = np.full((3, 40, 40), step / 100, np.float32)
    return StepData(step, 0.0, inputs=(InputImage(0, values),))


def image(step: int, nbytes: int = 10) -> PendingStep:
    return PendingStep(step, nbytes, lambda: data(step))


def threads() -> set[str]:
    return {t.name for t in threading.enumerate() if t.name.startswith("fmapboard")}


class Broken(MemoryWriter):
    """Fails at one step."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def write(self, step: LoggedStep) -> None:
        if step.step == self._at:
            raise WriteError("the disk is full")
        super().write(step)


def test_images_are_delivered_in_order_in_both_places(tmp_path: Path) -> None:
    board = MemoryWriter()
    folders: list[Path | None] = [tmp_path / str(step) for step in range(20)]
    delivery = Delivery(Composer(), board, folders)
    steps = [delivered.step.step for delivered in delivery.deliver(map(image, range(20)))]
    assert steps == list(range(20))
    assert [step.step for step in board.steps] == list(range(20))
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert files == {f"{step}/network_input_sample_0.png" for step in range(20)}
    assert threads() == set()


def test_no_more_is_recorded_than_may_wait(tmp_path: Path) -> None:
    go_on = threading.Event()
    made: list[int] = []

    class Slow(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            assert go_on.wait(LIMIT)
            super().write(step)

    def images() -> Iterator[PendingStep]:
        for step in range(9):
            made.append(step)
            if step == 3:  # with it 40 bytes wait, and 30 may
                threading.Timer(0.05, go_on.set).start()
            yield image(step, 10)

    delivery = Delivery(Composer(), Slow(), [None] * 9, max_bytes=30)
    delivered = delivery.deliver(images())
    assert next(delivered).step.step == 0
    assert made == [0, 1, 2, 3]
    delivered.close()


def test_an_image_larger_than_the_bound_is_written_while_the_next_is_recorded() -> None:
    go_on, second = threading.Event(), threading.Event()

    class Slow(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            assert go_on.wait(LIMIT)
            super().write(step)

    def images() -> Iterator[PendingStep]:
        yield image(0, 1000)
        second.set()
        go_on.set()
        yield image(1, 1000)

    delivered = Delivery(Composer(), Slow(), [None] * 2, max_bytes=30).deliver(images())
    assert next(delivered).step.step == 0
    assert second.is_set()
    assert next(delivered).step.step == 1
    delivered.close()


def test_an_error_in_recording_comes_behind_what_was_recorded_before() -> None:
    def images() -> Iterator[PendingStep]:
        yield image(0)
        yield image(1)
        raise ImageError("the third file is broken")

    board = MemoryWriter()
    seen: list[int] = []
    delivery = Delivery(Composer(), board, [None] * 3)
    with pytest.raises(ImageError, match="third"):
        seen.extend(delivered.step.step for delivered in delivery.deliver(images()))
    assert seen == [0, 1]
    assert [step.step for step in board.steps] == [0, 1]


def test_when_writing_fails_nothing_behind_it_is_written() -> None:
    board = Broken(at=2)
    seen: list[int] = []
    delivery = Delivery(Composer(), board, [None] * 9)
    with pytest.raises(WriteError, match="full"):
        seen.extend(delivered.step.step for delivered in delivery.deliver(map(image, range(9))))
    assert seen == [0, 1]
    assert [step.step for step in board.steps] == [0, 1]
    assert threads() == set()


def test_when_a_folder_cannot_be_made_it_is_said_and_nothing_follows(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folders: list[Path | None] = [tmp_path / "file" / "maps", *[tmp_path / "later"] * 8]
    with pytest.raises(WriteError, match="cannot write to"):
        list(Delivery(Composer(), None, folders).deliver(map(image, range(9))))
    assert threads() == set()


def test_an_interruption_gives_up_what_waits_and_leaves_whole_files(tmp_path: Path) -> None:
    folders: list[Path | None] = [tmp_path / str(step) for step in range(50)]
    board = MemoryWriter()

    def images() -> Iterator[PendingStep]:
        for step in range(49):
            yield image(step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(Delivery(Composer(), board, folders).deliver(images()))
    written = [step.step for step in board.steps]
    assert written == list(range(len(written)))
    files = sorted(tmp_path.rglob("*.*"), key=lambda path: int(path.parent.name))
    assert [int(path.parent.name) for path in files] == written
    assert {path.suffix for path in files} <= {".png"}
    assert threads() == set()


def test_ctrl_c_while_a_thread_starts_waits_for_that_thread_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "THREADS", 2)
    board, start = MemoryWriter(), threading.Thread.start
    begun, go_on = threading.Event(), threading.Event()

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        if thread.name.endswith("write_1"):  # which the pool then does not know of
            assert begun.wait(LIMIT)
            threading.Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt

    def busy() -> StepData:
        assert begun.wait(LIMIT)
        return data(0)

    def slow() -> StepData:
        begun.set()
        assert go_on.wait(LIMIT)
        return data(1)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    folders: list[Path | None] = [tmp_path / str(step) for step in range(3)]
    images = iter([PendingStep(0, 10, busy), PendingStep(1, 10, slow), image(2)])
    with pytest.raises(KeyboardInterrupt):
        list(Delivery(Composer(), board, folders).deliver(images))
    assert [step.step for step in board.steps] == [0, 1]
    assert sorted(path.parent.name for path in tmp_path.rglob("*.png")) == ["0", "1"]


def test_who_comes_too_late_leaves_nobody_behind_him_waiting() -> None:
    board = MemoryWriter()
    delivery = Delivery(Composer(), board, [None] * 2)
    entered = threading.Event()

    def second() -> StepData:
        entered.set()
        return data(1)

    late: Future[Delivered] = Future()
    behind = threading.Thread(
        target=delivery._write, args=(1, PendingStep(1, 10, second), late), daemon=True
    )
    behind.start()
    assert entered.wait(LIMIT)
    shutting = threading.Thread(target=delivery._door.shut, daemon=True)
    shutting.start()
    while not delivery._door._is_shut:
        time.sleep(0.001)
    delivery._write(0, image(0), Future())
    behind.join(LIMIT)
    shutting.join(LIMIT)
    assert not behind.is_alive()
    assert not shutting.is_alive()
    assert board.steps == []
    assert not late.done()


def test_an_image_behind_a_broken_one_is_given_up_and_one_before_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_module, "THREADS", 2)
    failed, board = threading.Event(), MemoryWriter()

    def broken() -> StepData:
        failed.set()
        raise ValueError("no step")

    def late() -> StepData:
        assert failed.wait(LIMIT)
        return data(0)

    folders: list[Path | None] = [tmp_path / str(step) for step in range(3)]
    delivered = Delivery(Composer(), board, folders).deliver(
        iter([PendingStep(0, 10, late), PendingStep(1, 10, broken), image(2)])
    )
    assert next(delivered).step.step == 0
    with pytest.raises(ValueError, match="no step"):
        next(delivered)
    assert [step.step for step in board.steps] == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    assert threads() == set()


def test_a_picture_is_encoded_once_for_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compressed: list[int] = []
    real = png._filtered
    monkeypatch.setattr(
        png, "_filtered", lambda pixels, factor: compressed.append(1) or real(pixels, factor)
    )
    board = TensorBoardWriter(tmp_path / "run")
    list(Delivery(Composer(), board, [tmp_path / "png"]).deliver(iter([image(0)])))
    board.close()
    assert len(compressed) == 1
    assert len(list((tmp_path / "png").iterdir())) == 1
