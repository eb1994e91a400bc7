"""Which event file a writer uses when others write, or have written, to the same directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from data_providers import provider_of
from event_files import event_files, step_of, steps_in, write
from tensorboard.backend.event_processing import tag_types
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.event_pb2 import SessionLog
from tensorboard.context import RequestContext
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import fmapboard
from fmapboard.errors import WriteError
from fmapboard.writers.tensorboard import KEEP_EARLIER, TensorBoardWriter


def test_two_writers_of_one_directory_share_one_file(tmp_path: Path) -> None:
    first = TensorBoardWriter(tmp_path)
    second = TensorBoardWriter(tmp_path / "." / ".." / tmp_path.name)
    first.write(step_of(0, "generator."))
    second.write(step_of(0, "critic."))
    first.close()
    second.write(step_of(1, "critic."))
    second.close()
    assert event_files(tmp_path) == [first.path]
    assert second.path == first.path
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()[tag_types.SCALARS]
    assert {"generator.gradient_norm/total", "critic.gradient_norm/total"} <= set(tags)
    assert steps_in(first.path) == [0, 0, 1]


def test_a_closed_file_is_not_shared_with_the_next_writer(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    second = write(tmp_path, 1, start_step=1)
    assert first.path != second.path
    assert [steps_in(path) for path in event_files(tmp_path)] == [[0], [1]]


def test_a_writer_of_a_directory_that_was_deleted_meanwhile_starts_a_new_file(
    tmp_path: Path,
) -> None:
    stale = TensorBoardWriter(tmp_path / "run")
    stale.write(step_of(5))
    shutil.rmtree(tmp_path / "run")
    fresh = TensorBoardWriter(tmp_path / "run")
    fresh.write(step_of(0))
    stale.write(step_of(6))
    stale.close()
    again = TensorBoardWriter(tmp_path / "run")
    again.write(step_of(1))
    fresh.close()
    again.close()
    (path,) = event_files(tmp_path)
    assert steps_in(path) == [0, 1]


def test_a_process_that_changes_its_directory_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = TensorBoardWriter("run")
    writer.write(step_of(0))
    monkeypatch.chdir(tmp_path / "elsewhere")
    twin = TensorBoardWriter(tmp_path / "run")
    twin.write(step_of(1))
    twin.close()
    writer.close()
    monkeypatch.chdir(tmp_path)
    write(Path("run"), 2, start_step=2)
    assert [steps_in(path) for path in event_files(tmp_path)] == [[0, 1], [2]]


def test_next_to_another_writers_event_file_ours_is_a_separate_run(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as foreign:
        foreign.add_scalar("loss", 1.0, 0)
        writer = write(tmp_path, 0)
    assert writer.log_dir == tmp_path / "fmapboard"
    assert writer.path.parent == tmp_path / "fmapboard"
    runs = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Reload().Runs()
    assert set(runs) == {".", "fmapboard"}
    again = write(tmp_path, 1, start_step=1)
    assert again.path.parent == tmp_path / "fmapboard"


def test_files_of_our_own_earlier_runs_are_not_foreign(tmp_path: Path) -> None:
    write(tmp_path, 0)
    assert write(tmp_path, 1, start_step=1).path.parent == tmp_path


def test_a_directory_that_vanishes_during_a_run_is_created_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / "run"
    first, second = TensorBoardWriter(run), TensorBoardWriter(run)
    first.write(step_of(0))
    second.write(step_of(0, "critic."))
    old = first.path
    shutil.rmtree(run)
    for number in (1, 2):
        second.write(step_of(number, "critic."))
        first.write(step_of(number))
    assert first.path == second.path != old
    first.close()
    second.close()
    (path,) = event_files(run)
    assert steps_in(path) == [1, 1, 2, 2]
    (warning,) = caplog.records
    assert warning.getMessage() == (
        f"fmapboard: {old} was deleted or moved during the run, with all steps logged so far; "
        f"further steps are written to {path}"
    )
    with provider_of(tmp_path, "python") as provider:  # needs the tags' metadata again
        listed = provider.list_blob_sequences(
            RequestContext(), experiment_id="", plugin_name="images"
        )
    assert set(listed["run"]) == {
        "feature_maps_1x1x1x1/conv", "critic.feature_maps_1x1x1x1/conv",
    }  # fmt: skip


def test_a_directory_that_is_replaced_during_a_run_gets_a_new_file(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path / "run")
    writer.write(step_of(0))
    (tmp_path / "run").rename(tmp_path / "old")
    (tmp_path / "run").mkdir()
    writer.write(step_of(1))
    writer.close()
    assert [steps_in(path) for path in event_files(tmp_path)] == [[0], [1]]


def test_a_directory_that_cannot_be_created_again_is_an_error_until_it_can(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").write_text("a file")
    for number in (0, 1):
        with pytest.raises(WriteError, match=r"cannot write to .*/run: File exists"):
            writer.write(step_of(number))
    (tmp_path / "run").unlink()
    writer.write(step_of(2))
    writer.close()
    assert [steps_in(path) for path in event_files(tmp_path)] == [[2]]


def test_training_continues_after_its_directory_was_deleted(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3))
    with fmapboard.watch(model, tmp_path / "run", every=1) as board:
        for number in range(4):
            with board.step(number):
                model(torch.rand(1, 3, 9, 9))
            board.flush()
            if number == 1:
                shutil.rmtree(tmp_path / "run")
    (path,) = event_files(tmp_path)
    assert steps_in(path) == [2, 3, 3]  # the last one is the verdict


def rerun_named(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the warnings say of earlier runs, from the number of their last step on."""
    found = [m.partition("holds an earlier run, up to step ")[2] for m in caplog.messages]
    caplog.clear()
    parts = [text.split(" ", 4) for text in found if text]
    return [f"{last.rstrip(':')}/{first.rstrip(',')}" for last, _, _, first, _ in parts]


