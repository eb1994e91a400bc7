"""Pixels that an accelerator has quantized, with marks for non-finite values in the same bytes.

A plane whose values are all finite is coded as it is drawn: floor(255 * t), where t is 0 at the
plane's minimum and 1 at its maximum. A plane with NaN or infinite values has the codes 0, 1 and 2
for NaN, +Inf and -Inf, and 3 + floor(252 * t) for the others, which are drawn within 1 of 255.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fmapboard.records import Bytes8, Floats, Layout, PixelMark, Planes
from fmapboard.render.extremes import finite_extremes
from fmapboard.render.quantize import Averaged, Quantizer, quantize, with_constant_planes

MARKS = (PixelMark.NAN, PixelMark.POSITIVE_INFINITY, PixelMark.NEGATIVE_INFINITY)
"""What the lowest codes of a marked plane mean."""

LEVELS = 255 - len(MARKS)
"""The largest multiple of t in a marked plane."""


def _tables() -> tuple[Bytes8, Bytes8]:
    """Code of a marked plane -> its pixel, and its mark; u8 [256] each."""
    level = np.arange(256) - len(MARKS)
    pixels = np.floor((level + 0.5) * 255 / LEVELS).astype(np.int64)
    pixels[: len(MARKS)] = 0, 255, 0  # as NaN, +Inf and -Inf are drawn below their marks
    marks = np.zeros(256, np.uint8)
    marks[: len(MARKS)] = MARKS
    return pixels.astype(np.uint8), marks


_PIXELS, _MARKS = _tables()


@dataclass(frozen=True, slots=True)
class Coded:
    """The drawn planes of one tensor, coded.

    Attributes:
        codes: u8 [N, C, H, W].
        lo: Smallest finite value f64 [N, C] of each plane as it is coded; larger than ``hi`` if the
            plane has none.
        hi: Largest finite value, likewise.
        marked: bool [N, C], True for a plane that is coded with marks.
    """

    codes: Bytes8
    lo: Floats
    hi: Floats
    marked: npt.NDArray[np.bool_]

    def planes(
        self,
        quantizer: Quantizer,
        shape: tuple[int, ...],
        channels: int,
        view: str,
        layout: Layout = "tiles",
        averaged: Averaged | None = None,
    ) -> Planes:
        """What ``quantizer``, which scales each channel, makes of the same maps.

        Args:
            quantizer: Its other options are those with which the maps were coded.
            shape: As for ``Quantizer``; so are the others.
        """
        none = self.lo > self.hi
        lo, hi = np.where(none, np.inf, self.lo), np.where(none, -np.inf, self.hi)
        pixels, marks, flat = self.codes, None, lo == hi
        if self.marked.any():
            has_marks = self.marked[..., None, None]
            pixels = np.where(has_marks, _PIXELS[self.codes], self.codes)
            marks = np.where(has_marks, _MARKS[self.codes], 0).astype(np.uint8)
        if averaged is not None:
            overflowed = self.marked & np.isfinite(averaged.lo) & np.isfinite(averaged.hi)
            if marks is not None and overflowed.any():
                values = self._values(overflowed, quantizer.limits(lo, hi), averaged)
                lo[overflowed], hi[overflowed], _ = finite_extremes(values, (1, 2))
                ends = (end[overflowed][:, None] for end in quantizer.limits(lo, hi))
                pixels[overflowed] = quantize(values[:, None], *ends)[:, 0]
                marks[overflowed] = np.where(np.isnan(values), PixelMark.NAN, 0)
            lo, hi, flat = with_constant_planes(averaged, lo, hi)
            if flat.any():
                # Their means may differ by rounding errors.
                value = quantize(lo[..., None, None], *quantizer.limits(lo, hi))
                pixels = np.where(flat[..., None, None], value, pixels)
        lo, hi = quantizer.limits(lo, hi)
        if marks is not None:
            pixels[self.marked & (lo >= hi)] = 0  # as `quantize` draws a plane without a range
        return Planes(
            pixels,
            marks if marks is not None and marks.any() else None,
            flat=flat,
            lo=lo,
            hi=hi,
            shape=shape,
            channels=channels,
            block=1 if averaged is None else averaged.block,
            view=view,
            layout=layout,
        )

    def _values(
        self,
        planes: npt.NDArray[np.bool_],
        limits: tuple[Floats, Floats],
        averaged: Averaged,
    ) -> Floats:
        """The values f64 [K, H, W] of marked planes; marked infinite ones are sums that overflowed.

        Args:
            planes: bool [N, C], which planes.
            limits: The values drawn as 0 and as 255, f64 [N, C] each.
            averaged: Has the extremes of these planes, which replace what overflowed.
        """
        codes = self.codes[planes]
        low, high = (end[planes][:, None, None] for end in limits)
        share = (codes - float(len(MARKS))) / LEVELS
        values: Floats = low * (1 - share) + high * share
        marks = _MARKS[codes]
        values[marks == PixelMark.NAN] = np.nan
        for mark, end in ((MARKS[1], averaged.hi), (MARKS[2], averaged.lo)):
            values = np.where(marks == mark, end[planes][:, None, None], values)
        return values
