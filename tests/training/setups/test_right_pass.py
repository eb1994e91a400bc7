"""A logged step shows the first forward pass that contributed to its gradients."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
import torch
from marked_passes import Marked, filled, marks
from torch import nn

import fmapboard
from fmapboard.writers.folder import MemoryWriter

STEPS = 5
Loop = Callable[[nn.Module, torch.optim.Optimizer], None]
MARKED = {"constant_images": False, "gradients_not_cleared": False}  # marks are constant images


def shown(loop: Loop, **options: object) -> list[float | None]:
    """For each step of a training loop, the mark of the pass that was logged."""
    torch.manual_seed(0)
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.01)
    options = {"checks": MARKED, **options}
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, **options):
        loop(model, optimizer)
    return marks(kept.steps)


def zero_grad_first(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        optimizer.zero_grad()
        model(filled(step)).sum().backward()
        optimizer.step()


def zero_grad_between_forward_and_backward(model: nn.Module, optimizer: torch.optim.SGD) -> None:
    for step in range(STEPS):
        loss = model(filled(step)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def zero_grad_after_the_step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        model(filled(step)).sum().backward()
        optimizer.step()
        model.zero_grad()


def gradients_are_zeroed_in_place(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        model(filled(100 + step)).sum().backward()  # its gradients are discarded
        optimizer.zero_grad(set_to_none=False)
        model(filled(step)).sum().backward()
        optimizer.step()


def accumulation(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        for part in range(4):
            model(filled(step + 100 * part)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def two_forwards_before_one_backward(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        optimizer.zero_grad()
        first, second = model(filled(step)), model(filled(100 + step))  # siamese
        (first - second).square().mean().backward()
        optimizer.step()


def a_pass_that_is_discarded(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        preview = model(filled(100 + step))
        model(filled(step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        del preview


def sloppy_validation(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Validates in eval mode with gradients enabled, on more batches than fmapboard keeps."""
    for step in range(STEPS):
        model.eval()
        for number in range(20):
            found = model(filled(100 + number)).mean()
        assert found.requires_grad
        model.train()
        model(filled(step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def previews_without_gradients(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for step in range(STEPS):
        with torch.no_grad():
            model(filled(100))
        model(filled(step)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def many_passes_whose_gradients_are_discarded(
    model: nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    for step in range(STEPS):
        for part in range(12):
            optimizer.zero_grad()
            model(filled(100 + part)).sum().backward()
        optimizer.zero_grad()
        model(filled(step)).sum().backward()
        optimizer.step()


LOOPS = [
    many_passes_whose_gradients_are_discarded,
    zero_grad_first,
    zero_grad_between_forward_and_backward,
    zero_grad_after_the_step,
    gradients_are_zeroed_in_place,
    accumulation,
    two_forwards_before_one_backward,
    a_pass_that_is_discarded,
    sloppy_validation,
    previews_without_gradients,
]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_logged_step_shows_the_first_pass_that_its_gradients_come_from(loop: Loop) -> None:
    assert shown(loop) == [float(step) for step in range(STEPS)]


def test_with_lbfgs_the_pass_of_the_closures_first_evaluation_is_shown() -> None:
    model, kept = Marked(), MemoryWriter()
    optimizer = torch.optim.LBFGS(
        [p for p in model.parameters() if p.requires_grad], max_iter=4, history_size=4
    )
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for step in range(STEPS):
            calls = 0

            def closure(step: int = step) -> torch.Tensor:
                nonlocal calls
                optimizer.zero_grad()
                loss = model(filled(step + 100 * calls)).square().mean()
                loss.backward()
                calls += 1
                return loss

            optimizer.step(closure)
            assert calls > 1
    assert marks(kept.steps) == [float(step) for step in range(STEPS)]


class Gan:
    """The training loop of DCGAN in pytorch/examples, with marked batches.

    In `train`, real batches are filled with 10 + step and noise with 0.5 + step.
    """

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.generator, self.critic = Marked(), Marked()
        self.of_generator = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.clear_late = False
        self.critic_steps = 1
        self.in_place = False

    def clear(self, model: nn.Module) -> None:
        model.zero_grad(set_to_none=not self.in_place)

    def critic_step(self, real: float, noise: float) -> torch.Tensor:
        if self.clear_late:
            found = self.critic(filled(real))
            self.clear(self.critic)
        else:
            self.clear(self.critic)
            found = self.critic(filled(real))
        found.sum().backward()
        fake = self.generator(filled(noise))
        (-self.critic(fake.detach()).sum()).backward()
        self.of_critic.step()
        return fake

    def train(self) -> None:
        for step in range(STEPS):
            for _ in range(self.critic_steps):
                fake = self.critic_step(10 + step, 0.5 + step)
            self.clear(self.generator)
            self.critic(fake).sum().backward()
            self.of_generator.step()
            with torch.no_grad():
                self.generator(filled(77))


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("clear_late", [False, True])
def test_a_discriminator_shows_the_real_batch_and_a_generator_the_pass_of_its_own_update(
    clear_late: bool, in_place: bool
) -> None:
    gan, of_critic, of_generator = Gan(), MemoryWriter(), MemoryWriter()
    gan.clear_late, gan.in_place = clear_late, in_place
    with (
        fmapboard.watch(gan.critic, writer=of_critic, optimizer=gan.of_critic, every=1),
        fmapboard.watch(gan.generator, writer=of_generator, optimizer=gan.of_generator, every=1),
    ):
        gan.train()
    assert marks(of_critic.steps) == [10.0 + step for step in range(STEPS)]
    assert marks(of_generator.steps) == [0.5 + step for step in range(STEPS)]


def test_each_of_several_critic_steps_shows_its_real_batch() -> None:
    gan, kept = Gan(), MemoryWriter()
    gan.critic_steps = 3
    with fmapboard.watch(gan.critic, writer=kept, optimizer=gan.of_critic, every=1):
        gan.train()
    assert marks(kept.steps) == [10.0 + step for step in range(STEPS) for _ in range(3)]


def test_a_discriminator_that_is_frozen_in_the_generators_update_shows_the_real_batch() -> None:
    gan, kept = Gan(), MemoryWriter()
    trained = [p for p in gan.critic.parameters() if p.requires_grad]
    with fmapboard.watch(gan.critic, writer=kept, optimizer=gan.of_critic, every=1):
        for step in range(STEPS):
            gan.critic(filled(10 + step)).sum().backward()
            gan.of_critic.step()
            gan.of_critic.zero_grad()
            for parameter in trained:
                parameter.requires_grad_(False)
            gan.critic(gan.generator(filled(step))).sum().backward()
            for parameter in trained:
                parameter.requires_grad_(True)
    assert marks(kept.steps) == [10.0 + step for step in range(STEPS)]


def test_a_step_marked_by_hand_around_both_updates_shows_the_real_batch() -> None:
    gan, kept = Gan(), MemoryWriter()
    board = fmapboard.watch(gan.critic, writer=kept, every=1)
    for step in range(STEPS):
        with board.step(step):
            fake = gan.critic_step(10 + step, 0.5)
            gan.critic(fake).sum().backward()
            gan.of_generator.step()
    board.close()
    assert marks(kept.steps) == [10.0 + step for step in range(STEPS)]


def test_a_training_pass_in_eval_mode_is_shown_and_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.add_module("norm", nn.BatchNorm2d(1))
        model.eval()
        zero_grad_first(model, optimizer)

    with caplog.at_level(logging.WARNING, "fmapboard"):
        assert shown(loop) == [float(step) for step in range(STEPS)]
    said, verdict = [one.message for one in caplog.records if "eval mode" in one.message]
    assert "cause: eval_mode: the model is in eval mode" in verdict
    assert "step 0: eval_mode: the model is in eval mode while it trains" in said


def test_a_recorded_pass_that_contributes_no_gradient_is_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for step in range(3):
            model(filled(step))
            model.body.weight.grad = torch.ones_like(model.body.weight)
            optimizer.step()

    with caplog.at_level(logging.WARNING, "fmapboard"):
        assert shown(loop) == [0.0, 1.0, 2.0]
    (said,) = [record.message for record in caplog.records]
    assert "contributed nothing to the gradients" in said


def test_from_the_third_step_on_only_the_first_pass_of_an_accumulation_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fmapboard.session.session import StepSession

    begun: list[None] = []
    begin = StepSession.begin
    monkeypatch.setattr(
        StepSession, "begin", lambda self, *args: (begun.append(None), begin(self, *args))[1]
    )
    assert shown(accumulation) == [float(step) for step in range(STEPS)]
    assert len(begun) == 4 + 4 + 1 + 1 + 1


def test_many_passes_without_a_backward_pass_end_recording_in_that_step_and_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        for step in range(2):
            for number in range(20):
                model(filled(100 + number))
            model(filled(step)).sum().backward()
            optimizer.step()

    with caplog.at_level(logging.WARNING, "fmapboard"):
        assert shown(loop) == [None, None]
    (said,) = [record.message for record in caplog.records]
    assert "many forward passes ran without a backward pass" in said
    assert "torch.no_grad()" in said
