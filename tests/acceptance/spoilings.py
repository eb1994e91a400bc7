"""Ways to spoil a healthy training in one thing.

A `Spoiling` turns the `Fit` of a case into another one that differs in one thing: its rate, its
optimizer, its initial weights, its inputs, its last layer, its batches, its gradients or its
labels. What cannot be spoilt so raises `NotApplicable`, when it is built or when it is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from loops import Fit, Schedule
from torch import Generator, Tensor, nn, optim
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves, tree_map

Spoil = Callable[[Fit, "Effect"], Fit]


class NotApplicable(Exception):
    """The training has nothing that could be spoilt in this way; the text says why."""


class Effect:
    """Whether a spoiling took effect; without it the training would count as spoilt in vain."""

    def __init__(self) -> None:
        self.is_seen = False

    def seen(self) -> None:
        self.is_seen = True


@dataclass(frozen=True)
class Spoiling:
    """One way to spoil a training.

    Attributes:
        name: What is changed and how much, such as "rate x0.1".
        group: What is changed; a plot shows the spoilings of a group.
        spoil: Makes the spoilt `Fit`, and says when it took effect.
    """

    name: str
    group: str
    spoil: Spoil


class RescaledSchedule:
    """A schedule whose rates are all multiplied; to the wrapped one they look as they were."""

    def __init__(self, schedule: Schedule, optimizer: Optimizer, steps: int, factor: float) -> None:
        self._optimizer = optimizer
        self._factor = factor
        scale_rates(optimizer, 1 / factor)
        self._schedule = schedule(optimizer, steps)
        scale_rates(optimizer, factor)

    def step(self) -> None:
        scale_rates(self._optimizer, 1 / self._factor)
        self._schedule.step()
        scale_rates(self._optimizer, self._factor)


def scale_rates(optimizer: Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * factor


def rate(factor: float) -> Spoil:
    """The learning rate times ``factor``, at every step of its schedule."""

    def spoil(fit: Fit, effect: Effect) -> Fit:
        recipe = fit.recipe

        def optimizer(model: nn.Module) -> Optimizer:
            made = recipe.optimizer(model)
            scale_rates(made, factor)
            effect.seen()
            return made

        def schedule(made: Optimizer, steps: int) -> Any:
            assert recipe.schedule is not None
            return RescaledSchedule(recipe.schedule, made, steps, factor)

        changed = replace(recipe, optimizer=optimizer, schedule=recipe.schedule and schedule)
        return replace(fit, recipe=changed)

    return spoil


NOT_ADAPTIVE = ("ASGD", "SGDP", "Lars", "LBFGS", "Rprop", "SGDW")


def other_optimizer(fit: Fit, effect: Effect) -> Fit:
    """Adam in place of SGD, and SGD in place of an adaptive optimizer, with the same rates."""

    def optimizer(model: nn.Module) -> Optimizer:
        made = fit.recipe.optimizer(model)
        if type(made).__name__ in NOT_ADAPTIVE:
            raise NotApplicable(f"the optimizer is {type(made).__name__}")
        groups = [{"params": group["params"], "lr": group["lr"]} for group in made.param_groups]
        effect.seen()
        return optim.Adam(groups) if isinstance(made, optim.SGD) else optim.SGD(groups)

    return replace(fit, recipe=replace(fit.recipe, optimizer=optimizer))


def weights(factor: float) -> Spoil:
    """Initial weights of two and more dimensions that learn, times ``factor``."""

    def spoil(fit: Fit, effect: Effect) -> Fit:
        def make() -> nn.Module:
            model = fit.make()
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.ndim > 1 and parameter.requires_grad:
                        parameter.mul_(factor)
                        effect.seen()
            return model

        return replace(fit, make=make)

    return spoil


def inputs(factor: float) -> Spoil:
    """The first floating-point input of the model times ``factor``; targets stay as they are."""

    def spoil(fit: Fit, effect: Effect) -> Fit:
        def scaled(found: Any) -> Any:
            is_float = isinstance(found, Tensor) and found.is_floating_point()
            return found * factor if is_float else found

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if any(_is_float(part) for part in tree_leaves(args[:1])):
                effect.seen()
                return (tree_map(scaled, args[0]), *args[1:]), kwargs
            for name, part in kwargs.items():
                if _is_float(part):
                    effect.seen()
                    return args, kwargs | {name: scaled(part)}
            raise NotApplicable("the model is given no floating-point numbers")

        def after(_: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
            is_loss = isinstance(output, Tensor) and output.ndim == 0
            has_loss = getattr(output, "loss", None) is not None and "labels" not in kwargs
            if is_loss or has_loss:
                raise NotApplicable("the model's own loss compares with its input")

        def make() -> nn.Module:
            model = fit.make()
            model.register_forward_pre_hook(before, with_kwargs=True)
            model.register_forward_hook(after, with_kwargs=True)
            return model

        return replace(fit, make=make)

    return spoil


def _is_float(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


class Ended(nn.Module):
    """A model and an activation behind it."""

    def __init__(self, model: nn.Module, end: nn.Module, effect: Effect) -> None:
        super().__init__()
        self.model = model
        self.end = end
        self._effect = effect

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        output = self.model(*args, **kwargs)
        if not isinstance(output, Tensor) or output.ndim == 0:
            raise NotApplicable("the model does not return one tensor of outputs")
        self._effect.seen()
        return self.end(output)


def ended(activation: type[nn.Module]) -> Spoil:
    """An activation behind the last layer."""

    def spoil(fit: Fit, effect: Effect) -> Fit:
        recipe = fit.recipe
        if recipe.prepare or recipe.before or recipe.after:
            raise NotApplicable("the recipe changes parts of the model by their place")

        def make() -> nn.Module:
            model = fit.make()
            if isinstance(list(model.modules())[-1], activation):
                raise NotApplicable(f"the model ends in {activation.__name__} already")
            return Ended(model, activation(), effect)

        return replace(fit, make=make)

    return spoil


def batches(size: int) -> Spoil:
    """Batches of ``size`` examples."""

    def spoil(fit: Fit, effect: Effect) -> Fit:
        if fit.recipe.batch <= size:
            raise NotApplicable(f"batches have {fit.recipe.batch} examples")

        def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
            batch = fit.draw(generator, count)
            if count == size and len(batch[0]) != size:
                raise NotApplicable("the batch does not depend on the number of examples")
            effect.seen()
            return batch

        return replace(fit, draw=draw, recipe=replace(fit.recipe, batch=size))

    return spoil


def detached(fit: Fit, effect: Effect) -> Fit:
    """What the layer in the middle returns is detached."""

    def cut(_: nn.Module, __: object, output: Any) -> Any:
        if any(_is_float(part) and part.requires_grad for part in tree_leaves(output)):
            effect.seen()
        return tree_map(lambda part: part.detach() if _is_float(part) else part, output)

    def make() -> nn.Module:
        model = fit.make()
        middle(model).register_forward_hook(cut)
        return model

    return replace(fit, make=make)


def middle(model: nn.Module) -> nn.Module:
    """The middle one of the model's parts that learn; at least one is behind it.

    Parts are the children of the outermost module that has more than one child with parameters.
    """
    parts = [model]
    while len(parts) == 1:
        children = list(parts[0].children())
        if not children:
            raise NotApplicable("the model has one layer")
        parts = [child for child in children if any(p.requires_grad for p in child.parameters())]
        if not parts:
            raise NotApplicable("the model has one layer that learns")
    return parts[(len(parts) - 1) // 2]


def shuffled_labels(fit: Fit, effect: Effect) -> Fit:
    """Targets belong to other examples of the batch.

    Of two or three parts of a batch the last is the target, of more all but the first.
    """
    random = Generator().manual_seed(11)

    def draw(generator: Generator, count: int) -> tuple[Tensor, ...]:
        batch = fit.draw(generator, count)
        first = len(batch) - 1 if len(batch) <= 3 else 1
        rows = len(batch[-1]) if batch[-1].ndim else 0
        if len(batch) < 2 or rows < 2:
            raise NotApplicable("a batch has no targets beside its inputs")
        order = torch.randperm(rows, generator=random)
        effect.seen()
        return *batch[:first], *(part[order] for part in batch[first:])

    return replace(fit, draw=draw)


def _scaled(group: str, spoil: Callable[[float], Spoil], *factors: float) -> list[Spoiling]:
    return [Spoiling(f"{group} x{factor:g}", group, spoil(factor)) for factor in factors]


SPOILINGS = [
    *_scaled("rate", rate, 0.01, 0.1, 0.3, 3, 10, 100),
    Spoiling("other optimizer", "optimizer", other_optimizer),
    *_scaled("weights", weights, 0.001, 0.1, 10, 100),
    *_scaled("inputs", inputs, 0.003, 255),
    Spoiling("sigmoid at the end", "end", ended(nn.Sigmoid)),
    Spoiling("ReLU at the end", "end", ended(nn.ReLU)),
    Spoiling("batches of 2", "batches", batches(2)),
    Spoiling("detached in the middle", "detach", detached),
    Spoiling("labels shuffled", "labels", shuffled_labels),
]
