"""``Usage``: what is known of the steps of a logger, and why it logs nothing."""

from __future__ import annotations

import contextlib
import queue
import weakref
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.optim import LBFGS
from torch.optim.optimizer import Optimizer

from fmapboard.errors import WarnOnce
from fmapboard.gradients.optimizers import holding, parameters_of
from fmapboard.interrupts import OwnThread, raise_interrupt
from fmapboard.schedule import StepCounter, next_due

_MAX_PARAMETERS = 16

Versions = tuple[int | None, ...]
"""Version counters of parameters; None for one that is gone."""


class ParameterVersions:
    """Reads the version counters of up to 16 of a model's parameters, from any thread.

    Every in-place change of a tensor, such as an optimizer's, increments its counter. The
    parameters are held by weak references; they are spread evenly over those that require a
    gradient now, or over all if none does.

    >>> layer = nn.Linear(2, 2)
    >>> versions = ParameterVersions(layer)
    >>> before = versions.read()
    >>> nn.init.zeros_(layer.weight).sum().item()
    0.0
    >>> most_changes(before, versions.read())
    1
    """

    def __init__(self, model: nn.Module) -> None:
        own = [p for p in model.parameters() if is_lazy(p) or not p.is_inference()]
        own = [p for p in own if p.requires_grad] or own
        count = min(len(own), _MAX_PARAMETERS)
        self._parameters = [weakref.ref(own[i * len(own) // count]) for i in range(count)]

    def read(self) -> Versions:
        """The current version counters; takes about 3 µs."""
        with torch._C.DisableTorchFunction():  # a mode of the user's must not see the reading
            own = [reference() for reference in self._parameters]
            return tuple([None if p is None else p._version for p in own])

    def ids(self) -> set[int]:
        """The ``id`` of each parameter that still exists."""
        return {id(p) for reference in self._parameters if (p := reference()) is not None}


def most_changes(before: Versions, after: Versions) -> int:
    """How often the parameter that was changed most often was changed between two readings."""
    pairs = zip(before, after, strict=True)
    return max((b - a for a, b in pairs if a is not None and b is not None), default=0)


_SECONDS = 60.0
_ENOUGH = 5
"""After this many uncounted changes of a parameter, the model is being trained: initializing it and
loading a checkpoint are fewer."""


class Usage:
    """What is known of the steps of a logger, and what to tell the user if it logs none.

    Holds neither the logger nor the model.

    Args:
        steps: counts the steps.
        versions: the version counters of the model's parameters.
        warn: where the explanation is reported, once.

    Attributes:
        versions: as passed.
        counts: True while the steps of an optimizer are counted.
        marked: True once the user has marked a step.
        ended: number of steps that ended, logged or not; incomplete while the steps of an optimizer
            are counted.
        due: number of steps that ended and were due.
        logged: number of steps handed to the pipeline.
        explains: False if nothing is to be reported, as after an exception.
    """

    def __init__(self, steps: StepCounter, versions: ParameterVersions, warn: WarnOnce) -> None:
        self._steps = steps
        self._warn = warn
        self.versions = versions
        self._start = steps.next
        self._first = self._latest = self._start, versions.read()
        self._optimizer: Callable[[], Optimizer | None] = type(None)
        self.counts = self.marked = False
        self.ended = self.due = self.logged = 0
        self.explains = True

    def count(self, optimizer: Optimizer) -> None:
        """The steps of this optimizer are counted from now on."""
        self.counts = True
        self._optimizer = weakref.ref(optimizer)

    def counted(self) -> None:
        """Called after some of the counted steps: remember how often they change a parameter."""
        self._latest = self._steps.next, self.versions.read()

    def explain(self, *, is_over: bool) -> bool:
        """Report why nothing is logged, or nothing any more; an error here is reported too.

        Args:
            is_over: the logger has ended. Otherwise, only what training cannot mend by itself.

        Returns:
            True if it may have to be called again.
        """
        try:
            why = self._why(is_over=is_over) if self.explains else None
        except Exception as error:
            raise_interrupt(error)
            self._warn.error("usage", error, "it is not known whether steps are missed")
            return False
        if why is not None:
            self._warn.warn("nothing logged", why)
        return why is None and not self.marked

    def _why(self, *, is_over: bool) -> str | None:
        what = f"nothing {'was' if is_over else 'is'} logged"
        why = self._why_not_counted(what, is_over=is_over) if self.counts else None
        if why is not None or self.logged or self.due:  # an empty step logs its own warning
            return why
        if not self.counts and not self.ended:
            if not is_over and (self.marked or self._uncounted() < _ENOUGH):
                return None
            return (
                f"{what}: no step was marked; pass optimizer= to watch(), or wrap each training "
                "step in: with board.step(i):"
            )
        if not is_over:
            return None
        number = self._steps.next
        schedule = self._steps.schedule
        done = number - self._start if self.counts else self.ended
        due = next_due(schedule, number - 1)
        return (
            f"{what}: none of the {done} steps before step {number} was due ({schedule}); the next "
            f"one could be step {due}. Log more often, for example with every=1"
        )

    def _why_not_counted(self, what: str, *, is_over: bool) -> str | None:
        """Why steps of the optimizer are missed; None if none are, or if that is not known yet."""
        optimizer = self._optimizer()
        number = self._steps.next
        is_trained = self._uncounted() >= _ENOUGH
        given = "the optimizer passed to watch()"
        named = "" if optimizer is None else f" ({type(optimizer).__name__})"
        if number == self._start:
            if not is_over and not is_trained:
                return None
            instead = self._instead(optimizer) if is_trained else None
            if instead is None and not is_over and isinstance(optimizer, LBFGS):
                return None  # its first step changes the parameters several times
            return f"{what}: {given} never stepped; " + (
                instead or "pass the one that the training loop uses"
            )
        others = self._others(optimizer) if is_trained else ""
        if others:
            return (
                f"{what} from step {number} on: {given}{named} stopped stepping, while {others} "
                "trains the model; pass the other one as optimizer= to a new watch() with "
                f"start_step={number}, or wrap each training step in: with board.step():"
            )
        return None

    def _uncounted(self) -> float:
        """How often a parameter was changed, in steps, beyond what the counted steps explain."""
        (start, before) = self._first
        (count, latest) = self._latest
        changes = most_changes(latest, self.versions.read())
        steps = self._steps.next - count
        if count == start:
            return changes if steps == 0 else 0.0  # it is not known what a step changes
        rate = max(1.0, most_changes(before, latest) / (count - start))
        return changes / rate - steps

    def _instead(self, optimizer: Optimizer | None) -> str | None:
        """Which optimizer to pass instead of one that never steps; None if that is not known."""
        if optimizer is None:
            return None
        name = type(optimizer).__name__
        for attribute, inner in vars(optimizer).items():
            if isinstance(inner, Optimizer):
                return (
                    f"{name} steps through the {type(inner).__name__} in its attribute "
                    f"{attribute}: pass that one"
                )
        others = self._others(optimizer)
        if not others:
            return None
        held = self.versions.ids() & {id(p) for p in parameters_of(optimizer)}
        which = name if held else f"{name} holds none of the model's parameters, and"
        return f"{which} is not the one that trains it: pass {others}"

    def _others(self, optimizer: Optimizer | None) -> str:
        """Types of the other optimizers that hold the parameters; empty if there are none."""
        names = set[str]()
        for other in holding(self.versions.ids()):
            related = [other, *vars(other).values()]  # the same, or one that wraps it
            if optimizer is None or all(value is not optimizer for value in related):
                names.add(type(other).__name__)
        return " or ".join(sorted(names))


def explain_every_minute(usage: Usage) -> Callable[[], object]:
    """Call ``usage.explain`` once a minute on a thread, as long as ``usage`` exists.

    The thread holds ``usage`` by a weak reference. A forked child does not have it.

    Args:
        usage: of a logger.

    Returns:
        A function that ends the thread; it does not wait for it.
    """
    end = queue.SimpleQueue[None]()  # garbage collection may call `put` at any time
    body = partial(_loop, weakref.ref(usage), end)
    with contextlib.suppress(RuntimeError):  # without a thread, all is explained at the end
        OwnThread(body, "fmapboard-usage").start()
    return partial(end.put, None)


def _loop(reference: weakref.ref[Usage], end: queue.SimpleQueue[None]) -> None:
    while True:
        with contextlib.suppress(queue.Empty):
            return end.get(timeout=_SECONDS)
        usage = reference()
        if usage is None or not usage.explain(is_over=False):
            return
        del usage
