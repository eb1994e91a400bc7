"""Encode a logged step as a TensorBoard Summary protocol buffer.

Images and histograms use the newer plugin format (tensors with explicit data classes), which both
of TensorBoard's loaders read. Scalars are stored as ``simple_value``, like those of torch's
SummaryWriter, since ``EventAccumulator.Scalars()``, tbparse and trackers read only that.

Three measures keep the interpreter lock and the memory allocator free for training:

- Numbers are inserted as packed bytes. Inserting them one by one holds the lock for milliseconds.
- Pictures, which are nearly all of the bytes, are framed as protocol buffer fields by hand. As
  parts of messages, a PNG would be copied five times on its way to the file.
- All other values are created inside the Summary. A standalone message has its own memory arena,
  and with every ten thousandth arena that is freed, protobuf makes the C library return the
  process's free memory to the system; training would have to fault it in again.

After a histogram's first steps, everything but its numbers is constant and is reused as bytes.
"""

from __future__ import annotations

import struct

import numpy as np
from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import metadata as custom_scalar_metadata
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.text import metadata as text_metadata

from fmapboard.formats import tags
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.records import Floats, Histogram, LoggedStep, TabRecord, TaggedPictures
from fmapboard.render import png

_EMPTY = np.zeros((1, 3))
_VALUE = summary_pb2.Summary.VALUE_FIELD_NUMBER
_TAG = summary_pb2.Summary.Value.TAG_FIELD_NUMBER
_TENSOR = summary_pb2.Summary.Value.TENSOR_FIELD_NUMBER
_SIMPLE_VALUE = bytes([summary_pb2.Summary.Value.SIMPLE_VALUE_FIELD_NUMBER << 3 | 5])
"""Field key that precedes the four bytes of a float32 (wire type 5)."""
_STRING = tensor_pb2.TensorProto.STRING_VAL_FIELD_NUMBER


