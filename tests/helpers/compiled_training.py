"""Training of small compiled networks, watched or not, and what torch.compile did in it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import fmapboard
from fmapboard.records import LoggedStep
from fmapboard.writers.folder import MemoryWriter

STEPS, EVERY = 6, 2


class Block(nn.Module):
    """A convolution, BatchNorm, Dropout."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm, self.drop = nn.BatchNorm2d(outputs), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(torch.relu(self.norm(self.conv(x))))  # type: ignore[no-any-return]


class Own(nn.Module):
    """A class of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer1, self.layer2, self.head = Block(3, 4), Block(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer2(self.layer1(x)).mean((2, 3)))  # type: ignore[no-any-return]


def container() -> nn.Sequential:
    """A network of torch's own modules only."""

    def block(inputs: int, outputs: int) -> nn.Sequential:
        conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU(), nn.Dropout(0.1))

    net = nn.Sequential()
    net.add_module("layer1", block(3, 4))
    net.add_module("layer2", block(4, 8))
    net.add_module("rest", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)))
    return net


NETWORKS: dict[str, Callable[[], nn.Module]] = {"own": Own, "container": container}


@dataclass
class Result:
    """What a training has left.

    Attributes:
        numbers: losses, parameters, buffers, and the random state after each step.
        compiled: graphs, calls of compiled code, frames, recompilations and graph breaks.
        steps: the logged steps.
    """

    numbers: list[Tensor] = field(default_factory=list)
    compiled: dict[str, Any] = field(default_factory=dict)
    steps: list[LoggedStep] = field(default_factory=list)

    def assert_is(self, other: Result) -> None:
        """The two trainings are bitwise the same, and so is what torch.compile did."""
        assert len(self.numbers) == len(other.numbers)
        for one, two in zip(self.numbers, other.numbers, strict=True):
            assert torch.equal(one, two)
        assert self.compiled == other.compiled


class Watcher:
    """Calls ``fmapboard.watch`` with a model, unless the training is not watched."""

    def __init__(self, optimizer: torch.optim.Optimizer, watched: bool, options: Any) -> None:
        self.optimizer, self.watched, self.options = optimizer, watched, options
        self.kept = MemoryWriter()
        self.board: Any = None

    def __call__(self, model: nn.Module) -> None:
        if self.watched:
            options = {"optimizer": self.optimizer, "every": EVERY, **self.options}
            self.board = fmapboard.watch(model, writer=self.kept, **options)


Setup = Callable[[nn.Module, Callable[[nn.Module], None], dict[str, Any]], Callable[..., Any]]
"""Compiles and watches a model; returns what the training calls."""


def _watch_compiled(model: nn.Module, watch: Any, how: Any) -> Any:
    compiled = torch.compile(model, **how)
    watch(compiled)
    return compiled


def _watch_what_was_compiled(model: nn.Module, watch: Any, how: Any) -> Any:
    compiled = torch.compile(model, **how)
    watch(model)
    return compiled


def _compile_after_watch(model: nn.Module, watch: Any, how: Any) -> Any:
    watch(model)
    return torch.compile(model, **how)


def _in_place_before(model: nn.Module, watch: Any, how: Any) -> Any:
    model.compile(**how)
    watch(model)
    return model


def _in_place_after(model: nn.Module, watch: Any, how: Any) -> Any:
    watch(model)
    model.compile(**how)
    return model


def _part_in_place(model: Any, watch: Any, how: Any) -> Any:
    model.layer1.compile(**how)
    watch(model)
    return model


def _part_wrapped(model: Any, watch: Any, how: Any) -> Any:
    watch(model)
    model.layer1 = torch.compile(model.layer1, **how)
    return model


def _forward_method(model: Any, watch: Any, how: Any) -> Any:
    model.forward = torch.compile(model.forward, **how)
    watch(model)
    return model


SETUPS: dict[str, Setup] = {
    "watch(torch.compile(m))": _watch_compiled,
    "torch.compile(m), watch(m)": _watch_what_was_compiled,
    "watch(m), torch.compile(m)": _compile_after_watch,
    "m.compile(), watch(m)": _in_place_before,
    "watch(m), m.compile()": _in_place_after,
    "m.part.compile()": _part_in_place,
    "m.part = torch.compile(m.part)": _part_wrapped,
    "m.forward = torch.compile(m.forward)": _forward_method,
}

_UNWATCHED: dict[Setup, Setup] = {
    _watch_what_was_compiled: _watch_compiled,
    _compile_after_watch: _watch_compiled,
    _in_place_after: _in_place_before,
}
"""Set-ups that are the same as another one when nothing is watched."""
_TRAINS = {"backend", "fullgraph", "autocast", "shorter_batch"}
"""Arguments of ``train`` that the training depends on; the others are those of ``watch``."""


def train_unwatched(setup: Setup, make: Callable[[], nn.Module] = Own, **options: Any) -> Result:
    """What ``train(False, ...)`` returns, trained once for all tests that compare with it."""
    kept = {name: value for name, value in options.items() if name in _TRAINS}
    return _trained_once(_UNWATCHED.get(setup, setup), make, **kept)


@functools.cache
def _trained_once(setup: Setup, make: Callable[[], nn.Module], **options: Any) -> Result:
    return train(False, setup, make, **options)


def train(
    watched: bool,
    setup: Setup,
    make: Callable[[], nn.Module] = Own,
    *,
    backend: str = "aot_eager",
    fullgraph: bool = False,
    autocast: bool = False,
    shorter_batch: bool = False,
    compiled_step: bool = False,
    steps: int = STEPS,
    **options: Any,
) -> Result:
    """Train, and count what torch.compile did."""
    from torch._dynamo.backends.registry import lookup_backend
    from torch._dynamo.utils import counters

    torch.compiler.reset()
    counters.clear()
    result, calls = Result(), [0, 0]

    def counting(graph: Any, inputs: Any) -> Any:
        calls[0] += 1
        function = lookup_backend(backend)(graph, inputs)

        def run(*args: Any) -> Any:
            calls[1] += 1
            return function(*args)

        return run

    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    watch = Watcher(optimizer, watched, options)
    call = setup(model, watch, {"backend": counting, "fullgraph": fullgraph})
    step = torch.compile(optimizer.step, backend=counting) if compiled_step else optimizer.step
    for number in range(steps):
        size = 4 if shorter_batch and number == steps - 2 else 6
        x, y = torch.rand(size, 3, 12, 12), torch.randint(4, (size,))
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            loss = functional.cross_entropy(call(x).float(), y)
        loss.backward()
        step()
        result.numbers += [loss.detach(), torch.get_rng_state()]
    if watch.board is not None:
        watch.board.close()
    result.numbers += [value.clone() for value in model.state_dict().values()]
    result.compiled = {
        "graphs": calls[0],
        "calls": calls[1],
        "frames": dict(counters["frames"]),
        "recompiles": dict(counters["recompiles"]),
        "breaks": {re.sub(" at 0x[0-9a-f]+", "", k): n for k, n in counters["graph_break"].items()},
        "unique": counters["stats"].get("unique_graphs"),
    }
    result.steps = watch.kept.steps
    return result
