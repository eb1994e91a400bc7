"""Event files read back with TensorBoard's own readers, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing import tag_types
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_file_loader import (
    EventFileLoader,
    RawEventFileLoader,
)
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.data.provider import RunTagFilter
from tensorboard.data.server_ingester import ExistingServerDataIngester, get_server_binary
from tensorboard.util.grpc_util import ChannelCredsType
from tensorboard.util.tensor_util import make_ndarray
from torch.utils.tensorboard import SummaryWriter

from fmapboard.errors import WriteError
from fmapboard.records import Histogram, LoggedStep, Picture, Raster, TabRecord
from fmapboard.render import png
from fmapboard.tab_format import PLUGIN_NAME, pack, unpack
from fmapboard.writers.tensorboard import TensorBoardWriter, default_log_dir


def raster_of(step: int, side: int = 8) -> Raster:
    noise = np.random.default_rng(step).integers(0, 256, (side, side), np.uint8)
    return Raster(noise, tile=(side, side))


def step_of(number: int, prefix: str = "", side: int = 8) -> LoggedStep:
    """A small logged step with one value of each kind."""
    picture = Picture(
        f"{prefix}feature_maps_1x1x1x1/conv", "feature_maps", (raster_of(number, side),),
        description="maps",
    )  # fmt: skip
    counts = Histogram(f"{prefix}activations/conv", np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0]))
    blobs = pack({"layer": "conv", "step": number}, {"feature_maps.lo": np.zeros((1, 1))})
    return LoggedStep(
        number,
        1000.0 + number,
        pictures=(picture,),
        histograms=(counts,),
        scalars={f"{prefix}gradient_norm/total": number / 2},
        records=(TabRecord(f"{prefix}fmapboard/conv", blobs),),
    )


def write(directory: Path, *numbers: int, **options: Any) -> TensorBoardWriter:
    writer = TensorBoardWriter(directory, **options)
    for number in numbers:
        writer.write(step_of(number))
    writer.close()
    return writer


def steps_in(path: Path) -> list[int]:
    """The steps of all readable summaries of a file; every checksum is verified on the way."""
    return [event.step for event in EventFileLoader(str(path)).Load() if event.summary.value]


def event_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*tfevents*"))


# -- the file itself -----------------------------------------------------------------------------


def test_tensorboards_event_accumulator_reads_every_kind_back(tmp_path: Path) -> None:
    write(tmp_path, 0, 10, 20)
    accumulator = EventAccumulator(str(tmp_path), size_guidance={tag_types.TENSORS: 0}).Reload()
    assert set(accumulator.Tags()[tag_types.TENSORS]) == {
        "feature_maps_1x1x1x1/conv", "activations/conv", "gradient_norm/total",
        "fmapboard/conv", "custom_scalars__config__",
    }  # fmt: skip
    norms = accumulator.Tensors("gradient_norm/total")
    assert [(e.step, e.wall_time, float(make_ndarray(e.tensor_proto))) for e in norms] == [
        (0, 1000.0, 0.0), (10, 1010.0, 5.0), (20, 1020.0, 10.0),
    ]  # fmt: skip
    images = [
        make_ndarray(e.tensor_proto) for e in accumulator.Tensors("feature_maps_1x1x1x1/conv")
    ]
    assert [list(image[:2]) for image in images] == [[b"8", b"8"]] * 3
    assert [image[2] for image in images] == [png.encode(raster_of(n)) for n in (0, 10, 20)]
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


def test_metadata_stands_at_the_first_value_of_a_tag_only(tmp_path: Path) -> None:
    path = write(tmp_path, 0, 1).path
    values = [
        (event.step, value.tag)
        for event in map(_event, RawEventFileLoader(str(path)).Load())
        for value in event.summary.value
        if value.metadata.plugin_data.plugin_name
    ]
    assert {step for step, _ in values} == {0}
    assert len(values) == 5


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


# -- several writers -----------------------------------------------------------------------------


def test_two_writers_of_one_directory_share_one_file(tmp_path: Path) -> None:
    first = TensorBoardWriter(tmp_path)
    second = TensorBoardWriter(tmp_path / "." / ".." / tmp_path.name)
    first.write(step_of(0, "generator."))
    second.write(step_of(0, "critic."))
    first.close()
    second.write(step_of(1, "critic."))
    second.close()
    assert event_files(tmp_path) == [first.path]
    assert second.path == first.path
    tags = EventAccumulator(str(tmp_path)).Reload().Tags()[tag_types.TENSORS]
    assert {"generator.gradient_norm/total", "critic.gradient_norm/total"} <= set(tags)
    assert steps_in(first.path) == [0, 0, 1]


def test_a_closed_file_is_not_shared_with_the_next_writer(tmp_path: Path) -> None:
    first = write(tmp_path, 0)
    second = write(tmp_path, 1, start_step=1)
    assert first.path != second.path
    assert [steps_in(path) for path in event_files(tmp_path)] == [[0], [1]]


def test_a_writer_of_a_directory_that_was_deleted_meanwhile_starts_a_new_file(
    tmp_path: Path,
) -> None:
    stale = TensorBoardWriter(tmp_path / "run")
    stale.write(step_of(5))
    shutil.rmtree(tmp_path / "run")
    fresh = TensorBoardWriter(tmp_path / "run")
    fresh.write(step_of(0))
    stale.close()
    again = TensorBoardWriter(tmp_path / "run")
    again.write(step_of(1))
    fresh.close()
    again.close()
    (path,) = event_files(tmp_path)
    assert steps_in(path) == [0, 1]


def test_a_process_that_changes_its_directory_keeps_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    writer = TensorBoardWriter("run")
    writer.write(step_of(0))
    monkeypatch.chdir(tmp_path / "elsewhere")
    twin = TensorBoardWriter(tmp_path / "run")
    twin.write(step_of(1))
    twin.close()
    writer.close()
    monkeypatch.chdir(tmp_path)
    write(Path("run"), 2, start_step=2)
    assert [steps_in(path) for path in event_files(tmp_path)] == [[0, 1], [2]]


def test_beside_another_writers_event_file_ours_is_a_run_of_its_own(tmp_path: Path) -> None:
    with SummaryWriter(str(tmp_path)) as foreign:
        foreign.add_scalar("loss", 1.0, 0)
        writer = write(tmp_path, 0)
    assert writer.log_dir == tmp_path / "fmapboard"
    assert writer.path.parent == tmp_path / "fmapboard"
    runs = EventMultiplexer().AddRunsFromDirectory(str(tmp_path)).Reload().Runs()
    assert set(runs) == {".", "fmapboard"}
    again = write(tmp_path, 1, start_step=1)
    assert again.path.parent == tmp_path / "fmapboard"


def test_files_of_our_own_earlier_runs_are_not_foreign(tmp_path: Path) -> None:
    write(tmp_path, 0)
    assert write(tmp_path, 1, start_step=1).path.parent == tmp_path


# -- through TensorBoard's data providers --------------------------------------------------------


@contextlib.contextmanager
def provider_of(logdir: Path, loader: str) -> Iterator[Any]:
    """What the dashboards ask: the data provider of the fast or of the Python loader."""
    if loader == "python":
        multiplexer = EventMultiplexer(tensor_size_guidance={PLUGIN_NAME: 50, "scalars": 1000})
        yield MultiplexerDataProvider(
            multiplexer.AddRunsFromDirectory(str(logdir)).Reload(), str(logdir)
        )
        return
    with tempfile.TemporaryDirectory() as scratch:
        port, said = Path(scratch, "port"), Path(scratch, "stderr")
        command = [
            get_server_binary().path, f"--logdir={logdir}", "--reload=once", "--port=0",
            f"--port-file={port}", "--die-after-stdin", "--verbose",
        ]  # fmt: skip
        with (
            said.open("wb") as stderr,
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr) as server,
        ):
            try:
                wait_until(lambda: "Finished load cycle" in said.read_text())
                wait_until(lambda: port.is_file() and port.read_text().endswith("\n"))
                address = f"localhost:{int(port.read_text())}"
                credentials = ChannelCredsType.LOCAL
                yield ExistingServerDataIngester(
                    address, channel_creds_type=credentials
                ).data_provider
            finally:
                server.terminate()


def wait_until(holds: Callable[[], bool], limit: float = 30.0) -> None:
    """Poll until it holds; fails after ``limit`` seconds."""
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end, "the data server did not load the run"
        time.sleep(0.01)


both_loaders = pytest.mark.parametrize("loader", ["fast", "python"])


def read_steps(provider: Any, plugin: str, tag: str, run: str = ".") -> list[int]:
    """The steps of one scalar series."""
    series = provider.read_scalars(
        RequestContext(), experiment_id="", plugin_name=plugin, downsample=1000,
        run_tag_filter=RunTagFilter([run], [tag]),
    )  # fmt: skip
    return [datum.step for datum in series[run][tag]]


@both_loaders
def test_the_tabs_records_are_blob_sequences_of_our_plugin(tmp_path: Path, loader: str) -> None:
    write(tmp_path, 0, 1, 2)
    ctx = RequestContext()
    with provider_of(tmp_path, loader) as provider:
        listed = provider.list_blob_sequences(ctx, experiment_id="", plugin_name=PLUGIN_NAME)
        assert {run: set(tags) for run, tags in listed.items()} == {".": {"fmapboard/conv"}}
        assert listed["."]["fmapboard/conv"].max_step == 2
        assert listed["."]["fmapboard/conv"].max_length == 2
        read = provider.read_blob_sequences(
            ctx, experiment_id="", plugin_name=PLUGIN_NAME, downsample=50
        )["."]["fmapboard/conv"]
        assert [datum.step for datum in read] == [0, 1, 2]
        for datum in read:
            blobs = [provider.read_blob(ctx, blob_key=r.blob_key) for r in datum.values]
            header, arrays = unpack(blobs)
            assert header["step"] == datum.step
            assert arrays["feature_maps.lo"].shape == (1, 1)


@both_loaders
def test_resuming_makes_tensorboard_forget_what_was_logged_from_there_on(
    tmp_path: Path, loader: str
) -> None:
    write(tmp_path, 0, 10, 20, 30, 40)
    write(tmp_path, 20, 30, start_step=15)
    with provider_of(tmp_path, loader) as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20, 30]


@both_loaders
def test_a_second_resume_purges_again(tmp_path: Path, loader: str) -> None:
    write(tmp_path, 0, 10, 20)
    write(tmp_path, 10, 20, 30, 40, start_step=10)
    write(tmp_path, 30, start_step=21)
    with provider_of(tmp_path, loader) as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0, 10, 20, 30]


def test_resuming_forgets_later_records_even_before_the_first_new_step(tmp_path: Path) -> None:
    write(tmp_path, 0, 10, 20)
    write(tmp_path, start_step=10)
    with provider_of(tmp_path, "python") as provider:
        assert read_steps(provider, "scalars", "gradient_norm/total") == [0]


# -- things that go wrong ------------------------------------------------------------------------


class HalfWriter:
    """A raw file whose disk is full: takes half of what it gets, then nothing."""

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
    writer: TensorBoardWriter, monkeypatch: pytest.MonkeyPatch, *, gathers: bool
) -> HalfWriter:
    """The disk that the writer now has; ``gathers``: the system writes many parts at once."""
    assert writer._file is not None
    disk = HalfWriter(writer._file._file)
    writer._file._file = disk  # type: ignore[assignment]
    if gathers:
        monkeypatch.setattr(os, "writev", disk.writev)
    else:
        monkeypatch.delattr(os, "writev")
    return disk


@pytest.mark.parametrize("gathers", [True, False])
def test_a_full_disk_costs_the_step_and_nothing_else(
    gathers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TensorBoardWriter(tmp_path)
    disk = on_full_disk(writer, monkeypatch, gathers=gathers)
    writer.write(step_of(0))
    whole = writer.path.stat().st_size
    disk.full = True
    with pytest.raises(WriteError, match=r"cannot write .*tfevents.*: No space left on device"):
        writer.write(step_of(1))
    assert writer.path.stat().st_size == whole, "the file ends behind the last whole record"
    assert steps_in(writer.path) == [0]
    disk.full = False
    writer.write(step_of(2))
    writer.close()
    assert steps_in(writer.path) == [0, 2]


def test_a_file_that_may_not_grow_ends_behind_its_last_whole_record(tmp_path: Path) -> None:
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


def test_what_a_short_write_left_over_is_written_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "writev", lambda handle, parts: write(handle, b"".join(parts)[:300]))
    writer = TensorBoardWriter(tmp_path)
    writer.write(step_of(0, side=100))
    writer.write(step_of(1))
    writer.close()
    assert steps_in(writer.path) == [0, 1]


def test_a_step_of_thousands_of_parts_is_whole(tmp_path: Path) -> None:
    raster = raster_of(0)
    pictures = tuple(Picture(f"maps/{n}", "feature_maps", (raster,)) for n in range(1000))
    writer = TensorBoardWriter(tmp_path)
    writer.write(LoggedStep(0, 1000.0, pictures=pictures))
    writer.close()
    *_, event = EventFileLoader(str(writer.path)).Load()
    assert [value.tag for value in event.summary.value[:-1]] == [p.tag for p in pictures]


def test_tags_that_a_lost_first_step_described_are_described_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TensorBoardWriter(tmp_path)
    disk = on_full_disk(writer, monkeypatch, gathers=True)
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


def test_a_file_that_cannot_be_begun_is_let_go_and_taken_away(tmp_path: Path) -> None:
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
    (event,) = EventAccumulator(str(tmp_path)).Reload().Tensors("gradient_norm/total")
    wanted = np.sign(number) * np.inf if abs(number) > 1e38 else number
    assert np.array_equal(make_ndarray(event.tensor_proto), wanted, equal_nan=True)
