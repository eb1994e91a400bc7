"""Options that change a model's preprocessing: ``--mean``, ``--std``, ``--resize``, ``--crop``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

import click

Size: TypeAlias = int | tuple[int, int] | Literal["none"]
"""One number, height and width, or ``"none"``."""

Command = TypeVar("Command", bound=Callable[..., Any])


class _Numbers(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """One number per channel, separated by commas.

    Args:
        positive: 0 is not allowed.
    """

    name = "numbers"

    def __init__(self, *, positive: bool) -> None:
        self._positive = positive

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, ...]:
        """The numbers; a usage error if they are none, or on the scale of 0 to 255."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(map(float, re.split(r"[\s,]+", value.strip("[]() "))))
        except ValueError:
            self.fail(
                f"{value!r}: expected numbers with commas and no spaces: 0.5 or 0.485,0.456,0.406",
                param,
                ctx,
            )
        if max(numbers) > 2:
            scaled = ",".join(f"{number / 255:.3g}" for number in numbers)
            self.fail(f"{value!r}: expected numbers for pixels from 0 to 1: {scaled}?", param, ctx)
        if not all(abs(n) < float("inf") and not (self._positive and n <= 0) for n in numbers):
            what = "numbers above 0" if self._positive else "finite numbers"
            self.fail(f"{value!r}: expected {what}", param, ctx)
        return numbers


class _Size(click.ParamType):  # type: ignore[type-arg]  # not generic in older versions
    """A number of pixels, ``HEIGHTxWIDTH``, or ``none``."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Size:
        """The size; a usage error if it is invalid."""
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]  # a default
        if value.lower() == "none":
            return "none"
        match = re.fullmatch(r"(\d{1,5})(?:[x×,*](\d{1,5}))?", value.strip())
        sides = [int(side) for side in match.groups() if side] if match else []
        if not sides or min(sides) < 1:
            self.fail(f"{value!r}: expected px, such as 224 or 480x640, or none", param, ctx)
        return sides[0] if len(sides) == 1 else (sides[0], sides[1])


_OPTIONS = (
    click.option(
        "--mean",
        type=_Numbers(positive=False),
        metavar="NUMBERS",
        help="Subtracted per channel, for pixels from 0 to 1, such as 0.485,0.456,0.406.",
    ),
    click.option(
        "--std",
        type=_Numbers(positive=True),
        metavar="NUMBERS",
        help="Divides each channel after that.",
    ),
    click.option(
        "--resize",
        type=_Size(),
        metavar="SIZE",
        help="Shorter side in px, HEIGHTxWIDTH, or none to keep the image's size.",
    ),
    click.option(
        "--crop",
        type=_Size(),
        metavar="SIZE",
        help="Centre crop after that: side in px, HEIGHTxWIDTH, or none.",
    ),
)


def preprocessing_options(command: Command) -> Command:
    """Add the options to a command; what is not given stays as the weights expect."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
