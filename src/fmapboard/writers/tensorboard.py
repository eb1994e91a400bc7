"""Writers for TensorBoard: our own event file, or the user's SummaryWriter.

A step is encoded as one Summary protocol buffer. Images and histograms use the newer plugin format
(tensors with explicit data classes), which both of TensorBoard's loaders read. Scalars are stored
as ``simple_value``, like those of torch's SummaryWriter, since ``EventAccumulator.Scalars()``,
tbparse and trackers read only that.

Three measures keep the interpreter lock and the memory allocator free for training:

- Numbers are inserted as packed bytes. Inserting them one by one holds the lock for milliseconds.
- Pictures, which are nearly all of the bytes, are framed as protocol buffer fields by hand. As
  parts of messages, a PNG would be copied five times on its way to the file.
- All other values are created inside the Summary. A standalone message has its own memory arena,
  and with every ten thousandth arena that is freed, protobuf makes the C library return the
  process's free memory to the system; training would have to fault it in again.
"""

from __future__ import annotations

import socket
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar_metadata
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.text import metadata as text_metadata

from fmapboard.errors import ConfigurationError
from fmapboard.formats import tags
from fmapboard.formats.framing import field
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.records import Histogram, LoggedStep, TabRecord, TaggedPictures
from fmapboard.render import png
from fmapboard.writers import Writer
from fmapboard.writers.event_file import EventFile, has_foreign_events
from fmapboard.writers.remote import RemoteDirectory, log_directory
from fmapboard.writers.trackers import TrackerFeed, join_mlflow_run, mlflow_run

KEEP_EARLIER = 2**62
"""A ``start_step`` that adds to an earlier run in the directory and discards nothing of it."""


class TensorBoardWriter:
    """Writes an event file into a log directory.

    If the directory holds event files of another writer, the file goes into ``log_dir/fmapboard``,
    as a separate run: TensorBoard's Python loader loses data if two files in one directory grow.
    For the same reason it goes into a directory of its own, ``log_dir/fmapboard_2``, if another
    process writes to ``log_dir``, and so it does if ``prefix`` is in use there.

    Args:
        log_dir: A path, or a URL of a file system that TensorBoard's own writer supports
            (``s3://``, ``gs://``, ``hdfs://``, ``memory://``, ...). Created if it does not exist,
            and again if it is deleted.
        filename_suffix: End of the file's name, as in SummaryWriter.
        start_step: In a directory with an earlier run of fmapboard, TensorBoard discards that run's
            records from this step on. With 0, that is the first step that is written, and a
            warning names the steps that are discarded.
        prefix: That of the tags (``name=`` of ``watch``), which no other open writer of the
            directory may have; None shares the directory with all of them.

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
        prefix: str | None = None,
    ) -> None:
        directory = log_directory(log_dir)
        if has_foreign_events(directory):
            directory = directory / "fmapboard"
        self._encode = Encoder()
        self._prefix = prefix
        self._file: EventFile | None = EventFile.open_apart(
            directory, prefix, filename_suffix, start_step
        )
        directory = self._file.directory
        self._files_begun = self._file.times_begun()
        self._feed = TrackerFeed.of(str(directory))
        self.log_dir = directory
        self.path = self._file.path

    def write(self, step: LoggedStep) -> None:
        """Append the step, unbuffered: it is in the file when this returns."""
        if self._file is None:
            return
        for at, scalars in step.earlier.items():
            self.write(LoggedStep(at, step.wall_time, scalars=scalars))
        try:
            files_begun = self._file.times_begun()
            if files_begun != self._files_begun:
                self._encode = Encoder()
                self._files_begun = files_begun
                self.path = self._file.path
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
        shared = self._file
        self._file = None  # first, since a second call must not release it again
        if shared is not None:
            shared.close(self._prefix)


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
                f"writer={type(writer).__name__}: expected a "
                "torch.utils.tensorboard.SummaryWriter or an object with write, flush and close"
            )
        self._writer = writer
        self._encode = Encoder()
        self._mlflow_run = mlflow_run()

    def write(self, step: LoggedStep) -> None:
        """Queue the step in the user's SummaryWriter."""
        for at, scalars in step.earlier.items():
            self.write(LoggedStep(at, step.wall_time, scalars=scalars))
        try:
            join_mlflow_run(self._mlflow_run)
            file = self._writer._get_file_writer()
            encoded = b"".join(self._encode(step))
            summary = self._message("Summary").FromString(encoded)
            file.add_summary(summary, global_step=step.step, walltime=step.wall_time)
        except Exception:
            self._encode = Encoder()  # the lost step may have had the tags' metadata
            raise

    @property
    def log_dir(self) -> Any:
        """The directory that the user's SummaryWriter writes to, as it has it."""
        log_dir = getattr(self._writer, "log_dir", None)
        return log_dir or getattr(self._writer, "logdir", None)

    @property
    def is_closed(self) -> bool:
        """True if the user has closed it; a further step would begin another event file."""
        return getattr(self._writer, "all_writers", ()) is None

    def _message(self, kind: str) -> Any:
        """The writer's ``Event`` or ``Summary`` class; tensorboardX has its own, alike in bytes."""
        modules = [parent.__module__ for parent in type(self._writer).__mro__]
        package = "tensorboard.compat.proto"
        if any(module.startswith("tensorboardX") for module in modules):
            package = "tensorboardX.proto"
        messages = import_module(f"{package}.{kind.lower()}_pb2")
        return getattr(messages, kind)

    def flush(self) -> None:
        """Flush the user's SummaryWriter."""
        self._writer.flush()

    close = flush  # the user closes it


