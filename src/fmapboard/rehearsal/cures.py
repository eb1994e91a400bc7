"""What takes a cause away from a copy of the network, its optimizer, its loss or its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fmapboard.model.tensors import map_tensors, tensors
from fmapboard.rehearsal.kept_loss import KeptLoss, NotSo, NotTried
from fmapboard.rehearsal.training_copy import TrainingCopy
from fmapboard.session.kept_batches import Received

_ACTIVATIONS = (
    nn.Softmax,
    nn.Softmax2d,
    nn.LogSoftmax,
    nn.Sigmoid,
    nn.Tanh,
    nn.Hardtanh,
    nn.Hardsigmoid,
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.GELU,
    nn.SiLU,
    nn.Softplus,
)
_OWN = 0.1
"""Relative difference of norms below which weights are those of their layers' initialization."""


class Scale(NamedTuple):
    """Mean and standard deviation of each channel of the inputs, for [N, C, ...]."""

    mean: Tensor
    deviation: Tensor


class Item(NamedTuple):
    """One of the batches that a copy is trained on: its number, and the arguments."""

    number: int
    received: Received


@dataclass(slots=True)
class Trial:
    """A copy that is about to be trained, and how.

    Attributes:
        copied: the copy.
        batches: on which it is trained.
        clears_gradients: False to add the gradients of each step to those before.
        sign: factor of the loss.
        is_without_activation: the loss is that of the logits.
        is_shown_in_eval: the losses that are shown are those in eval mode.
        scale: of the inputs, which are normalized; None to leave them as they are.
        before: what is done to the copy before its first step, with random numbers of its own.
        calls: the losses that were computed in this step; LBFGS computes several.
    """

    copied: TrainingCopy
    batches: Sequence[KeptLoss]
    clears_gradients: bool = True
    sign: float = 1.0
    is_without_activation: bool = False
    is_shown_in_eval: bool = False
    scale: Scale | None = None
    before: list[Callable[[Trial], None]] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)

    def train(self, steps: int, until: Callable[[Sequence[float]], bool]) -> list[float]:
        """Train the copy; the losses that are shown, the first one of each step."""
        items = [Item(number, kept.batch.received) for number, kept in enumerate(self.batches)]
        shown: list[float] = []

        def is_over(losses: Sequence[float]) -> bool:
            shown.append(self.calls[0])
            self.calls.clear()
            return until(shown)

        self.copied.train(
            items,
            self,
            steps,
            clears_gradients=self.clears_gradients,
            until=is_over,
        )
        return shown + self.calls[:1]  # of a step whose loss was not finite

    def own(self, _: object) -> Trial:
        """The loss of the copy; nothing in it refers to the caller's model."""
        return self

    def __call__(self, model: nn.Module, item: Item) -> Tensor:
        """The loss of a batch, see `StepLoss`."""
        for change in self.before:
            change(self)
        self.before = []
        kept = self.batches[item.number]
        received = item.received
        if self.scale is not None:
            received = _normalized(received, self.scale)
        if self.is_shown_in_eval:
            self.calls.append(self._in_eval_mode(model, kept, received))
        losses = kept(model, received, is_cured=self.is_without_activation)
        if not self.is_shown_in_eval:
            self.calls.append(float(losses.shown))
        return self.sign * losses.trained

    def _in_eval_mode(self, model: nn.Module, kept: KeptLoss, received: Received) -> float:
        modes = [(module, module.training) for module in model.modules()]
        model.eval()
        own = map_tensors(received, Tensor.clone)
        loss = kept.evaluated(model, own)
        for module, mode in modes:
            module.training = mode
        return loss


def _scale_rate(factor: float, trial: Trial) -> None:
    for group in trial.copied.optimizer.param_groups:
        group["lr"] = group["lr"] * factor


def _all_parameters(trial: Trial) -> None:
    groups = trial.copied.optimizer.param_groups
    held = {id(parameter) for group in groups for parameter in group["params"]}
    missing = []
    for parameter in trial.copied.model.parameters():
        if parameter.requires_grad and id(parameter) not in held:
            missing.append(parameter)
    if not missing:
        raise NotSo("the optimizer holds every parameter of the network")
    groups[0]["params"].extend(missing)


def _no_activation(trial: Trial) -> None:
    read = [loss for kept in trial.batches for loss in kept.outputs]
    is_in_loss = any(loss.is_changed_by_cure for loss in read)
    if is_in_loss:
        trial.is_without_activation = True
    elif read and all(loss.is_of_logits for loss in read):
        raise NotSo("the loss receives logits")
    else:
        trial.before.append(_remove_last_activation)


