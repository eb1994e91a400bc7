"""``Setup``: what experiments have to work with, and what several of them need."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import isfinite, log
from statistics import fmean, pstdev
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from fmapboard.capture.twin import NoTwin
from fmapboard.errors import first_line
from fmapboard.interrupts import raise_interrupt
from fmapboard.model.layers import clean_name
from fmapboard.model.tensors import tensors
from fmapboard.rehearsal.batches import (
    Samples,
    first_samples,
    input_tensors,
    labels_of,
    size_of,
)
from fmapboard.rehearsal.task import Task
from fmapboard.rehearsal.training_copy import TrainingCopy

_UNCHANGED = 8
"""Steps at a rate of 0, which show the noise of the loss."""


@dataclass(slots=True)
class Call:
    """One call of a layer.

    Attributes:
        name: of the layer; "" for the network.
        kind: its class.
        module: the layer, of the copy.
        depth: how many calls of other layers it is in.
        inputs: floating-point tensors that it was given.
        outputs: those that it returned.
    """

    name: str
    kind: str
    module: nn.Module
    depth: int
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)


@dataclass(slots=True)
class Pass:
    """One forward pass of a copy.

    Attributes:
        loss: with its graph, if the pass has one.
        outputs: what the network returned: floating-point tensors of one axis or more.
        calls: the layers' calls, in the order in which they ended.
        returned: what the network returned, as it is; None where a framework computes the loss.
    """

    loss: Tensor | None
    outputs: list[Tensor]
    calls: list[Call]
    returned: Any = None


@dataclass(slots=True)
class Training:
    """A copy that is trained on the first batch.

    Attributes:
        copy: as it is after the steps.
        losses: of each step.
    """

    copy: TrainingCopy
    losses: list[float]


@dataclass(slots=True)
class Setup:
    """A training that is rehearsed.

    Attributes:
        make_copy: makes a copy of the network and the optimizer.
        task: how to compute outputs and losses.
        batches: those that were drawn, at least one, on the network's device.
        step_batch: the first batch, cut so that the trainings fit into the time.
        deadline: ``time.monotonic()`` at which no further experiment begins.
        step_seconds: how long a step of the whole first batch takes.
        held_elsewhere: names of the parameters that another optimizer holds.
        schedules: schedulers that run after each step.
    """

    make_copy: Callable[[], TrainingCopy]
    task: Task
    batches: Sequence[Any]
    step_batch: Any
    deadline: float
    step_seconds: float = 0.0
    held_elsewhere: frozenset[str] = frozenset()
    schedules: Sequence[LRScheduler] = ()
    _trainings: dict[float, Training] = field(default_factory=dict)
    _finished: dict[float, list[float]] = field(default_factory=dict)

    @property
    def batch(self) -> Any:
        """The first batch."""
        return self.batches[0]

    @property
    def size(self) -> int:
        """How many samples the first batch has; 0 if that is not clear."""
        return size_of(self.batch, self.task)[0]

    def remaining(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()

    def few(self, count: int = 8) -> Any:
        """The first samples of the first batch."""
        return first_samples(self.batch, self.task, count)

    def samples(self, count: int = 8) -> Samples:
        """The same with their number, their axis, and what the network gets of them."""
        batch = self.few(count)
        size, axis = size_of(batch, self.task)
        return Samples(batch, size, axis, self.inputs(batch))

    def inputs(self, batch: Any) -> list[Tensor]:
        """The tensors of a batch that the network gets."""
        return input_tensors(batch, self.task)

    def forward(
        self,
        copy: TrainingCopy,
        batch: Any,
        *,
        training: bool | None = None,
        gradients: bool = False,
        needs_loss: bool = False,
        seed: int | None = None,
    ) -> Pass:
        """Run a copy on a batch.

        Args:
            training: the mode of all modules; None keeps each module's own.
            gradients: keep the graph.
            needs_loss: compute the loss, too.
            seed: of torch's random numbers; None continues from the caller's.
        """
        own_task = copy.own(self.task)
        run = partial(_Seen().run, own_task, needs_loss=needs_loss, seed=seed)
        result = copy.call(run, batch, training=training, gradients=gradients)
        found: Pass = result
        return found

    def trained(self, factor: float, steps: int, *, seconds: float) -> Training:
        """A copy trained on the first batch, at the optimizer's rate times a factor.

        It is trained further if it was trained for fewer steps before.

        Args:
            factor: of the learning rate.
            steps: how many in total.
            seconds: after which the training ends.
        """
        known = self._trainings.get(factor)
        if known is None:
            copy = self.make_copy()
            scale_rates(copy, factor)
            self._trainings[factor] = known = Training(copy, [])
        has_ended = bool(known.losses) and not isfinite(known.losses[-1])
        missing = steps - len(known.losses)
        if missing > 0 and not has_ended:
            end = min(time.monotonic() + seconds, self.deadline)
            known.losses += known.copy.train(
                [self.step_batch], self.task, missing, until=lambda _: time.monotonic() > end
            )
        return known

    def losses(self, factor: float, steps: int, *, seconds: float) -> list[float]:
        """The losses of ``trained``, whose copy is not kept: each takes as much as the network."""
        known = self._finished.get(factor, [])
        has_ended = bool(known) and not isfinite(known[-1])
        if len(known) >= steps or has_ended:
            return known
        found = self.trained(factor, steps, seconds=seconds).losses
        self._finished[factor] = found
        del self._trainings[factor]
        return found

    def is_still(self, losses: Sequence[float]) -> bool:
        """True if steps have changed the loss by no more than its noise, that of dropout."""
        if len(losses) < 2 or not isfinite(losses[-1]):
            return False
        unchanged = self.losses(0.0, _UNCHANGED, seconds=self.remaining() / 8)
        mean = fmean(unchanged)
        tolerance = max(STILL * abs(mean), 2 * pstdev(unchanged))
        return abs(fmean(losses[-5:]) - mean) <= tolerance

    def labels(self) -> Tensor | None:
        """The labels of all batches that were drawn; None unless all are tensors of one shape."""
        found = labels_of(self.batches, self.task)
        if any(label is None for label in found):
            return None
        labels = [label for label in found if label is not None]
        if len({(label.shape[1:], label.dtype) for label in labels}) != 1:
            return None
        return torch.cat([label.detach() for label in labels]) if labels[0].dim() else None

    def classes(self) -> Tensor | None:
        """The labels, if they are numbers of classes, one per sample: int64 [N]."""
        labels = self.labels()
        if labels is None or labels.is_floating_point() or labels.is_complex():
            return None
        if labels.dim() == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        return labels.long().cpu() if labels.dim() == 1 else None


def sweep(setup: Setup, *, steps: int, most: int = 7) -> dict[float, list[float]]:
    """Losses of trainings at rates around the caller's, by the factor of the rate.

    Where the caller's rate and ten times it do nothing, higher ones are tried, otherwise lower ones
    as well. It ends early if no time is left.

    Args:
        setup: what is trained.
        steps: at each rate.
        most: how many rates.
    """
    found: dict[float, list[float]] = {}

    def does_nothing(factor: float) -> bool:
        return setup.is_still(found.get(factor, []))

    def run(factor: float) -> None:
        left = setup.remaining()
        if left <= 0 or len(found) == most:
            return
        losses = setup.losses(factor, steps, seconds=left / 2)
        if len(losses) >= steps or (losses and not isfinite(losses[-1])):
            found[factor] = losses

    for factor in (1.0, 10.0):
        run(factor)
    is_low = does_nothing(1.0) and does_nothing(10.0)
    others = (1e2, 1e3, 1e4, 1e5, 1e6) if is_low else (0.1, 0.01, 100.0, 0.001, 1e3)
    for factor in others:
        run(factor)
        if is_low and found.get(factor) and not does_nothing(factor):
            run(factor * 10)
            break
    return found


STILL = 0.01
"""Share of the first loss by which it must fall."""


def scale_rates(copy: TrainingCopy, factor: float) -> None:
    """Multiply the learning rates of a copy, from those that a warm-up leads to."""
    for group in copy.optimizer.param_groups:
        group["lr"] = warmed_up(group) * factor


def warmed_up(group: dict[str, Any]) -> Any:
    """The rate of a group of parameters, after the warm-up of a scheduler that there may be.

    ``OneCycleLR`` notes where it leads to as ``max_lr``, other schedulers as ``initial_lr``.
    """
    rate = group.get("lr", 0.0)
    if isinstance(rate, Tensor):
        return rate
    noted = [group.get(key) for key in ("initial_lr", "max_lr")]
    return max([rate, *(value for value in noted if isinstance(value, (int, float)))])


def entropy(labels: Tensor) -> float:
    """Cross-entropy of guessing by the share of each class, in nats."""
    counts = torch.unique(labels, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * shares.log()).sum())


def log_classes(count: int) -> float:
    """Cross-entropy of guessing among so many classes."""
    return log(max(count, 1))


class _Seen:
    """Records the calls of layers in a pass."""

    def __init__(self) -> None:
        self._open: list[Call] = []
        self._calls: list[Call] = []
        self._outer: list[Call] = []

    def run(
        self, task: Task, model: nn.Module, batch: Any, *, needs_loss: bool, seed: int | None
    ) -> Pass:
        """Run the pass; ``task`` comes first, so that a copy of it can be made."""
        if seed is not None:  # the pass puts the caller's random state back
            torch.manual_seed(seed)
        handles = []
        try:
            for name, module in model.named_modules():
                if isinstance(module, torch.jit.ScriptModule):
                    continue
                begin = partial(self._begin, clean_name(name))
                handles.append(
                    module.register_forward_pre_hook(begin, with_kwargs=True, prepend=True)
                )
                handles.append(module.register_forward_hook(self._end, always_call=False))
            if task.step is not None:
                return Pass(task(model, batch), self._of_outermost(), self._calls)
            output = task.output(model, batch)
            outputs = _floating(output)
            loss = task.loss_of(output, batch) if needs_loss else None
            return Pass(loss, outputs, self._calls, output)
        finally:
            for handle in handles:
                handle.remove()

    def _begin(self, name: str, module: nn.Module, args: Any, kwargs: Any) -> None:
        call = Call(name, type(module).__name__, module, len(self._open))
        call.inputs = _floating((args, kwargs))
        self._open.append(call)

    def _end(self, module: nn.Module, args: Any, output: Any) -> None:
        call = self._open.pop()
        while call.module is not module and self._open:  # one raised and was caught
            call = self._open.pop()
        call.outputs = _floating(output)
        self._calls.append(call)
        if not self._open:
            self._outer.append(call)

    def _of_outermost(self) -> list[Tensor]:
        """The outputs of the last module that was not called by another one, loss modules aside."""
        for call in reversed(self._outer):
            if call.outputs:
                return call.outputs
        return []


def _floating(value: Any) -> list[Tensor]:
    """Floating-point tensors of one axis or more in nested values."""
    found = []
    for tensor in tensors(value):
        if tensor.is_floating_point() and tensor.dim() and tensor.layout is torch.strided:
            found.append(tensor)
    return found


def attempted(run: Callable[[], Any]) -> str:
    """What an attempt has failed with; "" if it has not."""
    try:
        run()
    except NoTwin:
        raise
    except Exception as error:
        raise_interrupt(error)
        return f"{type(error).__name__}: {first_line(error)}"
    return ""


def parameter_names(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters of a network with their clean names."""
    for name, parameter in model.named_parameters():
        yield clean_name(name), parameter


def optimized(copy: TrainingCopy) -> set[int]:
    """Identities of the parameters that the optimizer of a copy updates."""
    groups = [group["params"] for group in copy.optimizer.param_groups]
    return set(map(id, chain.from_iterable(groups)))
