"""Networks, loops and options that nobody chose together: trained bitwise as without us.

Each seed draws one of each. A pair that no test names is met here, and the seed repeats it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from attending_networks import NETWORKS
from hidden_state import KINDS
from model_state import assert_unchanged, state_of
from module_hooks import hook_count
from networks import NestedNet
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import fmapboard
from fmapboard.writers.folder import MemoryWriter

pytestmark = [
    pytest.mark.slow,
    # torch.compile reads it of each tensor that it resumes with after a graph break.
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]

STEPS = 5
BATCH = 10
SEEDS_OF_CI = 16
SEEDS = 400


class TwoOutputs(nn.Module):
    """One module called three times, and an output that the loss does not use."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.head = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        for _ in range(3):
            x = x + torch.tanh(self.conv(x))
        return {"logits": self.head(x.mean((2, 3))), "maps": x}


class Checkpointed(nn.Module):
    """Convolutions that are computed again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = checkpoint(self.body, self.stem(x), use_reentrant=False)
        return self.head(x.mean((2, 3)))


class Parametrized(nn.Module):
    """Kernels that are computed at each call, one of them with a buffer that changes."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 8, 3))
        self.conv2 = nn.utils.parametrizations.spectral_norm(nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.leaky_relu(self.conv1(x), inplace=True)
        return self.head(self.conv2(x).mean((2, 3)))


class Recurrent(nn.Module):
    """A convolution of sequences and an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 8, 5, stride=4)
        self.lstm = nn.LSTM(8, 8, 2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        steps, _ = self.lstm(self.conv(x.flatten(2)).transpose(1, 2))
        return self.head(steps[:, -1])


class FrozenBody(nn.Module):
    """Only the head is trained; returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.head = nn.Linear(8, 4)
        self.body.requires_grad_(False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            maps = self.body(x)
        return self.head(maps.mean((2, 3))), maps


MADE: list[Callable[[], nn.Module]] = [
    NestedNet,
    TwoOutputs,
    Checkpointed,
    Parametrized,
    Recurrent,
    FrozenBody,
    *NETWORKS.values(),
    *KINDS,
]
OPTIONS: dict[str, list[Any]] = {
    "inputs": [True],
    "activation_gradients": [True],
    "effective": [True],
    "attribution": [True],
    "kernels": [False, 2],
    "samples": [3],
    "max_channels": [None, 2],
    "max_tile": [4],
    "max_bytes_per_step": [20_000],
    "update_ratios": [False],
    "scale": ["layer", "locked"],
    "colormap": ["signed"],
    "checks": [{"dead": False}],
    "prove": [1.0],
    "when_full": ["drop_oldest"],
    "layers": [nn.Linear],
    "probe": [torch.rand(2, 3, 12, 12, generator=torch.Generator().manual_seed(1))],
}
WAYS = (
    *("accumulation", "adversarial weights", "autocast", "bfloat16", "channels last", "clipping"),
    *("evaluation", "freezing", "given loss", "gradient penalty", "rate groups", "replaced layer"),
)
BACKENDS = (None, None, None, None, None, None, "eager", "aot_eager")


@dataclass
class Drawn:
    """A network, how it is trained, and the options of ``watch``."""

    make: Callable[[], nn.Module]
    ways: set[str]
    backend: str | None
    every: int
    options: dict[str, Any] = field(default_factory=dict)


def draw(seed: int) -> Drawn:
    source = random.Random(seed)
    backend = source.choice(BACKENDS)
    ways = {way for way in WAYS if source.random() < 0.2}
    make = source.choice(MADE)
    if backend is not None or make is FrozenBody:
        ways.discard("gradient penalty")  # a compiled graph has no second derivative
    if "autocast" in ways or make in KINDS:
        ways.discard("bfloat16")  # what these networks keep is float32
    options = {
        name: source.choice(values) for name, values in OPTIONS.items() if source.random() < 0.2
    }
    return Drawn(make, ways, backend, source.choice((1, 2, 3)), options)


def batch(step: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(step)
    images = torch.randn(BATCH, 3, 12, 12, generator=source)
    return images, torch.randint(0, 3, (BATCH,), generator=source)


def logits_of(output: Any) -> Tensor:
    if isinstance(output, dict):
        return output["logits"].float()
    return (output[0] if isinstance(output, tuple) else output).float()


def train(drawn: Drawn, *, watched: bool) -> list[Tensor]:
    """What the training leaves: losses, and the state of the model, optimizer and generators."""
    torch.compiler.reset()
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    ways = drawn.ways
    dtype = torch.bfloat16 if "bfloat16" in ways else torch.float32
    model = drawn.make().to(dtype)
    if "channels last" in ways:
        model.to(memory_format=torch.channels_last)
    called = model if drawn.backend is None else torch.compile(model, backend=drawn.backend)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [{"params": parameters[:1], "lr": 0.1}, {"params": parameters[1:]}]
    trained = groups if "rate groups" in ways else parameters
    optimizer = torch.optim.AdamW(trained, lr=0.01)
    losses = []

    def loss_on(images: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in ways):
            output = called(images)
        return functional.cross_entropy(logits_of(output), labels)

    board: Any = None
    if watched:
        options = dict(drawn.options)
        if "probe" in options:
            options["probe"] = options["probe"].to(dtype)
        board = fmapboard.watch(
            called, writer=MemoryWriter(), optimizer=optimizer, every=drawn.every, **options
        )
    with board if watched else nullcontext():
        for step in range(STEPS):
            if "freezing" in ways and step == 3:
                parameters[0].requires_grad_(False)
            if "replaced layer" in ways and step == 3:
                replace_activations(model)
            images, labels = batch(step)
            images = images.to(dtype)
            optimizer.zero_grad()
            for _ in range(2 if "accumulation" in ways else 1):
                loss = loss_on(images, labels)
                loss.backward()
            if "gradient penalty" in ways:
                penalty(called, images).backward()
            if "adversarial weights" in ways:
                perturb(parameters, 0.01)
                loss_on(images, labels).backward()
                perturb(parameters, -0.01)
            if watched and "given loss" in ways:
                board.loss(loss, labels)
            if "clipping" in ways:
                nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()
            losses.append(loss.detach())
            if "evaluation" in ways:
                model.eval()
                with torch.no_grad():
                    losses.append(loss_on(images, labels))
                model.train()
            assert hook_count(model) == 0
    moments = [value for state in optimizer.state.values() for value in state.values()]
    return [*losses, *state_of(model), *moments]


def replace_activations(model: nn.Module) -> None:
    """Another function in place of each ReLU, in the middle of the training."""
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.ReLU):
                setattr(module, name, nn.Tanh())


def penalty(model: Any, images: Tensor) -> Tensor:
    """The norm of the gradient of the input."""
    images = images.clone().requires_grad_()
    score = logits_of(model(images)).logsumexp(1).sum()
    (gradient,) = torch.autograd.grad(score, images, create_graph=True)
    return gradient.float().square().mean()


def perturb(parameters: list[nn.Parameter], size: float) -> None:
    with torch.no_grad():
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.add_(size)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.sweep if seed >= SEEDS_OF_CI else ())
        for seed in range(SEEDS)
    ],
)
def test_a_drawn_training_is_bitwise_the_same(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    drawn = draw(seed)
    bare = train(drawn, watched=False)
    assert_unchanged(bare, train(drawn, watched=False))  # what differs by itself shows nothing
    assert_unchanged(bare, train(drawn, watched=True))
    failures = [r.message for r in caplog.records if "training continues" in r.message]
    assert failures == [], drawn