def as_writer(writer: Any) -> Writer:
    """The user's writer as a ``Writer``: wrapped if it is a SummaryWriter, otherwise unchanged.

    Raises:
        ConfigurationError: The object is neither.
    """
    if isinstance(writer, Writer) and not hasattr(writer, "_get_file_writer"):
        return writer
    return SummaryWriterAdapter(writer)


def default_log_dir(comment: str = "") -> Path:
    """``runs/<time>_<host><comment>``, the directory that SummaryWriter would choose."""
    now = datetime.now().strftime("%b%d_%H-%M-%S")
    return Path("runs") / f"{now}_{socket.gethostname()}{comment}"


_BLOBS = summary_pb2.DATA_CLASS_BLOB_SEQUENCE
_TENSORS = summary_pb2.DATA_CLASS_TENSOR
_EMPTY = np.zeros((1, 3))
"""One empty bucket, for values that are all not finite: the step is not missing from the series."""
_VALUE = summary_pb2.Summary.VALUE_FIELD_NUMBER
_TENSOR = summary_pb2.Summary.Value.TENSOR_FIELD_NUMBER
_STRING = tensor_pb2.TensorProto.STRING_VAL_FIELD_NUMBER


class Encoder:
    """Encodes the steps of one run; the metadata of a tag is written with its first value only.

    TensorBoard reads a tag's metadata from the first event that has it, so the description it shows
    is that of the first logged step.
    """

    def __init__(self) -> None:
        self._described: set[str] = set()

    def __call__(self, step: LoggedStep) -> list[bytes]:
        """Encode one step as one serialized Summary, returned in consecutive parts.

        A step is a single Summary, so that it is stored completely or not at all.
        """
        summary = summary_pb2.Summary()
        frames = summary_pb2.Summary()
        parts: list[bytes] = []
        for tagged in step.pictures:
            parts += self._image(frames, tagged)
        for histogram in step.histograms:
            self._histogram(summary.value.add(tag=histogram.tag), histogram)
        with np.errstate(over="ignore"):  # the norm of all parameters may exceed float32
            for tag, number in step.scalars.items():
                summary.value.add(tag=tag, simple_value=np.float32(number))
        for record in step.records:
            self._record(summary.value.add(tag=record.tag), record)
        for tag, text in step.texts.items():
            self._text(summary.value.add(tag=tag), text)
        if self._is_new(custom_scalar_metadata.CONFIG_SUMMARY_TAG):
            summary.value.append(_layout())
        return [*parts, summary.SerializeToString()]

    def _image(self, frames: summary_pb2.Summary, tagged: TaggedPictures) -> list[bytes]:
        """A Summary field in parts; ``frames`` provides the memory for small messages."""
        height, width = tagged.samples[0].pixels.shape[:2]
        sides = (str(width).encode(), str(height).encode())
        value = frames.value.add(tag=tagged.tag)
        tensor = frames.value.add().tensor
        _put_strings(tensor, sides, 2 + len(tagged.samples))
        if self._is_new(tagged.tag):
            _describe(value, image_metadata, _BLOBS, tagged.description)
        strings = list[bytes]()
        for picture in tagged.samples:
            strings += field(_STRING, png.encode(picture))
        tensors = field(_TENSOR, tensor.SerializeToString(), *strings)
        return field(_VALUE, value.SerializeToString(), *tensors)

    def _histogram(self, value: summary_pb2.Summary.Value, histogram: Histogram) -> None:
        rows = _EMPTY
        if histogram.counts.size:
            left = histogram.edges[:-1]
            right = histogram.edges[1:]
            rows = np.stack([left, right, histogram.counts], axis=1)  # [buckets, 3]
        little_endian = rows.astype("<f8", order="C")
        value.tensor.dtype = types_pb2.DT_DOUBLE
        value.tensor.tensor_content = little_endian.tobytes()
        _put_shape(value.tensor, *rows.shape)
        if self._is_new(value.tag):
            _describe(value, histogram_metadata, _TENSORS)

    def _record(self, value: summary_pb2.Summary.Value, record: TabRecord) -> None:
        _put_strings(value.tensor, record.blobs, len(record.blobs))
        if self._is_new(value.tag):
            value.metadata.plugin_data.plugin_name = PLUGIN_NAME
            value.metadata.data_class = _BLOBS

    def _text(self, value: summary_pb2.Summary.Value, text: str) -> None:
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.string_val.append(text.encode())
        _put_shape(value.tensor)  # rank 0: the dashboard draws anything else as a table
        if self._is_new(value.tag):
            _describe(value, text_metadata, _TENSORS)

    def _is_new(self, tag: str) -> bool:
        is_new = tag not in self._described
        self._described.add(tag)
        return is_new


