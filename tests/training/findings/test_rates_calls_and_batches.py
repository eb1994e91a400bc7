"""Learning rates, layers that never run, dropout and equal batches, as they are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import torch
from recorded_facts import WAYS, Around, Net, Way, batch, loss_of, trained, training_facts
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.writers.folder import MemoryWriter

STEPS = 10
Optimizer = torch.optim.Optimizer


def plain(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
    for step in range(STEPS):
        with around(step):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()


@pytest.mark.parametrize("is_tensor", [False, True], ids=["number", "tensor"])
def test_the_learning_rate_of_each_parameter_group_is_a_scalar(*, is_tensor: bool) -> None:
    model, kept, other = Net(), MemoryWriter(), nn.Linear(1, 1)
    rates = [torch.tensor(rate) if is_tensor else rate for rate in (0.5, 0.25, 0.125)]
    owners = zip((model.stem, other, model.head), rates, strict=True)
    groups = [{"params": list(module.parameters()), "lr": rate} for module, rate in owners]
    optimizer = torch.optim.SGD(groups)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(3):
            loss_of(model).backward()
            optimizer.step()
            scheduler.step()
    own = [{n: v for n, v in one.scalars.items() if "learning_rate" in n} for one in kept.steps]
    assert own == [
        {"learning_rate/0": 0.5 / 2**n, "learning_rate/1": 0.125 / 2**n} for n in range(3)
    ]


def test_the_optimizer_and_its_weight_decay_are_facts() -> None:
    model = Net()
    groups = [
        {"params": list(model.stem.parameters()), "weight_decay": 0.1},
        {"params": list(model.head.parameters()), "weight_decay": 0.0},
        {"params": list(nn.Linear(1, 1).parameters()), "weight_decay": 5.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    kept = MemoryWriter()
    with fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1):
        for _ in range(3):
            loss_of(model).backward()
            optimizer.step()
    found = training_facts(kept.steps).values()
    assert {facts.dtypes for facts in found} == {("float32",)}
    assert {(facts.optimizers, facts.weight_decays) for facts in found} == {
        (("AdamW",), (0.0, 0.1))
    }


def test_a_parameter_group_without_any_gradient_is_a_fact() -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for number in range(2):
            with around(number):
                loss_of(model).backward()
                optimizer.step()

    model = Net()
    model.extra = nn.Linear(2, 2)
    own = list(model.extra.parameters())
    rest = [p for name, p in model.named_parameters() if not name.startswith("extra")]
    several = torch.optim.SGD([{"params": rest}, {"params": own}], lr=0.1)
    for facts in trained(loop, Way(1), model, several).values():
        assert facts.idle_group == ("extra.weight", "extra.bias")
    for facts in trained(loop, Way(1), model, torch.optim.SGD([*rest, *own], lr=0.1)).values():
        assert facts.idle_group == ()


Momentum = partial(torch.optim.SGD, momentum=0.9)
Made = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]


@pytest.mark.parametrize(
    ("made", "is_anew", "new"),
    [
        (torch.optim.Adam, True, [("Adam",)] * 4),
        (torch.optim.Adam, False, [("Adam",), (), (), ()]),
        (Momentum, True, [("SGD",)] * 4),
        (torch.optim.SGD, True, [()] * 4),
    ],
)
def test_an_optimizer_with_averages_that_is_made_anew_is_a_fact(
    *, made: Made, is_anew: bool, new: list[tuple[str, ...]]
) -> None:
    def loop(model: nn.Module, optimizer: torch.optim.Optimizer, around: Around) -> None:
        for number in range(4):
            if is_anew:
                optimizer = made(model.parameters())
            with around(number):
                loss_of(model).backward()
                optimizer.step()

    model = Net()
    found = trained(loop, Way(1, is_marked=True), model, made(model.parameters()))
    assert [facts.new_optimizers for facts in found.values()] == new


class Forgetful(Net):
    """Has layers that its forward does not call, and some that it calls at times."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten = nn.Conv2d(8, 8, 3)
        self.seldom = nn.Conv2d(3, 3, 1)
        self.attention = nn.MultiheadAttention(4, 1)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        x = self.seldom(x) if self.calls % 4 == 0 else x
        logits: Tensor = super().forward(x)
        return logits + self.attention(logits, logits, logits)[0]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_parameters_of_layers_that_never_run_are_recorded(way: Way) -> None:
    found = list(trained(plain, way, Forgetful(), layers="*").values())
    lost, seldom = {"forgotten.weight", "forgotten.bias"}, {"seldom.weight", "seldom.bias"}
    assert {frozenset(set(one.not_called) - seldom) for one in found} == {frozenset(lost)}
    assert set(found[-1].not_called) == lost


def test_a_layer_that_runs_without_a_gradient_was_called() -> None:
    class Detached(Net):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                maps = self.stem(x)
            found: Tensor = self.head(self.conv(functional.relu(self.norm(maps))).mean((2, 3)))
            return found

    assert {one.not_called for one in trained(plain, Way(1), Detached()).values()} == {()}


def test_dropout_of_a_half_or_more_is_recorded_while_it_is_active() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.Dropout2d(0.95), nn.Dropout(0.25), nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4),
    )  # fmt: skip
    model[3].eval()
    found = trained(plain, Way(1), model).values()
    assert [dict(one.dropouts) for one in found] == [{"1": 0.95}] * STEPS


def test_equal_batches_have_equal_digests() -> None:
    batches = [batch() for _ in range(5)]

    def loop(model: nn.Module, optimizer: Optimizer, around: Around) -> None:
        for step in range(STEPS):
            optimizer.zero_grad()
            images, classes = batches[step % 5]
            functional.cross_entropy(model(images), classes).backward()
            optimizer.step()

    found = [one.batch_digest for one in trained(loop, Way(1)).values()]
    assert found[:5] == found[5:]
    assert len(set(found)) == 5
