"""What a rehearsal leaves as it was where code refers to more than its arguments."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.optim.optimizer as torch_optimizer
from interruptions import Interruption, ctrl_c
from torch import Tensor, nn
from torch._dynamo import eval_frame
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import fmapboard
from fmapboard.errors import ConfigurationError
from fmapboard.interrupts import blocks
from fmapboard.rehearsal.own_functions import is_of_user
from fmapboard.rehearsal.result import Rehearsal
from fmapboard.rehearsal.training_copy import TrainingCopy

LABELS = torch.arange(32) % 4
PIXELS = torch.rand(32, 1, 6, 6, generator=torch.Generator().manual_seed(0))
PIXELS[range(32), 0, LABELS] += 0.7
BATCH = PIXELS, LABELS

Rest = Callable[[], list[Any]]
"""What must stay as it is, beside the model and its optimizer."""
Case = tuple[nn.Module, torch.optim.Optimizer, Any, Any, Rest]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 4)
    )


def sgd(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def cross_entropy(output: Tensor, batch: Any) -> Tensor:
    return functional.cross_entropy(output, batch[1])


def nothing() -> list[Any]:
    return []


def rehearsed(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any = BATCH,
    loss: Any = cross_entropy,
    **options: Any,
) -> Rehearsal:
    return fmapboard.rehearse(model, batch, loss, optimizer, progress=False, **options)


NUMPY = np.random.default_rng(1)
TORCH = torch.Generator().manual_seed(2)
PYTHON = random.Random(3)
HEAD = nn.Linear(4, 4)
WATCHED_MODEL = network()


class DrawsFromGlobals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = network()

    def forward(self, x: Tensor) -> Tensor:
        noise = NUMPY.normal() + PYTHON.random()
        scores: Tensor = self.layers(x + 1e-3 * (noise + torch.rand((), generator=TORCH)))
        return scores


def global_generators() -> list[Any]:
    return [NUMPY.bit_generator.state, TORCH.get_state(), PYTHON.getstate()]


def a_network_with_global_generators() -> Case:
    model = DrawsFromGlobals()
    return model, sgd(model), BATCH, cross_entropy, global_generators


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Draws from generators of the module, of the class and of a transform."""

    shared = np.random.default_rng(4)

    def __init__(self, transform: Callable[[Tensor], Tensor]) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        noise = 0.01 * (NUMPY.normal() + self.shared.normal())
        return self.transform(PIXELS[number % 32]) + noise, LABELS[number % 32]


