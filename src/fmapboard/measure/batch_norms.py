"""How far the statistics of a batch are from those that BatchNorm keeps for evaluation.

A BatchNorm layer in train mode stores no statistics of the batch, but mixes the variance into its
running variance. The batch's variance follows from the running variance before and after, so no
feature map is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_MOST_ROUNDING = 0.05
"""A gap is not reported if rounding of the running variance could change it by more than this."""
_LEAST_BATCHES = 50
"""Batches after which running statistics should no longer be the initial ones."""
_SMALL_MOMENTUM = 2e-4
"""Momentum up to which a layer counts as hardly updated; the smallest published one is 3e-4."""
_INITIAL = 0.9
"""Share of the initial value in a running variance from which that is mostly the initial one."""
_SHARE_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True)
class BatchNormLayer:
    """What is known about a BatchNorm layer on the host.

    Attributes:
        name: its name in the model.
        momentum: the weight of a batch in the running variance; None for a cumulative average.
        eps: added to variances.
    """

    name: str
    momentum: float | None
    eps: float


@dataclass(frozen=True, slots=True)
class RunningState:
    """Copies of running statistics, still on the device.

    Attributes:
        variances: running variances [C1 + C2 + ...] of all layers.
        counts: i64 [L], how many batches each layer has seen.
    """

    variances: Tensor
    counts: Tensor


@dataclass(frozen=True, slots=True)
class PendingGaps:
    """The running statistics of BatchNorm layers before and after a forward pass.

    Attributes:
        layers: the layers.
        channels: number of channels of each.
        before: their state before the pass.
        after: their state after it.
    """

    layers: tuple[BatchNormLayer, ...]
    channels: tuple[int, ...]
    before: RunningState
    after: RunningState

    def gaps(self) -> dict[str, float]:
        """Wait for the device: layer -> median over channels of |log(batch / running variance)|.

        ``eps`` is added to both variances; the running one is that before the pass. If a layer ran
        more than once, its batches are averaged. A layer is left out if it did not update its
        statistics, if they are not finite, or if rounding hides the batch.
        """
        before, after = self.before.variances.cpu().double(), self.after.variances.cpu().double()
        old, new = (of.split_with_sizes(list(self.channels)) for of in (before, after))
        first, last = self.before.counts.tolist(), self.after.counts.tolist()
        rounding = torch.finfo(self.before.variances.dtype).eps
        found = {}
        for n, layer in enumerate(self.layers):
            gap = _gap(layer, old[n], new[n], (first[n], last[n]), rounding)
            if gap is not None:
                found[layer.name] = gap
        return found

    def initial(self) -> tuple[str, ...]:
        """Wait for the device: layers whose running variance is still mostly the initial one.

        After n batches, (1 - momentum)^n of it is the initial value, 1. Layers count with a
        momentum of at most 2e-4 whose share is at least 0.9 after 50 batches or more. No running
        variance that started at 1 can be below the share; those of a loaded checkpoint are.
        """
        variances = self.after.variances.cpu().double().split_with_sizes(list(self.channels))
        first, last = self.before.counts.tolist(), self.after.counts.tolist()
        found = []
        for layer, variance, begun, count in zip(self.layers, variances, first, last, strict=True):
            if layer.momentum is None or layer.momentum > _SMALL_MOMENTUM:
                continue
            if not begun < count or count < _LEAST_BATCHES:
                continue
            share = (1 - layer.momentum) ** count
            if share >= _INITIAL and bool((variance >= share - _SHARE_ROUNDING).all()):
                found.append(layer.name)
        return tuple(found)


def _gap(
    layer: BatchNormLayer, old: Tensor, new: Tensor, counts: Sequence[int], rounding: float
) -> float | None:
    first, last = counts
    if last <= first:
        return None
    momentum = layer.momentum
    kept = first / last if momentum is None else (1 - momentum) ** (last - first)
    if not kept < 1:
        return None
    batch = (new - kept * old) / (1 - kept)
    error = 2 * rounding * torch.maximum(old, new) / (1 - kept)
    running = old + layer.eps
    if not torch.isfinite(batch).all() or bool((batch < -error).any()):
        return None  # another rule than BatchNorm's, or the layer has seen a non-finite value
    seen = batch.clamp(min=0) + layer.eps
    if bool((error / torch.minimum(running, seen)).median() > _MOST_ROUNDING):
        return None
    # numpy's logarithm, because MKL's would start a team of OpenMP threads (see capture.sending).
    logarithms = torch.from_numpy(np.log((seen / running).numpy()))
    return float(logarithms.abs().median())
