"""Two loggers that log into one directory are kept apart, in one process and in several."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import warm_python
from event_files import step_of, write
from held_work import LIMIT
from networks import two_convolutions
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.runs.find import run_directories
from fmapboard.writers import event_file
from fmapboard.writers.folder import MemoryWriter
from fmapboard.writers.tensorboard import TensorBoardWriter

SAME_NAME = (
    "fmapboard: {0}: another open logger writes to it under the same name, so that this one "
    "writes to {0}/fmapboard_2; for both in one run, give each its own name=; to use the directory "
    "again, close the other logger first (board.close())"
)


def train(model: nn.Module, board: fmapboard.FeatureMapLogger, *numbers: int) -> None:
    for number in numbers:
        with board.step(number):
            model(torch.rand(1, 1, 8, 8)).sum().backward()
    board.flush()


def files_in(directory: Path) -> int:
    """Number of event files in the directory itself."""
    return len(list(directory.glob("*tfevents*")))


def runs_in(place: Path) -> list[str]:
    return sorted(str(run.relative_to(place)) for run in run_directories(place))


def test_two_models_in_one_directory_under_one_name_are_two_runs(
    tmp_path: Path, errors_are_only_logged: None, said: Callable[[], list[str]]
) -> None:
    generator, critic = two_convolutions(), two_convolutions()
    with (
        fmapboard.watch(generator, tmp_path, every=1, checks=False) as first,
        fmapboard.watch(critic, tmp_path, every=1, checks=False) as second,
    ):
        train(generator, first, 0, 1)
        train(critic, second, 0)
    assert runs_in(tmp_path) == [".", "fmapboard_2"]
    assert files_in(tmp_path) == 1
    assert SAME_NAME.format(tmp_path) in said()


def test_under_their_own_names_they_are_one_run(
    tmp_path: Path, errors_are_only_logged: None, said: Callable[[], list[str]]
) -> None:
    generator, critic = two_convolutions(), two_convolutions()
    with (
        fmapboard.watch(generator, tmp_path, every=1, name="generator", checks=False) as first,
        fmapboard.watch(critic, tmp_path, every=1, checks=False) as second,
    ):
        train(generator, first, 0)
        train(critic, second, 0)
    assert runs_in(tmp_path) == ["."]
    assert not any("fmapboard_2" in text for text in said())


def test_each_further_logger_has_a_directory_of_its_own_until_the_first_is_closed(
    tmp_path: Path,
) -> None:
    models = [two_convolutions() for _ in range(4)]
    boards = [fmapboard.watch(model, tmp_path) for model in models[:3]]
    boards[0].close()
    boards.append(fmapboard.watch(models[3], tmp_path))
    for board in boards:
        board.close()
    assert files_in(tmp_path) == 2
    assert files_in(tmp_path / "fmapboard_2") == 1
    assert files_in(tmp_path / "fmapboard_3") == 1


def test_a_logger_that_nobody_holds_any_more_leaves_its_directory_to_the_next(
    tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    def cell() -> fmapboard.FeatureMapLogger:
        model = two_convolutions()
        board = fmapboard.watch(model, tmp_path, every=1)
        cycle: list[object] = [board]
        cycle.append(cycle)  # only the garbage collector finds it
        return board

    board = cell()
    gc.disable()
    try:
        del board
        cell().close()
    finally:
        gc.enable()
    assert not (tmp_path / "fmapboard_2").exists()
    assert not any("fmapboard_2" in text for text in said())


def test_two_threads_log_into_two_directories(tmp_path: Path) -> None:
    begun = threading.Barrier(2)

    def watch() -> None:
        model = two_convolutions()
        begun.wait(LIMIT)
        board = fmapboard.watch(model, tmp_path)
        begun.wait(LIMIT)
        board.close()

    threads = [threading.Thread(target=watch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert files_in(tmp_path) == 1
    assert files_in(tmp_path / "fmapboard_2") == 1


HOLD = """
import sys
from fmapboard.writers.tensorboard import TensorBoardWriter
writer = TensorBoardWriter("run")
print(writer.log_dir, file=open("began", "w"))
open("go").read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[warm_python.WarmPython]:
    """A process that writes to ``run`` until ``go`` is opened for writing."""
    os.mkfifo(tmp_path / "began")
    os.mkfifo(tmp_path / "go")
    process = warm_python.WarmPython(HOLD, cwd=tmp_path)
    assert (tmp_path / "began").read_text() == "run\n"
    yield process
    process.kill()
    process.communicate(LIMIT)


def test_beside_another_process_this_one_writes_to_a_directory_of_its_own(
    tmp_path: Path, other: warm_python.WarmPython, said: Callable[[], list[str]]
) -> None:
    run = tmp_path / "run"
    assert write(run, 0).log_dir == run / "fmapboard_2"
    assert said() == [
        f"fmapboard: {run}: another process is writing to it, so that this one writes to "
        f"{run}/fmapboard_2; give each process its own log_dir"
    ]
    assert TensorBoardWriter(run, prefix="critic.").log_dir == run / "fmapboard_2"


def test_after_another_process_was_killed_its_directory_is_free(
    tmp_path: Path, other: warm_python.WarmPython
) -> None:
    other.kill()
    other.wait(LIMIT)
    assert write(tmp_path / "run", 0).log_dir == tmp_path / "run"


def test_a_file_that_its_own_process_has_read_is_still_seen_to_be_written(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path / "run")
    writer.path.read_bytes()
    writer.write(step_of(0))
    code = (
        "from fmapboard.writers.tensorboard import TensorBoardWriter\n"
        "print(TensorBoardWriter('run').log_dir)"
    )
    assert warm_python.run(code, cwd=tmp_path).stdout == "run/fmapboard_2\n"
    writer.close()
    assert warm_python.run(code, cwd=tmp_path).stdout == "run\n"


def test_a_forked_process_does_not_write_into_the_file_of_its_parent(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path / "run")
    child = os.fork()
    if child == 0:
        own = TensorBoardWriter(tmp_path / "run")
        os._exit(0 if own.log_dir == tmp_path / "run" / "fmapboard_2" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.close()


def test_of_two_processes_that_begin_at_once_the_later_file_gives_way(
    tmp_path: Path, other: warm_python.WarmPython, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = "events.out.tfevents.9999999999.host.1.1.fmapboard"
    monkeypatch.setattr(event_file, "_file_name", lambda suffix: later)
    monkeypatch.setattr(event_file, "_taken_by", lambda directory, prefix: "")  # it began just now
    assert write(tmp_path / "run", 0).log_dir == tmp_path / "run" / "fmapboard_2"
    assert files_in(tmp_path / "run") == 1


@pytest.mark.parametrize("writer", [MemoryWriter, "SummaryWriter"])
def test_a_writer_is_refused_while_an_open_logger_writes_to_it_under_the_same_name(
    writer: Any, tmp_path: Path
) -> None:
    given = SummaryWriter(str(tmp_path)) if writer == "SummaryWriter" else writer()
    model = two_convolutions()
    board = fmapboard.watch(model, writer=given)
    with pytest.raises(ConfigurationError) as error:
        fmapboard.watch(two_convolutions(), writer=given)
    assert str(error.value) == (
        f"writer={type(given).__name__}: another open logger writes to it under the same name; "
        "give each its own name=, or close the other one first (board.close())"
    )
    critic = two_convolutions()
    fmapboard.watch(critic, writer=given, name="critic").close()
    board.close()
    fmapboard.watch(critic, writer=given).close()
    if writer == "SummaryWriter":
        given.close()
