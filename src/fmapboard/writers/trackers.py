"""Support experiment trackers that follow torch's event files: wandb, MLflow, ClearML.

These trackers replace classes or methods in ``torch.utils.tensorboard.writer``. Our event files
bypass that module, since its checksum in pure Python holds the interpreter lock. So if a tracker
has replaced something there, the file is begun by the replaced class (wandb then reads the file as
it grows), and each step is passed to the replaced methods (MLflow and ClearML read their
arguments), in TensorBoard's original Summary format: trackers that intercept summaries ignore
pictures and histograms in the newer plugin format of our files. Without a tracker nothing here has
an effect.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2

from fmapboard.errors import error_text, log
from fmapboard.interrupts import raise_interrupt
from fmapboard.records import Histogram, LoggedStep, Picture, TaggedPictures
from fmapboard.render import png

_GREY = 1
_RGB = 3
"""Color spaces of pictures in the original format."""


def first_format(step: LoggedStep) -> summary_pb2.Summary:
    """A step in TensorBoard's original Summary format: pictures, histograms and scalars.

    Samples after the first have their index in the tag.
    """
    values: list[summary_pb2.Summary.Value] = []
    for tagged in step.pictures:
        values += _images(tagged)
    values += [_histogram(histogram) for histogram in step.histograms if histogram.counts.size]
    with np.errstate(over="ignore"):  # a norm may exceed float32
        values += [
            summary_pb2.Summary.Value(tag=tag, simple_value=np.float32(number))
            for tag, number in step.scalars.items()
        ]
    return summary_pb2.Summary(value=values)


def _images(tagged: TaggedPictures) -> Iterator[summary_pb2.Summary.Value]:
    for number, picture in enumerate(tagged.samples):
        if picture.palette is not None:  # ClearML would show the indices
            picture = Picture(picture.colours, tile=picture.tile)
        height, width = picture.pixels.shape[:2]
        image = summary_pb2.Summary.Image(
            height=height,
            width=width,
            colorspace=_GREY if picture.pixels.ndim == 2 else _RGB,
            encoded_image_string=png.encode(picture),
        )
        tag = f"{tagged.tag}/sample_{number}" if number else tagged.tag
        yield summary_pb2.Summary.Value(tag=tag, image=image)


def _histogram(histogram: Histogram) -> summary_pb2.Summary.Value:
    """Sums are approximated from the centers of the buckets."""
    edges = histogram.edges
    counts = histogram.counts
    centers = (edges[:-1] + edges[1:]) / 2
    histo = summary_pb2.HistogramProto(
        min=edges[0],
        max=edges[-1],
        num=counts.sum(),
        sum=centers @ counts,
        sum_squares=centers**2 @ counts,
        bucket_limit=edges[1:],
        bucket=counts,
    )
    return summary_pb2.Summary.Value(tag=histogram.tag, histo=histo)


_TORCH = "torch.utils.tensorboard.writer"
_TENSORBOARD = "tensorboard.summary.writer.event_file_writer"


def begun_for_trackers(directory: Path, suffix: str) -> Path | None:
    """Begin an event file with a tracker's EventFileWriter, and close it.

    The file contains its first record, and the tracker knows the directory.

    Args:
        directory: An existing directory.
        suffix: End of the file's name.

    Returns:
        The file's path; None if there is no tracker, or if it fails.
    """
    kind = _event_file_writer(_TORCH) or _event_file_writer(_TENSORBOARD)
    if kind is None:
        return None
    unique = f".{time.time_ns()}{suffix}"
    try:
        kind(str(directory), filename_suffix=unique).close()
        (path,) = directory.glob(f"*{unique}")
    except Exception as error:
        raise_interrupt(error)
        _warn(kind.__module__, error)
        return None
    return path


def _event_file_writer(module: str) -> Any:
    """The EventFileWriter of a module, if it is not TensorBoard's own."""
    kind = getattr(sys.modules.get(module), "EventFileWriter", None)
    if kind is None or not _is_replaced(kind, sys.modules[_TENSORBOARD]):
        return None
    return kind


def wandb_follows() -> bool:
    """True if W&B copies event files to its run (``sync_tensorboard=True``)."""
    return bool(getattr(sys.modules.get("wandb"), "patched", {}).get("tensorboard"))


@dataclass(slots=True)
class TrackerFeed:
    """Passes each step to the methods that a tracker has replaced in torch's FileWriter."""

    _file_writer: Any
    _mlflow_run: str | None

    @staticmethod
    def of(directory: Path | str) -> TrackerFeed | None:
        """A feed for the current trackers, or None without any; call it in the user's thread."""
        module = sys.modules.get(_TORCH)
        kind = getattr(module, "FileWriter", None)
        if module is None or kind is None or not _is_replaced(kind, module):
            return None
        run = mlflow_run()
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
        """Pass a step on; an error in a tracker is logged and ends the feed."""
        if self._file_writer is None:
            return
        try:
            join_mlflow_run(self._mlflow_run)
            self._file_writer.add_summary(first_format(step), step.step, step.wall_time)
        except Exception as error:
            _warn(type(self._file_writer).add_event.__globals__["__name__"], error)
            self._file_writer = None


class _NoFile:
    """Replaces the event file of a FileWriter."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def get_logdir(self) -> str:
        return self._directory

    def add_event(self, event: Any) -> None:
        """Do nothing: the step is in our own file."""

    flush = close = reopen = lambda self: None


def mlflow_run() -> str | None:
    """The id of this thread's active run, if MLflow's autologging follows torch's FileWriter.

    In other threads MLflow does not see it, and its autologging would start a new run.
    """
    kind = getattr(sys.modules.get(_TORCH), "FileWriter", None)
    if kind is None or not _mlflow_follows(kind):
        return None
    run = sys.modules["mlflow"].active_run()
    return None if run is None else run.info.run_id


def join_mlflow_run(run_id: str | None) -> None:
    """Make a run active in this thread too, without changing its status; None for no run."""
    mlflow: Any = sys.modules.get("mlflow")
    if run_id is not None and mlflow.active_run() is None:
        status = mlflow.get_run(run_id).info.status
        mlflow.start_run(run_id=run_id, log_system_metrics=False)
        if status != "RUNNING":
            mlflow.MlflowClient().update_run(run_id, status=status)


def _mlflow_follows(kind: type) -> bool:
    if "mlflow" not in sys.modules:
        return False
    methods = [getattr(kind, name) for name in ("add_event", "add_summary")]
    modules = [method.__globals__["__name__"] for method in methods]
    return any(module.split(".")[0] == "mlflow" for module in modules)


def _is_replaced(kind: type, home: ModuleType) -> bool:
    """True if a class, or a method that events pass through, is not that of its module."""
    for name in ("__init__", "add_event", "add_summary"):
        method = getattr(kind, name, None)
        if method is not None and getattr(method, "__globals__", None) is not vars(home):
            return True
    return False


def _warn(tracker: str, error: Exception) -> None:
    log.warning(
        "an experiment tracker (%s) receives no feature maps (%s); the event file is complete. "
        "To have them in the tracker, log that file as an artifact at the end",
        tracker,
        error_text(error),
    )
