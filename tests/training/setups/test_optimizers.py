"""Which optimizers `fmapboard.watch` accepts, and how it logs parameters that are in none."""

from __future__ import annotations

import logging

import pytest
import torch
from networks import NestedNet
from watched_training import numbers, sgd, tags, train_step

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.writers.folder import MemoryWriter


def test_optimizer_wrappers_of_accelerate_and_fabric_are_unwrapped() -> None:
    from accelerate import Accelerator
    from lightning.fabric import Fabric

    for wrap in (
        Accelerator(cpu=True).prepare_optimizer,
        Fabric(accelerator="cpu", devices=1).setup_optimizers,
    ):
        model, kept = NestedNet(), MemoryWriter()
        optimizer = wrap(torch.optim.SGD(model.parameters(), lr=0.1))
        with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=2):
            for _ in range(4):
                train_step(model, optimizer)
        assert numbers(kept.steps) == [0, 2]
        assert "gradient_norm/stem.weight" in kept.steps[1].scalars


class WithoutBaseInit(torch.optim.Optimizer):
    def __init__(self) -> None:
        """Does not call the base class, as some published optimizers."""


def an_optimizer() -> torch.optim.SGD:
    return sgd(NestedNet())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (lambda: torch.optim.lr_scheduler.StepLR(an_optimizer(), 1), "learning-rate scheduler"),
        (
            lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(an_optimizer()),
            "optimizer=ReduceLROnPlateau: .*not a learning-rate scheduler",
        ),
        (lambda: torch.optim.SGD, "optimizer=SGD: expected an instance"),
        (lambda: [an_optimizer(), an_optimizer()], "optimizer=list of 2: expected one optimizer"),
        (lambda: NestedNet().parameters(), "optimizer=generator: expected a torch.optim.Optimizer"),
        (lambda: NestedNet(), "optimizer=NestedNet: expected a torch.optim.Optimizer"),
        (lambda: WithoutBaseInit(), "does not call Optimizer.__init__"),
    ],
)
def test_anything_but_an_optimizer_is_refused_with_a_fix(given: object, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        fmapboard.watch(NestedNet(), writer=MemoryWriter(), optimizer=given())  # type: ignore[operator]


def test_weights_of_layers_that_the_optimizer_does_not_hold_have_histograms_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1),
    ):
        for _ in range(3):
            train_step(model, optimizer)
    for step in kept.steps:
        assert {"weights/stem.weight", "weights/inner.0.0.weight"} <= tags(step)
        assert "gradients/stem.weight" not in tags(step)
        assert "gradient_norm/stem.weight" not in step.scalars
    text, verdict = caplog.messages
    assert "cause: not_in_optimizer: 6 trainable parameters" in verdict
    assert "step 0: not_in_optimizer: 6 trainable parameters are in no optimizer since" in text
    assert "`stem.weight`, `stem.bias`, `inner.0.0.weight` and 3 more" in text


def test_without_checks_nothing_is_said_of_parameters_in_no_optimizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = NestedNet()
    optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=MemoryWriter(), optimizer=optimizer, every=1, checks=False):
        train_step(model, optimizer)
    assert caplog.messages == []


def test_no_warning_is_logged_about_frozen_parameters_or_those_of_another_optimizer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model, kept = NestedNet(), MemoryWriter()
    model.stem.requires_grad_(False)
    first = torch.optim.SGD(model.inner.parameters(), lr=0.1)
    second = torch.optim.SGD(model.head.parameters(), lr=0.1)
    with (
        caplog.at_level(logging.WARNING, "fmapboard"),
        fmapboard.watch(model, writer=kept, optimizer=second, every=1),
    ):
        for _ in range(4):
            train_step(model, second)
    first.step()
    assert caplog.messages == []


def test_the_gradients_of_both_optimizers_of_a_step_are_logged() -> None:
    model, kept = NestedNet(), MemoryWriter()
    first = torch.optim.SGD(model.inner.parameters(), lr=0.1)
    second = torch.optim.SGD([*model.head.parameters(), *model.stem.parameters()], lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=second, every=1):
        for _ in range(3):
            model(torch.randn(2, 3, 12, 12)).sum().backward()
            first.step()
            second.step()
            model.zero_grad()
    for step in kept.steps:
        assert {"gradients/stem.weight", "gradients/inner.0.0.weight"} <= tags(step)
