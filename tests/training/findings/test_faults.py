"""Trainings with one fault each: it is recorded, and no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
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
from fmapboard.formats.training_facts import OUTSIDE, TrainingFacts
from fmapboard.writers.folder import MemoryWriter

STEPS = 10
Optimizer = torch.optim.Optimizer


def step_once(model: nn.Module, optimizer: Optimizer, x: Tensor, y: Tensor) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(model(x), y).backward()
    optimizer.step()


def plain(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            step_once(model, optimizer, *batch())


def never_cleared(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            optimizer.step()


def never_cleared_but_clipped(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def never_cleared_with_micro_batches(
    model: nn.Module, optimizer: Optimizer, around: Around
) -> None:
    for step in range(STEPS):
        with around(step):
            loss_of(model).backward()
            loss_of(model).backward()
            optimizer.step()


def all_of(found: dict[int, TrainingFacts], name: str) -> bool:
    """True if a fault, and no other one, is in each record but the first."""
    first, *later = found.values()
    return faults(first) <= {name} and all(faults(one) == {name} for one in later) and bool(later)


@pytest.mark.each_once
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "loop",
    [never_cleared, never_cleared_but_clipped, never_cleared_with_micro_batches],
    ids=lambda loop: loop.__name__,
)
def test_gradients_that_are_never_cleared_are_recorded(loop: Any, way: Way) -> None:
    found = trained(loop, way)
    assert all_of(found, "not_cleared")
    assert found[0].not_cleared == ()
    names = tuple(name for name, _ in Net().named_parameters())
    assert found[way.every].not_cleared == names


def zeroed(gradient: Tensor) -> None:
    gradient.data.zero_()


def filled(gradient: Tensor) -> None:
    gradient.data.fill_(0)


def replaced(gradient: Tensor) -> None:
    gradient.data = torch.zeros_like(gradient)


@pytest.mark.each_once
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("clear", [zeroed, filled, replaced], ids=lambda clear: clear.__name__)
def test_gradients_that_are_cleared_behind_their_version_are_cleared(
    clear: Callable[[Tensor], None], way: Way
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                for parameter in model.parameters():
                    if parameter.grad is not None:
                        clear(parameter.grad)
                loss_of(model).backward()
                optimizer.step()

    found = trained(loop, way)
    assert len(found) > 2
    assert all(one.not_cleared == () for one in found.values())


def test_a_discriminator_may_be_cleared_behind_the_version_of_its_gradients() -> None:
    judge = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(), nn.Flatten(), nn.Linear(256, 1))

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            model(batch()[0]).mean().backward()  # the generator's pass
            for parameter in model.parameters():
                zeroed(parameter.grad)
            (-model(batch()[0]).mean()).backward()
            optimizer.step()

    found = trained(loop, Way(3), judge)
    assert len(found) > 2
    assert all(not one.not_cleared for one in found.values())


def test_only_the_parameters_that_are_not_cleared_are_named() -> None:
    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            model.get_submodule("conv").zero_grad()
            model.get_submodule("stem").zero_grad()
            model.get_submodule("norm").zero_grad()
            loss_of(model).backward()
            optimizer.step()

    found = trained(loop, Way(3))
    assert found[3].not_cleared == ("head.weight", "head.bias")


def test_the_discriminators_gradients_that_nobody_clears_are_recorded() -> None:
    judge = nn.Sequential(nn.Conv2d(3, 4, 3), nn.LeakyReLU(), nn.Flatten(), nn.Linear(256, 1))
    maker = nn.Conv2d(3, 3, 3, padding=1)
    for_maker = torch.optim.SGD(maker.parameters(), lr=0.01)

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            fake = maker(batch()[0])
            model(batch()[0]).mean().backward()
            (-model(fake.detach()).mean()).backward()
            optimizer.step()
            for_maker.zero_grad()
            model(fake).mean().backward()
            for_maker.step()

    assert all_of(trained(loop, Way(3), judge), "not_cleared")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_trainable_parameters_in_no_optimizer_are_recorded(way: Way) -> None:
    model = Net()
    rest = [p for n, p in model.named_parameters() if not n.startswith("conv")]

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                model.zero_grad()
                loss_of(model).backward()
                optimizer.step()

    found = trained(loop, way, model, torch.optim.SGD(rest, lr=0.1))
    assert {one.not_in_optimizer for one in found.values()} == {("conv.weight", "conv.bias")}
    assert {frozenset(faults(one)) for one in found.values()} == {frozenset({"not_in_optimizer"})}


class InAList(nn.Module):
    """A module with convolutions in a list, which PyTorch does not know of."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()
        self.layers = [nn.Conv2d(3, 3, 1, bias=False) for _ in range(2)]

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        found: Tensor = self.net(x)
        return found


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch.compile, of the model's input
@pytest.mark.parametrize("is_compiled", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_layers_in_a_python_list_are_recorded_unless_an_optimizer_has_them(
    is_held: bool, is_compiled: bool
) -> None:
    model, head = InAList(), nn.Linear(3, 3, bias=False)  # in front, and not the model's
    own = [*model.parameters(), *(model.layers[0].parameters() if is_held else ())]

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                optimizer.zero_grad()
                x, labels = batch()
                functional.cross_entropy(
                    model(head(x.movedim(1, -1)).movedim(-1, 1)), labels
                ).backward()
                optimizer.step()

    optimizer = torch.optim.SGD(own, lr=0.1)
    if is_compiled:
        model.compile(backend="aot_eager")
    found = trained(loop, Way(1), model, optimizer)
    names = {one.not_in_optimizer for one in found.values()}
    assert names == {tuple(f"{OUTSIDE}[3, 3, 1, 1] ({n + 1})" for n in range(2 - is_held))}


def test_a_head_that_was_replaced_after_the_optimizer_was_created_is_recorded() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head = nn.Linear(8, 4)

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for _ in range(STEPS):
            model.zero_grad()
            loss_of(model).backward()
            optimizer.step()

    found = trained(loop, Way(1), model, optimizer)
    assert {one.not_in_optimizer for one in found.values()} == {("head.weight", "head.bias")}


class Wrapper(nn.Module):
    """A module in training mode around a network that is in eval mode."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net().eval()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.net(x)
        return found


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    ("make", "modules"),
    [(lambda: Net().eval(), ("norm", "drop")), (Wrapper, ("net.norm", "net.drop"))],
    ids=["root", "network"],
)
@pytest.mark.usefixtures("errors_are_only_logged")
def test_a_network_in_eval_mode_is_recorded(
    way: Way, make: Callable[[], nn.Module], modules: tuple[str, ...]
) -> None:
    found = trained(plain, way, make())
    assert {frozenset(faults(one)) for one in found.values()} == {frozenset({"eval_mode"})}
    assert {one.eval_modules for one in found.values()} == {modules}


def test_a_network_left_in_eval_mode_after_validation_is_recorded_from_then_on() -> None:
    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        plain(model, optimizer, around)
        model.eval()
        plain(model, optimizer, around)

    found = trained(loop, Way(1))
    assert [one.eval_mode for one in found.values()] == [False] * STEPS + [True] * STEPS


def test_an_optimizer_that_goes_up_the_gradient_climbs_the_loss() -> None:
    def eight(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            with around(step):
                step_once(model, optimizer, torch.randn(16, 3, 10, 10), torch.arange(16) % 4)

    for is_up in (True, False):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, maximize=is_up)
        known = [one.outputs[0] for one in trained(eight, WAYS[0], model, optimizer).values()]
        certain = [one.is_climbed for one in known if one.loss is not None]
        assert len(certain) > 4
        assert set(certain) == {is_up}


class Volumes(Net):
    """The same for volumes: the slices are averaged first."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mean(2))


@pytest.mark.parametrize("shape", [(6, 3, 10, 10), (6, 3, 5, 10, 10)])
def test_the_same_images_in_another_order_have_one_digest(shape: tuple[int, ...]) -> None:
    images, labels = torch.rand(shape), torch.arange(6) % 4

    def shuffled(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            order = torch.randperm(6)
            with around(step):
                step_once(model, optimizer, images[order], labels[order])

    model = Volumes() if len(shape) > 4 else Net()
    digests = {one.batch_digest for one in trained(shuffled, WAYS[0], model).values()}
    assert len(digests) == 1
    assert None not in digests


def test_nothing_is_recorded_if_it_is_switched_off() -> None:
    kept = MemoryWriter()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, checks=False):
        plain(model, optimizer, lambda step: nullcontext())
    assert len(kept.steps) == STEPS
    assert training_facts(kept.steps) == {}


def test_the_series_has_the_prefix_of_the_model() -> None:
    kept = MemoryWriter()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1, name="net"):
        plain(model, optimizer, lambda step: nullcontext())
    assert list(training_facts(kept.steps, "net")) == list(range(STEPS))


def test_a_step_without_an_optimizer_step_says_nothing_about_it() -> None:
    kept, model = MemoryWriter(), Net()
    with fmapboard.watch(model, writer=kept, every=1) as board, board.step(0):
        loss_of(model).backward()
    found = training_facts(kept.steps)[0]
    assert (found.not_in_optimizer, found.not_cleared, found.eval_mode) == (None, None, None)
    assert found.rates is None
    assert found.batch == 4


def test_a_validation_step_has_no_record() -> None:
    kept, model = MemoryWriter(), Net().eval()
    with fmapboard.watch(model, writer=kept, every=1) as board, torch.no_grad():
        board.begin_step(0, training=False)
        loss_of(model)
        board.end_step()
    assert len(kept.steps) == 1
    assert training_facts(kept.steps) == {}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_share_of_the_weights_that_a_decay_leaves_is_recorded(way: Way) -> None:
    for decay, rate in ((0.9, 0.1), (0.0, 0.1)):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay)
        shares = [one.weights_left for one in trained(plain, way, model, optimizer).values()]
        if decay:
            shrunk = [(1 - rate * decay) ** step for step in range(0, STEPS, way.every)]
            assert shares == pytest.approx(shrunk, rel=0.1)
        else:
            assert set(shares) == {None}
