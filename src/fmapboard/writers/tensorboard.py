"""Writers for TensorBoard: an event file of our own, or the user's SummaryWriter."""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path
from typing import Any

from tensorboard.compat.proto import summary_pb2

from fmapboard.errors import ConfigurationError
from fmapboard.records import LoggedStep
from fmapboard.writers import Writer
from fmapboard.writers.encoder import Encoder
from fmapboard.writers.event_file import EventFile, has_foreign_events
from fmapboard.writers.log_dirs import log_directory
from fmapboard.writers.remote import RemoteDirectory
from fmapboard.writers.trackers import MlflowRun, TrackerFeed


class TensorBoardWriter:
    """Writes an event file into ``log_dir``.

    Where another writer's event files lie in that directory, ours goes into ``log_dir/fmapboard``,
    a run of its own: two growing files in one directory lose data in TensorBoard's Python loader.

    Args:
        log_dir: a path, or a URL of a file system that TensorBoard's own writer knows
            (``s3://``, ``gs://``, ``hdfs://``, ``memory://``, …); is made where it is missing, and
            again where it vanishes.
        filename_suffix: ends the file's name, as in SummaryWriter.
        start_step: in a directory that already holds a run of ours, TensorBoard forgets what that
            run logged from this step on.

    Raises:
        WriteError: the directory cannot be written to.
        ConfigurationError, MissingExtra: a URL of an unknown kind, or one whose package is missing.
    """

    def __init__(
        self,
        log_dir: str | Path | RemoteDirectory,
        *,
        filename_suffix: str = "",
        start_step: int = 0,
    ) -> None:
        directory = log_directory(log_dir)
        if has_foreign_events(directory):
            directory = directory / "fmapboard"
        self._encode = Encoder()
        self._file: EventFile | None = EventFile.open(directory, filename_suffix, start_step)
        self._begun = self._file.times_begun()
        self._feed = TrackerFeed.of(str(directory))
        self.log_dir = directory
        self.path = self._file.path

    def write(self, step: LoggedStep) -> None:
        """Append the step; it is on disk, as far as the system is concerned, on return."""
        if self._file is None:
            return
        try:
            begun = self._file.times_begun()
            if begun != self._begun:
                self._encode, self._begun, self.path = Encoder(), begun, self._file.path
            self._file.add(self._encode(step), step.step, step.wall_time)
        except Exception:
            self._encode = Encoder()  # what was lost may have described the tags
            raise
        if self._feed is not None:
            self._feed.add(step)

    def flush(self) -> None:
        """Nothing waits: the file is not buffered."""

    def close(self) -> None:
        """Let go of the file."""
        shared, self._file = self._file, None
        if shared is not None:
            shared.close()


class SummaryWriterAdapter:
    """Writes through the user's own SummaryWriter, of `torch.utils.tensorboard` or tensorboardX.

    Its queue and its checksum, in pure Python, are its own; it stays open when we close.

    Raises:
        ConfigurationError: the object is no SummaryWriter.
    """

    def __init__(self, writer: Any) -> None:
        if not callable(getattr(writer, "_get_file_writer", None)):
            raise ConfigurationError(
                f"writer={type(writer).__name__}: expected a torch.utils.tensorboard.SummaryWriter "
                "or an object with write, flush and close"
            )
        self._writer = writer
        self._encode = Encoder()
        self._mlflow_run = MlflowRun.of_this_thread()

    def write(self, step: LoggedStep) -> None:
        """Queue the step in the user's writer."""
        try:
            if self._mlflow_run is not None:
                self._mlflow_run.join()
            summary = self._kind().FromString(b"".join(self._encode(step)))
            self._writer._get_file_writer().add_summary(
                summary, global_step=step.step, walltime=step.wall_time
            )
        except Exception:
            self._encode = Encoder()  # what was lost may have described the tags
            raise

    def _kind(self) -> Any:
        """The Summary class of the writer: tensorboardX has one of its own, for the same bytes."""
        kinds = type(self._writer).__mro__
        if not any(kind.__module__.startswith("tensorboardX") for kind in kinds):
            return summary_pb2.Summary
        from tensorboardX.proto import summary_pb2 as own

        return own.Summary

    def flush(self) -> None:
        """Flush the user's writer."""
        self._writer.flush()

    def close(self) -> None:
        """Flush; closing is the user's."""
        self._writer.flush()


def as_writer(writer: Any) -> Writer:
    """The user's own writer as a `Writer`: a SummaryWriter, or an object that is one already.

    Raises:
        ConfigurationError: it is neither.
    """
    is_summary_writer = callable(getattr(writer, "_get_file_writer", None))
    if isinstance(writer, Writer) and not is_summary_writer:
        return writer
    return SummaryWriterAdapter(writer)


def default_log_dir(comment: str = "") -> Path:
    """``runs/<time>_<host><comment>``, as SummaryWriter names a run."""
    now = datetime.now().strftime("%b%d_%H-%M-%S")
    return Path("runs") / f"{now}_{socket.gethostname()}{comment}"
