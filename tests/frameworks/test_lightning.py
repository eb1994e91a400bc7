"""The Lightning callback under Lightning's own Trainer."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from module_hooks import hook_count
from same_training import (
    lightning,
    lightning_module,
    lightning_trainer,
    loader,
    network,
    series,
    steps,
)
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.integrations.lightning import FeatureMapCallback, network_of

# Hints of Lightning about few workers, no validation data, a reused directory and no seed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* not empty:UserWarning"),
    pytest.mark.filterwarnings("ignore:No seed found:UserWarning"),
]


def run_of(trainer: Any) -> Path:
    return Path(trainer.logger.log_dir) / "fmapboard"


def test_norms_before_clipping_are_those_of_the_unclipped_gradient(tmp_path: Path) -> None:
    model, _ = network()
    pixels, labels = next(iter(loader(1)))
    functional.cross_entropy(model(pixels), labels).backward()
    norm = math.sqrt(sum(p.grad.double().square().sum().item() for p in model.parameters()))
    assert norm > 0.05
    run = series(lightning(tmp_path, clip=0.05))
    assert run["gradient_norm_before_clipping/total"][0] == (0, pytest.approx(norm, rel=1e-5))
    assert run["gradient_norm/total"][0] == (0, pytest.approx(0.05, rel=1e-4))
    weight = model.stem.weight.grad.norm().item()
    first = run["gradient_norm_before_clipping/stem.weight"][0]
    assert first == (0, pytest.approx(weight, rel=1e-5))
    assert [step for step, _ in run["gradient_norm_before_clipping/total"]] == [0, 3, 6, 9]


def test_without_clipping_there_is_no_norm_before_it(tmp_path: Path) -> None:
    assert not any("before_clipping" in tag for tag in series(lightning(tmp_path)))


def test_the_sanity_check_is_not_recorded(tmp_path: Path) -> None:
    run = series(lightning(tmp_path, validation=True))
    assert [step for step, _ in run["validation.feature_maps_8x3x5x5/stem"]] == [10]


@pytest.mark.parametrize("logger", [False, "csv"])
def test_without_a_tensorboard_logger_the_run_has_a_directory_of_its_own(
    logger: Any, tmp_path: Path
) -> None:
    import lightning.pytorch as pl

    loggers = pl.loggers.CSVLogger(tmp_path) if logger == "csv" else False
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=5)], logger=loggers)
    trainer.fit(lightning_module(), loader(10))
    (run,) = (tmp_path / "runs").iterdir()
    assert steps(run) == [0, 5]


def test_share_writer_without_a_tensorboard_logger_is_refused(tmp_path: Path) -> None:
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(share_writer=True)], logger=False)
    with pytest.raises(fmapboard.ConfigurationError, match="has no TensorBoard logger"):
        trainer.fit(lightning_module(), loader(2))


@pytest.mark.parametrize("when", [{"every_n_train_steps": 5}, {"every_n_epochs": 1}])
def test_a_resumed_training_continues_from_the_checkpoint(
    tmp_path: Path, when: dict[str, int]
) -> None:
    import lightning.pytorch as pl

    def fit(checkpoint: str | None, until: int) -> Any:
        saves = pl.callbacks.ModelCheckpoint(dirpath=tmp_path / "saved", save_top_k=-1, **when)
        trainer = lightning_trainer(
            tmp_path,
            [saves, FeatureMapCallback(every=2)],
            logger=pl.loggers.TensorBoardLogger(tmp_path, version=0),
            max_steps=until,
        )
        trainer.fit(lightning_module(), loader(5), ckpt_path=checkpoint)
        return trainer

    fit(None, 8)
    (saved,) = (tmp_path / "saved").glob("*step=5.ckpt")
    run = run_of(fit(str(saved), 12))
    assert steps(run) == [0, 2, 4, 6, 8, 10]
    assert len(list(run.glob("*tfevents*"))) == 2  # step 6 of the first run is discarded


def test_a_second_fit_continues_the_run(tmp_path: Path) -> None:
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=2)], max_steps=4)
    module = lightning_module()
    trainer.fit(module, loader(10))
    trainer.fit_loop.epoch_loop.max_steps = 8
    trainer.fit(module, loader(10))
    assert steps(run_of(trainer)) == [0, 2, 4, 6]


def test_under_bfloat16_the_records_are_those_of_the_trainers_autocast(tmp_path: Path) -> None:
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=5)], precision="bf16-mixed")
    trainer.fit(lightning_module(), loader(10))
    run = series(run_of(trainer))
    model, _ = network()
    pixels, labels = next(iter(loader(1)))
    with torch.autocast("cpu", torch.bfloat16):
        functional.cross_entropy(model(pixels), labels).backward()
    norm = model.stem.weight.grad.norm().item()
    assert run["gradient_norm/stem.weight"][0] == (0, pytest.approx(norm, rel=1e-5))


def test_norms_are_unscaled_and_skipped_steps_counted_under_a_grad_scaler(tmp_path: Path) -> None:
    from lightning.pytorch.plugins import MixedPrecision

    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)

    class Overflowing(type(lightning_module())):  # type: ignore[misc]  # made in a function
        def training_step(self, batch: Any, number: int) -> Tensor:
            loss = super().training_step(batch, number)
            return loss * (math.inf if number == 1 else 1.0)

    module = Overflowing()
    module.load_state_dict(network()[0].state_dict())
    trainer = lightning_trainer(
        tmp_path,
        [FeatureMapCallback(every=2)],
        plugins=[MixedPrecision("16-mixed", device="cpu", scaler=scaler)],
        max_steps=4,
        gradient_clip_val=100.0,
    )
    trainer.fit(module, loader(4))
    run = series(run_of(trainer))
    assert run["fmapboard/skipped_steps"] == [(0, 0.0), (2, 0.0)]
    model, _ = network()
    pixels, labels = next(iter(loader(1)))
    with torch.autocast("cpu", torch.float16):
        functional.cross_entropy(model(pixels), labels).backward()
    norm = model.head.weight.grad.norm().item()
    assert run["gradient_norm/head.weight"][0] == (0, pytest.approx(norm, rel=1e-2))
    before = run["gradient_norm_before_clipping/head.weight"]
    assert before == [(s, pytest.approx(v)) for s, v in run["gradient_norm/head.weight"]]


def test_a_part_of_the_module_can_be_watched_by_name(tmp_path: Path) -> None:
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=5, module="inner")])
    trainer.fit(lightning_module(), loader(10))
    run = series(run_of(trainer))
    assert "feature_maps_16x8x3x3/0.0" in run
    assert "gradient_norm/0.0.weight" in run
    assert not any("stem" in tag for tag in run)


def test_several_optimizers_count_as_lightnings_own_charts_do(tmp_path: Path) -> None:
    class TwoOptimizers(type(lightning_module())):  # type: ignore[misc]  # made in a function
        automatic_optimization = False

        def training_step(self, batch: Any, number: int) -> None:
            loss = functional.cross_entropy(self(batch[0]), batch[1])
            self.manual_backward(loss)
            self.log("loss", loss)
            for optimizer in self.optimizers():
                optimizer.step()
                optimizer.zero_grad()

        def configure_optimizers(self) -> list[torch.optim.Optimizer]:
            head = [*self.head.parameters()]
            body = [p for p in self.parameters() if all(p is not other for other in head)]
            return [torch.optim.SGD(part, lr=0.1) for part in (body, head)]

    callback = FeatureMapCallback(every=3)
    trainer = lightning_trainer(tmp_path, [callback], max_steps=20)
    trainer.fit(TwoOptimizers(), loader(10))
    run = series(run_of(trainer))
    assert [step for step, _ in run["gradient_norm/stem.weight"]] == [0, 3, 6, 9]
    assert [step for step, _ in run["gradient_norm/head.weight"]] == [0, 3, 6, 9]
    own = series(Path(trainer.logger.log_dir))
    assert [step for step, _ in own["loss"]] == list(range(10))


def test_a_training_that_fails_leaves_its_records_and_no_hook(tmp_path: Path) -> None:
    class Breaking(type(lightning_module())):  # type: ignore[misc]  # made in a function
        def training_step(self, batch: Any, number: int) -> Tensor:
            loss = super().training_step(batch, number)
            if number == 3:
                assert hook_count(self) > 0
                raise RuntimeError("a bug of the user's")
            return loss

    module = Breaking()
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=1)])
    with pytest.raises(RuntimeError, match="a bug of the user's"):
        trainer.fit(module, loader(10))
    assert hook_count(module) == 0
    assert steps(run_of(trainer)) == [0, 1, 2]


def test_a_fast_dev_run_writes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = lightning_trainer(tmp_path, [FeatureMapCallback(every=1)], fast_dev_run=2)
    trainer.fit(lightning_module(), loader(10), loader(2))
    assert not list(tmp_path.rglob("*tfevents*"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Lightning 2.5, about jsonargparse
def test_lightning_cli_configures_the_callback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lightning.pytorch.cli import LightningCLI

    config = tmp_path / "config.yaml"
    config.write_text(
        "trainer:\n"
        "  max_steps: 4\n  accelerator: cpu\n  enable_progress_bar: false\n"
        "  enable_model_summary: false\n  log_every_n_steps: 1\n"
        f"  default_root_dir: {tmp_path}\n"
        "  callbacks:\n"
        "    - class_path: fmapboard.integrations.lightning.FeatureMapCallback\n"
        "      init_args: {every: 2, layers: ['stem', 'inner*'], samples: 2, validation: true}\n"
    )
    monkeypatch.setenv("JSONARGPARSE_DEPRECATION_WARNINGS", "off")  # of calls in Lightning itself
    monkeypatch.setattr(sys, "argv", ["train.py", "--config", str(config)])
    cli = LightningCLI(type(lightning_module()), run=False, save_config_callback=None)
    cli.trainer.fit(cli.model, loader(4), loader(2))
    run = series(run_of(cli.trainer))
    assert [step for step, _ in run["gradient_norm/total"]] == [0, 2]
    assert [step for step, _ in run["validation.feature_maps_8x3x5x5/stem"]] == [4]


class Images(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Random images of four classes."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 16, 16, generator=generator), index % 4


def convolutions() -> nn.Sequential:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)]
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), *head)


class Metric(nn.Module):
    """As a metric of torchmetrics: a module without parameters, with a state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("correct", torch.zeros(()))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return (logits.argmax(1) == labels).float().mean()


