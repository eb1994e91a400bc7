"""Compares the outputs, or the loss, of a batch with those of a batch that was changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fmapboard.interrupts import raise_interrupt
from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.rehearsal.batches import input_tensors, with_tensors
from fmapboard.rehearsal.setup import Setup
from fmapboard.rehearsal.task import Task
from fmapboard.rehearsal.training_copy import TrainingCopy

NOISE = 10
"""A change counts if it is larger than that between two equal passes by this factor."""


class Outputs:
    """The outputs of a copy for a batch, to compare those for changed batches with.

    Args:
        setup: the training.
        batch: that is changed.
        copy: of the network; made if it is not given.
        training: the mode of all modules.
    """

    def __init__(
        self, setup: Setup, batch: Any, copy: TrainingCopy | None = None, *, training: bool = False
    ) -> None:
        self._setup = setup
        self._batch = batch
        self._copy = setup.make_copy() if copy is None else copy
        self._training = training
        self.tensors = self._pass(batch)
        self._noise: list[float] = []
        for old, new in zip(self.tensors, self._pass(batch), strict=False):
            difference = (old - new).abs() if old.shape == new.shape else old.new_full((1,), 1e300)
            self._noise.append(float(difference.nan_to_num(0.0).max()) if old.numel() else 0.0)

    def changes(self, changed: Mapping[int, Tensor]) -> list[Tensor] | None:
        """By how much each value of each output changes, as a share of its standard deviation.

        Changes that are no larger than those between two equal passes are 0.

        Args:
            changed: other tensors, by the identity of those of the batch.

        Returns:
            None if the network refuses the changed batch, or returns other shapes.
        """
        try:
            others = self._pass(with_tensors(self._batch, changed))
        except Exception as error:
            raise_interrupt(error)
            return None
        found = []
        for old, new, noise in zip(self.tensors, others, self._noise, strict=False):
            if old.shape != new.shape:
                return None
            scale = float(old.std()) if old.numel() > 1 else 0.0
            change = (new - old).abs().nan_to_num(0.0)
            change[change <= NOISE * noise] = 0.0
            found.append(change / scale if scale > 0 else change)
        return found or None

    def change(self, changed: Mapping[int, Tensor]) -> float | None:
        """The largest one of ``changes``."""
        found = self.changes(changed)
        if found is None:
            return None
        return max(float(change.max()) if change.numel() else 0.0 for change in found)

    def _pass(self, batch: Any) -> list[Tensor]:
        seen = self._setup.forward(self._copy, batch, training=self._training)
        return [output.detach().double() for output in seen.outputs]


class LossAt(NamedTuple):
    """A loss, and its gradient at each output.

    Attributes:
        value: the loss.
        gradients: of each output with floating-point values; zero where it does not reach.
    """

    value: float
    gradients: tuple[Tensor, ...]

    def is_same(self, other: LossAt) -> bool:
        """True if neither the value nor a gradient differs by more than rounding."""
        if abs(self.value - other.value) > _ROUNDING * abs(self.value):
            return False
        return not any(map(_differ, self.gradients, other.gradients))

    def is_finite(self) -> bool:
        """True if the value and all gradients are."""
        return all(bool(torch.isfinite(gradient).all()) for gradient in self.gradients)


class Loss:
    """The loss of a copy's outputs for a batch, as labels or outputs are changed.

    Args:
        setup: the training; its task has a loss.
        batch: that is changed.
    """

    def __init__(self, setup: Setup, batch: Any) -> None:
        self._copy = setup.make_copy()
        self._task: Task = self._copy.own(setup.task)
        self._batch = batch
        seen = setup.forward(self._copy, batch)
        self.output = map_tensors(seen.returned, torch.Tensor.detach)
        self.outputs = [t for t in tensors(self.output) if t.is_floating_point() and t.dim()]

    def at(
        self, changed: Mapping[int, Tensor], outputs: Mapping[int, Tensor] | None = None
    ) -> LossAt | None:
        """The loss with other tensors in the batch; None if the loss refuses them.

        Args:
            changed: other tensors, by the identity of those of the batch.
            outputs: other outputs, by the identity of those in ``outputs``.
        """
        given = with_tensors(self._batch, changed)
        output = with_tensors(self.output, outputs or {})
        run = partial(_loss_at, self._task, output)
        try:
            found: LossAt | None = self._copy.call(run, given, gradients=True)
        except Exception as error:
            raise_interrupt(error)
            return None
        return found if found is not None and found.is_finite() else None


_ROUNDING = 1e-6
"""Relative difference of two losses or gradients that are the same."""


def _loss_at(task: Task, output: Any, _: nn.Module, batch: Any) -> LossAt | None:
    own: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point() or not tensor.dim():
            return tensor
        own.append(tensor.clone().requires_grad_())
        return own[-1]

    loss = task.loss_of(map_tensors(output, leaf), batch)
    if not loss.requires_grad:
        return None
    found = torch.autograd.grad(loss, own, allow_unused=True)
    gradients = [
        torch.zeros_like(tensor) if gradient is None else gradient
        for tensor, gradient in zip(own, found, strict=True)
    ]
    return LossAt(float(loss.detach()), tuple(gradients))


def _differ(gradient: Tensor, other: Tensor) -> bool:
    scale = gradient.abs().max() if gradient.numel() else gradient.sum()
    return bool(((gradient - other).abs() > _ROUNDING * scale).any())


def label_tensors(setup: Setup, batch: Any) -> list[Tensor]:
    """The tensors of a batch that the network does not get: labels, masks and weights."""
    given = {id(tensor) for tensor in input_tensors(batch, setup.task)}
    return [label for label in tensors(batch) if id(label) not in given and label.dim()]


def named_inputs(setup: Setup, batch: Any) -> dict[str, Tensor]:
    """The tensors that are arguments of the network, labels apart, by their names."""
    parts = setup.task.parts(batch)
    own = {id(tensor) for tensor in input_tensors(batch, setup.task)}
    names = [parameter.name for parameter in setup.task.parameters]
    named = dict(zip(names, parts.args, strict=False))
    named |= {name: value for name, value in parts.kwargs.items() if name in names}
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, Tensor) and id(value) in own
    }


def other_samples(tensor: Tensor, axis: int = 0) -> Tensor:
    """The tensor with each sample in the place of the next one."""
    return tensor.roll(1, axis)
