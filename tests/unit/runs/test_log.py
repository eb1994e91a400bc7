"""What is read of event files, and what cannot be read is named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from event_files import event_files, write
from tensorboard.compat.proto import event_pb2, tensor_pb2, types_pb2
from tensorboard.util import tensor_util
from torch.utils.tensorboard import SummaryWriter

from fmapboard.formats import framing
from fmapboard.runs import events
from fmapboard.runs.find import run_directories
from fmapboard.runs.log import EventLog


@pytest.mark.parametrize("sides", [(2**40,), (2**20, 2**20), (2**62,), (2**62, 4), (2,)])
@pytest.mark.parametrize("numbers", [{"float_val": [2.0]}, {"tensor_content": b"\0\0\0\0"}])
def test_a_tensor_that_does_not_hold_all_its_numbers_is_no_array(
    sides: tuple[int, ...], numbers: dict[str, Any], tmp_path: Path
) -> None:
    tensor = tensor_pb2.TensorProto(dtype=1, **numbers)
    for side in sides:
        tensor.tensor_shape.dim.add(size=side)
    event = event_pb2.Event(step=1)
    event.summary.value.add(tag="values", tensor=tensor)
    content = framing.frame(event.SerializeToString())
    (tmp_path / "events.tfevents").write_bytes(b"".join(content))
    log = EventLog(tmp_path)
    assert log.array(log.series["values"][0]) is None


def test_a_log_has_the_values_that_tensorboards_own_messages_have(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    with SummaryWriter(str(tmp_path / "other")) as other:
        other.add_scalar("loss", 0.5, 2)
        other.add_image("picture", np.zeros((3, 4, 4)), 2)
        other.add_histogram("values", np.arange(5), 2)
    plugins = {}
    for folder in (tmp_path, tmp_path / "other"):
        log = EventLog(folder)
        assert not log.problems
        plugins |= {tag: series.plugin for tag, series in log.series.items()}
        stored = [(event, value) for event in loaded(folder) for value in event.summary.value]
        assert {value.tag for _, value in stored} == set(log.series)
        for event, value in stored:
            datum = log.series[value.tag].at(event.step)
            assert datum is not None
            assert (datum.step, datum.wall_time) == (event.step, event.wall_time)
            assert log.strings(datum) == list(value.tensor.string_val)
            assert datum.blobs == len(value.tensor.string_val)
            is_number = value.HasField("simple_value")
            assert datum.number == (value.simple_value if is_number else None)
            if value.tensor.dtype == types_pb2.DT_DOUBLE:
                made = tensor_util.make_ndarray(value.tensor)
                np.testing.assert_array_equal(log.array(datum), made)
    assert plugins["feature_maps_1x1x1x1/conv"] == "images"
    assert plugins["activations/conv"] == "histograms"
    assert plugins["gradient_norm/total"] == plugins["loss"] == "scalars"
    assert plugins["fmapboard/conv"] == "feature_maps"


def loaded(folder: Path) -> list[Any]:
    """The events of a folder, as protobuf parses them."""
    found = []
    for file in folder.glob("*tfevents*"):
        with file.open("rb") as opened:
            for _, size in framing.records(opened):
                found.append(event_pb2.Event.FromString(opened.read(size)))
    return found


NUMBER = b"\x15\x00\x00\x20\x3f"  # field 2: 0.625


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("loss", b"\x0a\x04loss" + NUMBER),
        ("loss", NUMBER + b"\x0a\x04loss"),
        ("loss", b"\x0a\x04loss" + NUMBER + b"\x4a\x02\x12\x00"),  # with metadata
        ("n" * 200, b"\x0a\xc8\x01" + b"n" * 200 + NUMBER),
        ("", NUMBER),
    ],
)
def test_a_number_is_read_in_whatever_order_its_value_is_written(
    tag: str, value: bytes, tmp_path: Path
) -> None:
    summary = b"".join(framing.field(1, value))
    content = b"\x10\x07" + b"".join(framing.field(5, summary))  # of step 7
    (tmp_path / "events.tfevents").write_bytes(b"".join(framing.frame(content)))
    log = EventLog(tmp_path)
    assert not log.problems
    series = log.series[tag]
    datum = series[0]
    assert (series.plugin, datum.step, datum.number, datum.blobs) == ("scalars", 7, 0.625, 0)


def test_only_the_series_that_are_asked_for_are_in_a_log(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    log = EventLog(tmp_path, lambda tag: tag.startswith("gradient_norm"))
    numbers = {tag: [d.number for d in series.ordered()] for tag, series in log.series.items()}
    assert numbers == {"gradient_norm/total": [0.0, 0.5]}


def test_of_two_values_at_one_step_the_first_counts_unless_the_run_is_resumed(
    tmp_path: Path,
) -> None:
    with SummaryWriter(str(tmp_path / "other")) as writer:
        for step, value in ((0, 1.0), (3, 2.0), (0, 3.0)):
            writer.add_scalar("loss", value, step)
    loss = EventLog(tmp_path / "other").series["loss"].ordered()
    assert [(datum.step, datum.number) for datum in loss] == [(0, 1.0), (3, 2.0)]
    write(tmp_path, 0, 3)
    write(tmp_path, 2, start_step=2)
    assert list(EventLog(tmp_path).series["gradient_norm/total"].steps) == [0, 2]


def test_the_beginning_of_an_event_has_its_time_and_step() -> None:
    event = event_pb2.Event(wall_time=1234.5, step=-7)
    event.summary.value.add(tag="x" * 300, simple_value=1.0)
    for step in (-7, 0, 5, 2**40):
        event.step = step
        assert events.stamp(event.SerializeToString()[:20]) == (1234.5, step)
    assert events.stamp(b"\xff" * 20) == (0.0, 0)


@pytest.mark.parametrize(
    "content", [b"\x0c", b"\x2a\x05ab", b"\xff" * 11, b"\x09abc", b"\x2a\x03\x0a\x02a", b"\x80"]
)
def test_a_record_that_is_no_event_is_named(content: bytes, tmp_path: Path) -> None:
    write(tmp_path, 0)
    (file,) = event_files(tmp_path)
    with file.open("ab") as opened:
        opened.write(b"".join(framing.frame(content)))
    log = EventLog(tmp_path)
    assert "gradient_norm/total" in log.series
    (problem,) = log.problems
    assert problem.startswith(f"{file.name}: a record of {len(content)} bytes is damaged (no event")


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    (file,) = event_files(tmp_path)
    (tmp_path / "a.tfevents").symlink_to("/proc/self/mem")  # reading its beginning fails
    log = EventLog(tmp_path)
    found = log.series["gradient_norm/total"].ordered()
    assert [(datum.file, datum.step) for datum in found] == [(str(file), 0), (str(file), 1)]
    assert log.problems == ["a.tfevents cannot be read: Input/output error"]


def test_a_folder_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "run", 0)
    monkeypatch.chdir(tmp_path)
    for _ in range(20):  # a path longer than the system takes
        os.mkdir("d" * 250)
        monkeypatch.chdir("d" * 250)
    errors: list[OSError] = []
    assert run_directories(tmp_path, errors) == [tmp_path / "run"]
    assert [(error.strerror, str(error.filename)[-250:]) for error in errors] == [
        ("File name too long", "d" * 250)
    ]
    assert run_directories(tmp_path) == [tmp_path / "run"]
