"""Changes that are tried on copies where nothing else brings the loss down."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.rehearsal.batches import input_tensors, with_tensors
from fmapboard.rehearsal.setup import Setup
from fmapboard.rehearsal.training_copy import TrainingCopy


class Trial(NamedTuple):
    """A change of a copy or of its batch.

    Attributes:
        phrase: how a sentence ends that says what it was trained with.
        advice: what to do if it helps.
        copy: that is trained.
        batch: on which.
    """

    phrase: str
    advice: str
    copy: TrainingCopy
    batch: Any


class Helped(NamedTuple):
    """The change that helped, and the lowest loss with it."""

    phrase: str
    advice: str
    loss: float


def what_helps(
    setup: Setup, below: float, steps: int, lowest: Callable[[list[float]], float]
) -> Helped | None:
    """The first change with which the loss falls below a value.

    Args:
        setup: the training.
        below: the loss.
        steps: of each trial.
        lowest: of losses.
    """
    for trial in _trials(setup):
        seconds = setup.remaining() / 4
        if seconds <= 0:
            return None
        found = lowest(losses_of(setup, trial, steps, seconds))
        if found < below:
            return Helped(trial.phrase, trial.advice, found)
    return None


def losses_of(setup: Setup, trial: Trial, steps: int, seconds: float) -> list[float]:
    """The losses of a trial, for at most so many seconds."""
    left = setup.remaining() - seconds

    def is_over(_: object) -> bool:
        return setup.remaining() < left

    return trial.copy.train([trial.batch], setup.task, steps, until=is_over)


def _trials(setup: Setup) -> Iterator[Trial]:
    batch = setup.step_batch
    scaled = normalized(setup, batch)
    if scaled is not None:
        yield Trial(
            "with normalized inputs",
            "Shift and scale the inputs to a mean near 0 and a deviation near 1",
            setup.make_copy(),
            scaled,
        )
    yield from with_usual_settings(setup)
    copy = setup.make_copy()
    copy.call(_initialize, batch)
    yield Trial(
        "with the layers' own initialization",
        "Look at how the weights are initialized",
        copy,
        batch,
    )


def with_usual_settings(setup: Setup) -> Iterator[Trial]:
    """Copies whose optimizer has no weight decay, and default settings, the rate apart.

    There is no copy for what it has already.
    """
    others = ("momentum", "betas", "eps", "alpha", "dampening")
    known: Mapping[str, Any] = {}
    for names in (("weight_decay",), ("weight_decay", *others)):
        copy = setup.make_copy()
        changed = _set_to_default(copy.optimizer, names)
        if changed == known:
            continue
        known = changed
        listed = ", ".join(f"{name}={value}" for name, value in changed.items())
        yield Trial(
            f"without {listed}",
            "Look at these settings of the optimizer",
            copy,
            setup.step_batch,
        )


def _set_to_default(optimizer: Optimizer, names: Iterable[str]) -> dict[str, Any]:
    """Set settings of an optimizer to their defaults, and return those that were others."""
    parameters = inspect.signature(type(optimizer).__init__).parameters
    changed = {}
    for group in optimizer.param_groups:
        for name in names:
            usual = parameters[name].default if name in parameters else None
            if name == "weight_decay":
                usual = 0
            if name in group and usual is not None and group[name] != usual:
                changed[name] = group[name]
                group[name] = usual
    return changed


def normalized(setup: Setup, batch: Any) -> Any:
    """The batch with a normalized input; None if it holds no floating-point numbers."""
    floating = [t for t in input_tensors(batch, setup.task) if t.is_floating_point()]
    if not floating or floating[0].dim() < 2:
        return None
    first: Tensor = floating[0]
    axes = [axis for axis in range(first.dim()) if axis != 1] if first.dim() != 3 else [0, 1, 2]
    mean = first.mean(axes, keepdim=True)
    deviation = first.std(axes, keepdim=True).clamp(min=1e-12)
    return with_tensors(batch, {id(first): (first - mean) / deviation})


@torch.no_grad()
def _initialize(model: nn.Module, _: Any) -> None:
    for module in model.modules():
        initialize = getattr(module, "reset_parameters", None)
        initialize = initialize or getattr(module, "_reset_parameters", None)
        if callable(initialize):
            initialize()
