"""Training with every step logged is bitwise the same as training without fmapboard."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from logged_step import statistics_of
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

Optimizers = Callable[[Any], torch.optim.Optimizer]
STEPS = 20


class CheckpointableNet(nn.Module):
    """In-place ReLUs, BatchNorm, dropout; its block may be checkpointed."""

    def __init__(self, checkpointing: str | None = None) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.block = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.Dropout(0.2),
        )
        self.head = nn.Linear(8, 4)
        self.checkpointing = checkpointing

    def forward(self, x: Tensor) -> Tensor:
        maps = self.relu(self.stem(x))
        if self.checkpointing is None:
            maps = self.block(maps)
        else:
            maps = checkpoint(self.block, maps, **OPTIONS[self.checkpointing])
        return self.head(maps.mean((2, 3)))


def keep_convolutions(context: object, operation: object, *args: Any, **kwargs: Any) -> Any:
    if operation == torch.ops.aten.convolution.default:
        return CheckpointPolicy.MUST_SAVE
    return CheckpointPolicy.PREFER_RECOMPUTE


OPTIONS: dict[str, dict[str, Any]] = {
    "reentrant": {"use_reentrant": True},
    "non-reentrant": {"use_reentrant": False},
    "selective": {
        "use_reentrant": False,
        "context_fn": lambda: create_selective_checkpoint_contexts(keep_convolutions),
    },
}
OPTIMIZERS: dict[str, Optimizers] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "adamw fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
}


def train(
    watched: bool,
    *,
    optimizers: Optimizers = OPTIMIZERS["sgd"],
    make: Callable[[], nn.Module] = CheckpointableNet,
    wrap: Callable[[nn.Module], nn.Module] = lambda model: model,
    autocast: torch.dtype | None = None,
    steps: int = STEPS,
    **options: Any,
) -> tuple[list[Any], list[LoggedStep]]:
    """The state after training (parameters, gradients, optimizer, random generators); the steps."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    base = make()
    model = wrap(base)
    optimizer = optimizers(base.parameters())
    kept = MemoryWriter()
    options = {
        "inputs": True,
        "activation_gradients": True,
        "attribution": True,
        "kernels": 1,
        "every": 1,
        **options,
    }
    board = None
    if watched:
        board = fmapboard.watch(model, writer=kept, optimizer=optimizer, **options)
    for _ in range(steps):
        x, y = torch.randn(4, 3, 12, 12), torch.randint(0, 4, (4,))

        def closure(x: Tensor = x, y: Tensor = y) -> Tensor:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=autocast, enabled=autocast is not None):
                loss = functional.cross_entropy(model(x), y)
            loss.backward()
            return loss

        if isinstance(optimizer, torch.optim.LBFGS):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    if board is not None:
        board.close()
    left = [
        base.state_dict(),
        [p.grad for p in base.parameters()],
        optimizer.state_dict(),
        torch.get_rng_state(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
    ]
    return left, kept.steps


def assert_same(bare: list[Any], seen: list[Any]) -> None:
    a, b = tree_leaves(bare), tree_leaves(seen)
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert torch.equal(one, other) if isinstance(one, Tensor) else one == other


PROBE = torch.linspace(-1, 1, 2 * 3 * 12 * 12).reshape(2, 3, 12, 12)


def loss_on_probe(output: Tensor) -> Tensor:
    return functional.cross_entropy(output, torch.tensor([1, 2]))


@pytest.mark.each_once
@pytest.mark.parametrize("mode", ["live", "probe", "loss on probe"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_watched_training_is_bitwise_the_same(name: str, mode: str) -> None:
    options = {} if mode == "live" else {"probe": PROBE}
    if mode == "loss on probe":
        options["attribution_loss"] = loss_on_probe
    bare, _ = train(False, optimizers=OPTIMIZERS[name])
    seen, steps = train(True, optimizers=OPTIMIZERS[name], **options)
    assert_same(bare, seen)
    assert [step.step for step in steps] == list(range(STEPS))
    assert {p.kind for p in steps[-1].pictures} == {
        "feature_maps", "inputs", "gradients_of_maps", "kernels", "network_input", "attribution",
    }  # fmt: skip


@pytest.mark.parametrize("kind", OPTIONS)
def test_checkpointed_training_is_bitwise_the_same_and_recorded_once(kind: str) -> None:
    bare, _ = train(False, make=lambda: CheckpointableNet(kind))
    seen, steps = train(True, make=lambda: CheckpointableNet(kind))
    assert_same(bare, seen)
    for step in steps:
        layer_calls = [(m.layer_call.label, m.kind) for m in step.statistics]
        assert len(layer_calls) == len(set(layer_calls))
        assert ("block.0", "feature_maps") in layer_calls
        assert not [label for label, _ in layer_calls if ".call" in label and label != "relu.call2"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_under_autocast_is_bitwise_the_same(dtype: torch.dtype) -> None:
    bare, _ = train(False, autocast=dtype)
    seen, steps = train(True, autocast=dtype, probe=PROBE)
    assert_same(bare, seen)
    assert len(steps) == STEPS


def wrapped(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


def in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="eager")
    return model


def regional(model: nn.Module) -> nn.Module:
    model.block.compile(backend="eager")
    return model


@pytest.mark.each_once
@pytest.mark.filterwarnings(
    "ignore:The .grad attribute of a Tensor"
)  # of dynamo itself, about inputs
@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.parametrize("wrap", [wrapped, in_place, regional])
def test_compiled_training_is_captured_without_a_recompilation(
    wrap: Callable[[nn.Module], nn.Module], called_before: bool
) -> None:
    from torch._dynamo.utils import counters

    def attached(base: nn.Module) -> nn.Module:
        model = wrap(base)
        if called_before:
            model(torch.randn(4, 3, 12, 12)).sum().backward()
            base.zero_grad()
        return model

    compiled = []
    for watched in (False, True):
        torch.compiler.reset()
        counters.clear()
        # Only every second step is logged: the compiled code runs in the others.
        left, steps = train(watched, wrap=attached, steps=6, every=2)
        compiled.append((left, dict(counters["frames"]), dict(counters["recompiles"])))
    assert_same(compiled[0][0], compiled[1][0])
    assert compiled[0][1:] == compiled[1][1:]
    assert [step.step for step in steps] == [0, 2, 4]
    assert "feature_maps_8x8x3x3/block.0" in {p.tag for p in steps[1].pictures}


def test_copies_of_a_watched_model_capture_nothing_and_can_be_saved() -> None:
    model, kept = CheckpointableNet(), MemoryWriter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = list(model.state_dict())
    board = fmapboard.watch(model, writer=kept, optimizer=optimizer, every=1)
    average = AveragedModel(model)
    twin = copy.deepcopy(model)
    saved = io.BytesIO()
    torch.save(model, saved)
    saved.seek(0)
    loaded = torch.load(saved, weights_only=False)
    pickled = pickle.loads(pickle.dumps(optimizer))
    assert list(model.state_dict()) == before
    assert pickled.state_dict()["param_groups"][0]["lr"] == 0.1
    for other in (average, twin, loaded):
        other.train()
        other(torch.full((2, 3, 12, 12), 1000.0))
    model(torch.randn(2, 3, 12, 12)).sum().backward()
    optimizer.step()
    average.update_parameters(model)
    board.close()
    (step,) = kept.steps
    assert statistics_of(step, "stem").maximum.max() < 100


def test_no_tensor_outlives_its_step() -> None:
    model = CheckpointableNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    class Nowhere:
        def write(self, step: LoggedStep) -> None: ...

        def flush(self) -> None: ...

        def close(self) -> None: ...

    board = fmapboard.watch(
        model,
        writer=Nowhere(),
        optimizer=optimizer,
        every=1,
        inputs=True,
        activation_gradients=True,
        attribution=True,
        probe=PROBE,
    )
    alive = []
    for number in range(100):
        optimizer.zero_grad()
        model(torch.randn(2, 3, 12, 12)).sum().backward()
        optimizer.step()
        if number in (10, 99):
            board.flush()
            gc.collect()
            alive.append(sum(issubclass(type(item), Tensor) for item in gc.get_objects()))
    board.close()
    # One tensor per step would be 89 more; the worker may still hold those of the last step.
    assert alive[1] < alive[0] + 60
