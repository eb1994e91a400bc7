"""What cannot be read of event files is named, and memory stays bounded."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from event_files import event_files, write
from tensorboard.compat.proto import tensor_pb2
from tensorboard.util import tensor_util

from fmapboard.report.event_records import array_of, run_directories, stored_events


def tensor(*sides: int, values: int = 1) -> tensor_pb2.TensorProto:
    found = tensor_pb2.TensorProto(dtype=1, float_val=[2.0] * values)
    for side in sides:
        found.tensor_shape.dim.add(size=side)
    return found


def test_the_array_of_a_tensor_is_that_of_tensorboard() -> None:
    whole = np.arange(70_000, dtype=np.float32).reshape(7, 10_000)
    np.testing.assert_array_equal(array_of(tensor_util.make_tensor_proto(whole)), whole)
    assert array_of(tensor()) == 2.0
    np.testing.assert_array_equal(array_of(tensor(2, 3)), np.full((2, 3), 2.0))


@pytest.mark.parametrize("sides", [(2**40,), (2**20, 2**20), (2**62,)])
def test_a_shape_that_would_fill_the_memory_is_refused(sides: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"values are claimed, but \d+ bytes are stored"):
        array_of(tensor(*sides))


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, 0, 1)
    (file,) = event_files(tmp_path)
    (tmp_path / "a.tfevents").symlink_to("/proc/self/mem")  # reading its beginning fails
    problems: list[str] = []
    found = list(stored_events(tmp_path, problems))
    assert {stored.file for stored in found} == {file}
    assert [stored.event.step for stored in found if stored.event.summary.value] == [0, 1]
    assert problems == ["a.tfevents cannot be read: Input/output error"]


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
