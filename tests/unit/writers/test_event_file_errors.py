"""Event files stay readable when the disk is full, a write is short or a directory is unusable."""

from __future__ import annotations

import errno
import gc
import os
import resource
from pathlib import Path
from typing import Any

import pytest
from data_providers import provider_of, read_steps
from event_files import event_files, step_of, steps_in, write
from tensorboard.context import RequestContext

from fmapboard.errors import WriteError
from fmapboard.writers.tensorboard import TensorBoardWriter


class HalfWriter:
    """An unbuffered file; once its disk is ``full``, a write stores half its bytes, the next 0."""

    def __init__(self, raw: Any) -> None:
        self._raw, self.full, self._half_done = raw, False, False

    def writev(self, handle: int, parts: list[bytes]) -> int:
        return self.write(b"".join(parts))

    def write(self, data: bytes) -> int:
        if not self.full:
            return int(self._raw.write(data))
        if self._half_done:
            self._half_done = False
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._half_done = True
        return int(self._raw.write(bytes(data)[: len(data) // 2]))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


def on_full_disk(
    directory: Path, monkeypatch: pytest.MonkeyPatch, *, gathers: bool
) -> tuple[TensorBoardWriter, HalfWriter]:
    """A writer and its file; ``gathers``: the system has a call that writes many parts."""
    opened: list[HalfWriter] = []
    real = Path.open

    def half_open(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = real(path, mode, *args, **options)
        if mode != "xb":
            return file
        opened.append(HalfWriter(file))
        return opened[0]

    monkeypatch.setattr(Path, "open", half_open)
    if gathers:
        monkeypatch.setattr(os, "writev", lambda handle, parts: opened[0].writev(handle, parts))
    else:
        monkeypatch.delattr(os, "writev")
    writer = TensorBoardWriter(directory)
    (file,) = opened
    return writer, file


@pytest.mark.parametrize("gathers", [True, False])
def test_a_full_disk_loses_only_the_step_being_written(
    gathers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, disk = on_full_disk(tmp_path, monkeypatch, gathers=gathers)
    writer.write(step_of(0))
    whole = writer.path.stat().st_size
    disk.full = True
    full = r"cannot write .*tfevents.*: No space left on device; free some space there"
    with pytest.raises(WriteError, match=full):
        writer.write(step_of(1))
    assert writer.path.stat().st_size == whole, "the file ends after the last complete record"
    assert steps_in(writer.path) == [0]
    disk.full = False
    writer.write(step_of(2))
    writer.close()
    assert steps_in(writer.path) == [0, 2]


def test_a_file_that_may_not_grow_ends_after_its_last_complete_record(tmp_path: Path) -> None:
    writer = TensorBoardWriter(tmp_path)
    writer.write(step_of(0))
    whole = writer.path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 5000, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write .*: File too large"):
            writer.write(step_of(1, side=200))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert writer.path.stat().st_size == whole
    writer.write(step_of(2))
    writer.close()
    assert steps_in(writer.path) == [0, 2]


def test_the_rest_of_a_short_write_is_written_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "writev", lambda handle, parts: write(handle, b"".join(parts)[:300]))
    writer = TensorBoardWriter(tmp_path)
    writer.write(step_of(0, side=100))
    writer.write(step_of(1))
    writer.close()
    assert steps_in(writer.path) == [0, 1]


def test_metadata_lost_with_a_first_step_is_written_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, disk = on_full_disk(tmp_path, monkeypatch, gathers=True)
    disk.full = True
    with pytest.raises(WriteError):
        writer.write(step_of(0))
    disk.full = False
    writer.write(step_of(1))
    writer.close()
    with provider_of(tmp_path, "python") as provider:
        listed = provider.list_blob_sequences(
            RequestContext(), experiment_id="", plugin_name="images"
        )
        assert set(listed["."]) == {"feature_maps_1x1x1x1/conv"}
        assert read_steps(provider, "scalars", "gradient_norm/total") == [1]


def test_a_directory_that_cannot_be_written_to_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(WriteError, match=r"cannot write to .*/file/run: Not a directory"):
        TensorBoardWriter(tmp_path / "file" / "run")
    with pytest.raises(WriteError, match=r"cannot write to .*/file: File exists"):
        TensorBoardWriter(tmp_path / "file")


def test_a_file_that_cannot_be_started_is_closed_and_removed(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write .*: File too large"):
            TensorBoardWriter(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    gc.collect()  # a file left open would warn
    assert event_files(tmp_path) == []
    assert steps_in(write(tmp_path, 0).path) == [0]
