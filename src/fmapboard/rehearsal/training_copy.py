"""``TrainingCopy``: a copy of a model and its optimizer that can be trained and changed."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import Optimizer

from fmapboard.capture.own_pass import own_pass
from fmapboard.capture.side_pass import copied_values
from fmapboard.capture.twin import NoTwin, Twin
from fmapboard.errors import ConfigurationError, first_line
from fmapboard.gradients.loss_scale import check_scaler
from fmapboard.gradients.optimizers import COPY, unwrapped
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.distributed import are_flattened, is_sharded
from fmapboard.rehearsal.own_functions import OwnFunctions

StepLoss = Callable[[nn.Module, Any], Tensor]
"""Runs the model that it is given on a batch and returns the loss, one number."""


def never(losses: Sequence[float]) -> bool:
    """Never end a training early."""
    return False


class TrainingCopy:
    """A copy of a model, its optimizer and its gradient scaler, in the state that they are in now.

    Nothing that happens to the copy reaches the caller's objects: parameters, buffers, gradients,
    optimizer state, random generators, hooks, or the batches. Hooks of the modules are copied with
    what they refer to, see ``OwnFunctions``; hooks of the optimizer and of parameters are left out,
    and so is a learning-rate scheduler. Compiled modules run uncompiled. DistributedDataParallel is
    removed: this process trains alone, and a collective is refused before anything is sent.

    Args:
        model: any module.
        optimizer: a torch optimizer, or what wraps one.
        scaler: the ``GradScaler`` of the training, if it uses one.

    Attributes:
        model: the copy, which may be changed before it is trained.
        optimizer: that of the copy.
        scaler: that of the copy; None without one.

    Raises:
        NoTwin: something cannot be copied; the message says what.
        ConfigurationError: ``optimizer`` is no optimizer, or ``scaler`` no GradScaler.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> copied = TrainingCopy(model, torch.optim.SGD(model.parameters(), lr=0.1))
        >>> batch = torch.ones(4, 2), torch.ones(4, 1)
        >>> def loss(model, batch):
        ...     return (model(batch[0]) - batch[1]).square().mean()
        >>> losses = copied.train([batch], loss, steps=20)
        >>> losses[-1] < losses[0]
        True
    """

    def __init__(self, model: nn.Module, optimizer: Any, *, scaler: Any = None) -> None:
        found = unwrapped(optimizer)
        check_scaler(scaler)
        if is_sharded(model) or are_flattened(model):
            raise NoTwin("its parameters are sharded over ranks, and one rank cannot train alone")
        self._twin = Twin(model, shares_parameters=False)
        self.model = self._twin.module
        self._functions = OwnFunctions(self._twin)
        self.optimizer = _copied_optimizer(found, self._twin, self._functions)
        self.scaler = _copied_scaler(scaler)
        self._closure = inspect.signature(self.optimizer.step).parameters.get("closure")
        self._passes_closure = self._closure is not None and _is_required(self._closure)

    def train(
        self,
        batches: Sequence[Any],
        loss: StepLoss,
        steps: int,
        *,
        clears_gradients: bool = True,
        until: Callable[[Sequence[float]], bool] = never,
    ) -> list[float]:
        """Train the copy, under the autocast of the caller.

        Each module is in the mode that it is in, and random numbers continue from where the
        caller's generators are now: two copies of the same state draw the same ones.

        Args:
            batches: used one after the other, and again from the first one. They are copied first.
            loss: called with ``model`` and a batch. A copy of it is called, with copies of the
                modules, generators and trained tensors that it refers to.
            steps: how many, unless the loss is not finite, which ends the training.
            clears_gradients: False to add the gradients of each step to those before.
            until: called after each step with the losses so far; True ends the training.

        Returns:
            The loss of each step, before its update.

        Raises:
            NoTwin: the training needs other processes.
        """
        own_loss = self.own(loss)
        losses: list[float] = []
        with own_pass(self._twin), torch.inference_mode(False), torch.enable_grad():
            for step in range(steps):
                batch = copied_values(batches[step % len(batches)])
                value = self._step(batch, own_loss, clears_gradients=clears_gradients)
                losses.append(value)
                if not isfinite(value) or until(losses):
                    break
        return losses

    def call(
        self,
        function: Callable[[nn.Module, Any], Any],
        batch: Any,
        *,
        training: bool | None = None,
        gradients: bool = False,
    ) -> Any:
        """Call a function with ``model`` and a batch, surrounded as ``train`` surrounds a step.

        Args:
            function: called as it is; see ``own``.
            batch: copied first.
            training: the mode of all modules in the call; None keeps each module's own.
            gradients: keep the graph.

        Returns:
            What the function has returned.

        Raises:
            NoTwin: the call needs other processes.
        """
        modes = [(module, module.training) for module in self.model.modules()]
        try:
            with (
                own_pass(self._twin, training=training),
                torch.inference_mode(False),
                torch.set_grad_enabled(gradients),
            ):
                return function(self.model, copied_values(batch))
        finally:
            for module, mode in modes:
                module.training = mode

    def own(self, value: Any) -> Any:
        """The copy of a function, a module or another object that may refer to the model."""
        return self._functions.own(value)

    def _step(self, batch: Any, loss: StepLoss, *, clears_gradients: bool) -> float:
        """Train one step.

        Returns:
            The loss before the update.
        """
        values: list[float] = []

        @torch.enable_grad()
        def closure() -> Any:  # torch says a float, and returns what it gets
            if clears_gradients:
                self.model.zero_grad(set_to_none=True)
                self.optimizer.zero_grad(set_to_none=True)
            found = loss(self.model, batch)
            values.append(float(found.detach()))
            if self.scaler is None:
                found.backward()  # type: ignore[no-untyped-call]  # torch has no types here
            else:
                self.scaler.scale(found).backward()
            return found

        if self._passes_closure:
            self.optimizer.step(closure)
            return values[0]
        closure()
        if self.scaler is not None:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            return values[0]
        try:
            self.optimizer.step()
        except Exception as error:
            raise_interrupt(error)
            if self._closure is None:
                raise
            self._passes_closure = True  # needed though its signature says that it is optional
            self.optimizer.step(closure)
        return values[0]


def _copied_optimizer(optimizer: Optimizer, twin: Twin, functions: OwnFunctions) -> Optimizer:
    """A copy whose parameters are those of the twin, without hooks.

    Functions that it holds refer to copies.

    Raises:
        NoTwin: it cannot be copied.
    """
    kind = type(optimizer)
    state: dict[str, Any] = {COPY: True}
    for name, value in vars(optimizer).items():
        if "_hooks" in name or name == "step":  # which schedulers put in place of the method
            continue
        if isinstance(value, (types.FunctionType, types.MethodType, partial)):
            state[name] = functions.own(value)
        else:
            state[name] = twin.copied(value, f"{kind.__name__}.{name}")
    own = kind.__new__(kind)
    try:
        own.__setstate__(state)
    except Exception as error:
        raise_interrupt(error)
        raise NoTwin(f"{kind.__name__} cannot be copied ({first_line(error)})") from error
    return own


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _copied_scaler(scaler: Any) -> Any:
    if scaler is None:
        return None
    if not isinstance(scaler, torch.amp.GradScaler):
        raise ConfigurationError(
            f"scaler={type(scaler).__name__}: expected a torch.amp.GradScaler for a training copy"
        )
    own = torch.amp.GradScaler(scaler._device, enabled=scaler.is_enabled())
    own.load_state_dict(scaler.state_dict())
    return own
