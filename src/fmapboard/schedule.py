"""When to log."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fmapboard.errors import ConfigurationError

Schedule = Callable[[int], bool]
"""A schedule: the number of completed optimizer steps -> is this step logged? Pure and fast."""


def whole_number(value: Any) -> int | None:
    """The number as an int: of numpy's integers, a tensor's, a float without fraction.

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
    """The number of a step.

    Raises:
        ConfigurationError: it is not a whole number, or below 0.
    """
    number = whole_number(value)
    if number is None or number < 0:
        raise ConfigurationError(
            f"{what}={value!r}: expected the number of optimizer steps done, 0 or more"
        )
    return number


@dataclass(frozen=True, slots=True)
class Every:
    """Log each step whose number is divisible by ``every``, so step 0 is logged.

    >>> [step for step in range(25) if Every(10)(step)]
    [0, 10, 20]

    Raises:
        ConfigurationError: ``every`` is not a whole number above 0.
    """

    every: int

    def __post_init__(self) -> None:
        every = whole_number(self.every)
        if every is None or every < 1:
            raise ConfigurationError(
                f"every={self.every!r}: expected a whole number of steps, at least 1, or a "
                "function from step number to bool"
            )
        object.__setattr__(self, "every", every)

    def __call__(self, step: int) -> bool:
        """Is this step logged?"""
        return step % self.every == 0


def as_schedule(every: int | Schedule) -> Schedule:
    """The schedule that ``every`` names: a number of steps, or a schedule of the user's own."""
    return every if callable(every) else Every(every)


def never(step: int) -> bool:
    """No step is logged."""
    return False


def next_due(schedule: Schedule, step: int) -> int:
    """The first step behind ``step`` at which a schedule may have to be asked again.

    Of a user's own function nothing is known: it is asked at each step.

    >>> next_due(Every(10), 20), next_due(lambda step: False, 20)
    (30, 21)
    """
    if schedule is never:
        return sys.maxsize
    if isinstance(schedule, Every):
        return (step // schedule.every + 1) * schedule.every
    return step + 1


class StepCounter:
    """Counts steps and decides which of them are logged.

    Args:
        schedule: decides which.
        start: the number of the first step.

    Attributes:
        schedule: as given.
        next: the number of the next step.
        quiet_until: no step before this one is logged, as far as is known.
    """

    __slots__ = ("next", "quiet_until", "schedule")

    def __init__(self, schedule: Schedule, start: int) -> None:
        self.schedule = schedule
        self.next, self.quiet_until = start, 0

    def rest(self) -> None:
        """The next step is not logged: find out until when none is."""
        self.quiet_until = next_due(self.schedule, self.next)
