"""A captured tensor to the little that is kept of it, on its own device.

Nothing that a reduction returns aliases the live tensor: the very next operation may overwrite it.
Every function works without a graph; call it inside `observe.aside`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fmapboard.records import Mark, Measured, Planes, Role, Sample, Scale, Site
from fmapboard.statistics import PendingStatistics, statistics
from fmapboard.views import as_maps, as_pictures

SAMPLE_SIZE = 65_536
"""Histograms read at most this many values of a tensor; below it, every value."""


@dataclass(frozen=True, slots=True)
class PendingPlanes:
    """`records.Planes` still on the device."""

    pixels: Tensor
    marks: Tensor | None
    flat: Tensor
    lo: Tensor
    hi: Tensor
    shape: tuple[int, ...]
    channels: int
    block: int
    view: str

    def to_host(self) -> Planes:
        """Wait for the device and copy."""
        marks = None if self.marks is None else self.marks.cpu().numpy()
        if marks is not None and not marks.any():
            marks = None
        return Planes(
            self.pixels.cpu().numpy(),
            marks,
            self.flat.cpu().numpy(),
            self.lo.cpu().numpy(),
            self.hi.cpu().numpy(),
            self.shape,
            self.channels,
            self.block,
            self.view,
        )


@dataclass(frozen=True, slots=True)
class PendingSample:
    """`records.Sample` still on the device; ``extremes`` is f64 [2] or None."""

    values: Tensor
    total: int
    extremes: Tensor | None = None

    def to_host(self) -> Sample:
        """Wait for the device and copy."""
        lo, hi = (math.nan, math.nan) if self.extremes is None else self.extremes.tolist()
        return Sample(self.values.cpu().numpy(), self.total, lo, hi)


@dataclass(frozen=True, slots=True)
class Pending:
    """`records.Measured` still on the device."""

    site: Site
    role: Role
    planes: PendingPlanes | None = None
    statistics: PendingStatistics | None = None
    sample: PendingSample | None = None
    shape: tuple[int, ...] = ()

    def to_host(self) -> Measured:
        """Wait for the device and copy."""
        return Measured(
            self.site,
            self.role,
            None if self.planes is None else self.planes.to_host(),
            None if self.statistics is None else self.statistics.to_host(),
            None if self.sample is None else self.sample.to_host(),
            self.shape,
        )


@dataclass(slots=True)
class Reducer:
    """Reduces captured tensors.

    Attributes:
        samples: how many samples are drawn; None draws all.
        max_channels: how many channels are drawn; None draws all.
        max_tile: largest side of a drawn map in px; larger ones are averaged down over whole
            square blocks; None keeps the size.
        scale: ``"channel"``: each channel of each sample between its own finite extremes;
            ``"layer"``: between those of all drawn channels of the sample; ``"locked"``: per
            channel, as at the first logged step at which the channel had a range.
        zero_centred: scales reach from -m to m, m the largest magnitude.
        channels_last_sequences: three axes of a module that is no convolution are [N, L, C].
        tokens_are_patches: sequences that fill a square are drawn as maps.
    """

    samples: int | None = 1
    max_channels: int | None = 64
    max_tile: int | None = 64
    scale: Scale = "channel"
    zero_centred: bool = False
    channels_last_sequences: bool = True
    tokens_are_patches: bool = False
    _locked: dict[tuple[str, Role], tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __call__(
        self,
        site: Site,
        role: Role,
        tensor: Tensor,
        module: nn.Module,
        *,
        pictures: bool = True,
        numbers: bool = True,
    ) -> Pending:
        """Reduce one tensor: planes where ``pictures``, statistics and a sample where ``numbers``.

        A site that wants numbers alone gets neither planes nor a sample for a histogram.
        """
        view = as_maps(
            tensor,
            module,
            channels_last_sequences=self.channels_last_sequences,
            tokens_are_patches=self.tokens_are_patches,
        )
        counted = statistics(view.maps, _rounded(site.floor, tensor.dtype)) if numbers else None
        planes = sampled = None
        if counted is not None and site.pictures:
            sampled = sample(view.maps, counted.extremes)
        if pictures and site.pictures and view.drawable:
            drawn = view.maps if view.patches is None else view.patches
            planes = self._draw(site, role, drawn, tuple(tensor.shape), view.said)
        return Pending(site, role, planes, counted, sampled, tuple(tensor.shape))

    def _draw(
        self, site: Site, role: Role, maps: Tensor, shape: tuple[int, ...], said: str
    ) -> PendingPlanes:
        whole, how = as_pictures(maps[: self.samples, : self.max_channels])
        drawn, block = shrink(whole, self.max_tile)  # [n, c, h, w]
        one_pixel = drawn.shape[2] * drawn.shape[3] == 1
        own_lo, own_hi, finite = extremes(drawn)
        flat = own_lo == own_hi
        if block > 1:
            own_lo, own_hi, flat = _unrounded(whole, own_lo, own_hi)
        lo, hi = self._limits(own_lo, own_hi, one_pixel)
        if self.scale == "locked":
            lo, hi = self._lock(site, role, lo, hi)
        return PendingPlanes(
            quantise(drawn, lo, hi),
            None if finite else mark(drawn),
            flat=flat & (not one_pixel),
            lo=lo,
            hi=hi,
            shape=shape,
            channels=maps.shape[1],
            block=block,
            view="; ".join(filter(None, [said, how])),
        )

    def _limits(self, lo: Tensor, hi: Tensor, one_pixel: bool) -> tuple[Tensor, Tensor]:
        """f64 [n, c]: what is drawn as 0 and as 255, from the finite extremes of each plane."""
        if self.scale == "layer" or one_pixel:
            lo = lo.amin(1, keepdim=True).expand_as(lo).contiguous()
            hi = hi.amax(1, keepdim=True).expand_as(hi).contiguous()
        if self.zero_centred:
            hi = torch.maximum(lo.abs(), hi.abs())
            lo = -hi
        none = torch.isinf(lo) | torch.isinf(hi)  # no finite value
        return lo.masked_fill(none, 0.0), hi.masked_fill(none, 0.0)

    def _lock(self, site: Site, role: Role, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor]:
        first = self._locked.get((site.label, role))
        if first is not None and first[0].shape == lo.shape:
            had_range = first[1] > first[0]
            lo = torch.where(had_range, first[0].to(lo.device), lo)
            hi = torch.where(had_range, first[1].to(hi.device), hi)
        self._locked[site.label, role] = (lo, hi)
        return lo, hi


def shrink(maps: Tensor, max_tile: int | None) -> tuple[Tensor, int]:
    """Maps [n, c, h, w] averaged down by area until no side exceeds ``max_tile`` px.

    Blocks are whole squares, so a drawn pixel is the plain mean of the block; those at the right
    and lower border may be cut off by it. Float32 sums that could overflow are taken in float64.

    Returns:
        The maps, which may alias the given ones where nothing was to be done; the block's side.
    """
    side = max(maps.shape[2:])
    if max_tile is None or side <= max_tile:
        return maps, 1
    block = -(-side // max_tile)
    # One block row may be longer than the map is high.
    kernel = (min(block, maps.shape[2]), min(block, maps.shape[3]))
    means = F.avg_pool2d(
        maps.float() if maps.dtype != torch.float64 else maps,
        kernel,
        stride=(block, block),
        ceil_mode=True,
        count_include_pad=False,
    )
    if maps.device.type == "cpu" and not bool(torch.isfinite(means).all()):
        means = F.avg_pool2d(
            maps.double(), kernel, (block, block), ceil_mode=True, count_include_pad=False
        )
    return means, block


def _unrounded(whole: Tensor, lo: Tensor, hi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Extremes of averaged planes, f64 [n, c], and bool [n, c]: the plane itself is constant.

    A mean of equal values may be one rounding off: drawn between its extremes, a constant map
    would be noise from black to white.
    """
    nearly = hi - lo <= 1e-5 * torch.maximum(lo.abs(), hi.abs())
    if whole.device.type == "cpu" and not bool(nearly.any()):
        return lo, hi, nearly
    true_lo, true_hi, _ = extremes(whole)
    flat = true_lo == true_hi
    return torch.where(flat, true_lo, lo), torch.where(flat, true_hi, hi), flat


