"""Writers for TensorBoard: our own event file, or the user's SummaryWriter."""

from __future__ import annotations

import socket
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from fmapboard.errors import ConfigurationError
from fmapboard.records import LoggedStep
from fmapboard.writers import Writer
from fmapboard.writers.encoder import Encoder
from fmapboard.writers.event_file import EventFile, graph_def, has_foreign_events
from fmapboard.writers.remote import RemoteDirectory, log_directory
from fmapboard.writers.trackers import MlflowRun, TrackerFeed

KEEP_EARLIER = 2**62
"""A ``start_step`` that adds to an earlier run in the directory and discards nothing of it."""


class TensorBoardWriter:
    """Writes an event file into a log directory.

    If the directory holds event files of another writer, the file goes into ``log_dir/fmapboard``,
    as a separate run: TensorBoard's Python loader loses data if two files in one directory grow.

    Args:
        log_dir: A path, or a URL of a file system that TensorBoard's own writer supports
            (``s3://``, ``gs://``, ``hdfs://``, ``memory://``, ...). Created if it does not exist,
            and again if it is deleted.
        filename_suffix: End of the file's name, as in SummaryWriter.
        start_step: In a directory with an earlier run of fmapboard, TensorBoard discards that run's
            records from this step on. With 0, that is the first step that is written, and a
            warning names the steps that are discarded.

    Attributes:
        log_dir: The directory that is written to.
        path: The event file; for a remote directory, the URL of the object being written.

    Raises:
        WriteError: The directory cannot be written to.
        ConfigurationError: The URL scheme is unknown.
        MissingExtra: A package that the URL scheme needs is not installed.
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
        self._files_begun = self._file.times_begun()
        self._feed = TrackerFeed.of(str(directory))
        self.log_dir = directory
        self.path = self._file.path

    def write(self, step: LoggedStep) -> None:
        """Append the step, unbuffered: it is in the file when this returns."""
        if self._file is None:
            return
        try:
            files_begun = self._file.times_begun()
            if files_begun != self._files_begun:
                self._encode, self._files_begun, self.path = Encoder(), files_begun, self._file.path
            if step.graph is not None:
                self._file.add_graph(graph_def(step.graph), step.step, step.wall_time)
            self._file.add(self._encode(step), step.step, step.wall_time)
        except Exception:
            self._encode = Encoder()  # the lost step may have had the tags' metadata
            raise
        if self._feed is not None:
            self._feed.add(step)

    def flush(self) -> None:
        """Do nothing: the file is not buffered."""

    def close(self) -> None:
        """Release the file."""
        shared, self._file = self._file, None
        if shared is not None:
            shared.close()


class SummaryWriterAdapter:
    """Writes through the user's SummaryWriter, of ``torch.utils.tensorboard`` or tensorboardX.

    The SummaryWriter uses its own queue and its slow checksum in pure Python. It is not closed by
    ``close``.

    Raises:
        ConfigurationError: The object is not a SummaryWriter.
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
        """Queue the step in the user's SummaryWriter."""
        try:
            if self._mlflow_run is not None:
                self._mlflow_run.join()
            file = self._writer._get_file_writer()
            if step.graph is not None:
                event = self._message("Event")(graph_def=graph_def(step.graph))
                file.add_event(event, step=step.step, walltime=step.wall_time)
            summary = self._message("Summary").FromString(b"".join(self._encode(step)))
            file.add_summary(summary, global_step=step.step, walltime=step.wall_time)
        except Exception:
            self._encode = Encoder()  # the lost step may have had the tags' metadata
            raise

    @property
    def log_dir(self) -> Any:
        """The directory that the user's SummaryWriter writes to, as it has it."""
        return getattr(self._writer, "log_dir", None) or getattr(self._writer, "logdir", None)

    def _message(self, kind: str) -> Any:
        """The writer's ``Event`` or ``Summary`` class; tensorboardX has its own, alike in bytes."""
        kinds = type(self._writer).__mro__
        own = any(each.__module__.startswith("tensorboardX") for each in kinds)
        package = "tensorboardX.proto" if own else "tensorboard.compat.proto"
        return getattr(import_module(f"{package}.{kind.lower()}_pb2"), kind)

    def flush(self) -> None:
        """Flush the user's SummaryWriter."""
        self._writer.flush()

    def close(self) -> None:
        """Flush the user's SummaryWriter, which the user closes."""
        self._writer.flush()


def as_writer(writer: Any) -> Writer:
    """The user's writer as a ``Writer``: wrapped if it is a SummaryWriter, otherwise unchanged.

    Raises:
        ConfigurationError: The object is neither.
    """
    is_summary_writer = callable(getattr(writer, "_get_file_writer", None))
    if isinstance(writer, Writer) and not is_summary_writer:
        return writer
    return SummaryWriterAdapter(writer)


def default_log_dir(comment: str = "") -> Path:
    """``runs/<time>_<host><comment>``, the directory that SummaryWriter would choose."""
    now = datetime.now().strftime("%b%d_%H-%M-%S")
    return Path("runs") / f"{now}_{socket.gethostname()}{comment}"
