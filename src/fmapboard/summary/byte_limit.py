"""Smaller pictures for ``max_bytes_per_step``, a file of its own as few runs have a byte limit.

A run that has exceeded its limit once keeps the smaller tiles, so that its steps stay comparable.
"""

from __future__ import annotations

from dataclasses import replace

from fmapboard.arithmetic import ceil_div
from fmapboard.records import LayerMeasurement, Planes, StepData
from fmapboard.render.quantize import longest, shrink_pixels

NO_PICTURES = 0

SIDES = (32, 16, 8, 4, NO_PICTURES)
"""Maximum sides of a tile in px, which are tried one after the other.

Of kernels, as many outputs and inputs are drawn at most.
"""


def with_smaller_tiles(data: StepData, side: int) -> StepData:
    """The step with tiles of at most ``side`` px, or without pictures.

    Args:
        data: The measurements, which are not changed.
        side: One of `SIDES`; a row of a sequence may be longer (see `longest`).
    """
    if side != NO_PICTURES:
        return replace(
            data,
            measured=tuple(_with_tiles(part, side) for part in data.measured),
            kernels=tuple(kernels.cut(side) for kernels in data.kernels),
        )
    facts = data.facts
    return replace(
        data,
        measured=tuple(
            replace(part, planes=None, tokens=None, slices=None) for part in data.measured
        ),
        kernels=(),
        inputs=(),
        attributions=(),
        facts=None if facts is None else replace(facts, hardest={}),
    )


def _with_tiles(measured: LayerMeasurement, side: int) -> LayerMeasurement:
    planes = measured.planes
    if planes is None:
        return measured
    most = longest(side, planes.layout)
    assert most is not None  # a side was given
    block = ceil_div(max(planes.pixels.shape[2:]), most)
    slices = measured.slices
    if slices is not None:
        slices = slices._replace(planes=_averaged(slices.planes, block))
    return replace(measured, planes=_averaged(planes, block), slices=slices)


def _averaged(planes: Planes, block: int) -> Planes:
    """The planes with each square of ``block`` x ``block`` pixels averaged into one."""
    if block == 1:
        return planes
    pixels, marks = shrink_pixels(planes.pixels, planes.marks, block)
    return replace(planes, pixels=pixels, marks=marks, block=planes.block * block)
