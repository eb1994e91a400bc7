"""A callback proves the cause of a fault at the end, and the training stays as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from same_training import (
    STEPS,
    accelerator_in,
    ignite_trainer,
    lightning_module,
    lightning_trainer,
    loader,
    network,
    transformers_trainer,
)
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.rehearsal.prove import Experiments

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* not empty:UserWarning"),
]

RATE = 30.0
"""Far too high."""


class Stops(Exception):
    """An error of the user's training."""


def weights(model: nn.Module) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in model.state_dict().values()]


def with_lightning(directory: Path, ends: int, **options: Any) -> list[Tensor]:
    from fmapboard.integrations.lightning import FeatureMapCallback

    module = lightning_module()

    class Fast(type(module)):  # type: ignore[misc]  # of a function
        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=RATE, momentum=0.9)

        def training_step(self, batch: Any, number: int) -> Tensor:
            if number == ends:
                raise Stops
            loss: Tensor = super().training_step(batch, number)
            return loss

    module.__class__ = Fast
    callbacks = [FeatureMapCallback(every=1, **options)] if options else []
    lightning_trainer(directory, callbacks).fit(module, loader(STEPS), loader(1))
    return weights(module)


def failing(step: int) -> Any:
    """A callback of transformers that raises at a step."""
    import transformers

    class Fails(transformers.TrainerCallback):  # type: ignore[misc]  # transformers has no types
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == step:
                raise Stops

    return Fails()


def with_transformers(directory: Path, ends: int, **options: Any) -> list[Tensor]:
    from fmapboard.integrations.transformers import FeatureMapCallback

    callbacks: list[Any] = [FeatureMapCallback(every=1, **options)] if options else []
    trainer = transformers_trainer(directory, [*callbacks, failing(ends)])
    for group in trainer.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = RATE
    trainer.lr_scheduler.base_lrs = [RATE]
    trainer.train()
    return weights(trainer.model)


def with_ignite(directory: Path, ends: int, **options: Any) -> list[Tensor]:
    from ignite.engine import Events

    from fmapboard.integrations.ignite import FeatureMapHandler

    model, optimizer = network()
    optimizer.param_groups[0]["lr"] = RATE
    trainer = ignite_trainer(model, optimizer, 1, None)
    if options:
        FeatureMapHandler(model, every=1, log_dir=directory, **options).attach(trainer)

    @trainer.on(Events.ITERATION_STARTED)
    def stop() -> None:
        if trainer.state.iteration == ends + 1:
            raise Stops

    trainer.run(loader(STEPS))
    return weights(model)


def with_accelerate(directory: Path, ends: int, **options: Any) -> list[Tensor]:
    from fmapboard.integrations.accelerate import watch

    accelerator = accelerator_in(directory)
    model, optimizer, data = accelerator.prepare(*network(), loader(STEPS))
    optimizer.param_groups[0]["lr"] = RATE

    def train() -> None:
        for number, (pixels, labels) in enumerate(data):
            if number == ends:
                raise Stops
            optimizer.zero_grad()
            accelerator.backward(functional.cross_entropy(model(pixels), labels))
            optimizer.step()

    if options:
        with watch(accelerator, model, optimizer, every=1, **options):
            train()
    else:
        train()
    accelerator.end_training()
    return weights(model)


FRAMEWORKS = [with_lightning, with_transformers, with_ignite, with_accelerate]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_framework_trains_bitwise_the_same_and_its_cause_is_proven(
    framework: Any, tmp_path: Path
) -> None:
    bare = framework(tmp_path / "bare", STEPS)
    validation = {} if framework is with_accelerate else {"validation": True}
    seen = framework(tmp_path / "seen", STEPS, prove=True, **validation)
    assert all(map(torch.equal, bare, seen))
    (summary,) = (tmp_path / "seen").rglob("fmapboard_summary.json")
    cause = json.loads(summary.read_text())["cause"]
    assert cause["kind"] == "updates_too_large"
    assert (cause["proof"]["outcome"], cause["proof"]["steps"]) == ("proven", 50)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_after_an_exception_nothing_is_proven(
    framework: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def prove(self: Experiments, findings: Any) -> dict[str, Any]:
        asked.append(findings)
        return {}

    monkeypatch.setattr(Experiments, "prove", prove)
    with pytest.raises(Stops):
        framework(tmp_path, STEPS // 2, prove=True)
    assert asked == []
    validation = {} if framework is with_accelerate else {"validation": True}
    framework(tmp_path / "again", STEPS, prove=True, **validation)
    assert len(asked) == 1


def test_a_callback_that_is_used_again_proves_nothing_of_the_run_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fmapboard.integrations.transformers import FeatureMapCallback

    steps: list[int] = []

    def prove(self: Experiments, findings: Any) -> dict[str, Any]:
        steps.append(len(self.kept.rates))
        return {}

    monkeypatch.setattr(Experiments, "prove", prove)
    callback = FeatureMapCallback(every=1, prove=True)

    trainer = transformers_trainer(tmp_path, [callback])
    fails = failing(STEPS // 2)
    trainer.add_callback(fails)
    with pytest.raises(Stops):
        trainer.train()
    trainer.remove_callback(fails)
    trainer.train()
    assert steps == [STEPS]


def test_an_invalid_number_of_seconds_is_refused_when_the_callback_is_made() -> None:
    from fmapboard.integrations.lightning import FeatureMapCallback

    with pytest.raises(fmapboard.ConfigurationError, match="prove=-1: expected True, False"):
        FeatureMapCallback(prove=-1)