class Encoder:
    """Encodes the steps of one run; the metadata of a tag is written with its first value only.

    TensorBoard reads a tag's metadata from the first event that has it, so the description it shows
    is that of the first logged step.
    """

    def __init__(self) -> None:
        self._described: set[str] = set()
        self._frames: dict[tuple[str, int], bytes] = {}

    def __call__(self, step: LoggedStep) -> list[bytes]:
        """Encode one step as one serialized Summary, returned in consecutive parts.

        A step is a single Summary, so that it is stored completely or not at all.
        """
        frames, summary = summary_pb2.Summary(), summary_pb2.Summary()
        parts = [part for tagged in step.pictures for part in self._image(frames, tagged)]
        numbers = [self._histogram(summary, histogram) for histogram in step.histograms]
        numbers += [_scalar(tag, number) for tag, number in step.scalars.items()]
        for record in step.records:
            self._record(summary.value.add(tag=record.tag), record)
        for tag, text in step.texts.items():
            self._text(summary.value.add(tag=tag), text)
        if self._is_new(custom_scalar_metadata.CONFIG_SUMMARY_TAG):
            summary.value.append(_layout())
        return [*parts, b"".join(numbers), summary.SerializeToString()]

    def _image(self, frames: summary_pb2.Summary, tagged: TaggedPictures) -> list[bytes]:
        """A Summary field in parts; ``frames`` provides the memory for small messages."""
        pngs = [png.encode(picture) for picture in tagged.samples]
        height, width = tagged.samples[0].pixels.shape[:2]
        value, tensor = frames.value.add(tag=tagged.tag), frames.value.add().tensor
        _put_strings(tensor, (str(width).encode(), str(height).encode()), 2 + len(pngs))
        if self._is_new(tagged.tag):
            value.metadata.CopyFrom(
                image_metadata.create_summary_metadata(
                    display_name="", description=tagged.description
                )
            )
            value.metadata.data_class = summary_pb2.DATA_CLASS_BLOB_SEQUENCE
        strings = [part for data in pngs for part in field(_STRING, data)]
        tensors = field(_TENSOR, tensor.SerializeToString(), *strings)
        return field(_VALUE, value.SerializeToString(), *tensors)

    def _histogram(self, summary: summary_pb2.Summary, histogram: Histogram) -> bytes:
        edges, counts = histogram.edges, histogram.counts
        # Without finite values: one empty bucket, so that the step is not missing from the series.
        rows = np.stack([edges[:-1], edges[1:], counts], axis=1) if counts.size else _EMPTY
        return self._numbers(summary, histogram.tag, rows)

    def _numbers(self, summary: summary_pb2.Summary, tag: str, rows: Floats) -> bytes:
        """A table of numbers as a Summary field; empty if it was added to ``summary`` instead."""
        content = rows.astype("<f8", order="C").tobytes()
        frame = self._frames.get((tag, len(content)))
        if frame is not None:
            return frame + content
        value = summary.value.add(tag=tag)
        value.tensor.dtype = types_pb2.DT_DOUBLE
        value.tensor.tensor_content = content
        _put_shape(value.tensor, *rows.shape)
        if self._is_new(tag):
            value.metadata.data_class = summary_pb2.DATA_CLASS_TENSOR
            value.metadata.MergeFrom(
                histogram_metadata.create_summary_metadata(display_name="", description="")
            )
            return b""
        whole = b"".join(field(_VALUE, value.SerializeToString()))
        if whole.endswith(content):  # always, since fields are in numerical order
            self._frames[tag, len(content)] = whole[: -len(content)]
        return b""

    def _record(self, value: summary_pb2.Summary.Value, record: TabRecord) -> None:
        _put_strings(value.tensor, record.blobs, len(record.blobs))
        if self._is_new(value.tag):
            value.metadata.plugin_data.plugin_name = PLUGIN_NAME
            value.metadata.data_class = summary_pb2.DATA_CLASS_BLOB_SEQUENCE

    def _text(self, value: summary_pb2.Summary.Value, text: str) -> None:
        value.tensor.dtype = types_pb2.DT_STRING
        value.tensor.string_val.append(text.encode())
        _put_shape(value.tensor)  # rank 0: the dashboard draws anything else as a table
        if self._is_new(value.tag):
            value.metadata.CopyFrom(
                text_metadata.create_summary_metadata(display_name="", description="")
            )
            value.metadata.data_class = summary_pb2.DATA_CLASS_TENSOR

    def _is_new(self, tag: str) -> bool:
        new = tag not in self._described
        self._described.add(tag)
        return new


def _scalar(tag: str, number: float) -> bytes:
    """A scalar as a Summary field; it needs no metadata."""
    with np.errstate(over="ignore"):  # the norm of all parameters may exceed float32
        value = np.float32(number)
    return b"".join(
        field(_VALUE, *field(_TAG, tag.encode()), _SIMPLE_VALUE, struct.pack("<f", value))
    )


def field(number: int, *content: bytes) -> list[bytes]:
    """A length-delimited protocol buffer field with the given content, in parts.

    The fields of a message may be in any order, and a repeated field may occur several times.
    """
    length_delimited = 2
    return [_varint(number << 3 | length_delimited) + _varint(sum(map(len, content))), *content]


def _varint(number: int) -> bytes:
    """Base-128 varint: seven bits per byte, lowest first; all but the last have bit 8 set."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


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
    layout = layout_pb2.Layout(
        category=[
            layout_pb2.Category(
                title=title,
                chart=[
                    layout_pb2.Chart(
                        title=chart, multiline=layout_pb2.MultilineChartContent(tag=[pattern])
                    )
                    for chart, pattern in charts.items()
                ],
            )
            for title, charts in tags.GRADIENT_NORM_CHART.items()
        ]
    )
    return summary_pb2.Summary.Value(
        tag=custom_scalar_metadata.CONFIG_SUMMARY_TAG,
        metadata=custom_scalar_metadata.create_summary_metadata(),
        tensor=tensor_pb2.TensorProto(
            dtype=types_pb2.DT_STRING, string_val=[layout.SerializeToString()]
        ),
    )
