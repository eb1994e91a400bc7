"""The demonstration's training loop: an ordinary loop inside a `fmapboard.watch` context."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from fmapboard.demo.photographs import Photographs

STEPS = 250
"""Optimizer steps of the demonstration."""

BATCH = 32
"""Crops per training batch."""

VALIDATE_EVERY = 50
"""Steps between measurements of the validation accuracy."""

Watch = Callable[[nn.Module, Optimizer], AbstractContextManager[object]]
"""Returns the context that the loop runs in, such as ``fmapboard.watch(model, optimizer=…)``."""


class Result(NamedTuple):
    """Outcome of a training run."""

    steps: int
    """Number of optimizer steps."""
    seconds: float
    """Wall time of the whole run, including validation and logging, s."""
    loss: float
    """Training cross-entropy of the last step, in nats."""
    accuracy: float
    """Fraction of held-out crops that the trained network classifies correctly, 0 to 1."""
    chance: float
    """Accuracy of random guessing, 0 to 1."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch in a single thread, and restore the number of threads afterwards.

    A network this small gains little from a second thread. If the threads must share a core, every
    operation waits for the slower one. A single thread also gives the same result on machines with
    different numbers of cores.
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
    watch: Watch = lambda network, optimizer: nullcontext(),
    on_step: Callable[[int, float], None] = lambda step, loss: None,
    scalars: Callable[[str, float, int], None] = lambda tag, value, step: None,
    seed: int = 0,
) -> Result:
    """Train a network in place to classify crops of photographs, and validate it on held-out crops.

    The crops depend only on ``seed``; no global random number generator is used. The network stays
    on its device and is left in eval mode. During training, torch runs in a single thread.

    Args:
        network: maps images [N, 3, 48, 48] to logits [N, photographs].
        photographs: the data set.
        steps: number of optimizer steps.
        watch: returns the context that the loop runs in, given the network and its optimizer; by
            default nothing is logged.
        on_step: called after every step with its number, counted from 0, and its loss.
        scalars: called with a tag, a value and a step: ``loss/training`` at every step, and
            ``accuracy/validation`` every 50 steps and at the end, where the step is the number of
            steps done.
        seed: seed of the random crops.
    """
    began = time.perf_counter()
    device = next(network.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    held_out, answers = photographs.validation_crops()
    held_out = held_out.to(device)
    answers = answers.to(device)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.005, total_steps=steps)
    reached = float("nan")
    loss_now = float("nan")
    network.train()
    with one_thread(), watch(network, optimizer):
        for step in range(steps):
            images, labels = photographs.training_batch(BATCH, generator)
            loss_now = _step(network, optimizer, images.to(device), labels.to(device))
            schedule.step()
            scalars("loss/training", loss_now, step)
            on_step(step, loss_now)
            done = step + 1
            if done % VALIDATE_EVERY == 0 or done == steps:
                reached = accuracy(network, held_out, answers)
                scalars("accuracy/validation", reached, done)
    network.eval()
    return Result(
        steps=steps,
        seconds=time.perf_counter() - began,
        loss=loss_now,
        accuracy=reached,
        chance=1 / len(photographs.names),
    )


def _step(network: nn.Module, optimizer: Optimizer, images: Tensor, labels: Tensor) -> float:
    """Do one optimizer step and return the loss before it."""
    loss = functional.cross_entropy(network(images), labels)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
    optimizer.step()
    return loss.item()


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The fraction of images that a network classifies correctly, computed in eval mode.

    The network's mode is restored; its weights and running statistics do not change.

    Args:
        network: maps images to logits [N, classes].
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
