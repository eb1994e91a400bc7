"""Which kernels of a step are drawn, a file of its own for when they count as changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from fmapboard.records import Floats, Kernels
from fmapboard.render.grid import largest_magnitude
from fmapboard.summary.pictures import LayerPictures, Pictures

CHANGED = 0.05
"""Least change of drawn weights, relative to their norm, after which they are drawn again. It is
about one of the 255 levels of the picture per weight."""


class DrawnKernels(NamedTuple):
    """Kernels of a layer as they were last drawn.

    Attributes:
        step: The logged step.
        weight: What was drawn, a copy.
        header: What the record of that step says of the picture.
    """

    step: int
    weight: Floats
    header: Mapping[str, Any]


class KernelPictures(NamedTuple):
    """The kernels of a step.

    Attributes:
        drawn: Those that are drawn.
        unchanged: Label of a layer -> header of the picture that still shows its kernels, with its
            ``step``, and with the ``peak_now`` of the kernels of this step.
        left_out: The kernels of this step that are not drawn although they have changed a little.
        last: Label of a layer -> its kernels as they were last drawn, at this step or before.
    """

    drawn: list[LayerPictures]
    unchanged: Mapping[str, Mapping[str, Any]]
    left_out: tuple[Kernels, ...]
    last: Mapping[str, DrawnKernels]


def kernel_pictures(
    before: Mapping[str, DrawnKernels],
    kernels: Iterable[Kernels],
    pictures: Pictures,
    step: int,
    *,
    only_changed: bool,
) -> KernelPictures:
    """Draw the kernels of a step.

    Args:
        before: As ``KernelPictures.last``, of the step before; not changed.
        kernels: Of the step.
        pictures: Draws them.
        step: The logged step.
        only_changed: Leave out kernels that have changed by less than ``CHANGED``.
    """
    drawn = []
    unchanged = {}
    left_out = []
    last = dict(before)
    for own in kernels:
        label = own.layer_call.label
        weight = own.cut(pictures.max_kernels).weight
        known = before.get(label)
        if only_changed and known is not None and not _has_changed(known.weight, weight):
            peak = largest_magnitude(weight)
            unchanged[label] = {**known.header, "step": known.step, "peak_now": peak}
            if not np.array_equal(known.weight, weight, equal_nan=True):
                left_out.append(own)
            continue
        layer = pictures.of_kernels(own)
        drawn.append(layer)
        if only_changed:  # a copy: the weight may be part of all that was copied from a device
            last[label] = DrawnKernels(step, weight.copy(), layer.header)
    return KernelPictures(drawn, unchanged, tuple(left_out), last)


def _has_changed(before: Floats, now: Floats) -> bool:
    if before.shape != now.shape:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        change = np.linalg.norm(now - before)
        is_small = change < CHANGED * np.linalg.norm(before)
    return not (is_small or np.array_equal(before, now, equal_nan=True))
