"""The demonstration's training loop: the one any user has, with `fmapboard.watch` around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from fmapboard.demo.photographs import Photographs

STEPS = 250
"""Optimizer steps of the demonstration."""

BATCH = 32
"""Crops in a training batch."""

VALIDATE_EVERY = 50
"""Steps between two measurements of the validation accuracy."""

Watch = Callable[[nn.Module, Optimizer], AbstractContextManager[object]]
"""Makes what is open around the loop, such as ``fmapboard.watch(model, …, optimizer=…)``."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a training came to."""

    steps: int
    """Optimizer steps taken."""
    seconds: float
    """Wall time of the whole loop, validation and watching included."""
    loss: float
    """Training cross-entropy of the last step, in nats."""
    accuracy: float
    """Fraction of the held-out crops that the trained network names right, 0 to 1."""
    chance: float
    """The accuracy of guessing, 0 to 1."""


def unwatched(network: nn.Module, optimizer: Optimizer) -> AbstractContextManager[object]:
    """Watch nothing."""
    return nullcontext()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute in one thread, and put the number of threads back.

    A network this small gains little from a second one, and loses much where it must share a core:
    each operation then waits for the slower of the two. It also makes the result the same on
    machines with different numbers of cores.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    network: nn.Module,
    photographs: Photographs,
    *,
    steps: int = STEPS,
    watch: Watch = unwatched,
    on_step: Callable[[int, float], None] | None = None,
    scalars: Callable[[str, float, int], None] | None = None,
    seed: int = 0,
) -> Result:
    """Train a network in place to tell photographs apart, and measure it on held-out crops.

    The crops depend on ``seed`` alone and no global random number generator is used. The network
    stays on its device and is left in eval mode; meanwhile torch computes in one thread.

    Args:
        network: takes images [N, 3, 48, 48] and returns logits [N, photographs].
        photographs: what to learn.
        steps: how many optimizer steps.
        watch: given the network and its optimizer, what to keep open around the loop.
        on_step: called after every step with its number, from 0, and its loss.
        scalars: called with a tag, a value and a step: ``loss/training`` at every step, and
            ``accuracy/validation`` every 50 steps and at the end, at the number of steps done.
        seed: of the random crops.
    """
    began = time.perf_counter()
    device = next(network.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    held_out, answers = (part.to(device) for part in photographs.validation_crops())
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.005, total_steps=steps)
    note = scalars or (lambda tag, value, step: None)
    reached = loss_now = float("nan")
    network.train()
    with one_thread(), watch(network, optimizer):
        for step in range(steps):
            images, labels = photographs.training_batch(BATCH, generator)
            loss = functional.cross_entropy(network(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
            optimizer.step()
            schedule.step()
            loss_now = loss.item()
            note("loss/training", loss_now, step)
            if on_step is not None:
                on_step(step, loss_now)
            if (step + 1) % VALIDATE_EVERY == 0 or step + 1 == steps:
                reached = accuracy(network, held_out, answers)
                note("accuracy/validation", reached, step + 1)
    network.eval()
    return Result(
        steps=steps,
        seconds=time.perf_counter() - began,
        loss=loss_now,
        accuracy=reached,
        chance=1 / len(photographs.names),
    )


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The fraction of images that a network names right, in eval mode and without gradients.

    The network's mode is put back; its weights and statistics do not change.

    Args:
        network: images -> logits [N, classes].
        images: [N, 3, H, W], on the network's device.
        labels: int64 [N], on the network's device.
    """
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            answers: Tensor = network(images).argmax(1)  # [N]
    finally:
        network.train(was_training)
    return (answers == labels).float().mean().item()
