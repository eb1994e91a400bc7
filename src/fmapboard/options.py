"""Every option of `fmapboard.watch` once, with its check."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict, get_args

from typing_extensions import Unpack

from fmapboard.errors import ConfigurationError, closest
from fmapboard.records import Normalization, Scale
from fmapboard.schedule import Schedule, as_schedule

WhenFull = Literal["wait", "drop_oldest"]

PALETTES = ("grey", "viridis", "magma", "signed")
"""Names of the colour palettes; ``signed`` has zero in the middle."""


class CommonOptions(TypedDict, total=False):
    """What `fmapboard.watch` and every integration take, by name; `watch` documents each."""

    name: str | None
    samples: int
    probe: Any
    inputs: bool
    activation_gradients: bool
    kernels: bool | int
    max_channels: int | None
    max_tile: int | None
    max_bytes_per_step: int | None
    reduce_statistics: bool
    scale: Scale
    colormap: str
    normalization: tuple[Sequence[float], Sequence[float]] | None
    when_full: WhenFull


class WatchOptions(CommonOptions, total=False):
    """Besides, those that an integration sets itself."""

    every: int | Schedule
    start_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a `FeatureMapLogger`, with their defaults; `watch` documents each.

    >>> Options(every=10).kernels_every
    10

    Raises:
        ConfigurationError: an option has an invalid value.
    """

    every: int | Schedule = 100
    start_step: int = 0
    name: str | None = None
    samples: int = 1
    probe: Any = None
    inputs: bool = False
    activation_gradients: bool = False
    kernels: bool | int = True
    max_channels: int | None = 64
    max_tile: int | None = 64
    max_bytes_per_step: int | None = None
    reduce_statistics: bool = False
    scale: Scale = "channel"
    colormap: str = "grey"
    normalization: Normalization | None = None
    when_full: WhenFull = "wait"

    @classmethod
    def of(cls, **given: Unpack[WatchOptions]) -> Options:
        """The options by name, as a user gives them.

        Raises:
            ConfigurationError: there is no such option (the text lists the closest), or it has an
                invalid value.
        """
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise ConfigurationError(f"no option {name!r}; closest: {closest(name, known)}")
        pair = given.get("normalization")
        checked = None if pair is None else _normalization(pair)
        return cls(**{**given, "normalization": checked})  # type: ignore[arg-type]  # as checked

    def __post_init__(self) -> None:
        self._need_positive("samples", "max_channels", "max_tile", "max_bytes_per_step")
        self._need_one_of("scale", Scale)
        self._need_one_of("when_full", WhenFull)
        object.__setattr__(self, "colormap", checked_colormap(self.colormap))
        as_schedule(self.every)
        if not isinstance(self.start_step, int) or self.start_step < 0:
            raise ConfigurationError(
                f"start_step={self.start_step!r}: expected the number of steps done, 0 or more"
            )
        if self.name is not None and (not self.name or "/" in self.name):
            raise ConfigurationError(f"name={self.name!r}: expected a text without '/'")

    @property
    def kernels_every(self) -> int:
        """Convolution kernels are drawn at every such logged step; 0 for never."""
        return 10 if self.kernels is True else int(self.kernels)

    def _need_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigurationError(f"{name}={value!r}: expected a whole number, at least 1")

    def _need_one_of(self, name: str, choices: Any) -> None:
        value = getattr(self, name)
        if value not in get_args(choices):
            expected = " or ".join(map(repr, get_args(choices)))
            raise ConfigurationError(f"{name}={value!r}: expected {expected}")


def _normalization(pair: Any) -> Normalization:
    try:
        mean, std = (tuple(float(value) for value in part) for part in pair)
    except (TypeError, ValueError):
        mean = std = ()
    if not mean or len(mean) != len(std):
        raise ConfigurationError(
            f"normalization={pair!r}: expected (mean, std), each one number per channel"
        )
    return mean, std


def checked_colormap(name: str) -> str:
    """The name of a palette, ``gray`` spelt as ``grey``.

    Raises:
        ConfigurationError: there is no palette of that name; the text lists the closest.
    """
    name = "grey" if name == "gray" else name
    if name not in PALETTES:
        raise ConfigurationError(
            f"no palette {name!r} (closest: {closest(name, PALETTES)}); "
            f"there are {', '.join(PALETTES)}"
        )
    return name


def with_options(function: Callable[..., Any]) -> inspect.Signature:
    """A function's signature with each option in place of ``**options``, for help() and editors."""
    signature = inspect.signature(function)
    named = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=field.type)
        for field in fields(Options)
    ]
    return signature.replace(parameters=[*named, *options])
