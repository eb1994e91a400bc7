"""`update_ratio/<parameter>` against the exact ratio of the same update."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchvision
from exact_updates import Exact, Ratios, largest_error, update_ratios
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import optimizer as of_torch

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "sgd fused": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, fused=True),
    "sgd foreach": lambda p: torch.optim.SGD(p, lr=0.1, nesterov=True, momentum=0.9, foreach=True),
    "weight decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
}


def network() -> nn.Sequential:  # its parameters are read but for up to 15 values of each
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
        nn.Conv2d(8, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 8 * 8, 5),
    )  # fmt: skip


def batch(number: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    labels = torch.randint(5, (8,), generator=generator)
    return torch.randn(8, 3, 12, 12, generator=generator) + labels.view(-1, 1, 1, 1), labels


def backward(model: nn.Module, number: int = 0) -> Tensor:
    images, labels = batch(number)
    loss: Tensor = F.cross_entropy(model(images), labels)
    loss.backward()
    return loss


def trained(
    optimizers: Callable[[Any], torch.optim.Optimizer],
    steps: int = 3,
    *,
    counted: bool = False,
    make: Callable[[], nn.Module] = network,
) -> tuple[list[LoggedStep], list[Ratios]]:
    """The logged steps of a short training, and the exact ratios of its updates."""
    model, kept = make(), MemoryWriter()
    exact, optimizer = Exact(model), optimizers(model.parameters())
    board = fmapboard.watch(
        model, writer=kept, every=1, optimizer=optimizer if counted else None, layers="*"
    )

    def train(number: int) -> None:
        def closure() -> Tensor:
            optimizer.zero_grad()
            return backward(model, number)

        with exact.update():
            if isinstance(optimizer, torch.optim.LBFGS):
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()

    with board:
        for number in range(steps):
            if counted:
                train(number)
            else:
                with board.step(number):
                    train(number)
    return kept.steps, exact.ratios


@pytest.mark.each_once
@pytest.mark.parametrize("counted", [False, True], ids=["marked", "counted"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_ratio_is_that_of_one_optimizer_step(name: str, counted: bool) -> None:
    steps, exact = trained(OPTIMIZERS[name], counted=counted)
    assert len(steps) == 3
    for step, ratios in zip(steps, exact, strict=True):
        found = update_ratios(step)
        # BatchNorm's bias is 0 before its first update.
        assert ("1.bias" in found) is (step.step > 0)
        assert largest_error(found, ratios) < 0.01


OTHERS = ("sgd fused", "sgd foreach", "weight decay")


@pytest.mark.parametrize(
    "name", ["sgd", "adamw", *(pytest.param(name, marks=pytest.mark.sweep) for name in OTHERS)]
)
def test_the_ratios_of_a_resnet18_are_within_15_percent(name: str) -> None:
    def make() -> nn.Module:
        torch.manual_seed(0)
        return torchvision.models.resnet18(num_classes=5)

    model, kept = make(), MemoryWriter()
    exact, optimizer = Exact(model), OPTIMIZERS[name](model.parameters())
    with fmapboard.watch(model, writer=kept, every=1) as board:
        for number in range(2):
            with board.step(number), exact.update():
                optimizer.zero_grad()
                images, labels = batch(number)
                F.cross_entropy(model(F.interpolate(images, size=64)), labels).backward()
                optimizer.step()
    for step, ratios in zip(kept.steps, exact.ratios, strict=True):
        assert len(ratios) == (62 if step.step else 42)
        assert largest_error(update_ratios(step), ratios) < 0.15


def test_only_the_first_optimizer_step_of_a_logged_step_counts() -> None:
    model, kept = network(), MemoryWriter()
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        for number in range(3):
            backward(model, number)
            with exact.update():
                optimizer.step()
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[0]) < 0.01


def test_accumulated_gradients_give_one_update() -> None:
    model, kept = network(), MemoryWriter()
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        for number in range(3):
            backward(model, number)
        with exact.update():
            optimizer.step()
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[0]) < 0.01


def test_each_of_several_optimizers_has_its_own_update() -> None:
    model, kept = network(), MemoryWriter()
    exact = Exact(model)
    first = torch.optim.SGD(model[:3].parameters(), lr=0.1)
    second = torch.optim.AdamW(model[3:].parameters(), lr=0.01)
    with fmapboard.watch(model, writer=kept, every=1, optimizer=second):
        backward(model)
        with exact.update():
            first.step()
            second.step()
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[0]) < 0.01


def test_frozen_and_unused_parameters_have_no_ratio() -> None:
    model, kept = network(), MemoryWriter()
    model[0].requires_grad_(False)
    model.add_module("unused", nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        F.cross_entropy(model[:-1](batch(0)[0]), batch(0)[1]).backward()
        optimizer.step()
    found = set(update_ratios(kept.steps[0]))
    assert found == {"1.weight", "3.weight", "3.bias", "6.weight", "6.bias"}


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_the_grad_scaler_skips_has_no_ratio(fused: bool) -> None:
    model, kept = network(), MemoryWriter()
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    with fmapboard.watch(model, writer=kept, every=1, scaler=scaler) as board:
        for number in range(3):
            images, labels = batch(number)
            with board.step(number), exact.update():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(images), labels)
                scaler.scale(loss * torch.inf if number == 1 else loss).backward()
                scaler.step(optimizer)
                scaler.update()
    found = [update_ratios(step) for step in kept.steps]
    assert found[1] == {}
    assert largest_error(found[0], exact.ratios[0]) < 0.01
    assert largest_error(found[2], exact.ratios[2]) < 0.01


@pytest.mark.parametrize("fused", [False, True])
def test_the_step_after_a_skipped_one_has_a_ratio_in_the_same_block(fused: bool) -> None:
    model, kept = network(), MemoryWriter()
    exact = Exact(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    with fmapboard.watch(model, writer=kept, every=1, scaler=scaler) as board, board.step(0):
        for overflows in (True, False):
            optimizer.zero_grad()
            images, labels = batch(0)
            loss = F.cross_entropy(model(images), labels) * (torch.inf if overflows else 1.0)
            scaler.scale(loss).backward()
            with exact.update():
                scaler.step(optimizer)
            scaler.update()
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[1]) < 0.01


@pytest.mark.each_once
@pytest.mark.parametrize("change", ["data", "in place"])
@pytest.mark.parametrize("counted", [False, True], ids=["marked", "counted"])
def test_weights_may_change_between_backward_pass_and_step(change: str, counted: bool) -> None:
    torch.manual_seed(0)
    large = nn.Linear(8 * 10 * 10, 100)  # read in part
    model, kept = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), large), MemoryWriter()
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1)
    counts = optimizer if counted else None
    with fmapboard.watch(model, writer=kept, every=1, optimizer=counts, layers="*") as board:
        for number in range(3):
            with contextlib.nullcontext() if counted else board.step(number):
                optimizer.zero_grad()
                model(batch(number)[0]).square().mean().backward()
                with torch.no_grad():
                    for parameter in model.parameters():
                        (parameter.data if change == "data" else parameter).mul_(0.9)
                with exact.update():
                    optimizer.step()
    for step, ratios in zip(kept.steps, exact.ratios, strict=True):
        assert largest_error(update_ratios(step), ratios) < 0.15


def test_tied_parameters_are_logged_once() -> None:
    model, kept = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)), MemoryWriter()
    model[2].weight = model[0].weight
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0), exact.update():
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
    assert set(update_ratios(kept.steps[0])) == {"0.weight", "0.bias", "2.bias"}
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[0]) < 1e-5


@pytest.mark.parametrize(("touched", "is_logged"), [(20, False), (2000, True)])
def test_a_large_embedding_of_which_few_rows_change_has_no_ratio(
    touched: int, is_logged: bool
) -> None:
    torch.manual_seed(0)
    table = nn.Embedding(4000, 32)
    model, kept = nn.Sequential(table, nn.Linear(32, 2)), MemoryWriter()
    exact, optimizer = Exact(model), torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0), exact.update():
        model(torch.randperm(4000)[:touched]).square().mean().backward()
        optimizer.step()
    found, expected = update_ratios(kept.steps[0]), exact.ratios[0]
    assert ("0.weight" in found) is is_logged
    if is_logged:
        assert largest_error(found, expected) < 0.05


class Sharpness(torch.optim.Optimizer):
    """Evaluates its closure at other weights than those that it then updates."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(0.5)
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(0.5).sub_(parameter.grad, alpha=0.1)