def test_steps_of_an_earlier_run_are_named_before_they_vanish(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 0, 10, 20)
    assert rerun_named(caplog) == []
    writer = TensorBoardWriter(tmp_path)
    assert rerun_named(caplog) == []
    writer.write(step_of(10))
    assert rerun_named(caplog) == ["20/10"]
    writer.write(step_of(20))
    writer.close()
    write(tmp_path, 30)
    write(tmp_path, 20, start_step=20)  # discards on purpose
    assert rerun_named(caplog) == []
    write(tmp_path, 15)
    assert rerun_named(caplog) == ["20/15"]
    write(tmp_path, 16, start_step=KEEP_EARLIER)
    write(tmp_path, 17)
    assert rerun_named(caplog) == []
    write(tmp_path, 2**40)
    write(tmp_path, 0)
    assert rerun_named(caplog) == [f"{2**40}/0"]


def test_a_damaged_or_foreign_file_does_not_hide_that_steps_vanish(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, 0, 10, 20).path
    assert isinstance(path, Path)
    path.write_bytes(path.read_bytes()[:-100])  # within the record of step 20
    (tmp_path / "events.out.tfevents.0.fmapboard").write_bytes(b"no event file" * 9)
    write(tmp_path, 10)
    assert rerun_named(caplog) == ["10/10"]


def test_the_record_that_starts_a_run_is_written_with_its_first_step(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    assert [e.file_version for e in events_in(writer.path)] == ["brain.Event:2"]
    writer.write(step_of(5))
    _, start, step = events_in(writer.path)
    assert (start.session_log.status, start.step, step.step) == (SessionLog.START, 5, 5)
    writer.close()


def test_a_full_disk_leaves_no_start_without_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TensorBoardWriter(tmp_path)

    def full(*given: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "writev", full, raising=False)  # Windows has none
        with pytest.raises(WriteError):
            writer.write(step_of(5))
    assert len(events_in(writer.path)) == 1
    writer.write(step_of(6))
    writer.close()
    assert [event.step for event in events_in(writer.path)] == [0, 6, 6]


def events_in(path: Path | str) -> list[Any]:
    return list(EventFileLoader(str(path)).Load())
