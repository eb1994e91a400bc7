"""Steps as TensorBoard's protocol buffers, parsed back by TensorBoard's own classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.util.tensor_util import make_ndarray, make_tensor_proto
from torch.utils.tensorboard.summary import scalar

from fmapboard.formats.framing import field
from fmapboard.records import Histogram, LoggedStep, Picture, TabRecord, TaggedPictures
from fmapboard.render import png
from fmapboard.writers import tensorboard
from fmapboard.writers.event_file import EventFile
from fmapboard.writers.tensorboard import Encoder


def step_of(*pictures: TaggedPictures) -> LoggedStep:
    return LoggedStep(3, 1000.5, pictures=pictures, scalars={"gradient_norm/total": 2.5})


def noise(height: int, width: int) -> Picture:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width), np.uint8)
    return Picture(pixels, tile=(height, width))


def picture_of(*samples: Picture, tag: str = "feature_maps_1x1x1x1/conv") -> TaggedPictures:
    return TaggedPictures(tag, "feature_maps", samples, description="maps")


def parsed(parts: list[bytes]) -> summary_pb2.Summary:
    return summary_pb2.Summary.FromString(b"".join(parts))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21])
def test_a_field_of_any_length_is_encoded_as_protocol_buffers_do(size: int) -> None:
    content = bytes(size)
    written = b"".join(field(8, content))
    assert written == tensor_pb2.TensorProto(string_val=[content]).SerializeToString()


def test_a_field_with_a_two_byte_key_or_with_many_parts_is_encoded_correctly() -> None:
    parts = [bytes([n]) * n for n in (0, 70, 200)]
    number = tensor_pb2.TensorProto.UINT32_VAL_FIELD_NUMBER  # 16: its key has two bytes
    whole = tensor_pb2.TensorProto.FromString(b"".join(field(number, *parts[:2])))
    assert list(whole.uint32_val) == [70] * 70
    whole = tensor_pb2.TensorProto.FromString(b"".join(field(8, *parts)))
    assert list(whole.string_val) == [b"".join(parts)]


@pytest.mark.parametrize("side", [1, 8, 130, 1500])
def test_a_picture_parses_as_the_image_plugin_writes_it(side: int) -> None:
    samples = noise(side, side + 1), noise(2, 2)
    value = parsed(Encoder()(step_of(picture_of(*samples)))).value[0]
    metadata = image_metadata.create_summary_metadata(display_name="", description="maps")
    metadata.data_class = summary_pb2.DATA_CLASS_BLOB_SEQUENCE
    strings = [str(side + 1).encode(), str(side).encode(), *map(png.encode, samples)]
    assert value == summary_pb2.Summary.Value(
        tag="feature_maps_1x1x1x1/conv",
        metadata=metadata,
        tensor={
            "dtype": types_pb2.DT_STRING,
            "tensor_shape": {"dim": [{"size": 4}]},
            "string_val": strings,
        },
    )


def test_a_tags_metadata_is_written_only_with_its_first_value() -> None:
    encode = Encoder()
    old, new = picture_of(noise(4, 4)), picture_of(noise(4, 4), tag="feature_maps_1x1x1x1/late")
    first = parsed(encode(step_of(old)))
    second = parsed(encode(step_of(old, new)))
    assert [value.HasField("metadata") for value in first.value] == [True, False, True]
    assert [value.HasField("metadata") for value in second.value] == [False, True, False]
    assert [value.tag for value in second.value] == [old.tag, new.tag, "gradient_norm/total"]


def test_an_event_written_in_parts_is_one_event_with_valid_checksums(tmp_path: Path) -> None:
    step = step_of(picture_of(noise(300, 300)), picture_of(noise(3, 3), tag="other"))
    parts = Encoder()(step)
    file = EventFile.open(tmp_path)
    file.add(parts, step.step, step.wall_time)
    file.close()
    *_, data = RawEventFileLoader(str(file.path)).Load()  # verifies the checksums
    event = event_pb2.Event.FromString(data)
    assert (event.step, event.wall_time) == (3, 1000.5)
    assert event.summary == parsed(parts)
    assert len(parsed(parts).value) == 4
    crc = google_crc32c.value(data)
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    assert file.path.read_bytes().endswith(data + masked.to_bytes(4, "little"))


class Recorded:
    """A module of protocol buffers that records each message constructed through it."""

    def __init__(self, module: Any, made: list[str]) -> None:
        self._module, self._made = module, made

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return self._recording(found) if isinstance(found, type) else found

    def _recording(self, kind: type) -> Any:
        def make(*args: Any, **fields: Any) -> Any:
            self._made.append(kind.__name__)
            return kind(*args, **fields)

        return make


@pytest.mark.parametrize("layers", [1, 50])
def test_a_step_of_any_size_is_built_from_two_messages(
    layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"conv{n}" for n in range(layers)]
    counts = np.array([0.0, 1.0]), np.array([3.0])
    step = LoggedStep(
        3,
        1000.5,
        pictures=tuple(picture_of(noise(3, 3), tag=f"feature_maps/{name}") for name in names),
        histograms=tuple(Histogram(f"activations/{name}", *counts) for name in names),
        scalars={f"gradient_norm/{name}": 1.0 for name in names},
        records=tuple(TabRecord(f"fmapboard/{name}", (b"{}", b"x")) for name in names),
        texts={f"about/{name}": "text" for name in names},
    )
    encode = Encoder()
    encode(step)
    made: list[str] = []
    for name in ("summary_pb2", "tensor_pb2"):
        monkeypatch.setattr(tensorboard, name, Recorded(getattr(tensorboard, name), made))
    assert len(parsed(encode(step)).value) == 5 * layers
    assert made == ["Summary", "Summary"]


def _numbers(step: int, buckets: int) -> LoggedStep:
    edges, counts = np.arange(buckets + 1.0) + step, np.arange(buckets, dtype=np.float64)
    return LoggedStep(
        step,
        1000.5,
        histograms=(Histogram("activations/größer", edges, counts),),
        scalars={"gradient_norm/total": 0.5 + step, "constant_channels/conv": 0.0},
    )


def histogram_pb(tag: str, rows: np.ndarray[Any, Any]) -> summary_pb2.Summary:
    """A histogram as `tensorboard.plugins.histogram.summary` makes it, from given buckets."""
    metadata = histogram_metadata.create_summary_metadata(display_name="", description="")
    tensor = make_tensor_proto(rows, dtype=np.float64)
    value = summary_pb2.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
    return summary_pb2.Summary(value=[value])


def test_scalars_are_those_of_a_summary_writer_at_every_step() -> None:
    encode = Encoder()
    numbers = {"gradient_norm/größer": 0.1, "zero": 0.0, "small": 1e-42, "": -2.5, "x" * 200: 7.0}
    for number in range(2):
        values = parsed(encode(LoggedStep(number, 1000.5, scalars=numbers))).value
        found = [value for value in values if "config" not in value.tag]
        assert found == [scalar(tag, value).value[0] for tag, value in numbers.items()]
        assert len(values) - len(found) == (number == 0), "the layout of charts, once"


def _as_the_plugins_write(step: LoggedStep, first: bool) -> list[summary_pb2.Summary.Value]:
    values = []
    for histogram in step.histograms:
        rows = [histogram.edges[:-1], histogram.edges[1:], histogram.counts]
        array = np.stack(rows, axis=1) if histogram.counts.size else np.zeros((1, 3))
        summary = histogram_pb(histogram.tag, array)
        values.append(summary.value[0])
    for value in values:
        if not first:
            value.ClearField("metadata")
    return values


def test_histograms_are_those_of_tensorboards_plugin_at_every_step() -> None:
    encode = Encoder()
    for number, buckets in enumerate((30, 30, 30, 1, 0, 1, 30)):
        step = _numbers(number, buckets)
        values = parsed(encode(step)).value
        expected = _as_the_plugins_write(step, first=number == 0)
        found = {value.tag: value for value in values if value.HasField("tensor")}
        for value in expected:
            here = found[value.tag]
            assert here.HasField("metadata") == (number == 0)
            assert here.metadata.plugin_data == value.metadata.plugin_data
            assert (here.metadata.data_class != 0) == (number == 0)  # not all readers add it
            assert here.tensor.dtype == value.tensor.dtype
            assert here.tensor.tensor_shape == value.tensor.tensor_shape
            np.testing.assert_array_equal(make_ndarray(here.tensor), make_ndarray(value.tensor))


def test_a_text_is_the_tensor_of_rank_0_that_tensorboard_makes() -> None:
    step = LoggedStep(3, 1000.5, texts={"about": "größer"})
    tensor = parsed(Encoder()(step)).value[0].tensor
    assert tensor == make_tensor_proto(np.array("größer".encode(), dtype=object))
    assert tensor.HasField("tensor_shape")
