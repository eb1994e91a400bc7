"""Every framework leaves the same records as a plain training loop."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from same_training import FRAMEWORKS, plain, series, steps

import fmapboard
from fmapboard.formats.checks import StoredChecks
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.integrations.training_run import PlacedOptions, RunOptions, TrainingRun, placed
from fmapboard.writers.folder import MemoryWriter

SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "accumulated and clipped": {"accumulate": 2, "clip": 0.05},
}


def comparable(run: Path) -> dict[str, list[tuple[int, Any]]]:
    """A run's series without times, and without those that the plain loop does not log.

    What is read of the outputs depends on what the model returns: in transformers the loss, too.
    """
    left_out = ("fmapboard/logged_step_ms", "fmapboard/why", "output/", "loss/")

    def known(value: Any) -> Any:
        if isinstance(value, float):
            return pytest.approx(value, rel=1e-6)
        if isinstance(value, StoredChecks):
            assert value.seen is not None
            seen = value.seen
            return value.findings, value.not_checked, seen.layers, seen.steps, seen.rates
        return replace(value, outputs=(), no_loss={}) if isinstance(value, TrainingFacts) else value

    return {
        tag: [(step, known(value)) for step, value in values]
        for tag, values in series(run).items()
        if not tag.startswith(left_out) and "before_clipping" not in tag
    }


@pytest.mark.each_once
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_leaves_the_tags_steps_and_values_of_the_plain_loop(
    framework: str, setting: str, tmp_path: Path
) -> None:
    expected = comparable(plain(tmp_path / "plain", **SETTINGS[setting]))
    found = comparable(FRAMEWORKS[framework](tmp_path / framework, **SETTINGS[setting]))
    assert {step for step, _ in expected["gradient_norm/total"]} == {0, 3, 6, 9}
    assert len(expected) == 51
    assert set(found) == set(expected)
    for tag, values in expected.items():
        assert found[tag] == values, tag


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_share_writer_writes_into_the_frameworks_own_file(framework: str, tmp_path: Path) -> None:
    run = FRAMEWORKS[framework](tmp_path, share_writer=True)
    assert not run.exists()
    assert steps(run.parent) == [0, 3, 6, 9]
    assert len(list(run.parent.glob("*tfevents*"))) == 1


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_log_dir_given_by_the_user_is_used(framework: str, tmp_path: Path) -> None:
    run = FRAMEWORKS[framework](tmp_path, log_dir=tmp_path / "mine")
    assert not run.exists()
    assert steps(tmp_path / "mine") == [0, 3, 6, 9]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_only_rank_0_writes(
    framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmapboard.logger.rank", lambda: 1)
    run = FRAMEWORKS[framework](tmp_path)
    assert run.parent.is_dir()
    assert not run.exists()


@pytest.mark.parametrize("framework", ["lightning", "transformers", "ignite"])
def test_validation_is_recorded_only_on_request_and_under_its_own_tag(
    framework: str, tmp_path: Path
) -> None:
    tag = "validation.feature_maps_8x3x5x5/stem"
    assert tag not in series(FRAMEWORKS[framework](tmp_path / "without"))
    run = series(FRAMEWORKS[framework](tmp_path / "with", validation=True))
    # Lightning validates at the end, the other two at every fifth step.
    expected = {"lightning": [10], "transformers": [5, 10], "ignite": [5, 10]}
    assert [step for step, _ in run[tag]] == expected[framework]
    assert [step for step, _ in run["gradient_norm/total"]] == [0, 3, 6, 9]
    assert not any(t.startswith(("validation.gradient", "validation.kernels")) for t in run)


@pytest.mark.parametrize(
    ("framework", "module", "distributions"),
    [
        ("lightning", "lightning.pytorch", "lightning"),
        ("transformers", "transformers.trainer_callback", "transformers accelerate"),
        ("ignite", "ignite.engine", "pytorch-ignite"),
        ("accelerate", "accelerate", "accelerate"),
    ],
)
def test_a_missing_framework_raises_one_line_that_names_what_to_install(
    framework: str, module: str, distributions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"fmapboard.integrations.{framework}", raising=False)
    with pytest.raises(fmapboard.MissingExtra) as caught:
        __import__(f"fmapboard.integrations.{framework}")
    assert str(caught.value) == (
        f"fmapboard.integrations.{framework} needs {module!r}. Run: pip install {distributions}"
    )


def test_every_option_of_watch_is_an_option_of_the_integrations() -> None:
    taken = set(inspect.signature(fmapboard.watch).parameters)
    of_the_loop = {"model", "writer", "optimizer", "scaler", "every", "start_step"}
    of_the_default_directory = {"comment", "filename_suffix"}
    assert set(PlacedOptions.__annotations__) - {"share_writer"} == (
        taken - of_the_loop - of_the_default_directory
    )
    assert set(RunOptions.__annotations__) - set(PlacedOptions.__annotations__) == {"validation"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sampels": 2}, "no option 'sampels'; closest: samples"),
        ({"every": 0}, "every=0: expected a whole number"),
        ({"samples": 0}, "samples=0: expected a whole number"),
        ({"share_writer": True, "log_dir": "x"}, "log_dir and share_writer are mutually exclusive"),
    ],
)
def test_an_invalid_option_is_refused_before_training_begins(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(fmapboard.ConfigurationError, match=text):
        TrainingRun(**options)


@pytest.mark.parametrize("directory", ["gs://bucket/lightning_logs/version_0", "logs/version_0"])
def test_a_remote_directory_of_the_framework_stays_a_url(directory: str) -> None:
    logger = SimpleNamespace(log_dir=directory)
    assert placed({}, logger, ".") == {"log_dir": f"{directory}/fmapboard"}
    assert str(placed({}, None, directory)["log_dir"]).startswith(f"{directory}/runs/")


def test_share_writer_needs_no_writer_on_other_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmapboard.integrations.training_run.rank", lambda: 1)
    assert isinstance(placed({"share_writer": True}, None, ".")["writer"], MemoryWriter)