def a_dataset_with_generators_of_its_functions() -> Case:
    own = np.random.default_rng(5)
    collating = torch.Generator().manual_seed(6)

    def collate(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        pixels = torch.stack([pixels for pixels, _ in items])
        return pixels + 0.01 * torch.rand((), generator=collating), torch.stack(
            [label for _, label in items]
        )

    data = Noisy(lambda pixels: pixels + 0.01 * own.normal())
    model = network()

    def rest() -> list[Any]:
        states = [own.bit_generator.state, Noisy.shared.bit_generator.state]
        return [*global_generators(), *states, collating.get_state()]

    loader = DataLoader(data, 16, shuffle=True, collate_fn=collate)
    return model, sgd(model), loader, cross_entropy, rest


class Stream(IterableDataset[tuple[Tensor, Tensor]]):
    """Is its own iterator."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self

    def __next__(self) -> tuple[Tensor, Tensor]:
        if self.read == 64:
            raise StopIteration
        self.read += 1
        return PIXELS[self.read % 32], LABELS[self.read % 32]


def a_stream() -> Case:
    model = network()
    stream = Stream()
    return model, sgd(model), DataLoader(stream, 16), cross_entropy, lambda: [stream.read]


class EndsInGlobals(nn.Module):
    """Ends in a layer that is a global variable."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = network()

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = HEAD(self.layers(x))
        return scores


def global_layer() -> list[Any]:
    gradients = [parameter.grad for parameter in HEAD.parameters()]
    return [*HEAD.state_dict().values(), *gradients]


def a_network_that_calls_global_layer() -> Case:
    HEAD.zero_grad()
    HEAD.weight.grad = torch.ones_like(HEAD.weight)
    model = EndsInGlobals()
    return model, sgd(model), BATCH, cross_entropy, global_layer


class DecaysModel(torch.optim.SGD):
    """Refers to its model in a function."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.02)
        self.decayed = lambda: list(model.parameters())

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        for parameter in self.decayed():  # type: ignore[no-untyped-call]  # torch has no types here
            parameter.mul_(0.99)


def an_optimizer_with_a_function_of_the_model() -> Case:
    model = network()
    return model, DecaysModel(model), BATCH, cross_entropy, nothing


class DecaysGlobal(torch.optim.SGD):
    """Refers to its model as a global variable."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        for parameter in WATCHED_MODEL.parameters():
            parameter.mul_(0.99)


def an_optimizer_that_refers_to_a_global_model() -> Case:
    optimizer = DecaysGlobal(WATCHED_MODEL.parameters(), lr=0.02)
    return WATCHED_MODEL, optimizer, BATCH, cross_entropy, nothing


class Smoothed:
    """A loss that keeps state beside a lock, which cannot be copied, and its last value."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.mean = torch.zeros(())
        self.last: Tensor | None = None
        self.calls: list[float] = []

    def __call__(self, output: Tensor, batch: Any) -> Tensor:
        with self.lock:
            self.last = cross_entropy(output, batch)
            self.mean.mul_(0.9).add_(self.last.detach())
            self.calls.append(self.last.item())
        return self.last


def a_loss_object_with_a_lock() -> Case:
    model = network()
    loss = Smoothed()
    loss(model(PIXELS), BATCH)
    return model, sgd(model), BATCH, loss, lambda: [loss.mean, loss.last, *loss.calls]


def a_hook_that_counts() -> Case:
    model = network()
    calls: list[int] = []
    model[2].register_forward_hook(lambda *_: calls.append(1))
    model[4].register_full_backward_hook(lambda *_: calls.append(2))
    return model, sgd(model), BATCH, cross_entropy, lambda: [*calls]


def a_loss_of_what_a_hook_keeps() -> Case:
    model = network()
    kept: dict[str, Tensor] = {}
    model[2].register_forward_hook(lambda _, __, output: kept.update(maps=output))

    def loss(output: Tensor, batch: Any) -> Tensor:
        return cross_entropy(output, batch) + 0.01 * kept["maps"].square().mean()

    return model, sgd(model), BATCH, loss, lambda: [*kept]


class Extractor:
    def __init__(self, layer: nn.Module) -> None:
        self.outputs: list[Tensor] = []
        layer.register_forward_hook(self.save)

    def save(self, layer: nn.Module, args: Any, output: Tensor) -> None:
        self.outputs.append(output)


def a_loss_of_what_an_extractor_keeps() -> Case:
    model = network()
    extractor = Extractor(model[4])

    def loss(_: Tensor, batch: Any) -> Tensor:
        return cross_entropy(extractor.outputs.pop(), batch)

    return model, sgd(model), BATCH, loss, lambda: [*extractor.outputs]


def a_hook_that_refers_to_the_model() -> Case:
    model = network()
    model[2].register_forward_hook(lambda _, __, output: setattr(model, "maps", output))
    read: Any = model

    def loss(output: Tensor, batch: Any) -> Tensor:
        penalty: Tensor = 0.01 * read.maps.square().mean()
        return cross_entropy(output, batch) + penalty

    return model, sgd(model), BATCH, loss, lambda: [hasattr(model, "maps")]


def a_loss_with_lists_in_circles() -> Case:
    model = network()
    circle: list[Any] = []
    circle.append({"circle": circle})

    def loss(output: Tensor, batch: Any) -> Tensor:
        circle.append(1)
        return cross_entropy(output, batch)

    return model, sgd(model), BATCH, loss, lambda: [len(circle)]


CASES = (
    a_network_with_global_generators, a_dataset_with_generators_of_its_functions, a_stream,
    a_network_that_calls_global_layer, an_optimizer_with_a_function_of_the_model,
    an_optimizer_that_refers_to_a_global_model, a_loss_object_with_a_lock, a_hook_that_counts,
    a_loss_of_what_a_hook_keeps, a_loss_of_what_an_extractor_keeps,
    a_hook_that_refers_to_the_model, a_loss_with_lists_in_circles,
)  # fmt: skip


def state(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> list[Any]:
    """Values, gradients, hooks, the optimizer, and global states of torch, Python and NumPy."""
    values = [tensor.detach().clone() for tensor in model.state_dict().values()]
    gradients = [parameter.grad for parameter in model.parameters()]
    hooks = [
        {name: list(held) for name, held in vars(module).items() if name.endswith("_hooks")}
        for module in model.modules()
    ]
    modes = [module.training for module in model.modules()]
    own = [] if optimizer is None else [optimizer.state_dict()]
    numpy_state = np.random.get_state(legacy=False)
    generators = [torch.get_rng_state(), random.getstate(), numpy_state]
    of_torch = [
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_autocast_cache_enabled(),
        torch._C._len_torch_dispatch_stack(),
        str(eval_frame._stance.stance),
        len(torch_optimizer._global_optimizer_pre_hooks),
        len(blocks.open),
    ]
    return [values, gradients, hooks, modes, own, generators, of_torch]


def same(one: Any, other: Any) -> bool:
    """True for nested values that are bitwise the same."""
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def copied(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.detach().clone()
    if isinstance(values, (list, tuple)):
        return [copied(value) for value in values]
    if isinstance(values, dict):
        return {key: copied(value) for key, value in values.items()}
    return values


@pytest.mark.parametrize("make", CASES)
def test_what_code_refers_to_is_as_it_was_and_a_healthy_training_has_no_fault(
    make: Callable[[], Case],
) -> None:
    model, optimizer, batch, loss, rest = make()
    before = copied([state(model, optimizer), rest()])
    found = rehearsed(model, optimizer, batch, loss, seconds=10)
    assert [outcome.answer.text for outcome in found.faults] == []
    judged = {outcome.kind: outcome.answer.judgement for outcome in found.outcomes}
    assert judged["one_batch_is_learnt"] == "fine"
    after = [state(model, optimizer), rest()]
    assert [same(*pair) for pair in zip(before[0], after[0], strict=True)] == [True] * 7
    assert same(before[1], after[1])


class Perturbs(torch.optim.Optimizer):
    """Computes the loss twice in a step, as sharpness-aware minimization does."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.02})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        assert closure is not None, "it needs a closure"
        closure()
        (group,) = self.param_groups
        first = [parameter.grad.clone() for parameter in group["params"]]
        for parameter, gradient in zip(group["params"], first, strict=True):
            parameter.add_(gradient, alpha=0.01)
        closure()
        for parameter, gradient in zip(group["params"], first, strict=True):
            parameter.sub_(gradient, alpha=0.01)
            parameter.sub_(parameter.grad, alpha=group["lr"])


class NeedsClosure(torch.optim.SGD):
    def step(self, closure: Any) -> Any:  # type: ignore[override]  # it has no default
        return super().step(closure)


@pytest.mark.parametrize("kind", [Perturbs, NeedsClosure])
def test_an_optimizer_that_needs_a_closure_is_given_one(kind: Any) -> None:
    model = network()
    optimizer = kind(model.parameters())
    found = rehearsed(model, optimizer)
    assert found.faults == ()
    assert len(found.outcomes) == 13


def test_the_error_of_an_optimizer_that_takes_no_closure_is_shown() -> None:
    class Fails(torch.optim.SGD):
        def step(self) -> None:  # type: ignore[override]  # as optimizers of users may do
            raise ValueError("no step")

    model = network()
    found = rehearsed(model, Fails(model.parameters(), lr=0.1))
    assert found.faults[0].answer.text == "one step raises ValueError: no step"


def test_data_is_shared_with_the_copy_of_an_object_that_holds_it() -> None:
    class Own:
        def __init__(self) -> None:
            self.data = TensorDataset(*BATCH)
            self.seen: list[TensorDataset] = []

        def loss(self, output: Tensor, batch: Any) -> Tensor:
            SEEN.append(self)
            return cross_entropy(output, batch)

    own = Own()
    model = network()
    SEEN.clear()
    rehearsed(model, sgd(model), loss=own.loss, seconds=0)
    assert SEEN
    assert all(copy is not own and copy.data is own.data for copy in SEEN)


SEEN: list[Any] = []


def test_only_plain_classes_of_the_user_are_copied_by_attribute() -> None:
    class Closes:
        def __del__(self) -> None:
            pass

    assert is_of_user(Smoothed)
    assert not is_of_user(Closes)
    for kind in (dict, threading.Thread, TensorDataset, np.ndarray, DecaysModel):
        assert not is_of_user(kind)


def test_a_hook_shares_state_with_the_network_of_the_copy() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = network()
            self.calls = [0]

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.layers(x)
            return scores * self.calls[0]

    model = Counts()
    calls = model.calls

    def count(*_: Any) -> None:
        calls[0] += 1

    model.layers.register_forward_hook(count)
    copy: Any = TrainingCopy(model, sgd(model))
    assert copy.model(PIXELS).any()
    assert (calls, copy.model.calls) == ([0], [1])


def test_a_batch_that_is_none_is_refused_and_not_a_fault() -> None:
    model = network()
    for batch, message in (
        ((), "batch=tuple: expected a tensor"),
        ({}, "batch is an empty dict"),
        ([], "it holds no batch"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            rehearsed(model, sgd(model), batch)
    with pytest.raises(
        ConfigurationError, match=r"expected a loss of one number, not tensor \[32\]"
    ):
        rehearsed(model, sgd(model), loss=nn.CrossEntropyLoss(reduction="none"))


def test_a_sampler_that_cannot_be_copied_is_refused() -> None:
    class Locked(torch.utils.data.Sampler[int]):
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def __iter__(self) -> Iterator[int]:
            return iter(range(32))

    model = network()
    loader = DataLoader(TensorDataset(*BATCH), 16, sampler=Locked())
    with pytest.raises(ConfigurationError, match=r"cannot be copied .*; pass a list of batches"):
        rehearsed(model, sgd(model), loader)


def test_values_of_the_batch_that_are_not_finite_are_named_before_the_loss() -> None:
    model = network()
    pixels = PIXELS.clone()
    pixels[0] = float("nan")
    found = rehearsed(model, sgd(model), (pixels, LABELS))
    assert found.faults[0].answer.text == "the batch holds values that are not finite"


def test_ctrl_c_at_any_point_ends_a_rehearsal_and_leaves_nothing() -> None:
    warm = network()
    rehearsed(warm, sgd(warm), seconds=0)  # so that modules are imported
    ended = set[bool]()
    for number in itertools.count(20, step=1999):
        model = network()
        optimizer = sgd(model)
        before = copied(state(model, optimizer))
        interruption = Interruption(number, ctrl_c)
        with interruption, contextlib.suppress(KeyboardInterrupt):  # while arguments are checked
            ended.add(rehearsed(model, optimizer, seconds=1).is_interrupted)
        after = state(model, optimizer)
        assert [same(*pair) for pair in zip(before, after, strict=True)] == [True] * 7
        if not interruption.at:
            break
    assert ended == {True, False}


@pytest.mark.sweep
@pytest.mark.timeout(600)
def test_a_signal_of_another_process_ends_a_rehearsal_and_leaves_nothing() -> None:
    drawn = random.Random(0)
    endings = []
    for _ in range(30):
        model = network()
        optimizer = sgd(model)
        before = copied(state(model, optimizer))
        kill = f"os.kill({os.getpid()}, {int(signal.SIGINT)})"
        code = f"import os, time; time.sleep({drawn.random()}); {kill}"
        try:
            with subprocess.Popen([sys.executable, "-S", "-c", code]) as sender:
                found = rehearsed(model, optimizer, DataLoader(TensorDataset(*BATCH), 4))
                endings.append(found.is_interrupted)
                sender.wait()
        except KeyboardInterrupt:  # after its end
            endings.append(False)
        after = state(model, optimizer)
        assert [same(*pair) for pair in zip(before, after, strict=True)] == [True] * 7
    assert any(endings)