def test_weights_that_an_optimizer_moves_before_its_closure_have_no_ratio() -> None:
    model, kept = network(), MemoryWriter()
    optimizer = Sharpness(model.parameters())
    with fmapboard.watch(model, writer=kept, every=1, optimizer=optimizer):
        optimizer.step(lambda: backward(model))
    assert "gradient_norm/total" in kept.steps[0].scalars
    assert update_ratios(kept.steps[0]) == {}


class Replacing(torch.optim.SGD):
    """Gives its parameters other memory instead of writing into it."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # takes none
        for parameter in self.param_groups[0]["params"]:
            parameter.data = parameter - 0.1 * parameter.grad


def test_a_parameter_may_get_other_memory() -> None:
    steps, exact = trained(lambda p: Replacing(p, lr=0.1), 2)
    assert largest_error(update_ratios(steps[1]), exact[1]) < 0.01


def test_an_optimizer_step_that_raises_leaves_no_ratio() -> None:
    class Fails(torch.optim.SGD):
        fails = True

        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            if self.fails:
                raise RuntimeError("user's own")
            super().step(closure)  # calls the hooks too
            with torch.no_grad():
                for parameter in self.param_groups[0]["params"]:
                    parameter.mul_(1.5)

    model, kept = network(), MemoryWriter()
    exact = Exact(model)
    optimizer = Fails(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board:
        with board.step(0):
            backward(model)
            with pytest.raises(RuntimeError, match="user's own"):
                optimizer.step()
        with board.step(1):
            optimizer.fails = False
            backward(model)
            with exact.update():
                optimizer.step()
    assert update_ratios(kept.steps[0]) == {}
    assert largest_error(update_ratios(kept.steps[1]), exact.ratios[0]) < 0.01


def test_an_optimizer_step_that_is_tried_again_has_a_ratio() -> None:
    class FailsOnce(torch.optim.SGD):
        has_failed = False

        def step(self, closure: Any = None) -> Any:  # type: ignore[override]
            if not self.has_failed:
                self.has_failed = True
                raise RuntimeError("user's own")
            return super().step(closure)

    model, kept = network(), MemoryWriter()
    exact, optimizer = Exact(model), FailsOnce(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        backward(model)
        with pytest.raises(RuntimeError, match="user's own"):
            optimizer.step()
        with exact.update():
            optimizer.step()
    assert largest_error(update_ratios(kept.steps[0]), exact.ratios[0]) < 0.01


def test_nothing_is_installed_in_a_step_that_is_not_logged() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = []
    with fmapboard.watch(model, writer=MemoryWriter(), every=2) as board:
        for number in range(3):
            with board.step(number):
                found.append(type(of_torch._global_optimizer_post_hooks).__name__)
                backward(model)
                optimizer.step()
    assert found == ["_Hooks", "OrderedDict", "_Hooks"]
    assert len(of_torch._global_optimizer_post_hooks) == 0