def _describe(
    value: summary_pb2.Summary.Value, plugin: Any, data_class: Any, description: str = ""
) -> None:
    """Set the metadata by which a plugin of TensorBoard finds its series."""
    metadata = plugin.create_summary_metadata(display_name="", description=description)
    value.metadata.CopyFrom(metadata)
    value.metadata.data_class = data_class


def _put_strings(tensor: tensor_pb2.TensorProto, items: tuple[bytes, ...], length: int) -> None:
    """Set the first strings of a rank-1 tensor of the given length."""
    tensor.dtype = types_pb2.DT_STRING
    tensor.string_val.extend(items)
    _put_shape(tensor, length)


def _put_shape(tensor: tensor_pb2.TensorProto, *sides: int) -> None:
    tensor.tensor_shape.SetInParent()  # also for rank 0
    for side in sides:
        tensor.tensor_shape.dim.add(size=side)


def _layout() -> summary_pb2.Summary.Value:
    """The layout of the Custom Scalars dashboard: all gradient norms in one chart."""
    lines = layout_pb2.MultilineChartContent(tag=[tags.GRADIENT_NORM_CHART])
    chart = layout_pb2.Chart(title="all layers", multiline=lines)
    category = layout_pb2.Category(title="Gradient norms", chart=[chart])
    layout = layout_pb2.Layout(category=[category])
    serialized = layout.SerializeToString()
    return summary_pb2.Summary.Value(
        tag=custom_scalar_metadata.CONFIG_SUMMARY_TAG,
        metadata=custom_scalar_metadata.create_summary_metadata(),
        tensor=tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[serialized]),
    )
