"""The frameworks' own W&B loggers, offline: what reaches their run, and what is said if nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from same_training import (
    lightning_module,
    lightning_trainer,
    loader,
    network,
    steps,
    transformers_trainer,
)
from torch.nn import functional

from fmapboard.writers import WandbWriter

wandb = pytest.importorskip("wandb")
from wandb_runs import rows, x_axes  # noqa: E402  # needs wandb

# Hints of Lightning about few workers, no validation data and no seed; Lightning's use of W&B.
pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:No seed found:UserWarning"),
]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings = {"MODE": "offline", "SILENT": "true", "CONSOLE": "off", "DIR": str(tmp_path / "w")}
    (tmp_path / "w").mkdir()
    for name, value in settings.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    wandb.teardown()  # the settings are read when it starts
    yield
    wandb.finish()
    wandb.teardown()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [each.getMessage() for each in caplog.records if each.name == "fmapboard"]


def lightning(directory: Path, **options: Any) -> None:
    import lightning.pytorch as pl

    from fmapboard.integrations.lightning import FeatureMapCallback

    callback = FeatureMapCallback(every=2, **options)
    logger = pl.loggers.WandbLogger(save_dir=directory / "w", project="x")
    lightning_trainer(directory, [callback], max_steps=5, logger=logger, log_every_n_steps=5).fit(
        lightning_module(), loader(5), loader(2)
    )


def transformers(directory: Path, **options: Any) -> None:
    from fmapboard.integrations.transformers import FeatureMapCallback

    callback = FeatureMapCallback(every=2, **options)
    arguments = {"max_steps": 5, "report_to": ["wandb"], "eval_strategy": "epoch"}
    transformers_trainer(directory, [callback], **arguments).train()


def accelerate(directory: Path, **options: Any) -> None:
    from accelerate import Accelerator

    from fmapboard.integrations.accelerate import watch

    accelerator = Accelerator(cpu=True, project_dir=str(directory), log_with="wandb")
    accelerator.init_trackers("x")
    model, optimizer, data = accelerator.prepare(*network(), loader(5))
    with watch(accelerator, model, optimizer, every=2, **options) as board:
        for number, (pixels, labels) in enumerate(data):
            loss = functional.cross_entropy(model(pixels), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            board.flush()
            accelerator.log({"loss": loss.item()}, step=10 * number)
    accelerator.end_training()


FRAMEWORKS = [lightning, transformers, accelerate]


@pytest.mark.parametrize("train", FRAMEWORKS, ids=lambda train: train.__name__)
def test_a_wandb_logger_alone_is_answered_with_the_option_that_helps(
    train: Callable[..., None], tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    train(tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    assert steps(run) == [0, 2, 4]
    assert said() == [
        f"fmapboard: W&B receives no feature maps, they are in {run} only: pass share_writer=True "
        "to log them to the framework's W&B run, or log_dir= to keep them in a directory"
    ]


@pytest.mark.parametrize("train", FRAMEWORKS, ids=lambda train: train.__name__)
def test_share_writer_logs_every_step_to_the_frameworks_run(
    train: Callable[..., None], tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    train(tmp_path, share_writer=True)
    wandb.finish()
    assert not (tmp_path / "runs").exists()
    stored = rows(tmp_path / "w")
    ours = [row for row in stored if "gradient_norm/total" in row]
    assert [row["fmapboard/step"] for row in ours] == [0, 2, 4]
    assert all("feature_maps_8x3x5x5/stem.filenames" in row for row in ours)
    assert x_axes(tmp_path / "w")["gradient_norm/stem.weight"] == "fmapboard/step"
    if train is accelerate:  # whose users pass step=
        assert [row["_step"] for row in stored if "loss" in row] == [0, 10, 20, 30, 40]
    assert said() == []


def test_a_validation_is_logged_to_the_run_too_by_a_writer_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Recorded(WandbWriter):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self)

    monkeypatch.setattr("fmapboard.integrations.lightning.WandbWriter", Recorded)
    monkeypatch.setattr("fmapboard.integrations.training_run.WandbWriter", Recorded)
    lightning(tmp_path, share_writer=True, validation=True)
    assert len(made) == 2, "each is used by one worker thread"
    wandb.finish()
    stored = rows(tmp_path / "w")
    assert [row["fmapboard/step"] for row in stored if "fmapboard/step" in row] == [0, 2, 4]
    (row,) = [row for row in stored if "fmapboard/step_validation" in row]
    assert row["fmapboard/step_validation"] == 5
    assert "validation.feature_maps_8x3x5x5/stem.filenames" in row


@pytest.mark.parametrize("chosen", ["log_dir", "sync"])
def test_nothing_is_said_about_wandb_where_the_place_was_chosen(
    chosen: str, tmp_path: Path, said: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if chosen == "sync":  # what wandb.init(sync_tensorboard=True) leaves
        monkeypatch.setitem(wandb.patched, "tensorboard", [["torch", "EventFileWriter"]])
    lightning(tmp_path, **({"log_dir": tmp_path / "mine"} if chosen == "log_dir" else {}))
    assert said() == []
