"""Frameworks whose scripts know nothing of fmapboard train bitwise the same when watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from auto_watched import watching
from same_training import (
    STEPS,
    ignite_trainer,
    lightning_module,
    lightning_trainer,
    loader,
    network,
    transformers_trainer,
)
from torch import nn
from torch.nn import functional


def lightning(folder: Path) -> nn.Module:
    module = lightning_module()
    lightning_trainer(folder, []).fit(module, loader(STEPS), loader(2))
    return module


def transformers(folder: Path) -> nn.Module:
    trainer = transformers_trainer(folder, [])
    trainer.train()
    return trainer.model


def ignite(folder: Path) -> nn.Module:
    model, optimizer = network()
    ignite_trainer(model, optimizer, 1, None).run(loader(STEPS))
    return model


def accelerate(folder: Path) -> nn.Module:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model, optimizer, batches = accelerator.prepare(*network(), loader(STEPS))
    for pixels, labels in batches:
        with accelerator.accumulate(model):
            accelerator.backward(functional.cross_entropy(model(pixels), labels))
            optimizer.step()
            optimizer.zero_grad()
    return model


def compiled(folder: Path) -> nn.Module:
    model, optimizer = network()
    fast = torch.compile(model, backend="aot_eager")
    for pixels, labels in loader(STEPS):
        functional.cross_entropy(fast(pixels), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


FRAMEWORKS = {
    lightning: "Module",
    transformers: "NetWithLoss",
    ignite: "NetWithLoss",
    accelerate: "NetWithLoss",
    compiled: "NetWithLoss",
}
"""A training -> the class of the model that is watched."""


LONG = {lightning, compiled}


@pytest.mark.parametrize(
    "train",
    [pytest.param(t, marks=[pytest.mark.sweep] if t in LONG else []) for t in FRAMEWORKS],
)
def test_a_training_of_a_framework_is_watched_and_ends_with_the_same_weights(
    train: Callable[[Path], nn.Module], tmp_path: Path
) -> None:
    torch.manual_seed(3)
    plain = train(tmp_path / "plain").state_dict()
    numbers = torch.get_rng_state()
    torch.manual_seed(3)
    with watching(tmp_path / "run") as found:
        watched = train(tmp_path / "watched")
    assert found.found() == {None: FRAMEWORKS[train]}
    assert found.steps() == [STEPS]
    for name, value in watched.state_dict().items():
        assert torch.equal(value, plain[name]), name
    assert torch.equal(numbers, torch.get_rng_state())
