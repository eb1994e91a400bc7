"""A training copy trains as its original would, and leaves the original as it was."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from hidden_state import KINDS, InGlobalRandomStates, Stateless
from torch import Tensor, nn
from torch.nn.utils import parametrizations
from torch.utils._pytree import tree_leaves

import fmapboard
from fmapboard.capture.twin import NoTwin
from fmapboard.errors import ConfigurationError
from fmapboard.rehearsal.training_copy import TrainingCopy
from fmapboard.writers.folder import MemoryWriter

BATCH = torch.linspace(0, 1, 4 * 3 * 8 * 8).view(4, 3, 8, 8), torch.tensor([0, 1, 2, 1])


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Any = cross_entropy) -> float:
    """One step of the caller's own loop, with a closure for those that need one."""
    values = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = loss(model, BATCH)
        values.append(float(found.detach()))
        found.backward()
        return found

    if isinstance(optimizer, torch.optim.LBFGS):
        optimizer.step(closure)
    else:
        closure()
        optimizer.step()
    return values[0]


def seeded() -> None:
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def state(model: nn.Module, optimizer: Any) -> list[Any]:
    """All that a rehearsal must leave as it is, copied."""
    seen = [
        model.state_dict(),
        [parameter.grad for parameter in model.parameters()],
        [module.training for module in model.modules()],
        [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()],
        [sorted(map(str, vars(module))) for module in model.modules()],
        optimizer.state_dict(),
        torch.get_rng_state(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
        list(BATCH),
    ]
    return copy.deepcopy(tree_leaves(seen))


def assert_same(one: list[Any], other: list[Any]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert torch.equal(a, b) if isinstance(a, Tensor) else a == b


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum, foreach": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, foreach=False),
    "adamw, fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "rate as a tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(0.01), foreach=False),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
    "groups": lambda p: torch.optim.SGD(
        [{"params": [one], "lr": 0.1 / (i + 1)} for i, one in enumerate(p)], momentum=0.9
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_copy_trains_on_bitwise_as_the_original_does_afterwards(name: str) -> None:
    seeded()
    model = Stateless()
    optimizer = OPTIMIZERS[name](model.parameters())
    for _ in range(3):
        step(model, optimizer)
    before = state(model, optimizer)
    copied = TrainingCopy(model, optimizer)
    losses = copied.train([BATCH], cross_entropy, 4)
    assert_same(state(model, optimizer), before)
    assert losses == [step(model, optimizer) for _ in range(4)]
    assert_same(tree_leaves(copied.model.state_dict()), tree_leaves(model.state_dict()))
    assert_same(tree_leaves(copied.optimizer.state_dict()), tree_leaves(optimizer.state_dict()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_continues_every_kind_of_state_and_leaves_the_originals_alone(
    kind: type[Stateless],
) -> None:
    def trained(*, rehearses: bool) -> tuple[list[float], list[float], list[Any]]:
        seeded()
        model = kind()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step(model, optimizer)
        rehearsed = []
        if rehearses:
            rehearsed = TrainingCopy(model, optimizer).train([BATCH], cross_entropy, 3)
        losses = [step(model, optimizer) for _ in range(3)]
        return rehearsed, losses, state(model, optimizer)

    _, bare, left = trained(rehearses=False)
    rehearsed, seen, left_after = trained(rehearses=True)
    assert rehearsed == seen == bare
    assert_same(left_after, left)


def test_a_learning_rate_scheduler_stays_with_the_original() -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    copied = TrainingCopy(model, optimizer)
    copied.train([BATCH], cross_entropy, 2)
    assert not getattr(optimizer, "_opt_called", False)
    step(model, optimizer)
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05
    assert copied.optimizer.param_groups[0]["lr"] == 0.1


def test_autocast_and_a_gradient_scaler_are_those_of_the_caller() -> None:
    seeded()
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30, growth_interval=2)

    def own_step() -> float:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):  # which keeps cast weights until its end
            loss = cross_entropy(model, BATCH)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return float(loss.detach())

    before = [*state(model, optimizer), scaler.state_dict()]
    copied = TrainingCopy(model, optimizer, scaler=scaler)
    with torch.autocast("cpu", dtype=torch.float16):
        losses = copied.train([BATCH], cross_entropy, 20)
    assert_same([*state(model, optimizer), scaler.state_dict()], before)
    assert [own_step() for _ in range(20)] == losses
    assert copied.scaler.state_dict() == scaler.state_dict()
    assert scaler.get_scale() < 2.0**30  # a step was skipped


class Tied(nn.Module):
    """Embedding and head share a weight; the body is parametrized."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 6)
        self.body = parametrizations.weight_norm(nn.Linear(6, 6))
        self.head = nn.Linear(6, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(self.embedding(tokens)))
        return scores


def test_tied_and_parametrized_weights_stay_tied_and_parametrized() -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return nn.functional.cross_entropy(model(batch), batch)

    seeded()
    model = Tied()
    tokens = torch.arange(5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    copied: Any = TrainingCopy(model, optimizer)
    losses = copied.train([tokens], loss, 3)
    assert copied.model.head.weight is copied.model.embedding.weight
    assert copied.model.head.weight is not model.head.weight
    assert len(copied.optimizer.param_groups[0]["params"]) == 4
    again = TrainingCopy(model, optimizer).train([tokens], loss, 3)
    assert losses == again
    assert losses[2] < losses[0]


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch's own, after a graph break
def test_a_compiled_model_is_copied_without_being_compiled() -> None:
    seeded()
    model = InGlobalRandomStates()
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step(compiled, optimizer)
    before = state(model, optimizer)
    losses = TrainingCopy(compiled, optimizer).train([BATCH], cross_entropy, 2)
    assert_same(state(model, optimizer), before)
    assert losses == [step(compiled, optimizer) for _ in range(2)]


def test_one_rank_of_ddp_trains_a_copy_alone_and_sends_nothing(tmp_path: Any) -> None:
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        seeded()
        model = nn.parallel.DistributedDataParallel(Stateless())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        step(model, optimizer)
        before = state(model, optimizer)
        copied = TrainingCopy(model, optimizer)
        losses = copied.train([BATCH], cross_entropy, 2)
        assert type(copied.model) is Stateless
        assert_same(state(model, optimizer), before)
        assert losses == [step(model, optimizer) for _ in range(2)]
    finally:
        dist.destroy_process_group()


def test_a_collective_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gathers(Stateless):
        def change(self, maps: Tensor) -> float:
            dist.all_reduce(maps.detach().mean())
            return 1.0

    model = Gathers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = state(model, optimizer)
    dist.init_process_group("fake", store=dist.HashStore(), rank=0, world_size=2)
    try:
        with pytest.raises(NoTwin, match=r"forward\(\) calls a collective"):
            TrainingCopy(model, optimizer).train([BATCH], cross_entropy, 2)
    finally:
        dist.destroy_process_group()
    assert_same(state(model, optimizer), before)


class OutputWithLoss(dict):  # type: ignore[type-arg]  # as in transformers
    loss: Tensor


def test_a_network_may_return_its_loss() -> None:
    class Returns(Stateless):
        def forward(self, pixel_values: Tensor, labels: Tensor) -> Any:
            scores = super().forward(pixel_values)
            found = OutputWithLoss(logits=scores)
            found.loss = nn.functional.cross_entropy(scores, labels)
            return found

    model = Returns()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = {"pixel_values": BATCH[0], "labels": BATCH[1]}
    losses = TrainingCopy(model, optimizer).train([batch], lambda m, b: m(**b).loss, 3)
    assert losses[2] < losses[0]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["forward", "loss", "step"])
def test_whatever_is_raised_leaves_everything_as_it_was(
    place: str, error: type[BaseException]
) -> None:
    class Raises(InGlobalRandomStates):
        def change(self, maps: Tensor) -> Tensor:
            changed = super().change(maps)
            if place == "forward":
                raise error
            return changed

    def loss(model: nn.Module, batch: Any) -> Tensor:
        found = cross_entropy(model, batch)
        if place == "loss":
            raise error
        return found

    class Steps(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            super().step(closure)
            raise error

    seeded()
    model = Raises()
    kind = Steps if place == "step" else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.1, momentum=0.9)
    before = state(model, optimizer)
    with pytest.raises(error):
        TrainingCopy(model, optimizer).train([BATCH], loss, 2)
    assert_same(state(model, optimizer), before)


def test_a_loss_that_is_a_module_is_copied_with_its_own_state() -> None:
    class Centered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, model: nn.Module, batch: Any) -> Tensor:
            self.calls += 1
            return cross_entropy(model, batch) * self.scale

    model, loss = Stateless(), Centered()
    optimizer = torch.optim.SGD([*model.parameters(), loss.scale], lr=0.1)
    for function in (loss, loss.forward):
        losses = TrainingCopy(model, optimizer).train([BATCH], function, 3)
        assert losses[2] < losses[0]
    assert (loss.calls.item(), loss.scale.item(), loss.scale.grad) == (0.0, 1.0, None)


def test_a_copy_can_be_changed_before_it_is_trained() -> None:
    seeded()
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    as_it_is = TrainingCopy(model, optimizer).train([BATCH], cross_entropy, 3)
    copied: Any = TrainingCopy(model, optimizer)
    copied.optimizer.param_groups[0]["lr"] = 0.5
    copied.model.head = nn.Linear(4, 3)
    copied.optimizer.add_param_group({"params": copied.model.head.parameters(), "lr": 0.5})
    changed = copied.train([BATCH], cross_entropy, 3)
    assert as_it_is[0] == as_it_is[2]
    assert changed[2] < changed[0]
    assert len(optimizer.param_groups) == 1


def test_training_ends_at_a_loss_that_is_not_finite_and_where_it_is_told_to() -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e30)
    broken = TrainingCopy(model, optimizer).train([BATCH], cross_entropy, 9)
    assert 1 < len(broken) < 9
    assert not math.isfinite(broken[-1])
    ended = TrainingCopy(model, torch.optim.SGD(model.parameters(), lr=0.1)).train(
        [BATCH], cross_entropy, 9, until=lambda losses: len(losses) == 2
    )
    assert len(ended) == 2


def test_gradients_may_be_added_up_as_in_a_loop_without_zero_grad() -> None:
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    copied: Any = TrainingCopy(model, optimizer)
    one = torch.ones(1, 1)
    copied.train([one], lambda m, b: m(b).sum(), 3, clears_gradients=False)
    assert model.weight.item() - copied.model.weight.item() == pytest.approx(1 + 2 + 3)


def test_a_batch_that_the_network_changes_in_place_is_copied_first() -> None:
    images = -torch.ones(2, 3)
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    TrainingCopy(model, optimizer).train([images], lambda m, b: m(b).sum(), 2)
    assert torch.equal(images, -torch.ones(2, 3))


def test_a_logger_of_the_original_counts_no_step_of_the_copy() -> None:
    model = Stateless()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = MemoryWriter()
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
    step(model, optimizer)
    TrainingCopy(model, optimizer).train([BATCH], cross_entropy, 3)
    step(model, optimizer)
    board.close()
    assert [logged.step for logged in kept.steps] == [0, 1]


def test_what_cannot_be_copied_is_refused_with_a_reason() -> None:
    class Holds(torch.optim.SGD):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, lr=0.1)
            self.lines = (line for line in "ab")

    model = nn.Linear(1, 1)
    with pytest.raises(NoTwin, match=r"Holds\.lines cannot be copied"):
        TrainingCopy(model, Holds(model.parameters()))
    with pytest.raises(ConfigurationError, match=r"optimizer=list of 1"):
        TrainingCopy(model, [torch.optim.SGD(model.parameters(), lr=0.1)])
    with pytest.raises(ConfigurationError, match="scaler=int: expected"):
        TrainingCopy(model, torch.optim.SGD(model.parameters(), lr=0.1), scaler=3)


def test_an_optimizer_that_replaces_the_data_of_parameters_trains_the_copy() -> None:
    class Replaces(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:
            for parameter in self.param_groups[0]["params"]:
                parameter.data = parameter.data - 0.1 * parameter.grad

    model = Stateless()
    copied = TrainingCopy(model, Replaces(model.parameters(), lr=0.1))
    losses = copied.train([BATCH], cross_entropy, 3)
    assert copied.train([BATCH], cross_entropy, 1)[0] < losses[2] < losses[0]
