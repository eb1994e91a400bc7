"""Trainings in which nothing is wrong: nothing of what is recorded is a fault."""

from __future__ import annotations

import pytest
import torch
from recorded_facts import (
    WAYS,
    Around,
    Loop,
    Way,
    faults,
    loss_of,
    trained,
)
from torch import nn

STEPS = 10
Optimizer = torch.optim.Optimizer


def plain(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()


def cleared_between_forward_and_backward(
    model: nn.Module, optimizer: Optimizer, around: Around
) -> None:
    for step in range(STEPS):
        with around(step):
            loss = loss_of(model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def cleared_in_place(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad(set_to_none=False)
            loss_of(model).backward()
            optimizer.step()


def cleared_after_the_step(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)


def cleared_outside_of_the_step(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            optimizer.step()
        model.zero_grad(set_to_none=False)


def cleared_and_clipped(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        optimizer.zero_grad(set_to_none=False)


def micro_batches(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            for _ in range(3):
                (loss_of(model) / 3).backward()
            optimizer.step()
            optimizer.zero_grad()


def one_block_per_micro_batch(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(2 * STEPS):
        with around(step):
            loss_of(model).backward()
            if step % 4 == 3:
                optimizer.step()
        if step % 4 == 3:
            optimizer.zero_grad(set_to_none=False)


def with_a_closure(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        return loss.item()

    for step in range(STEPS):
        with around(step):
            optimizer.step(closure)


def validated_in_eval_mode_with_gradients(
    model: nn.Module, optimizer: Optimizer, around: Around
) -> None:
    for step in range(STEPS):
        with around(step):
            model.eval()
            assert loss_of(model).requires_grad
            model.train()
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()


def batchnorm_frozen_on_purpose(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    model.get_submodule("norm").eval()
    plain(model, optimizer, around)


def batchnorm_and_dropout_frozen_on_purpose(
    model: nn.Module, optimizer: Optimizer, around: Around
) -> None:
    model.get_submodule("drop").eval()
    batchnorm_frozen_on_purpose(model, optimizer, around)


def warm_up_from_rate_0(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(step - 5, 0) / 10)
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
            schedule.step()


def a_term_of_the_loss_that_counts_later(
    model: nn.Module, optimizer: Optimizer, around: Around
) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            (0.0 * loss_of(model)).backward()
            optimizer.step()


LOOPS = [
    plain,
    cleared_between_forward_and_backward,
    cleared_in_place,
    cleared_after_the_step,
    cleared_outside_of_the_step,
    cleared_and_clipped,
    micro_batches,
    one_block_per_micro_batch,
    with_a_closure,
    validated_in_eval_mode_with_gradients,
    batchnorm_frozen_on_purpose,
    batchnorm_and_dropout_frozen_on_purpose,
    warm_up_from_rate_0,
    a_term_of_the_loss_that_counts_later,
]


@pytest.mark.each_once
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_a_healthy_loop_has_no_fault(loop: Loop, way: Way) -> None:
    found = trained(loop, way)
    assert {step: faults(one) for step, one in found.items() if faults(one)} == {}
