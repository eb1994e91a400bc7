"""What a framework's own training loop does is recorded as in a plain one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from recorded_facts import Net, faults
from same_training import FRAMEWORKS, lightning_trainer, loader, series
from torch import Tensor
from torch.nn import functional

from fmapboard.formats import tags
from fmapboard.formats.training_facts import TrainingFacts
from fmapboard.integrations.lightning import FeatureMapCallback

# Hints of Lightning about few workers, no validation data, a reused directory and no seed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::lightning.fabric.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* not empty:UserWarning"),
    pytest.mark.filterwarnings("ignore:No seed found:UserWarning"),
]


def recorded(run: Path) -> dict[int, TrainingFacts]:
    return dict(series(run)[tags.TRAINING_FACTS])


@pytest.mark.each_once
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_healthy_training_has_no_fault(framework: str, accumulate: int, tmp_path: Path) -> None:
    found = recorded(FRAMEWORKS[framework](tmp_path, accumulate=accumulate))
    assert list(found) == [0, 3, 6, 9]
    assert [faults(one) for one in found.values()] == [set()] * 4
    assert {one.not_cleared for one in found.values()} == {()}
    assert {one.eval_mode for one in found.values()} == {False}


def lightning_run(directory: Path, **faulty: Any) -> dict[int, TrainingFacts]:
    import lightning.pytorch as pl

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()
            if faulty.get("in_eval_mode"):
                self.net.eval()

        def training_step(self, batch: Any, number: int) -> Tensor:
            return functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            part = self.net.head if faulty.get("only_the_head") else self.net
            return torch.optim.SGD(part.parameters(), lr=0.1)

        def optimizer_zero_grad(self, *args: Any) -> None:
            if not faulty.get("never_cleared"):
                super().optimizer_zero_grad(*args)

    trainer = lightning_trainer(directory, [FeatureMapCallback(every=3)])
    trainer.fit(Module(), loader(10))
    return recorded(Path(trainer.logger.log_dir) / "fmapboard")


def test_gradients_that_lightning_does_not_clear_are_recorded(tmp_path: Path) -> None:
    found = lightning_run(tmp_path, never_cleared=True)
    assert [faults(one) for one in found.values()] == [set(), *[{"not_cleared"}] * 3]


def test_a_network_that_lightning_leaves_in_eval_mode_is_recorded(tmp_path: Path) -> None:
    found = lightning_run(tmp_path, in_eval_mode=True)
    assert [faults(one) for one in found.values()] == [{"eval_mode"}] * 4
    assert found[0].eval_modules == ("norm", "drop")


def test_parameters_that_lightnings_optimizer_lacks_are_recorded(tmp_path: Path) -> None:
    found = lightning_run(tmp_path, only_the_head=True)
    assert {frozenset(faults(one)) for one in found.values()} == {frozenset({"not_in_optimizer"})}
    assert "stem.weight" in (found[0].not_in_optimizer or ())
