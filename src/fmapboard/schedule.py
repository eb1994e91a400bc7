"""When to log: schedules, and the counter of steps."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fmapboard.errors import ConfigurationError

Schedule = Callable[[int], bool]
"""A function that takes the number of completed optimizer steps and returns True if this step is
to be logged. It must be fast and have no side effects."""


def whole_number(value: Any) -> int | None:
    """The value as an int, if it is a whole number of any type; None otherwise.

    Accepts Python and numpy integers, integer tensors with one element, and floats without a
    fractional part. A bool is not a number.

    >>> whole_number(3.0), whole_number(2.5), whole_number(True), whole_number("3")
    (3, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (float, np.floating)):
        return int(value) if float(value).is_integer() else None
    try:
        return operator.index(value)
    except TypeError:
        return None


def step_number(value: Any, what: str = "step") -> int:
    """The value as a step number.

    Raises:
        ConfigurationError: it is not a whole number, or it is negative.
    """
    number = whole_number(value)
    if number is None or number < 0:
        raise ConfigurationError(
            f"{what}={value!r}: expected the number of completed optimizer steps, 0 or more"
        )
    return number


@dataclass(frozen=True, slots=True)
class Every:
    """Log each step whose number is divisible by ``every``, including step 0, and one more.

    >>> [step for step in range(25) if Every(10)(step)]
    [0, 10, 20]
    >>> [step for step in range(1, 25) if Every(10, first=1)(step)]
    [1, 10, 20]

    Attributes:
        every: the distance of two logged steps.
        first: log this step as well: the first one of a logger that begins late.

    Raises:
        ConfigurationError: ``every`` is not a whole number, or it is below 1.
    """

    every: int
    first: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        every = whole_number(self.every)
        if every is None or every < 1:
            raise ConfigurationError(
                f"every={self.every!r}: expected a whole number of steps, at least 1, or a "
                "function from step number to bool"
            )
        object.__setattr__(self, "every", every)

    def __call__(self, step: int) -> bool:
        """True if the step is to be logged."""
        return step % self.every == 0 or step == self.first


def as_schedule(every: int | Schedule) -> Schedule:
    """The schedule for the option ``every``: a user's own function, or ``Every`` for a number."""
    return every if callable(every) else Every(every)


def never(step: int) -> bool:
    """A schedule that logs no step."""
    return False


def next_due(schedule: Schedule, step: int) -> int:
    """The first step after ``step`` that the schedule might log.

    For a user's own function that is simply the next step.

    >>> next_due(Every(10), 20), next_due(lambda step: False, 20)
    (30, 21)
    """
    if schedule is never:
        return sys.maxsize
    if isinstance(schedule, Every):
        due = (step // schedule.every + 1) * schedule.every
        return min(due, schedule.first) if step < schedule.first else due
    return step + 1


@dataclass(slots=True)
class StepCounter:
    """Counts steps, and remembers until when none is due.

    Attributes:
        schedule: decides which steps are logged.
        next: the number of the next step.
        quiet_until: no step before this one is due.
    """

    schedule: Schedule
    next: int
    quiet_until: int = 0
