"""A run that is logged again into its directory: every reader shows each step once, the newest."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from checked_runs import NAN_AT, STEPS, batches, check, network, train
from data_providers import provider_of
from tab_client import open_tab
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.context import RequestContext
from tensorboard.data.provider import RunTagFilter

import fmapboard
from fmapboard.formats.tab_records import PLUGIN_NAME
from fmapboard.report.write import write_report

MAPS, RECORD, NORM = "feature_maps_8x3x3x3/0", "fmapboard/0", "gradient_norm/total"


def again(log_dir: Path, *numbers: int) -> None:
    """Log marked steps of a healthy training, without ``start_step``."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with fmapboard.watch(model, log_dir, every=1) as board:
        for number, (images, classes) in zip(numbers, batches(len(numbers)), strict=True):
            with board.step(number):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), classes).backward()
                optimizer.step()


@pytest.fixture(scope="module", params=[0, NAN_AT], ids=["from the start", "goes on"])
def first(request: pytest.FixtureRequest) -> int:
    """The first step of the second run, of two; the first run has NaN from ``NAN_AT`` on."""
    number: int = request.param
    return number


@pytest.fixture(scope="module")
def said() -> list[str]:
    """What the second run has logged as warnings."""
    return []


@pytest.fixture(scope="module")
def logdir(first: int, said: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    logdir = tmp_path_factory.mktemp("runs")
    torch.manual_seed(0)
    train(logdir / "run", network(), fault="nan")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("fmapboard").addHandler(handler)
    said.clear()
    again(logdir / "run", first, first + 1)
    logging.getLogger("fmapboard").removeHandler(handler)
    return logdir


def shown(first: int) -> list[int]:
    return [*range(first), first, first + 1]


@pytest.fixture(scope="module", params=["fast", "python"])
def provider(request: pytest.FixtureRequest, logdir: Path) -> Iterator[Any]:
    with provider_of(logdir, request.param) as provider:
        yield provider


def test_the_steps_that_vanish_are_named(logdir: Path, first: int, said: list[str]) -> None:
    last = STEPS - 1
    assert said == [
        f"fmapboard: {logdir / 'run'} holds an earlier run, up to step {last}: from step {first} "
        "on, TensorBoard shows this run instead (the earlier event files stay there); to keep "
        "both, log into another directory; to continue the earlier run, begin at step "
        f"{last + 1} (start_step={last + 1} in Python, --step {last + 1} on the command line)"
    ]


def test_tensorboard_shows_scalars_and_pictures_once(provider: Any, first: int) -> None:
    asked = {"experiment_id": "", "downsample": 1000}
    scalars = provider.read_scalars(
        RequestContext(), plugin_name="scalars", run_tag_filter=RunTagFilter(["run"], [NORM]),
        **asked,
    )["run"][NORM]  # fmt: skip
    assert [datum.step for datum in scalars] == shown(first)
    newest = [(datum.step, datum.wall_time) for datum in scalars]
    for plugin, tag in (("images", MAPS), (PLUGIN_NAME, RECORD)):
        blobs = provider.read_blob_sequences(
            RequestContext(), plugin_name=plugin, run_tag_filter=RunTagFilter(["run"], [tag]),
            **asked,
        )["run"][tag]  # fmt: skip
        # The fast loader keeps a sample of ten steps; the times tell which run a step is of.
        times = [(datum.step, datum.wall_time) for datum in blobs]
        assert times == [each for each in newest if each in times]
        assert times[-2:] == newest[-2:]


def test_the_class_event_accumulator_drops_scalars_and_keeps_both_pictures(
    logdir: Path, first: int
) -> None:
    accumulator = EventAccumulator(str(logdir / "run"), {"scalars": 0, "tensors": 0}).Reload()
    assert [event.step for event in accumulator.Scalars(NORM)] == shown(first)
    assert [event.step for event in accumulator.Tensors(MAPS)] == [
        *range(STEPS), first, first + 1,
    ]  # fmt: skip


def test_the_tab_lists_each_step_once(logdir: Path, first: int) -> None:
    tab = open_tab(logdir)
    listed = tab.ask("data/layers", run="run")
    assert listed["steps"] == shown(first)
    assert tab.ask("data/findings", run="run")["findings"] == []


def test_check_reads_each_step_once_the_newest(
    logdir: Path, first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    start = "  not known: nothing found in 8 layers × "
    status, output, _ = check(capsys, "--without", "dead", logdir / "run")  # judges the run itself
    assert status == 0
    assert output.splitlines()[1].startswith(f"{start}{len(shown(first))} steps; ")
    _, output, _ = check(capsys, logdir / "run")  # what was stored is of the last start
    assert output.splitlines()[1].startswith(f"{start}2 steps; ")


def test_a_report_has_each_step_once(logdir: Path, first: int, tmp_path: Path) -> None:
    report = write_report([logdir / "run"], tmp_path / "report.html", steps=STEPS)
    assert report.steps == (tuple(shown(first)),)


def test_a_run_that_goes_on_after_the_last_step_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again(tmp_path, 0, 1)
    again(tmp_path, 2, 3)
    assert caplog.messages == []
    with provider_of(tmp_path, "python") as provider:
        scalars = provider.read_scalars(
            RequestContext(), experiment_id="", plugin_name="scalars", downsample=1000,
            run_tag_filter=RunTagFilter(["."], [NORM]),
        )["."][NORM]  # fmt: skip
    assert [datum.step for datum in scalars] == [0, 1, 2, 3]
