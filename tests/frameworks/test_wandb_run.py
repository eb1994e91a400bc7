"""`WandbWriter` in real offline runs: what is stored, and that the user's own rows stay theirs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from writer_cases import rgb_of, step_of

import fmapboard
from fmapboard.errors import ConfigurationError, MissingExtra, WriteError
from fmapboard.formats.overview import OverviewStep, pack_overview
from fmapboard.records import Histogram, LoggedStep, TabRecord
from fmapboard.writers import WandbWriter

wandb = pytest.importorskip("wandb")
from wandb_runs import hidden_metrics, offline_run, rows, x_axes  # noqa: E402  # needs wandb


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """A function that returns what fmapboard logged so far; wandb logs too."""
    return lambda: [each.getMessage() for each in caplog.records if each.name == "fmapboard"]


@pytest.fixture
def run(tmp_path: Path) -> Any:
    run = offline_run(tmp_path)
    yield run
    run.finish()


def scalars(number: int, prefix: str = "") -> LoggedStep:
    overview = pack_overview(OverviewStep(number, number + 1, (), {}, {}))
    record = TabRecord(f"{prefix}fmapboard_overview", overview)
    values = {f"{prefix}gradient_norm/total": number / 10}
    return LoggedStep(number, 0.0, scalars=values, records=(record,))


def test_late_steps_leave_the_users_own_steps_as_they_are(run: Any, tmp_path: Path) -> None:
    writer = WandbWriter(run)
    for i in range(12):
        run.log({"loss": float(i)}, step=i)
        if i in (4, 9):  # steps 0 and 5 arrive four steps later
            writer.write(scalars(i - 4))
        run.log({"accuracy": i / 2}, step=i)
    writer.close()
    run.finish()
    stored = rows(tmp_path)
    assert [(row["_step"], row["loss"], row["accuracy"]) for row in stored] == [
        (i, i, i / 2) for i in range(12)
    ]
    assert [
        (row["_step"], row["fmapboard/step"], row["gradient_norm/total"])
        for row in stored
        if "gradient_norm/total" in row
    ] == [(4, 0, 0), (9, 5, 0.5)]


def test_pictures_histograms_scalars_and_texts_are_stored_over_the_number_of_the_step(
    run: Any, tmp_path: Path
) -> None:
    run.define_metric("*", step_metric="trainer/global_step", step_sync=True)  # as Lightning does
    step = step_of(7)
    WandbWriter(run).write(
        LoggedStep(7, 0.0, step.pictures, step.histograms, step.scalars, texts={"a/b": "**c**"})
    )
    run.log({"loss": 1.0})
    run.finish()
    (row,) = rows(tmp_path)
    assert (row["fmapboard/step"], row["gradient_norm/total"], row["a/b"]) == (7, 2.5, "**c**")
    histogram = [row[f"activations/a.b.{key}"] for key in ("_type", "values", "bins")]
    assert histogram == ["histogram", [5], [0, 1]]
    for tag, expected in rgb_of(step).items():
        files = [next(tmp_path.rglob(Path(name).name)) for name in row[f"{tag}.filenames"]]
        assert len(files) == len(expected)
        for file, pixels in zip(files, expected, strict=True):
            with Image.open(file) as image:
                np.testing.assert_array_equal(np.array(image.convert("RGB")), pixels)
    assert row["feature_maps_4x3x1x1/a.b.captions"] == ["maps", "maps"]
    axes = x_axes(tmp_path)
    ours = [*rgb_of(step), "activations/a.b", "gradient_norm/total", "a/b"]
    assert {tag: axes[tag] for tag in ours} == dict.fromkeys(ours, "fmapboard/step")
    assert axes["*"] == "trainer/global_step"


def test_steps_that_share_a_row_of_the_user_wait_for_later_rows_and_for_the_end_of_the_run(
    run: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    writer = WandbWriter(run)
    for number in (5, 10, 20):
        writer.write(scalars(number))
    run.log({"loss": 1.0}, step=3)
    writer.write(scalars(30))
    writer.close()
    run.log({"loss": 2.0}, step=3)
    run.log({"loss": 4.0}, step=4)
    run.finish()
    stored = rows(tmp_path)
    assert [(row["_step"], row["loss"]) for row in stored if "loss" in row] == [(3, 2), (4, 4)]
    assert [
        (row["_step"], row["fmapboard/step"]) for row in stored if "gradient_norm/total" in row
    ] == [(0, 5), (3, 10), (4, 20), (5, 30)]
    assert said() == []


def test_the_steps_of_a_loop_that_ends_before_one_is_written_are_all_stored(
    run: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    writer = WandbWriter(run)
    for i in range(4):
        run.log({"loss": float(i)}, step=i)
    for number in (0, 2):
        writer.write(scalars(number))
    writer.close()
    run.finish()
    assert [
        (row["_step"], row.get("loss"), row.get("fmapboard/step")) for row in rows(tmp_path)
    ] == [(0, 0, None), (1, 1, None), (2, 2, None), (3, 3, 0), (4, None, 2)]
    assert said() == []


def test_of_more_steps_than_may_wait_the_oldest_are_left_out_and_a_warning_says_so_once(
    run: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    writer = WandbWriter(run)
    for number in range(0, 120, 10):
        writer.write(scalars(number))
    run.finish()
    assert [row["fmapboard/step"] for row in rows(tmp_path)] == [0, *range(40, 120, 10)]
    assert said() == [
        "fmapboard: step 10 is not in the W&B run: fmapboard logs more often than you call "
        "wandb.log, and a row of a run holds one logged step. Call wandb.log at least as often as "
        "fmapboard logs, or, if you never pass step= to wandb.log, use WandbWriter(run, "
        "commit=True)"
    ]


def test_without_wandbs_hooks_waiting_steps_are_written_when_the_logger_is_closed(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("wandb.sdk.wandb_run.TeardownHook")
    writer = WandbWriter(run)
    for number in (0, 2):
        writer.write(scalars(number))
    writer.close()
    run.log({"loss": 1.0})
    run.finish()
    assert [row.get("fmapboard/step") for row in rows(tmp_path)] == [0, 2, None]


def test_waiting_steps_that_wandb_refuses_do_not_keep_the_run_from_being_finished(
    run: Any, monkeypatch: pytest.MonkeyPatch, said: Callable[[], list[str]]
) -> None:
    writer = WandbWriter(run)
    for number in (0, 2):
        writer.write(scalars(number))

    def refuse(values: dict[str, Any], commit: bool) -> None:
        raise RuntimeError("no more rows")

    monkeypatch.setattr(run, "log", refuse)
    run.finish()
    assert said() == [
        "fmapboard: waiting: RuntimeError: no more rows; the last logged steps are not in the W&B "
        "run"
    ]


def test_with_commit_each_step_is_a_row(
    run: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    writer = WandbWriter(run, commit=True)
    for number in (0, 10, 20):
        writer.write(scalars(number))
    run.log({"loss": 1.0})
    run.finish()
    stored = rows(tmp_path)
    assert [row.get("gradient_norm/total") for row in stored] == [0, 1, 2, None]
    assert [row["fmapboard/step"] for row in stored[:3]] == [0, 10, 20]
    assert said() == []


def test_a_loop_that_passes_step_keeps_its_rows_and_gets_every_logged_step(
    run: Any, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    writer = WandbWriter(run)
    with fmapboard.watch(model, writer=writer, optimizer=optimizer, every=2) as board:
        for i in range(6):
            optimizer.zero_grad()
            loss = model(torch.rand(2, 3, 8, 8)).square().mean()
            loss.backward()
            optimizer.step()
            board.flush()
            run.log({"loss": loss.item()}, step=i)
    run.finish()
    stored = rows(tmp_path)
    assert [row["_step"] for row in stored if "loss" in row] == list(range(6))
    assert [row["_step"] for row in stored if "gradient_norm/total" in row] == [0, 1, 3]
    assert [row["fmapboard/step"] for row in stored if "gradient_norm/total" in row] == [0, 2, 4]
    assert "feature_maps_4x3x3x3/0.filenames" in stored[1]
    assert said() == []


def test_the_models_of_one_run_have_numbers_of_their_own(run: Any, tmp_path: Path) -> None:
    WandbWriter(run).write(scalars(10, "generator."))
    WandbWriter(run).write(scalars(30, "critic."))
    run.log({"loss": 1.0})
    run.finish()
    (row,) = rows(tmp_path)
    assert (row["fmapboard/step_generator"], row["fmapboard/step_critic"]) == (10, 30)
    assert x_axes(tmp_path)["critic.gradient_norm/total"] == "fmapboard/step_critic"


def test_a_dot_in_a_models_name_does_not_split_the_number_of_the_step(
    run: Any, tmp_path: Path
) -> None:
    WandbWriter(run).write(scalars(10, "gan.critic."))
    run.log({"loss": 1.0})
    run.finish()
    (row,) = rows(tmp_path)
    assert row["fmapboard/step_gan_critic"] == 10
    assert x_axes(tmp_path)["gan.critic.gradient_norm/total"] == "fmapboard/step_gan_critic"


def test_a_histogram_without_finite_values_is_left_out_and_the_rest_of_the_step_is_stored(
    run: Any, tmp_path: Path
) -> None:
    histograms = (
        Histogram("weights/a", np.zeros(0), np.zeros(0), nonfinite=5),
        Histogram("weights/b", np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0])),
    )
    WandbWriter(run).write(LoggedStep(0, 0.0, histograms=histograms, scalars={"c": 1.0}))
    run.log({"loss": 1.0})
    run.finish()
    (row,) = rows(tmp_path)
    assert (row["weights/b.values"], row["c"]) == ([3, 4], 1)
    assert not any(key.startswith("weights/a") for key in row)


def test_images_are_encoded_in_the_worker_without_an_import(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "_initialized", 0)  # as before the first image of the process
    WandbWriter(run)
    assert Image._initialized > 0


def test_the_number_of_the_step_has_no_chart_of_its_own(run: Any, tmp_path: Path) -> None:
    WandbWriter(run).write(scalars(0))
    run.finish()
    assert hidden_metrics(tmp_path) == {"fmapboard/step"}


def test_a_tag_is_defined_once(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defined: list[str] = []
    define = run.define_metric

    def noted(name: str, **options: Any) -> Any:
        defined.append(name)
        return define(name, **options)

    monkeypatch.setattr(run, "define_metric", noted)
    writer = WandbWriter(run, commit=True)
    for number in range(3):
        writer.write(scalars(number))
    assert sorted(defined) == ["fmapboard/step", "gradient_norm/total"]


def test_a_finished_run_refuses_a_step_at_once(run: Any) -> None:
    writer = WandbWriter(run)
    run.finish()
    with pytest.raises(WriteError, match=r"^W&B: Run \(\w+\) is finished"):
        writer.write(scalars(0))
    writer.flush()
    writer.close()


def test_the_active_run_is_used_where_none_is_given(run: Any, tmp_path: Path) -> None:
    WandbWriter().write(scalars(0))
    run.finish()
    assert len(rows(tmp_path)) == 1
    with pytest.raises(ConfigurationError) as error:
        WandbWriter()
    assert str(error.value) == (
        "no W&B run is active: call wandb.init() before WandbWriter(), or pass the run"
    )


def test_a_disabled_run_takes_every_step_in_silence(said: Callable[[], list[str]]) -> None:
    writer = WandbWriter(wandb.init(mode="disabled"))
    for number in range(3):
        writer.write(step_of(number))
    assert said() == []


def test_the_writer_is_found_in_the_package_before_anything_else_is_used() -> None:
    assert fmapboard.__getattr__("writers").WandbWriter is WandbWriter


def test_anything_but_a_run_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"run=str: expected a run of wandb.init\(\)"):
        fmapboard.writers.WandbWriter("x")


def test_without_wandb_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra) as error:
        WandbWriter()
    assert str(error.value) == "WandbWriter needs 'wandb'. Run: pip install wandb"
