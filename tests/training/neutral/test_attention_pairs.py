"""Transformers whose training does two things at once are trained bitwise as without us."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any

import pytest
import torch
from attending_networks import LABELS, NETWORKS, WIDTH, Attention, Block, images
from compiled_training import SETUPS, train_unwatched
from compiled_training import train as train_compiled
from module_hooks import hook_count
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard.capture.module_calls import _Process
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS, EVERY = 6, 2
WAYS = ("accumulation", "attribution", "autocast", "checkpointing", "graph", "probe", "teacher")
PAIRS = list(combinations(WAYS, 2))


@pytest.fixture(autouse=True)
def _nothing_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier tests have compiled in this process, where attention is then read beside the pass."""
    torch.compiler.reset()
    monkeypatch.setattr(_Process, "compiles", False)


@dataclass
class Left:
    """What a training leaves.

    Attributes:
        numbers: losses, random states, gradients, and the weights after the last step.
        steps: the logged steps of the trained network.
        steps_of_teacher: likewise of the other one.
    """

    numbers: list[Tensor] = field(default_factory=list)
    steps: list[LoggedStep] = field(default_factory=list)
    steps_of_teacher: list[LoggedStep] = field(default_factory=list)

    def assert_is(self, other: Left) -> None:
        for one, two in zip(self.numbers, other.numbers, strict=True):
            assert torch.equal(one, two)


def labels(steps: list[LoggedStep]) -> list[list[str]]:
    """Of the rows of attention at each step."""
    found = []
    for step in steps:
        calls = [part.layer_call for part in step.statistics]
        found.append([call.label for call in calls if call.unit == "head"])
    return found


class TextNet(nn.Module):
    """A language model [N, T] -> [N, T, 12] of two blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, WIDTH)
        self.blocks = nn.ModuleList([Block(Attention(causal)) for _ in range(2)])
        self.head = nn.Linear(WIDTH, 12)

    def forward(self, ids: Tensor) -> Tensor:
        tokens = self.words(ids)
        for block in self.blocks:
            tokens = block(tokens)
        return self.head(tokens)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def texts(count: int = 6) -> Tensor:
    """Padded at the end."""
    ids = torch.randint(1, 12, (6, 9), generator=torch.Generator().manual_seed(0))
    lengths = torch.tensor([9, 4, 7, 9, 5, 8])
    return ids.masked_fill(torch.arange(9) >= lengths[:, None], 0)[:count]


MADE: dict[str, Callable[[], nn.Module]] = {**NETWORKS, "text": TextNet}


def train(name: str, ways: tuple[str, ...], *, watched: bool) -> Left:
    """Train a network for six steps."""
    make, given = MADE[name], texts if name == "text" else images
    torch.manual_seed(0)
    teacher = make().eval()
    model: Any = make()
    if "checkpointing" in ways:
        for block in model.blocks:
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    left = Left()
    with ExitStack() as stack:
        if watched:
            kept = MemoryWriter()
            options: dict[str, Any] = {"attribution": "attribution" in ways}
            if "probe" in ways:
                options["probe"] = given(2)
            stack.enter_context(
                fmapboard.watch(model, writer=kept, optimizer=optimizer, every=EVERY, **options)
            )
            left.steps = kept.steps
        of_teacher = None
        if watched and "teacher" in ways:
            other = MemoryWriter()
            of_teacher = stack.enter_context(fmapboard.watch(teacher, writer=other, every=EVERY))
            left.steps_of_teacher = other.steps
        for step in range(STEPS):
            optimizer.zero_grad()
            with of_teacher.step(step) if of_teacher is not None else nullcontext():
                for batch in given(6).chunk(2 if "accumulation" in ways else 1):
                    loss = loss_of(model, teacher, batch, ways)
                    loss.backward()
                    left.numbers.append(loss.detach())
            if watched and "graph" in ways:
                fmapboard.graph(model, given(1))
            left.numbers += [parameter.grad.clone() for parameter in model.parameters()]
            optimizer.step()
            left.numbers.append(torch.get_rng_state())
            assert hook_count(model) == hook_count(teacher) == 0
            assert torch._C._len_torch_function_stack() == 0
    left.numbers += [parameter.detach() for parameter in model.parameters()]
    return left


def loss_of(model: nn.Module, teacher: nn.Module, batch: Tensor, ways: tuple[str, ...]) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in ways):
        output = model(batch)
        loss = loss_of_labels(output.float(), batch)
        if "teacher" in ways:
            with torch.no_grad():
                taught = teacher(batch).float()
            loss = loss + functional.mse_loss(output.float(), taught)
    return loss


def loss_of_labels(output: Tensor, batch: Tensor) -> Tensor:
    """Cross-entropy: of the next words, or of classes of images."""
    if output.dim() == 2:
        return functional.cross_entropy(output, torch.arange(len(batch)) % 4)
    words = output[:, :-1].flatten(0, 1)
    return functional.cross_entropy(words, batch[:, 1:].flatten(), ignore_index=0)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing of ours failed."""
    yield
    assert not [r.getMessage() for r in caplog.records if "failed" in r.getMessage()]


