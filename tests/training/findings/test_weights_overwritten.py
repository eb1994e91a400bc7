"""Weights that the training loop changes besides the optimizer: when it counts and when not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from recorded_facts import WAYS, Around, Net, Way, loss_of, trained
from torch import nn

After = Callable[[nn.Module, int], None]


def loop_with(after: After, steps: int = 7) -> Callable[..., None]:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for number in range(steps):
            with around(number):
                optimizer.zero_grad()
                loss_of(model).backward()
                optimizer.step()
                after(model, number)

    return loop


def copied_back() -> After:
    average: dict[str, torch.Tensor] = {}

    def after(model: nn.Module, number: int) -> None:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                known = average.setdefault(name, 0.9 * parameter)
                known.lerp_(parameter, 0.01)
                parameter.data.copy_(known)

    return after


def swapped_for_validation(model: nn.Module, number: int) -> None:
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict({name: 0 * value for name, value in kept.items()})
    model.eval()(torch.rand(2, 3, 10, 10))
    model.load_state_dict(kept)
    model.train()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_average_copied_back_changes_every_weight_after_a_step(way: Way) -> None:
    first, *later = trained(loop_with(copied_back()), way).values()
    assert bool(first.changed_outside) is way.is_marked  # no step was before it
    assert later
    for facts in later:
        assert {"stem.weight", "conv.weight", "head.weight"} <= facts.changed_outside.keys()


@pytest.mark.parametrize("way", [Way(1), Way(3), Way(1, is_marked=True)], ids=str)
def test_weights_swapped_for_a_validation_or_normalized_are_not_changed(way: Way) -> None:
    for facts in trained(loop_with(swapped_for_validation), way).values():
        assert facts.changed_outside == {}
    model = Net()
    nn.utils.parametrizations.weight_norm(model.stem)
    nn.utils.parametrizations.spectral_norm(model.conv)
    for facts in trained(loop_with(lambda model, number: None), way, model).values():
        assert facts.changed_outside == {}


def test_a_closure_that_moves_the_weights_is_not_other_code() -> None:
    class Sharp(torch.optim.SGD):
        def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # torch's overloads
            assert closure is not None
            weights = [weight for group in self.param_groups for weight in group["params"]]
            with torch.no_grad():
                for weight in weights:
                    weight.mul_(1.1)
            closure()
            with torch.no_grad():
                for weight in weights:
                    weight.div_(1.1)
            super().step()

    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        def closure() -> float:
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss.item()

        for number in range(3):
            with around(number):
                optimizer.step(closure)

    model = Net()
    optimizer = Sharp(model.parameters(), lr=0.01)
    for facts in trained(loop, Way(1), model, optimizer).values():
        assert facts.changed_outside == {}
