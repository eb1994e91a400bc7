"""Keep a step within ``max_bytes_per_step``, a file of its own: fewer pixels, then channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fmapboard.records import LayerMeasurement, Planes, StepData
from fmapboard.render.quantize import longest, shrink_pixels

_SIDES = (48, 32, 24, 16, 12, 8, 4)
_CHANNELS = (32, 16, 8, 4, 2, 1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of pictures.

    Attributes:
        side: Maximum side of a tile in px; None for no limit.
        channels: Maximum number of channels; None for no limit.
        pictures: False if no pictures are written at all.
    """

    side: int | None = None
    channels: int | None = None
    pictures: bool = True


_LEVELS = (
    Limits(),
    *(Limits(side) for side in _SIDES),
    *(Limits(_SIDES[-1], channels) for channels in _CHANNELS),
    Limits(_SIDES[-1], _CHANNELS[-1], pictures=False),
)


class Budget:
    """The limits currently in force.

    They only get tighter, so that the steps of a run stay comparable.
    """

    def __init__(self) -> None:
        self._level = 0

    @property
    def limits(self) -> Limits:
        """The limits currently in force."""
        return _LEVELS[self._level]

    def tighten(self) -> bool:
        """Switch to the next tighter limits; False if there are none."""
        if self._level + 1 == len(_LEVELS):
            return False
        self._level += 1
        return True

    def applied(self, data: StepData) -> StepData:
        """The step with its pictures reduced to the current limits."""
        limits = self.limits
        if limits == Limits():
            return data
        return replace(
            data,
            measured=tuple(_smaller(measured, limits) for measured in data.measured),
            kernels=tuple(k.cut(limits.channels) for k in data.kernels) if limits.pictures else (),
            inputs=data.inputs if limits.pictures else (),
            attributions=data.attributions if limits.pictures else (),
        )


def _smaller(measured: LayerMeasurement, limits: Limits) -> LayerMeasurement:
    if measured.planes is None or not limits.pictures:
        return replace(measured, planes=None)
    planes = _cut(measured.planes, limits.channels)
    side = max(planes.pixels.shape[2:])
    most = longest(limits.side, planes.layout)
    block = 1 if most is None else -(-side // most)
    return replace(measured, planes=_averaged(planes, block) if block > 1 else planes)


def _cut(planes: Planes, channels: int | None) -> Planes:
    return replace(
        planes,
        pixels=planes.pixels[:, :channels],
        marks=None if planes.marks is None else planes.marks[:, :channels],
        flat=planes.flat[:, :channels],
        lo=planes.lo[:, :channels],
        hi=planes.hi[:, :channels],
    )


def _averaged(planes: Planes, block: int) -> Planes:
    """Average square blocks of pixels; a block that contains a mark becomes that mark."""
    pixels, marks = shrink_pixels(planes.pixels, planes.marks, block)
    return replace(planes, pixels=pixels, marks=marks, block=planes.block * block)
