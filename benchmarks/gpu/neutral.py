"""Neutral: training is the same in every bit with and without fmapboard."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import fmapboard
from fmapboard.writers.folder import MemoryWriter
from gpu import compare
from gpu.device import Settings
from gpu.networks import small
from gpu.report import Check, Report, Skip
from gpu.trainings import MODES, Training

STEPS, EVERY = 6, 2
EVERYTHING: dict[str, Any] = {"inputs": True, "activation_gradients": True, "kernels": 1}
COMPILED: dict[str, Any] = {**EVERYTHING, "activation_gradients": False}
"""What is logged of a compiled model: gradients of its maps are not."""


def run(report: Report, settings: Settings) -> None:
    for mode in settings.modes or MODES:
        report.run("neutral", mode, partial(training_is_the_same, mode, settings))


def training_is_the_same(mode: str, settings: Settings, check: Check) -> None:
    with deterministic():
        (bare, _), (again, _) = (train(mode, settings) for _ in range(2))
        if differ := compare.differing(bare, again):
            raise Skip(f"two runs without fmapboard differ ({differ[0]}): nothing to compare with")
        options = EVERYTHING if MODES[mode].compiled is None else COMPILED
        logged, steps = train(mode, settings, options)
    check.figures["tensors compared"] = len(bare)
    check.expect_none(compare.differing(bare, logged), "tensors differ")
    check.expect(steps == [0, 2, 4], f"logged steps {steps}, expected 0, 2 and 4")
    check.expect_silence()


@contextmanager
def deterministic() -> Iterator[None]:
    """Deterministic algorithms, where there are any."""
    benchmark = torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = benchmark


def train(
    mode: str, settings: Settings, options: dict[str, Any] | None = None
) -> tuple[dict[str, Tensor], list[int]]:
    """Losses, state of model and optimizer, gradients and random states after a few steps.

    With ``options``, the training is watched, and the numbers of the written steps are returned.
    """
    device = settings.device
    work = small(tiny=settings.tiny)
    training = Training(work, mode, device)
    probe = torch.linspace(-1, 1, 2 * training.x[0].numel()).reshape(2, *work.shape[1:])
    torch.manual_seed(3)
    writer, found = MemoryWriter(), {}
    with ExitStack() as stack:
        if options is not None:
            board = fmapboard.watch(
                training.model,
                writer=writer,
                optimizer=training.optimizer,
                scaler=training.scaler,
                every=EVERY,
                probe=probe,
                **options,
            )
            stack.enter_context(board)
        for number in range(STEPS):
            found[f"loss {number}"] = training()
    device.sync()
    state = {
        **found,
        **training.raw.state_dict(),
        **{f"gradient of {name}": p.grad for name, p in training.raw.named_parameters()},
        **{f"optimizer {n}": leaf for n, leaf in enumerate(_leaves(training))},
        "random state, CPU": torch.get_rng_state(),
        "random state, device": device.random_state(),
    }
    kept = {name: copy.deepcopy(value.detach().cpu()) for name, value in state.items()}
    return kept, [step.step for step in writer.steps]


def _leaves(training: Training) -> list[Tensor]:
    leaves = tree_leaves(training.optimizer.state_dict()["state"])
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]