@pytest.mark.usefixtures("quiet")
@pytest.mark.each_once
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("ways", PAIRS, ids=" and ".join)
def test_a_training_that_does_two_things_at_once_is_bitwise_the_same(
    ways: tuple[str, str], name: str
) -> None:
    seen = train(name, ways, watched=True)
    seen.assert_is(train(name, ways, watched=False))
    assert labels(seen.steps) == [LABELS] * 3
    if "teacher" in ways:
        assert labels(seen.steps_of_teacher) == [LABELS] * 3


def teach_each_other(*, watched: bool) -> tuple[list[Tensor], list[MemoryWriter]]:
    """Train two networks, each on the labels and on what the other one says (mutual learning)."""
    torch.manual_seed(0)
    models = [NETWORKS["scaled_dot_product_attention"](), NETWORKS["MultiheadAttention"]()]
    optimizers = [torch.optim.AdamW(model.parameters(), 1e-2) for model in models]
    kept = [MemoryWriter(), MemoryWriter()]
    left = []
    with ExitStack() as stack:
        for model, optimizer, writer in zip(models, optimizers, kept, strict=True):
            if watched:
                stack.enter_context(
                    fmapboard.watch(model, writer=writer, optimizer=optimizer, every=EVERY)
                )
        for _ in range(STEPS):
            outputs = [model(images()) for model in models]
            for output, other, optimizer in zip(
                outputs, reversed(outputs), optimizers, strict=True
            ):
                optimizer.zero_grad()
                loss = functional.cross_entropy(output, torch.arange(6) % 4)
                loss = loss + functional.mse_loss(output, other.detach())
                loss.backward()
                left.append(loss.detach())
            for optimizer in optimizers:
                optimizer.step()
            assert sum(map(hook_count, models)) == torch._C._len_torch_function_stack() == 0
    left += [parameter.detach() for model in models for parameter in model.parameters()]
    return [*left, torch.get_rng_state()], kept


@pytest.mark.usefixtures("quiet")
def test_two_networks_that_teach_each_other_have_a_logger_each() -> None:
    seen, kept = teach_each_other(watched=True)
    bare, _ = teach_each_other(watched=False)
    assert all(torch.equal(one, two) for one, two in zip(seen, bare, strict=True))
    for writer in kept:
        assert labels(writer.steps) == [LABELS] * 3


@pytest.mark.usefixtures("quiet")
@pytest.mark.each_once
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("setup", ["watch(torch.compile(m))", "m.compile(), watch(m)"])
@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.sweep)]
)
def test_a_compiled_training_with_a_probe_is_bitwise_the_same_and_is_compiled_as_often(
    backend: str, setup: str, name: str
) -> None:
    run: dict[str, Any] = {"setup": SETUPS[setup], "make": NETWORKS[name], "backend": backend}
    with torch._inductor.config.patch({"cpp.vec_isa_ok": False, "compile_threads": 1}):
        seen = train_compiled(True, probe=images(2), **run)
        seen.assert_is(train_unwatched(**run))
    assert seen.compiled["calls"] > 0
    assert labels(seen.steps) == [LABELS] * 3
