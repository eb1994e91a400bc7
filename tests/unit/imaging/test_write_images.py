"""Images are written in order in a worker thread, with a bound on the bytes that wait for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import warm_python
from held_work import LIMIT
from own_threads import own_priority, own_threads

from fmapboard.errors import ImageError, WriteError
from fmapboard.imaging import write_images
from fmapboard.imaging.write_images import ImageWriter
from fmapboard.records import InputImage, LoggedStep, StepData
from fmapboard.session.step import PendingStep
from fmapboard.summary.build import SummaryBuilder
from fmapboard.writers.folder import MemoryWriter


def data(step: int) -> StepData:
    values = np.full((3, 40, 40), step / 100, np.float32)
    return StepData(step, 0.0, inputs=(InputImage(0, values),))


def image(step: int, nbytes: int = 10) -> PendingStep:
    return PendingStep(step, nbytes, lambda: data(step))


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


class Broken(MemoryWriter):
    """Fails at one step."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def write(self, step: LoggedStep) -> None:
        if step.step == self._at:
            raise WriteError("the disk is full")
        super().write(step)


class Slow(MemoryWriter):
    """Writes once `go_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    def write(self, step: LoggedStep) -> None:
        self.begun.set()
        assert self.go_on.wait(LIMIT)
        super().write(step)

    def go_on_soon(self) -> None:
        """Set `go_on` after a delay in which a caller that does not wait would continue."""
        threading.Timer(0.1, self.go_on.set).start()


def test_images_are_written_in_order_in_both_places(tmp_path: Path) -> None:
    board = MemoryWriter()
    folders: list[Path | None] = [tmp_path / str(step) for step in range(20)]
    writer = ImageWriter(SummaryBuilder(), board, folders)
    steps = [written.step.step for written in writer.write(map(image, range(20)))]
    assert steps == list(range(20))
    assert [step.step for step in board.steps] == list(range(20))
    assert files(tmp_path) == sorted(f"{step}/network_input_sample_0.png" for step in range(20))
    assert own_threads() == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a priority per thread")
def test_images_are_written_with_the_priority_of_the_command() -> None:
    class Watching(MemoryWriter):
        def write(self, step: LoggedStep) -> None:
            seen.append(own_priority())

    seen: list[int] = []
    list(ImageWriter(SummaryBuilder(), Watching(), [None]).write([image(0)]))
    assert seen == [own_priority()]


def test_no_more_bytes_wait_than_allowed_in_addition_to_the_image_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_images, "MAX_WAITING_BYTES", 30)
    monkeypatch.setattr(write_images, "_MAX_WAITING", 100)
    board = Slow()
    made: list[int] = []

    def images() -> Iterator[PendingStep]:
        for step in range(9):
            made.append(step)
            if step == 4:  # 0 is being written; with this one 40 bytes would wait; 30 are allowed
                board.go_on_soon()
            yield image(step, 10)

    written = ImageWriter(SummaryBuilder(), board, [None] * 9).write(images())
    assert next(written).step.step == 0
    assert made == [0, 1, 2, 3, 4]
    written.close()


def test_no_more_than_eight_small_images_wait() -> None:
    made: list[int] = []

    def images() -> Iterator[PendingStep]:
        for step in range(20):
            made.append(step)
            yield image(step)

    written = ImageWriter(SummaryBuilder(), MemoryWriter(), [None] * 20).write(images())
    assert next(written).step.step == 0
    assert len(made) == 9
    written.close()


def test_an_image_larger_than_the_bound_is_written_while_the_next_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_images, "MAX_WAITING_BYTES", 30)
    board, second = Slow(), threading.Event()

    def images() -> Iterator[PendingStep]:
        yield image(0, 1000)
        second.set()
        board.go_on.set()
        yield image(1, 1000)

    written = ImageWriter(SummaryBuilder(), board, [None] * 2).write(images())
    assert next(written).step.step == 0
    assert second.is_set()
    assert next(written).step.step == 1
    written.close()


def test_an_error_while_recording_is_raised_after_the_images_recorded_before() -> None:
    def images() -> Iterator[PendingStep]:
        yield image(0)
        yield image(1)
        raise ImageError("the third file is broken")

    board = MemoryWriter()
    seen: list[int] = []
    writer = ImageWriter(SummaryBuilder(), board, [None] * 3)
    with pytest.raises(ImageError, match="third"):
        seen.extend(written.step.step for written in writer.write(images()))
    assert seen == [0, 1]
    assert [step.step for step in board.steps] == [0, 1]


def test_when_writing_fails_nothing_after_it_is_written() -> None:
    board = Broken(at=2)
    seen: list[int] = []
    writer = ImageWriter(SummaryBuilder(), board, [None] * 9)
    with pytest.raises(WriteError, match="full"):
        seen.extend(written.step.step for written in writer.write(map(image, range(9))))
    assert seen == [0, 1]
    assert [step.step for step in board.steps] == [0, 1]
    assert own_threads() == []


def test_when_a_folder_cannot_be_created_an_error_is_raised_and_nothing_follows(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("")
    folders: list[Path | None] = [tmp_path / "file" / "maps", *[tmp_path / "later"] * 8]
    with pytest.raises(WriteError, match="cannot write to"):
        list(ImageWriter(SummaryBuilder(), None, folders).write(map(image, range(9))))
    assert not (tmp_path / "later").exists()
    assert own_threads() == []


def test_an_image_after_a_broken_one_is_discarded_and_one_before_it_is_written(
    tmp_path: Path,
) -> None:
    def broken() -> StepData:
        raise ValueError("no step")

    board = MemoryWriter()
    folders: list[Path | None] = [tmp_path / str(step) for step in range(3)]
    written = ImageWriter(SummaryBuilder(), board, folders).write(
        iter([image(0), PendingStep(1, 10, broken), image(2)])
    )
    assert next(written).step.step == 0
    with pytest.raises(ValueError, match="no step"):
        next(written)
    assert [step.step for step in board.steps] == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["0"]
    assert own_threads() == []


def test_an_interruption_discards_queued_images_and_leaves_complete_files(tmp_path: Path) -> None:
    folders: list[Path | None] = [tmp_path / str(step) for step in range(50)]
    board = MemoryWriter()

    def images() -> Iterator[PendingStep]:
        for step in range(49):
            yield image(step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(ImageWriter(SummaryBuilder(), board, folders).write(images()))
    written = [step.step for step in board.steps]
    assert written == list(range(len(written)))
    assert files(tmp_path) == sorted(f"{step}/network_input_sample_0.png" for step in written)
    assert own_threads() == []


def test_an_interruption_waits_for_the_image_being_written_and_for_no_other(
    tmp_path: Path,
) -> None:
    board = Slow()

    def images() -> Iterator[PendingStep]:
        yield image(0)
        yield image(1)
        assert board.begun.wait(LIMIT)
        board.go_on_soon()
        raise KeyboardInterrupt

    folders: list[Path | None] = [tmp_path / str(step) for step in range(3)]
    with pytest.raises(KeyboardInterrupt):
        list(ImageWriter(SummaryBuilder(), board, folders).write(images()))
    assert [step.step for step in board.steps] == [0]
    assert files(tmp_path) == ["0/network_input_sample_0.png"]
    assert own_threads() == []


@pytest.mark.parametrize("runs", [True, False])
def test_ctrl_c_while_the_worker_thread_starts_leaves_no_thread_and_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: bool
) -> None:
    start, started = threading.Thread.start, list[threading.Thread]()

    def interrupted(thread: threading.Thread) -> None:
        if runs:
            start(thread)
            started.append(thread)
        monkeypatch.setattr(threading.Thread, "start", start)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(ImageWriter(SummaryBuilder(), MemoryWriter(), [tmp_path]).write(iter([image(0)])))
    for thread in started:
        thread.join(LIMIT)
    assert files(tmp_path) in ([], ["network_input_sample_0.png"])
    assert own_threads() == []


TWICE = """
import sys, threading
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from {module} import ImageWriter, SummaryBuilder, Path, image

begun = threading.Event()

class Board:
    def write(self, step):
        begun.set()
        threading.Event().wait(0.3)  # the main thread has long been interrupted twice
        Path("event").write_text("")

def images():
    yield image(0)
    begun.wait(20)
    raise KeyboardInterrupt

def interrupted(pool, **how):
    ThreadPoolExecutor.shutdown = shutdown
    raise KeyboardInterrupt

shutdown, ThreadPoolExecutor.shutdown = ThreadPoolExecutor.shutdown, interrupted
list(ImageWriter(SummaryBuilder(), Board(), [Path("maps")]).write(images()))
"""


@pytest.mark.slow
def test_ctrl_c_pressed_twice_leaves_the_image_being_written_complete_too(tmp_path: Path) -> None:
    script = TWICE.format(module=Path(__file__).stem)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = warm_python.run(script, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    assert "KeyboardInterrupt" in done.stderr
    assert files(tmp_path) == ["maps/network_input_sample_0.png"]
    assert (tmp_path / "event").exists()
