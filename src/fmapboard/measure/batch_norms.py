"""How far the statistics of a batch are from those that BatchNorm keeps for evaluation.

A BatchNorm layer in train mode stores no statistics of the batch, but mixes the variance into its
running variance. The batch's variance follows from the running variance before and after, so no
feature map is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from fmapboard.model.tensors import Packed, packed

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
    """Copies of the running statistics of BatchNorm layers, still on the device.

    Attributes:
        variances: running variances [C] of each layer.
        counts: i64 [1], how many batches each layer has seen.
    """

    variances: Packed
    counts: Packed

    @classmethod
    def of(cls, modules: Iterable[_BatchNorm]) -> RunningState:
        """Copy the statistics of layers that keep them."""
        kept = [(m.running_var.detach(), m.num_batches_tracked.detach()) for m in modules]  # type: ignore[union-attr]  # they keep them
        variances, counts = packed([v for v, _ in kept]), packed([n.view(1) for _, n in kept])
        return cls(variances, counts)

    def to_host(self) -> tuple[list[Tensor], list[int]]:
        """Wait for the device: variances [C] and counts, by layer."""
        return (
            [one.cpu() for one in self.variances.split()],
            [int(one) for one in self.counts.split()],
        )


@dataclass(frozen=True, slots=True)
class PendingGaps:
    """The running statistics of BatchNorm layers before and after a forward pass.

    Attributes:
        layers: the layers.
        before: their state before the pass.
        after: their state after it.
    """

    layers: tuple[BatchNormLayer, ...]
    before: RunningState
    after: RunningState

    def to_host(self) -> tuple[dict[str, float], tuple[str, ...]]:
        """Wait for the device.

        Returns:
            Layer -> median over channels of |log(batch / running variance)|. ``eps`` is added to
            both variances; the running one is that before the pass. If a layer ran more than once,
            its batches are averaged. A layer is left out if it did not update its statistics, if
            they are not finite, or if rounding hides the batch. Then the layers whose running
            variance is still mostly the initial one.
        """
        old, first = self.before.to_host()
        new, last = self.after.to_host()
        gaps, initial = {}, []
        for n, layer in enumerate(self.layers):
            rounding, counts = torch.finfo(old[n].dtype).eps, (first[n], last[n])
            gap = _gap(layer, old[n].double(), new[n].double(), counts, rounding)
            if gap is not None:
                gaps[layer.name] = gap
            if _is_initial(layer, new[n].double(), counts):
                initial.append(layer.name)
        return gaps, tuple(initial)


def _is_initial(layer: BatchNormLayer, variance: Tensor, counts: tuple[int, int]) -> bool:
    """True if a layer's running variance is still mostly the initial one.

    After n batches, (1 - momentum)^n of it is the initial value, 1. Layers count with a momentum of
    at most 2e-4 whose share is at least 0.9 after 50 batches or more. No running variance that
    started at 1 can be below the share; those of a loaded checkpoint are.
    """
    first, last = counts
    if layer.momentum is None or layer.momentum > _SMALL_MOMENTUM:
        return False
    if not first < last or last < _LEAST_BATCHES:
        return False
    share = (1 - layer.momentum) ** last
    return share >= _INITIAL and bool((variance >= share - _SHARE_ROUNDING).all())


def _gap(
    layer: BatchNormLayer, old: Tensor, new: Tensor, counts: tuple[int, int], rounding: float
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
