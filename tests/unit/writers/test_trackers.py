"""Trackers that follow torch's event files see ours; each fake patches what its library does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from event_files import event_files, step_of, steps_in, write
from tensorboard.compat.proto import event_pb2, summary_pb2
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard import writer as torchs
from writer_cases import decoded, rgb_of
from writer_cases import step_of as pictures_of

from fmapboard.records import LoggedStep
from fmapboard.writers.tensorboard import SummaryWriterAdapter, TensorBoardWriter
from fmapboard.writers.trackers import TrackerFeed, begun_for_trackers


@pytest.fixture
def notified(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """What wandb is notified of: directories, with the event files in them at that moment.

    `wandb.tensorboard.patch` puts a subclass of EventFileWriter into torch's module.
    """
    notified: list[tuple[str, list[str]]] = []

    class TBXEventFileWriter(torchs.EventFileWriter):  # type: ignore[misc]  # no types
        def __init__(self, logdir: str, *args: Any, **kwargs: Any) -> None:
            super().__init__(logdir, *args, **kwargs)
            notified.append((logdir, [path.name for path in event_files(Path(logdir))]))

    monkeypatch.setattr(torchs, "EventFileWriter", TBXEventFileWriter)
    return notified


def test_wandb_is_notified_of_the_directory_and_only_of_our_file(
    notified: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    path = write(tmp_path / "run", 0, 1).path
    assert event_files(tmp_path) == [path]
    assert notified == [(str(tmp_path / "run"), [path.name])]
    assert steps_in(path) == [0, 1]
    assert path.name.endswith(".fmapboard")
    again = write(tmp_path / "run", 2, start_step=2, filename_suffix=".more").path
    assert again.parent == path.parent, "our own files are not foreign"
    assert again.name.endswith(".fmapboard.more")


def test_two_loggers_with_one_directory_are_one_file_for_wandb(
    notified: list[tuple[str, list[str]]], tmp_path: Path
) -> None:
    first, second = TensorBoardWriter(tmp_path), TensorBoardWriter(tmp_path)
    first.close()
    second.close()
    assert len(notified) == len(event_files(tmp_path)) == 1


def test_a_failing_tracker_loses_only_its_own_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(torchs.EventFileWriter):  # type: ignore[misc]  # no types
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise RuntimeError("no network")

    def add_event(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("no server")

    monkeypatch.setattr(torchs, "EventFileWriter", Broken)
    monkeypatch.setattr(torchs.FileWriter, "add_event", add_event)
    path = write(tmp_path, 0, 1).path
    assert steps_in(path) == [0, 1]
    assert [record.getMessage() for record in caplog.records] == [
        f"fmapboard: an experiment tracker ({__name__}) receives no feature maps "
        f"(RuntimeError: {why}); the event file is complete. To have them in the tracker, log that "
        "file as an artifact at the end"
        for why in ("no network", "no server")
    ]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Log directory and event of what ClearML sees: it replaces FileWriter.add_event."""
    seen: list[tuple[str, Any]] = []
    original = torchs.FileWriter.add_event

    def add_event(self: Any, event: Any, step: Any = None, walltime: Any = None) -> Any:
        copy = event_pb2.Event.FromString(event.SerializeToString())
        copy.step, copy.wall_time = step, walltime
        seen.append((self.get_logdir(), copy))
        return original(self, event, step, walltime)

    monkeypatch.setattr(torchs.FileWriter, "add_event", add_event)
    return seen


def test_clearml_sees_every_picture_histogram_and_scalar_in_the_format_that_it_reads(
    events: list[tuple[str, Any]], tmp_path: Path
) -> None:
    writer = TensorBoardWriter(tmp_path)
    for number in (0, 7):
        writer.write(pictures_of(number))
    writer.close()
    assert event_files(tmp_path) == [writer.path]
    assert steps_in(Path(writer.path)) == [0, 7]
    assert [(where, e.step, e.wall_time) for where, e in events] == [
        (str(tmp_path), 0, 1000.0), (str(tmp_path), 7, 1007.0),
    ]  # fmt: skip
    values = {value.tag: value for value in events[1][1].summary.value}
    expected = rgb_of(pictures_of(7))
    expected["feature_maps_4x3x1x1/a.b/sample_1"] = expected["feature_maps_4x3x1x1/a.b"][1:]
    for tag, (picture, *_) in expected.items():
        image = values.pop(tag).image
        np.testing.assert_array_equal(decoded(image.encoded_image_string), picture)
        assert b"PLTE" not in image.encoded_image_string, "ClearML shows indices"
        assert (image.height, image.width) == picture.shape[:2]
    histo = values.pop("activations/a.b").histo
    assert (histo.min, histo.max, histo.num, histo.sum) == (0.0, 1.0, 5.0, 2.5)
    assert (list(histo.bucket_limit), list(histo.bucket)) == ([1.0], [5.0])
    assert values.pop("gradient_norm/total").simple_value == 2.5
    assert not values