def training(called: str) -> Any:
    """A LightningModule whose ``training_step`` calls ``net``, itself, or two networks."""
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = convolutions()
            if called == "two networks":
                self.other = convolutions()
            self.accuracy = Metric()
            self.criterion = nn.CrossEntropyLoss()

        def forward(self, images: Tensor) -> Tensor:
            return self.net(images)

        def training_step(self, batch: list[Tensor], number: int) -> Tensor:
            images, labels = batch
            logits = self(images) if called == "itself" else self.net(images)
            if called == "two networks":
                logits = logits + self.other(images)
            self.accuracy(logits, labels)
            return self.criterion(logits, labels)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Module()


def tags_of(directory: Path, module: Any, **options: Any) -> set[str]:
    callback = FeatureMapCallback(every=2, **options)
    trainer = lightning_trainer(directory, [callback], logger=False, max_steps=4)
    trainer.fit(module, torch.utils.data.DataLoader(Images(), batch_size=16))
    (run,) = (directory / "runs").iterdir()
    return set(series(run))


@pytest.mark.parametrize("called", ["net", "itself"])
def test_the_network_is_watched_whether_training_step_calls_it_or_the_lightning_module(
    called: str, tmp_path: Path
) -> None:
    tags = tags_of(tmp_path, training(called))
    assert {"network_input/sample_0", "batchnorm_gap/1", "feature_maps_8x3x3x3/0"} <= tags


def test_of_two_networks_the_lightning_module_is_watched(tmp_path: Path) -> None:
    tags = tags_of(tmp_path, training("two networks"))
    maps = {"feature_maps_8x3x3x3/net.0", "feature_maps_8x3x3x3/other.0"}
    assert maps | {"network_input/sample_0", "batchnorm_gap/net.1"} <= tags


def test_with_layers_their_names_start_at_the_lightning_module(tmp_path: Path) -> None:
    tags = tags_of(tmp_path, training("itself"), layers="net.0")
    assert "feature_maps_8x3x3x3/net.0" in tags


def test_a_lightning_module_that_is_the_network_is_watched_with_metrics_beside_its_layers() -> None:
    import lightning.pytorch as pl

    module = pl.LightningModule()
    module.stem, module.head, module.accuracy = convolutions(), nn.Linear(4, 4), Metric()
    assert network_of(module) is module
    del module.head
    assert network_of(module) is module.stem
    module.stem = nn.ModuleList([nn.Conv2d(3, 8, 3)])  # it cannot be called
    assert network_of(module) is module
    module.stem = nn.Linear(4, 4)  # it has no layers
    assert network_of(module) is module