def _remove_last_activation(trial: Trial) -> None:
    """Make the activation whose output the network returns return what it receives."""
    returned: dict[int, nn.Module] = {}
    handles = []
    for module in trial.copied.model.modules():
        if isinstance(module, _ACTIVATIONS):

            def remember(module: nn.Module, args: Any, output: Tensor) -> None:
                returned[id(output)] = module

            handles.append(module.register_forward_hook(remember))
    args, kwargs = map_tensors(trial.batches[0].batch.received, Tensor.clone)
    with torch.no_grad():
        output = trial.copied.model(*args, **kwargs)
    for handle in handles:
        handle.remove()
    found = [returned[id(tensor)] for tensor in tensors(output) if id(tensor) in returned]
    if not found:
        raise NotTried("what ends the network is no module of its own, so it cannot be removed")
    for module in found:
        module.forward = _same  # of the copy


def _same(value: Tensor) -> Tensor:
    return value


def _turned_sign(trial: Trial) -> None:
    trial.sign = -1.0


def _zero_grad(trial: Trial) -> None:
    if trial.clears_gradients:
        raise NotSo("the gradients are cleared")
    trial.clears_gradients = True


def _train_mode(trial: Trial) -> None:
    if all(module.training for module in trial.copied.model.modules()):
        raise NotSo("every module is in training mode")
    trial.copied.model.train()


def _normalized_inputs(trial: Trial) -> None:
    first = [_first_floating(kept.batch.received) for kept in trial.batches]
    values = [tensor for tensor in first if tensor is not None]
    if not values:
        raise NotTried("the network receives no floating-point numbers")
    channels = []
    for tensor in values:
        others = [axis for axis in range(tensor.dim()) if axis != 1]
        channels.append(tensor.float().movedim(1, 0).flatten(1) if others else tensor[None])
    every = torch.cat(channels, 1)  # [C, N*...]
    shape = (1, -1, *[1] * (values[0].dim() - 2))
    mean = every.mean(1).reshape(shape)
    deviation = every.std(1).clamp_min(1e-8).reshape(shape)
    trial.scale = Scale(mean, deviation)


def _first_floating(received: Received) -> Tensor | None:
    for tensor in tensors(received):
        if tensor.is_floating_point() and tensor.dim() > 1:
            return tensor
    return None


def _normalized(received: Received, scale: Scale) -> Received:
    first = _first_floating(received)

    def change(tensor: Tensor) -> Tensor:
        if tensor is not first:
            return tensor
        return ((tensor - scale.mean) / scale.deviation).to(tensor.dtype)

    changed: Received = map_tensors(received, change)
    return changed


def _new_weights(trial: Trial) -> None:
    trial.before.append(_initialize)


def _initialize(trial: Trial) -> None:
    """Call each layer's own initialization."""
    weights = [p for p in trial.copied.model.parameters() if p.dim() > 1]
    before = [weight.detach().clone() for weight in weights]
    for module in trial.copied.model.modules():
        initialize = getattr(module, "reset_parameters", None)
        initialize = initialize or getattr(module, "_reset_parameters", None)
        if callable(initialize):
            initialize()
    if not any(map(_differ, before, weights)):
        raise NotSo("the weights are those of the layers' own initialization")


def _differ(before: Tensor, after: Tensor) -> bool:
    """True if weights are no other draw of the same initialization."""
    old = before.float()
    new = after.detach().float()
    usual = float(new.norm())
    if abs(float(old.norm()) - usual) > _OWN * usual:
        return True
    own_rows = old.flatten(1)
    return bool(len(own_rows) > 1 and (own_rows == own_rows[:1]).all())


def _usual_dropout(trial: Trial) -> None:
    for module in trial.copied.model.modules():
        if isinstance(module, _DropoutNd):
            module.p = min(module.p, 0.1)


def _usual_momentum(trial: Trial) -> None:
    for module in trial.copied.model.modules():
        if isinstance(module, _BatchNorm):
            module.momentum = 0.1


CURES: Mapping[str, Callable[[Trial], None]] = {
    "lower_rate": partial(_scale_rate, 1e-1),
    "lower_rate_100": partial(_scale_rate, 1e-2),
    "lower_rate_10000": partial(_scale_rate, 1e-4),
    "higher_rate": partial(_scale_rate, 1e1),
    "higher_rate_100": partial(_scale_rate, 1e2),
    "higher_rate_10000": partial(_scale_rate, 1e4),
    "all_parameters": _all_parameters,
    "no_activation": _no_activation,
    "turned_sign": _turned_sign,
    "zero_grad": _zero_grad,
    "train_mode": _train_mode,
    "normalized_inputs": _normalized_inputs,
    "new_weights": _new_weights,
    "usual_dropout": _usual_dropout,
    "usual_momentum": _usual_momentum,
}
"""Name, as in `health.cures.CURES` -> what it does to a copy; raises `NotTried` if it changes
nothing."""
OF_FACTS = frozenset({"all_parameters", "no_activation", "train_mode", "zero_grad"})
"""Cures that are refused where what they change is not there. So a cause that they take away is
there, also if the copies learn with it."""
IN_EVAL_MODE = frozenset({"usual_momentum", "usual_dropout"})
"""Cures whose losses are those in eval mode, in both trainings."""
