"""A run with its scalars as tensors, written by an earlier version, is resumed by this one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from data_providers import provider_of, read_steps
from event_files import step_of
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.context import RequestContext
from tensorboard.data.provider import RunTagFilter

from fmapboard.plugin.cache import BlobCache
from fmapboard.plugin.calls import InTurn
from fmapboard.plugin.data_source import Reader
from fmapboard.writers.tensorboard import TensorBoardWriter

STORED = Path(__file__).parents[1] / "golden" / "run_cde8805"
TAG = "gradient_norm/total"  # stored at steps 0, 10, 20 and 30


@pytest.fixture(scope="module", params=[40, 20], ids=["goes on", "goes back"])
def start(request: pytest.FixtureRequest) -> int:
    """The step at which the run is resumed: after its end, or in the middle."""
    step: int = request.param
    return step


@pytest.fixture(scope="module")
def logdir(start: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored run with two more steps, written by this version."""
    logdir = tmp_path_factory.mktemp("runs")
    shutil.copytree(STORED, logdir / "run")
    writer = TensorBoardWriter(logdir / "run", start_step=start)
    for number in (start, start + 10):
        writer.write(step_of(number))
    writer.close()
    return logdir


@pytest.fixture(scope="module", params=["fast", "python"])
def provider(request: pytest.FixtureRequest, logdir: Path) -> Iterator[Any]:
    with provider_of(logdir, request.param) as provider:
        yield provider


def test_the_scalars_dashboard_has_the_whole_series(provider: Any, start: int) -> None:
    kept = [step for step in (0, 10, 20, 30) if step < start]
    assert read_steps(provider, "scalars", TAG, "run") == [*kept, start, start + 10]
    (series,) = provider.read_scalars(
        RequestContext(), experiment_id="", plugin_name="scalars", downsample=1000,
        run_tag_filter=RunTagFilter(["run"], [TAG]),
    )["run"].values()  # fmt: skip
    assert series[0].value == pytest.approx(0.447731)
    assert [datum.value for datum in series[-2:]] == [start / 2, start / 2 + 5]


def test_the_tab_reads_the_whole_series(provider: Any, start: int) -> None:
    reader = Reader(provider, BlobCache(0), InTurn(), RequestContext(), "")
    assert TAG in reader.scalar_tags("run")
    kept = [step for step in (0, 10, 20, 30) if step < start]
    data = reader.scalars("run", [TAG])[TAG]
    assert [datum.step for datum in data] == [*kept, start, start + 10]


def test_event_accumulator_finds_the_new_scalars_beside_the_old(logdir: Path, start: int) -> None:
    accumulator = EventAccumulator(str(logdir / "run")).Reload()
    assert [event.step for event in accumulator.Scalars(TAG)] == [start, start + 10]
