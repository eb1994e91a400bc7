"""A callback rehearses a training with the framework's loss, and the training stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from same_training import (
    BATCH,
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
from torch.utils.data import DataLoader, TensorDataset

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* not empty:UserWarning"),
]

QUESTIONS = 13


def weights(model: nn.Module) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in model.state_dict().values()]


def shuffled() -> DataLoader[Any]:
    return DataLoader(loader(STEPS).dataset, batch_size=BATCH, shuffle=True)


def with_lightning(directory: Path, **options: Any) -> tuple[Any, list[Tensor]]:
    from fmapboard.integrations.lightning import FeatureMapCallback

    callback = FeatureMapCallback(every=5, **options)
    module = lightning_module()

    class Logs(type(module)):  # type: ignore[misc]  # of a function
        def training_step(self, batch: Any, number: int) -> Tensor:
            loss: Tensor = super().training_step(batch, number)
            self.log("own", loss)
            self.logger.experiment.add_scalar("also", loss.item())
            return loss

    module.__class__ = Logs
    torch.manual_seed(1)
    lightning_trainer(directory, [callback]).fit(module, shuffled())
    return callback, weights(module)


def with_transformers(directory: Path, **options: Any) -> tuple[Any, list[Tensor]]:
    from fmapboard.integrations.transformers import FeatureMapCallback

    callback = FeatureMapCallback(every=5, **options)
    trainer = transformers_trainer(directory, [callback])
    trainer.train()
    return callback, weights(trainer.model)


def with_ignite(directory: Path, **options: Any) -> tuple[Any, list[Tensor]]:
    from fmapboard.integrations.ignite import FeatureMapHandler

    model, optimizer = network()
    trainer = ignite_trainer(model, optimizer, 1, None)
    handler = FeatureMapHandler(model, every=5, log_dir=directory, **options).attach(trainer)
    torch.manual_seed(1)
    trainer.run(shuffled())
    return handler, weights(model)


@pytest.mark.parametrize("framework", [with_lightning, with_transformers, with_ignite])
def test_a_framework_trains_bitwise_the_same_after_a_rehearsal_with_its_loss(
    framework: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without, bare = framework(tmp_path / "bare")
    callback, seen = framework(tmp_path / "seen", rehearse=True)
    assert without.rehearsal is None
    assert len(callback.rehearsal.outcomes) == QUESTIONS
    assert callback.rehearsal.faults == ()
    judged = {o.kind: o.answer.judgement for o in callback.rehearsal.outcomes}
    assert judged["one_batch_is_learnt"] == judged["images_mix"] == "fine"
    assert "no fault found (13 questions" in capsys.readouterr().out
    assert all(map(torch.equal, bare, seen))


def test_with_accelerate_the_first_logged_step_is_rehearsed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from fmapboard.integrations.accelerate import watch

    def trained(**options: Any) -> list[Tensor]:
        accelerator = accelerator_in(tmp_path)
        torch.manual_seed(1)
        large = DataLoader(loader(STEPS).dataset, batch_size=5 * BATCH)  # whose loss can be read
        model, optimizer, data = accelerator.prepare(*network(), large)
        with watch(accelerator, model, optimizer, every=1, **options):
            for pixels, labels in data:
                optimizer.zero_grad()
                accelerator.backward(functional.cross_entropy(model(pixels), labels))
                optimizer.step()
        accelerator.end_training()
        return weights(model)

    bare = trained()
    assert capsys.readouterr().out == ""
    seen = trained(rehearse=True)
    assert capsys.readouterr().out.count("Do images mix?") == 1
    assert all(map(torch.equal, bare, seen))


def test_lightning_hands_batches_through_its_hooks(tmp_path: Path) -> None:
    from fmapboard.integrations.lightning import FeatureMapCallback

    module = lightning_module()

    class Transfers(type(module)):  # type: ignore[misc]  # of a function
        calls = 0

        def on_after_batch_transfer(self, batch: Any, number: int) -> Any:
            self.calls += 1
            return batch[0].float() / 50, batch[1]

    module.__class__ = Transfers
    pixels, labels = loader(STEPS).dataset.tensors  # type: ignore[attr-defined]  # of tensors
    photographs = TensorDataset((50 * pixels + 150).clamp(0, 255).byte(), labels)
    callback = FeatureMapCallback(every=5, rehearse=True)
    lightning_trainer(tmp_path, [callback]).fit(module, DataLoader(photographs, BATCH))
    judged = {o.kind: o.answer.judgement for o in callback.rehearsal.outcomes}
    assert callback.rehearsal.faults == ()
    assert judged["one_batch_is_learnt"] == "fine"
    assert module.calls == STEPS


def test_with_lightning_several_loaders_are_not_rehearsed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from fmapboard.integrations.lightning import FeatureMapCallback

    module = lightning_module()

    class Both(type(module)):  # type: ignore[misc]  # of a function
        def training_step(self, batch: Any, number: int) -> Tensor:
            loss: Tensor = super().training_step(batch["first"], number)
            return loss

    module.__class__ = Both
    callback = FeatureMapCallback(every=5, rehearse=True)
    loaders = {"first": loader(STEPS), "second": loader(STEPS)}
    lightning_trainer(tmp_path, [callback]).fit(module, loaders)
    assert callback.rehearsal is None
    assert "not rehearsed: its batches come from several loaders" in caplog.text


def test_what_a_trainer_keeps_and_logs_in_its_loss_is_left_alone(tmp_path: Path) -> None:
    import transformers

    from fmapboard.integrations.transformers import FeatureMapCallback

    class Distils(transformers.Trainer):  # type: ignore[misc]  # transformers has no types
        losses: list[float]
        teacher: nn.Module

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            loss = super().compute_loss(model, inputs, *args, **kwargs)
            self.losses.append(loss.item())
            self.log({"own": loss.item()})
            return loss + 0 * self.teacher(inputs["pixels"]).sum()

    def trained(*callbacks: Any) -> tuple[Any, list[Tensor]]:
        trainer = transformers_trainer(tmp_path, list(callbacks))
        trainer.__class__ = Distils
        trainer.losses = []
        trainer.teacher = network()[0]
        trainer.train()
        return trainer, [*weights(trainer.model), *weights(trainer.teacher)]

    bare = trained()
    callback = FeatureMapCallback(every=5, rehearse=True)
    seen = trained(callback)
    assert callback.rehearsal.faults == ()
    assert seen[0].losses == bare[0].losses
    assert len(seen[0].state.log_history) == len(bare[0].state.log_history)
    assert all(map(torch.equal, bare[1], seen[1]))
    gradients = [parameter.grad for parameter in seen[0].teacher.parameters()]
    expected = [parameter.grad for parameter in bare[0].teacher.parameters()]
    assert [g is None or torch.equal(g, e) for g, e in zip(gradients, expected, strict=True)] == [
        True
    ] * len(gradients)


def test_a_loss_with_state_in_ignite_is_left_alone(tmp_path: Path) -> None:
    from ignite.engine import create_supervised_trainer

    from fmapboard.integrations.ignite import FeatureMapHandler

    class Smoothed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(()))
            self.mean: Tensor

        def forward(self, output: Tensor, labels: Tensor) -> Tensor:
            loss = functional.cross_entropy(output, labels)
            self.mean.mul_(0.9).add_(loss.detach())
            return loss

    def trained(**options: Any) -> Tensor:
        model, optimizer = network()
        loss = Smoothed()
        trainer = create_supervised_trainer(model, optimizer, loss)
        handler = FeatureMapHandler(model, every=5, log_dir=tmp_path, **options).attach(trainer)
        trainer.run(loader(STEPS))
        assert handler.rehearsal is None or handler.rehearsal.faults == ()
        return loss.mean

    assert torch.equal(trained(), trained(rehearse=True))