def test_without_a_tracker_nothing_is_opened_or_fed_for_one(tmp_path: Path) -> None:
    assert torchs.FileWriter is not None
    assert begun_for_trackers(tmp_path, ".fmapboard") is None
    assert TrackerFeed.of(tmp_path) is None
    assert event_files(tmp_path) == []


class Mlflow(ModuleType):
    """MLflow's active runs, each thread's its own, and the hook of its autologging."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.local = threading.local()
        self.logged: list[tuple[str, int, float]] = []
        self.statuses: dict[str, str] = {}

    def active_run(self) -> Any:
        return getattr(self.local, "run", None)

    def start_run(self, run_id: str = "stray", log_system_metrics: bool | None = None) -> Any:
        self.local.run = SimpleNamespace(info=SimpleNamespace(run_id=run_id))
        self.statuses[run_id] = "RUNNING"

    def end_run(self) -> None:
        self.statuses[self.local.run.info.run_id] = "FINISHED"
        del self.local.run

    def get_run(self, run_id: str) -> Any:
        return SimpleNamespace(info=SimpleNamespace(status=self.statuses[run_id]))

    def MlflowClient(self) -> Any:
        return SimpleNamespace(update_run=lambda run, status: self.statuses.update({run: status}))


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Mlflow:
    """MLflow with autologging on: FileWriter's methods are those of a module of its own."""
    mlflow = Mlflow()
    hook = """
def add_event(self, event, step=None, walltime=None):
    managed = mlflow.active_run() is None
    if managed:
        mlflow.start_run()
    run = mlflow.active_run().info.run_id
    for value in event.summary.value:
        if value.HasField("simple_value"):
            mlflow.logged.append((run, step, value.simple_value))
    original(self, event, step, walltime)
    if managed:
        mlflow.end_run()
"""
    space = {
        "__name__": "mlflow.utils.autologging_utils.safety",
        "mlflow": mlflow,
        "original": torchs.FileWriter.add_event,
    }
    exec(hook, space)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    monkeypatch.setattr(torchs.FileWriter, "add_event", space["add_event"])
    return mlflow


def in_a_thread(act: Callable[[], None]) -> None:
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


@pytest.mark.parametrize("given", ["log_dir", "writer"])
def test_mlflow_gets_scalars_in_the_users_run_although_another_thread_writes(
    given: str, mlflow: Mlflow, tmp_path: Path
) -> None:
    mlflow.start_run("mine")
    users = SummaryWriter(str(tmp_path)) if given == "writer" else None
    writer = TensorBoardWriter(tmp_path) if users is None else SummaryWriterAdapter(users)
    in_a_thread(lambda: writer.write(step_of(0)))
    in_a_thread(lambda: writer.write(step_of(10)))
    mlflow.end_run()
    in_a_thread(lambda: writer.write(step_of(20)))
    writer.close()
    if users is not None:
        users.close()
    assert mlflow.logged == [("mine", 0, 0.0), ("mine", 10, 5.0), ("mine", 20, 10.0)]
    assert mlflow.statuses == {"mine": "FINISHED"}


def test_without_an_active_run_mlflow_starts_none_for_us(
    mlflow: Mlflow, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert steps_in(write(tmp_path, 0).path) == [0]
    assert (mlflow.logged, mlflow.statuses) == ([], {})
    (record,) = caplog.records
    assert record.getMessage() == (
        "fmapboard: MLflow gets nothing, since no run is active: call mlflow.start_run() before "
        "fmapboard.watch()"
    )


def test_an_empty_step_is_an_empty_summary(events: list[tuple[str, Any]], tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    writer.write(LoggedStep(3, 1.0))
    writer.close()
    ((_, event),) = events
    assert (event.step, event.summary) == (3, summary_pb2.Summary())
