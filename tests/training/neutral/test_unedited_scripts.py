"""Trainings that know nothing of fmapboard are bitwise the same when their models are watched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from auto_watched import watching
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import LBFGS, SGD, Adam, AdamW

STEPS = 7


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(144, 3),
    )  # fmt: skip


def loss_of(model: nn.Module) -> Tensor:
    return functional.cross_entropy(model(torch.rand(8, 1, 8, 8)), torch.randint(3, (8,)))


def classifier() -> nn.Module:
    model = network()
    optimizer = SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


def gan() -> nn.Module:
    both = nn.ModuleDict({"g": nn.Linear(4, 64), "d": network()})
    of_d, of_g = Adam(both["d"].parameters()), Adam(both["g"].parameters())
    for _ in range(STEPS):
        fake = both["g"](torch.randn(8, 4)).view(8, 1, 8, 8)
        of_d.zero_grad()
        (both["d"](fake.detach()).mean() - both["d"](torch.rand(8, 1, 8, 8)).mean()).backward()
        of_d.step()
        of_g.zero_grad()
        (-both["d"](fake).mean()).backward()
        of_g.step()
    return both


def closure() -> nn.Module:
    model = network()
    optimizer = LBFGS(model.parameters(), max_iter=4)
    for _ in range(STEPS):

        def again() -> Tensor:
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss

        optimizer.step(again)
    return model


def scaled() -> nn.Module:
    model = network()
    optimizer = AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**60, growth_interval=2)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return model


def accumulating() -> nn.Module:
    model = network()
    optimizer = SGD(model.parameters(), 0.1)
    for number in range(3 * STEPS):
        (loss_of(model) / 3).backward()
        if number % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    return model


def two_optimizers() -> nn.Module:
    model = network()
    optimizers = (
        SGD([p for p in model.parameters() if p.ndim > 1], 0.1),
        AdamW([p for p in model.parameters() if p.ndim == 1]),
    )
    for _ in range(STEPS):
        loss_of(model).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return model


def in_backward() -> nn.Module:
    model = network()
    optimizers = {parameter: SGD([parameter], 0.1) for parameter in model.parameters()}

    def step(parameter: Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    for _ in range(STEPS):
        loss_of(model).backward()
    return model


def an_optimizer_per_epoch() -> nn.Module:
    model = network()
    for _ in range(3):
        optimizer = Adam(model.parameters())
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
    return model


def averaged() -> nn.Module:
    model = network()
    optimizer = SGD(model.parameters(), 0.1)
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        average.update_parameters(model)
    return nn.ModuleList([model, average])


def with_hooks_of_its_own() -> nn.Module:
    model = network()
    optimizer = SGD(model.parameters(), 0.1)
    optimizer.register_step_post_hook(lambda *_: torch.rand(1))
    model.register_forward_hook(lambda module, args, output: output * 1.5)
    for _ in range(STEPS):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model).backward()
        optimizer.step()
    return model


KINDS = [
    *(classifier, gan, closure, scaled, accumulating, two_optimizers, in_backward),
    *(an_optimizer_per_epoch, averaged, with_hooks_of_its_own),
]


def trained(kind: Callable[[], nn.Module]) -> tuple[dict[str, Tensor], Tensor]:
    """The state of a trained model, and of the random numbers."""
    torch.manual_seed(0)
    return kind().state_dict(), torch.get_rng_state()


@pytest.mark.parametrize("kind", KINDS)
def test_a_watched_training_ends_with_the_same_weights(
    kind: Callable[[], nn.Module], tmp_path: Path
) -> None:
    plain, numbers = trained(kind)
    with watching(tmp_path, every=2) as found:
        watched, drawn = trained(kind)
    assert found.found(), found.lines
    for name, value in plain.items():
        assert torch.equal(value, watched[name]), name
    assert torch.equal(numbers, drawn)