def extremes(drawn: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Finite extremes of each plane, f64 [n, c], and whether all values are known to be finite.

    A plane without a finite value gives lo = inf and hi = -inf.
    """
    lo, hi = drawn.amin((2, 3)), drawn.amax((2, 3))
    if drawn.device.type == "cpu" and bool((torch.isfinite(lo) & torch.isfinite(hi)).all()):
        return lo.double(), hi.double(), True
    finite = torch.isfinite(drawn)
    lo = drawn.masked_fill(~finite, torch.inf).amin((2, 3))
    hi = drawn.masked_fill(~finite, -torch.inf).amax((2, 3))
    return lo.double(), hi.double(), False


def quantise(drawn: Tensor, lo: Tensor, hi: Tensor) -> Tensor:
    """u8 [n, c, h, w]: floor(255 * (x - lo) / (hi - lo)), as make_grid and add_image have it.

    Values outside the limits are drawn as the limit, NaN as 0; a plane without a range
    is 0 throughout. Each plane is first scaled by a power of two, exactly, so that neither 3e38
    overflows nor 1e-44 vanishes.
    """
    magnitude = torch.maximum(lo.abs(), hi.abs())
    exponent = torch.frexp(magnitude).exponent.clamp(-126, 126)
    unit = torch.ldexp(torch.ones_like(magnitude), -exponent)
    low, high = (lo * unit).to(drawn.dtype), (hi * unit).to(drawn.dtype)
    span = high - low
    span = torch.where(span > 0, span, torch.full_like(span, torch.inf))
    scaled = drawn * unit.to(drawn.dtype)[..., None, None]
    scaled.sub_(low[..., None, None]).div_(span[..., None, None])
    scaled.nan_to_num_(nan=0.0).clamp_(0.0, 1.0).mul_(255.0)
    return scaled.to(torch.uint8)


def mark(drawn: Tensor) -> Tensor:
    """u8 [n, c, h, w]: a `Mark` where a value is not finite, else 0."""
    marks = torch.zeros(drawn.shape, dtype=torch.uint8, device=drawn.device)
    marks.masked_fill_(torch.isnan(drawn), int(Mark.NAN))
    marks.masked_fill_(drawn == torch.inf, int(Mark.POSITIVE_INFINITY))
    return marks.masked_fill_(drawn == -torch.inf, int(Mark.NEGATIVE_INFINITY))


def sample(tensor: Tensor, extremes: Tensor | None = None) -> PendingSample:
    """At most `SAMPLE_SIZE` values for a histogram, a copy: all of a small tensor.

    Of complex numbers the absolute values.

    Of a larger one every k-th in memory order, k having no factor in common with any side, so that
    the sample walks through all rows, columns and channels. No random number is drawn.
    """
    flat = _in_memory_order(tensor.detach().abs() if tensor.is_complex() else tensor.detach())
    total = flat.numel()
    stride = -(-total // SAMPLE_SIZE)
    while any(math.gcd(stride, side) > 1 for side in tensor.shape) and stride > 1:
        stride += 1
    dtype = torch.float64 if flat.dtype == torch.float64 else torch.float32
    return PendingSample(flat[::stride].to(dtype, copy=True), total, extremes)


def _rounded(floor: float | None, dtype: torch.dtype) -> float | None:
    """An activation's floor as the type of its output has it: bfloat16 has no -1.758099."""
    if floor is None or not dtype.is_floating_point:
        return floor
    return float(torch.tensor(floor, dtype=dtype, device="cpu"))


def _in_memory_order(tensor: Tensor) -> Tensor:
    """The tensor flattened [S], as a view wherever it is dense in memory in any axis order."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    return tensor.permute(order).reshape(-1)


def to_numpy(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A float32 copy on the host."""
    copied: npt.NDArray[np.float32] = tensor.detach().to("cpu", torch.float32, copy=True).numpy()
    return copied
