"""Keep a step within ``max_bytes_per_step``, a file of its own: fewer pixels, then channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fmapboard.records import LayerMeasurement, StepData
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

    def tighten(self) -> bool:
        """Switch to the next tighter limits; False if there are none."""
        if self._level + 1 == len(_LEVELS):
            return False
        self._level += 1
        return True

    def applied(self, data: StepData) -> StepData:
        """The step with its pictures reduced to the current limits."""
        limits = _LEVELS[self._level]
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
    planes, some = measured.planes, (slice(None), slice(limits.channels))
    if planes is None or not limits.pictures:
        return replace(measured, planes=None)
    pixels, marks = planes.pixels[some], None if planes.marks is None else planes.marks[some]
    most = longest(limits.side, planes.layout)
    block = 1 if most is None else -(-max(pixels.shape[2:]) // most)
    if block > 1:
        pixels, marks = shrink_pixels(pixels, marks, block)
    flat, lo, hi = planes.flat[some], planes.lo[some], planes.hi[some]
    smaller = replace(
        planes, pixels=pixels, marks=marks, flat=flat, lo=lo, hi=hi, block=planes.block * block
    )
    return replace(measured, planes=smaller)
