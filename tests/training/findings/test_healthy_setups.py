"""Setups in which nothing is wrong: fine-tuning, several optimizers, GANs, GradScalers."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from recorded_facts import (
    WAYS,
    Around,
    Net,
    Way,
    batch,
    faults,
    loss_of,
    trained,
    training_facts,
)
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.health.read_runs import read_runs
from fmapboard.health.rules import NonfiniteCheck
from fmapboard.writers.folder import MemoryWriter

STEPS = 10
Optimizer = torch.optim.Optimizer


def plain_step(model: nn.Module, optimizer: Optimizer, around: Around, step: int) -> None:
    with around(step):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()


def plain(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        plain_step(model, optimizer, around, step)


@pytest.mark.parametrize("rate", [1e-7, 1e-12])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam], ids=["SGD", "Adam"])
def test_fine_tuning_at_a_tiny_rate_is_healthy(kind: type[Optimizer], rate: float) -> None:
    model = Net()
    optimizer = kind(model.parameters(), lr=rate)  # type: ignore[call-arg]  # any optimizer
    found = trained(plain, Way(1), model, optimizer, layers="*")
    assert [faults(one) for one in found.values()] == [set()] * STEPS
    assert found[0].rates == (rate, rate)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_layers_frozen_on_purpose_are_no_fault(way: Way) -> None:
    model = Net()
    for module in (model.stem, model.norm):
        module.requires_grad_(requires_grad=False)
    model.eval()
    model.head.train()
    rest = [p for p in model.parameters() if p.requires_grad]
    found = trained(plain, way, model, torch.optim.SGD(rest, lr=0.1))
    assert {step: faults(one) for step, one in found.items() if faults(one)} == {}


def test_layers_frozen_after_watching_began_are_not_missing_in_the_optimizer() -> None:
    model, kept = Net(), MemoryWriter()
    rest = [p for name, p in model.named_parameters() if not name.startswith("stem")]
    optimizer = torch.optim.SGD(rest, lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=STEPS):
        model.stem.requires_grad_(requires_grad=False)
        plain(model, optimizer, lambda step: nullcontext())
    (found,) = training_facts(kept.steps).values()
    assert found.not_in_optimizer == ()


def test_a_linear_probe_of_a_backbone_in_eval_mode_is_healthy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = Net()
    model.requires_grad_(requires_grad=False)
    model.head.requires_grad_(requires_grad=True)
    model.eval()
    found = trained(plain, Way(1), model, torch.optim.SGD(model.head.parameters(), lr=0.1))
    assert [faults(one) for one in found.values()] == [set()] * STEPS
    assert [record.message for record in caplog.records if "eval" in record.message] == []


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_several_optimizers_hold_all_parameters_together(way: Way) -> None:
    model = Net()
    first = torch.optim.Adam([*model.stem.parameters(), *model.norm.parameters()], lr=1e-3)
    last = torch.optim.SGD([*model.conv.parameters(), *model.head.parameters()], lr=0.1)

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                first.zero_grad()
                last.zero_grad()
                loss_of(model).backward()
                first.step()
                last.step()

    found = trained(loop, way, model, last)
    assert {step: faults(one) for step, one in found.items() if faults(one)} == {}
    assert {one.rates for one in found.values()} == {(1e-3, 0.1)}


def test_an_optimizer_that_seldom_steps_holds_its_parameters_too() -> None:
    model = Net()
    seldom = torch.optim.SGD(model.stem.parameters(), lr=0.1)
    rest = [p for n, p in model.named_parameters() if not n.startswith("stem")]
    assert seldom.param_groups
    found = trained(plain, Way(3), model, torch.optim.SGD(rest, lr=0.1))
    assert {one.not_in_optimizer for one in found.values()} == {()}


def test_an_optimizer_that_is_created_later_holds_its_parameters_from_then_on() -> None:
    model, kept = Net(), MemoryWriter()
    first = torch.optim.SGD(model.head.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=first, every=1):
        plain(model, first, lambda step: nullcontext())
        rest = [p for n, p in model.named_parameters() if not n.startswith("head")]
        second = torch.optim.SGD(rest, lr=0.1)
        second.zero_grad()
        second.step()
        plain(model, first, lambda step: nullcontext())
    found = training_facts(kept.steps)
    assert "stem.weight" in (found[STEPS - 1].not_in_optimizer or ())
    assert found[STEPS + 1].not_in_optimizer == ()


def test_parameters_that_something_else_updates_are_not_missing_in_the_optimizer() -> None:
    model = Net()

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        stem = model.get_submodule("stem")
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(model).backward()
            with torch.no_grad():
                for parameter in stem.parameters():
                    assert parameter.grad is not None
                    parameter -= 0.1 * parameter.grad
            optimizer.step()
            stem.zero_grad()

    rest = [p for n, p in model.named_parameters() if not n.startswith("stem")]
    found = trained(loop, Way(3), model, torch.optim.SGD(rest, lr=0.1))
    assert {step: faults(one) for step, one in found.items() if faults(one)} == {}


class Targeted(Net):
    """A network beside a copy of it, which gives targets and gets no gradients: DQN, BYOL, MoCo."""

    def __init__(self) -> None:
        super().__init__()
        self.target = Net()

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            target = self.target(x)
        return super().forward(x) - 0.1 * target


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("every", [1, 7], ids=["averaged", "copied at times"])
def test_a_target_network_is_not_missing_in_the_optimizer(
    way: Way, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = Targeted()
    own = [p for n, p in model.named_parameters() if not n.startswith("target")]

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            plain_step(model, optimizer, around, step)
            if step % every == every - 1:
                with torch.no_grad():
                    for target, one in zip(model.target.parameters(), own, strict=True):
                        target.lerp_(one, 0.5)

    found = trained(loop, way, model, torch.optim.SGD(own, lr=0.1))
    assert {one.not_in_optimizer for one in found.values()} == {()}
    assert "not_in_optimizer" not in caplog.text


def test_tied_parameters_are_in_the_optimizer_under_each_name() -> None:
    model = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1))
    model[1].weight = model[0].weight
    model.append(nn.Flatten()).append(nn.Linear(300, 4))
    found = trained(plain, Way(1), model)
    assert [faults(one) for one in found.values()] == [set()] * STEPS


class Gan:
    """A discriminator and a generator, trained in turns."""

    def __init__(self) -> None:
        self.judge = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.LeakyReLU(), nn.Flatten(), nn.Linear(512, 1)
        )
        self.maker = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 5), nn.ReLU(), nn.ConvTranspose2d(8, 3, 6)
        )
        self.for_judge = torch.optim.Adam(self.judge.parameters(), lr=1e-3)
        self.for_maker = torch.optim.Adam(self.maker.parameters(), lr=1e-3)

    def step(self, *, set_to_none: bool) -> None:
        noise = torch.randn(4, 4, 1, 1)
        self.for_judge.zero_grad(set_to_none=set_to_none)
        fake = self.maker(noise)
        self.judge(batch()[0]).mean().backward()
        (-self.judge(fake.detach()).mean()).backward()
        self.for_judge.step()
        self.for_maker.zero_grad(set_to_none=set_to_none)
        self.judge(fake).mean().backward()  # also leaves gradients in the discriminator
        self.for_maker.step()


@pytest.mark.each_once
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("half", ["judge", "maker"])
def test_both_halves_of_a_gan_are_healthy(half: str, way: Way, set_to_none: bool) -> None:
    torch.manual_seed(0)
    gan, kept = Gan(), MemoryWriter()
    optimizer = None if way.is_marked else getattr(gan, f"for_{half}")
    watched = getattr(gan, half)
    with fmapboard.watch(watched, writer=kept, optimizer=optimizer, every=way.every) as board:
        for step in range(STEPS):
            with board.step(step) if way.is_marked else nullcontext():
                gan.step(set_to_none=set_to_none)
    found = training_facts(kept.steps)
    assert len(found) >= STEPS // way.every
    assert {step: faults(one) for step, one in found.items() if faults(one)} == {}


@pytest.mark.parametrize(("fused", "is_marked"), [(False, False), (True, False), (False, True)])
def test_steps_that_a_grad_scaler_skips_are_healthy(
    fused: bool, is_marked: bool, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120, growth_interval=1000)
    options: dict[str, Any] = {"scaler": scaler, "every": 1, "activation_gradients": True}
    if not is_marked:
        options["optimizer"] = optimizer
    with fmapboard.watch(model, tmp_path, layers="*", **options) as board:
        for step in range(12):
            with board.step(step) if is_marked else nullcontext():
                optimizer.zero_grad()
                x, y = batch()
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    loss = functional.cross_entropy(model(x).float() * 1e6, y)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
    assert scaler.get_scale() < 2.0**119
    ((record,),) = (run.records for run in read_runs(tmp_path))
    assert record.facts
    assert {step: faults(one) for step, one in record.facts.items() if faults(one)} == {}
    assert NonfiniteCheck()(record) == []
