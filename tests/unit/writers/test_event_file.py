"""Event files read back with TensorBoard's own readers: names, values, metadata, checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import noise_picture, step_of, steps_in, write
from tensorboard.backend.event_processing import tag_types
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import (
    EventFileLoader,
    RawEventFileLoader,
)
from tensorboard.util.tensor_util import make_ndarray

from fmapboard.formats.tab_records import unpack
from fmapboard.records import Histogram, LoggedStep, TaggedPictures
from fmapboard.render import png
from fmapboard.writers.tensorboard import TensorBoardWriter, default_log_dir

# -- reading back --------------------------------------------------------------------------------


def test_tensorboards_event_accumulator_reads_back_every_kind_of_value(tmp_path: Path) -> None:
    write(tmp_path, 0, 10, 20)
    accumulator = EventAccumulator(str(tmp_path), size_guidance={tag_types.TENSORS: 0}).Reload()
    assert set(accumulator.Tags()[tag_types.TENSORS]) == {
        "feature_maps_1x1x1x1/conv", "activations/conv", "fmapboard/conv",
        "custom_scalars__config__",
    }  # fmt: skip
    norms = accumulator.Scalars("gradient_norm/total")
    assert [(e.step, e.wall_time, e.value) for e in norms] == [
        (0, 1000.0, 0.0), (10, 1010.0, 5.0), (20, 1020.0, 10.0),
    ]  # fmt: skip
    images = [
        make_ndarray(e.tensor_proto) for e in accumulator.Tensors("feature_maps_1x1x1x1/conv")
    ]
    assert [list(image[:2]) for image in images] == [[b"8", b"8"]] * 3
    assert [image[2] for image in images] == [png.encode(noise_picture(n)) for n in (0, 10, 20)]
    rows = make_ndarray(accumulator.Tensors("activations/conv")[0].tensor_proto)
    assert rows.tolist() == [[0.0, 1.0, 3.0], [1.0, 2.0, 4.0]]
    records = [make_ndarray(e.tensor_proto) for e in accumulator.Tensors("fmapboard/conv")]
    assert [unpack(list(blobs))[0]["step"] for blobs in records] == [0, 10, 20]


def test_a_histogram_without_finite_values_keeps_its_place_in_the_series(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    empty = Histogram("activations/conv", np.empty(0), np.empty(0), nonfinite=9)
    writer.write(LoggedStep(0, 0.0, histograms=(empty,)))
    writer.close()
    accumulator = EventAccumulator(str(tmp_path)).Reload()
    (event,) = accumulator.Tensors("activations/conv")
    assert make_ndarray(event.tensor_proto).tolist() == [[0.0, 0.0, 0.0]]


def test_the_readers_verify_the_checksums_that_we_write(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 1).path
    assert steps_in(path) == [0, 1]
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)
    assert steps_in(path) == [0]


def test_a_step_is_readable_as_soon_as_write_returns(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    for number in range(3):
        writer.write(step_of(number))
        assert steps_in(writer.path) == list(range(number + 1))
    writer.close()


def test_metadata_is_written_only_with_the_first_value_of_a_tag(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 1).path
    values = [
        (event.step, value.tag)
        for event in map(_event, RawEventFileLoader(str(path)).Load())
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name
    ]
    assert {step for step, _ in values} == {0}
    assert len(values) == 4  # a scalar has none


def _event(data: bytes) -> Any:
    from tensorboard.compat.proto import event_pb2

    return event_pb2.Event.FromString(data)


def test_the_suffix_ends_the_files_name(tmp_path: Path) -> None:
    path = write(tmp_path, 0, filename_suffix=".rank3").path
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".fmapboard.rank3")
    assert path.parent == tmp_path


def test_the_comment_ends_the_default_directory() -> None:
    directory = default_log_dir("_lr0.1")
    assert directory.parent == Path("runs")
    assert directory.name.endswith("_lr0.1")


# -- unusual input -------------------------------------------------------------------------------


def test_a_step_of_thousands_of_parts_is_written_completely(tmp_path: Path) -> None:
    picture = noise_picture(0)
    pictures = tuple(TaggedPictures(f"maps/{n}", "feature_maps", (picture,)) for n in range(1000))
    writer = TensorBoardWriter(tmp_path)
    writer.write(LoggedStep(0, 1000.0, pictures=pictures))
    writer.close()
    *_, event = EventFileLoader(str(writer.path)).Load()
    assert [value.tag for value in event.summary.value[:-1]] == [p.tag for p in pictures]


def test_writing_after_close_does_nothing(tmp_path: Path) -> None:
    writer = write(tmp_path, 0)
    writer.write(step_of(1))
    writer.flush()
    writer.close()
    assert steps_in(writer.path) == [0]


@pytest.mark.parametrize("number", [1e39, -1e39, float("nan"), float("inf")])
def test_a_scalar_of_any_size_is_written(tmp_path: Path, number: float) -> None:
    writer = TensorBoardWriter(tmp_path)
    writer.write(LoggedStep(0, 0.0, scalars={"gradient_norm/total": number}))
    writer.close()
    (event,) = EventAccumulator(str(tmp_path)).Reload().Scalars("gradient_norm/total")
    expected = np.sign(number) * np.inf if abs(number) > 1e38 else number
    assert np.array_equal(event.value, expected, equal_nan=True)
