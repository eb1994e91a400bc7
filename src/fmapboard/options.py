"""What a logger is asked to do, checked at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from fmapboard.errors import ConfigurationError, closest
from fmapboard.records import Scale
from fmapboard.schedule import Schedule

WhenFull = Literal["wait", "drop_oldest"]
OnError = Literal["warn", "raise"]

PALETTES = ("grey", "viridis", "magma", "signed")
"""Names of the colour palettes; ``signed`` has zero in the middle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Options of a `FeatureMapLogger`; `watch` documents each.

    Raises:
        ConfigurationError: an option has a value that cannot be meant.
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
    scale: Scale = "channel"
    colormap: str = "grey"
    input_mean: tuple[float, ...] | None = None
    input_std: tuple[float, ...] | None = None
    max_bytes_per_step: int | None = None
    reduce_statistics: bool = False
    when_full: WhenFull = "wait"
    max_queue_bytes: int = 256 * 2**20
    on_error: OnError = "warn"

    def __post_init__(self) -> None:
        self._need_positive(
            "samples", "max_channels", "max_tile", "max_bytes_per_step", "max_queue_bytes"
        )
        self._need_one_of("scale", Scale)
        self._need_one_of("when_full", WhenFull)
        self._need_one_of("on_error", OnError)
        check_colormap(self.colormap)
        if not isinstance(self.start_step, int) or self.start_step < 0:
            raise ConfigurationError(
                f"start_step={self.start_step!r}: wanted the number of steps done, 0 or more"
            )
        if (self.input_mean is None) != (self.input_std is None):
            raise ConfigurationError("input_mean and input_std are given together or not at all")
        if self.name is not None and (not self.name or "/" in self.name):
            raise ConfigurationError(f"name={self.name!r}: wanted some text without '/'")

    @property
    def kernels_every(self) -> int:
        """Convolution kernels are drawn at each such logged step; 0 for never."""
        return 10 if self.kernels is True else int(self.kernels)

    def _need_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ConfigurationError(f"{name}={value!r}: wanted a whole number, at least 1")

    def _need_one_of(self, name: str, choices: Any) -> None:
        value = getattr(self, name)
        if value not in get_args(choices):
            wanted = " or ".join(map(repr, get_args(choices)))
            raise ConfigurationError(f"{name}={value!r}: wanted {wanted}")


def check_colormap(name: str) -> None:
    """Accept the name of a palette.

    Raises:
        ConfigurationError: there is no palette of that name; the text lists the closest.
    """
    if name not in PALETTES:
        raise ConfigurationError(
            f"no palette {name!r} (closest: {closest(name, PALETTES)}); "
            f"there are {', '.join(PALETTES)}"
        )
