"""A callback rehearses a training with the framework's loss, and the training stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from same_training import (
    BATCH,
    STEPS,
    ignite_trainer,
    lightning_module,
    lightning_trainer,
    loader,
    network,
    transformers_trainer,
)
from torch import Tensor, nn
from torch.utils.data import DataLoader

pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* not empty:UserWarning"),
]

QUESTIONS = 9


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
    assert "no fault found (9 questions" in capsys.readouterr().out
    assert all(map(torch.equal, bare, seen))
