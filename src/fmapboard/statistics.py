"""Per-channel numbers of a tensor, exact over the whole batch, on the tensor's own device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fmapboard.records import Statistics

# Beyond these, squares and sums of float32 may overflow or vanish.
_LARGE, _SMALL = 1e15, 1e-15
# Below this ratio of variance to squared mean, E[x²] - E[x]² loses digits in float32.
_CANCELLATION = 0.1
# A float32 sum of many like squares drifts; so many at most are summed before float64 takes over.
_RUN = 512


@dataclass(frozen=True, slots=True)
class PendingStatistics:
    """`records.Statistics` still on the device: f64 [8 or 9, C], one copy to the host."""

    rows: Tensor

    def to_host(self) -> Statistics:
        """Wait for the device and copy."""
        rows = self.rows.cpu().numpy()
        minimum, maximum, mean, std = rows[:4]
        nan, up, down = rows[4:7].astype(np.int64)
        return Statistics(
            minimum,
            maximum,
            mean,
            std,
            nan,
            up,
            down,
            constant=rows[7] > 0,
            dead=rows[8] > 0 if len(rows) == 9 else None,
        )

    @property
    def extremes(self) -> Tensor:
        """f64 [2]: the smallest and the largest finite value of all channels, NaN for none."""
        lo = torch.nan_to_num(self.rows[0], nan=torch.inf).amin()
        hi = torch.nan_to_num(self.rows[1], nan=-torch.inf).amax()
        return torch.stack([lo, hi]).masked_fill(lo > hi, torch.nan)


def statistics(maps: Tensor, floor: float | None = None) -> PendingStatistics:
    """Extremes, mean, spread, non-finite counts and flags of each channel.

    Args:
        maps: [N, C, ...] float32 or float64, not empty; read before this returns on the CPU, in
            stream order elsewhere, and never kept.
        floor: the value at which an activation is off, as the type of the activation's own
            output rounds it; gives the `dead` row.
    """
    planes = maps.flatten(2) if maps.dim() > 2 else maps.unsqueeze(2)  # [N, C, S]
    if planes.device.type == "cpu":
        fast = _fast(planes)
        if fast is not None:
            return _with_flags(fast, planes, floor)
    return _with_flags(_masked(planes), planes, floor)


def _fast(planes: Tensor) -> Tensor | None:
    """f64 [7, C] for finite values of ordinary size, in vectorised float32 passes; None if not."""
    lo, hi = planes.amin(2).double(), planes.amax(2).double()  # [N, C]
    largest = torch.maximum(lo.abs(), hi.abs())  # [N, C]
    # False for NaN and infinities.
    ordinary = (largest == 0.0) | ((largest > _SMALL) & (largest < _LARGE))
    if not bool(ordinary.all()):
        return None
    count = planes.shape[2]
    means = planes.sum(2).double() / count  # [N, C]
    spreads = (_squares(planes) / count - means.square()).clamp_(min=0.0)
    if bool(((spreads < _CANCELLATION * means.square()) & (lo != hi)).any()):
        near = means.to(planes.dtype)
        centred = planes - near.unsqueeze(2)
        rest = centred.sum(2).double() / count  # what rounding left of the mean
        spreads = (_squares(centred) / count - rest.square()).clamp_(min=0.0)
        means = near.double() + rest
    lowest, highest, mean = lo.amin(0), hi.amax(0), means.mean(0)
    variance = (spreads + (means - mean).square()).mean(0)
    one_value = lowest == highest
    mean, std = torch.where(one_value, lowest, mean), variance.sqrt().masked_fill(one_value, 0.0)
    zeros = torch.zeros_like(mean)
    return torch.stack([lowest, highest, mean, std, zeros, zeros, zeros])


def _squares(planes: Tensor) -> Tensor:
    """f64 [N, C]: the sum of the squares of each plane."""
    runs = planes.shape[2] // _RUN
    whole, rest = planes[..., : runs * _RUN], planes[..., runs * _RUN :]
    cut = whole.view(*planes.shape[:2], runs, _RUN)  # [N, C, runs, _RUN]
    norms = torch.linalg.vector_norm(cut, dim=3)  # [N, C, runs]
    last = torch.linalg.vector_norm(rest, dim=2, keepdim=True)
    return torch.cat([norms, last], 2).double().square().sum(2)


def _masked(planes: Tensor) -> Tensor:
    """f64 [7, C], for any values: sums in float64 over the finite ones."""
    finite = torch.isfinite(planes)
    count = finite.sum((0, 2)).double()  # [C]
    lo = planes.masked_fill(~finite, torch.inf).amin((0, 2)).double()
    hi = planes.masked_fill(~finite, -torch.inf).amax((0, 2)).double()
    # Each channel near 1, so that the squares of 1e300 do not overflow nor those of 1e-200 vanish.
    exponent = torch.frexp(torch.maximum(lo.abs(), hi.abs())).exponent.clamp(-1000, 1000)
    unit = torch.exp2(-exponent.double())  # [C]
    known = planes.masked_fill(~finite, 0.0).double() * unit[None, :, None]
    mean = known.sum((0, 2)) / count
    # NaN only where a channel has no finite value, and nothing there is counted.
    centred = (known - mean[None, :, None].nan_to_num()).masked_fill_(~finite, 0.0)
    std = (centred.square().sum((0, 2)) / count).sqrt() / unit
    mean = mean / unit
    none = count == 0
    nan = torch.isnan(planes).sum((0, 2)).double()
    up, down = ((planes == end).sum((0, 2)).double() for end in (torch.inf, -torch.inf))
    return torch.stack(
        [lo.masked_fill(none, torch.nan), hi.masked_fill(none, torch.nan), mean, std, nan, up, down]
    )


def _with_flags(rows: Tensor, planes: Tensor, floor: float | None) -> PendingStatistics:
    several = planes.shape[0] * planes.shape[2] > 1
    all_finite = rows[4:7].sum(0) == 0
    constant = (rows[0] == rows[1]) & all_finite & several
    flags = [constant.double()]
    if floor is not None:
        flags.append((constant & (rows[1] == floor)).double())
    return PendingStatistics(torch.cat([rows, torch.stack(flags)]))
