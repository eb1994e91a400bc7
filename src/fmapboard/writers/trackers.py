"""Experiment trackers that follow torch's event files: wandb, MLflow, ClearML.

They put a class or a method of their own into `torch.utils.tensorboard.writer`. Our event files
are written without it, for its checksum in pure Python holds the interpreter lock. So where
somebody has put in something, a file is begun by the class that is there (wandb then reads the file
as it grows), and each step is shown to the methods that are there (MLflow and ClearML read what is
passed to them). Without a tracker, nothing here does anything.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from fmapboard.errors import log
from fmapboard.records import LoggedStep
from fmapboard.writers.first_format import first_format

_TORCH = "torch.utils.tensorboard.writer"
_TENSORBOARD = "tensorboard.summary.writer.event_file_writer"
_CLASS = "EventFileWriter"


def begun_for_trackers(directory: Path, suffix: str) -> Path | None:
    """The event file, closed, that a tracker's own EventFileWriter has begun; None without one.

    Its first record is written; the tracker knows the directory.

    Args:
        directory: exists.
        suffix: ends the file's name.
    """
    kind = next((k for k in map(_event_file_writer, (_TORCH, _TENSORBOARD)) if k), None)
    if kind is None:
        return None
    unique = f".{time.time_ns()}{suffix}"
    try:
        kind(str(directory), filename_suffix=unique).close()
        (path,) = directory.glob(f"*{unique}")
    except Exception as error:
        _warn(kind.__module__, error)
        return None
    return path


def _event_file_writer(module: str) -> Any:
    """The EventFileWriter of a module, if it is not TensorBoard's own."""
    kind = getattr(sys.modules.get(module), _CLASS, None)
    return kind if kind is not None and _is_replaced(kind, sys.modules[_TENSORBOARD]) else None


class TrackerFeed:
    """Shows each step to the methods that a tracker has put into torch's FileWriter."""

    def __init__(self, file_writer: Any, run: MlflowRun | None) -> None:
        self._file_writer: Any = file_writer
        self._run = run

    @staticmethod
    def of(directory: Path | str) -> TrackerFeed | None:
        """A feed for the trackers there are now; None without one. Call it in the user's thread."""
        module = sys.modules.get(_TORCH)
        kind = getattr(module, "FileWriter", None)
        if module is None or kind is None or not _is_replaced(kind, module):
            return None
        run = MlflowRun.of_this_thread()
        if run is None and _mlflow_follows(kind):
            log.warning(
                "MLflow gets nothing, since no run is active: call mlflow.start_run() before "
                "fmapboard.watch()"
            )
            return None
        file_writer = kind.__new__(kind)
        file_writer.event_writer = _NoFile(str(directory))
        return TrackerFeed(file_writer, run)

    def add(self, step: LoggedStep) -> None:
        """Show a step; an error of a tracker is logged, and ends the feed."""
        if self._file_writer is None:
            return
        try:
            if self._run is not None:
                self._run.join()
            self._file_writer.add_summary(first_format(step), step.step, step.wall_time)
        except Exception as error:
            _warn(type(self._file_writer).add_event.__globals__["__name__"], error)
            self._file_writer = None


class _NoFile:
    """Takes the place of the event file that a FileWriter writes."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def get_logdir(self) -> str:
        return self._directory

    def add_event(self, event: Any) -> None:
        """The step is in our own file."""

    flush = close = reopen = lambda self: None


class MlflowRun:
    """The user's active MLflow run, which MLflow itself does not see in other threads.

    There, each step that its autologging sees would begin a run of its own.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    @staticmethod
    def of_this_thread() -> MlflowRun | None:
        """The run that is active now, where MLflow's autologging follows torch's FileWriter."""
        kind = getattr(sys.modules.get(_TORCH), "FileWriter", None)
        if kind is None or not _mlflow_follows(kind):
            return None
        run = sys.modules["mlflow"].active_run()
        return None if run is None else MlflowRun(run.info.run_id)

    def join(self) -> None:
        """Make the run the active one of this thread, too; its status stays."""
        mlflow: Any = sys.modules["mlflow"]
        if mlflow.active_run() is None:
            status = mlflow.get_run(self._run_id).info.status
            mlflow.start_run(run_id=self._run_id, log_system_metrics=False)
            if status != "RUNNING":
                mlflow.MlflowClient().update_run(self._run_id, status=status)


def _mlflow_follows(kind: type) -> bool:
    names = (getattr(kind, name).__globals__["__name__"] for name in ("add_event", "add_summary"))
    return "mlflow" in sys.modules and any(name.split(".")[0] == "mlflow" for name in names)


def _is_replaced(kind: type, home: ModuleType) -> bool:
    """True if a class, or a method through which events pass, is not the one of its module."""
    methods = [getattr(kind, name, None) for name in ("__init__", "add_event", "add_summary")]
    return any(getattr(m, "__globals__", None) is not vars(home) for m in methods if m is not None)


def _warn(tracker: str, error: Exception) -> None:
    log.warning(
        "an experiment tracker (%s) gets no feature maps (%s: %s); the event file is complete",
        *(tracker, type(error).__name__, error),
    )
