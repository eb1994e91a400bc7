"""How far the statistics of a batch are from those that BatchNorm layers keep for evaluation.

A BatchNorm layer in train mode stores no statistics of the batch, but mixes the variance into its
running variance. The batch's variance follows from the running variance before and after, so no
feature map is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
"""Momentum up to which a layer counts as hardly updated; 3e-4 is that of MNASNet."""
_INITIAL = 0.9
"""Share of the initial value in a running variance from which that is mostly the initial one."""
_SHARE_ROUNDING = 1e-3


class BatchNormLayer(NamedTuple):
    """What is known about a BatchNorm layer on the host.

    Attributes:
        name: its name in the model.
        momentum: the weight of a batch in the running variance; None for a cumulative average.
        eps: added to variances.
    """

    name: str
    momentum: float | None
    eps: float


def running_state(modules: Sequence[_BatchNorm]) -> Packed:
    """Copy what layers keep: the running variance [C] of each, then the number of batches, i64 [1].

    Args:
        modules: layers that keep statistics.
    """
    kept = [(m.running_var, m.num_batches_tracked) for m in modules]
    variances = [variance.detach() for variance, _ in kept]  # type: ignore[union-attr]  # kept
    counts = [count.detach().view(1) for _, count in kept]  # type: ignore[union-attr]  # kept
    return packed(variances + counts)


class PendingGaps(NamedTuple):
    """The running statistics of BatchNorm layers before and after a forward pass.

    Attributes:
        layers: the layers.
        before: their ``running_state`` before the pass.
        after: that after it.
    """

    layers: tuple[BatchNormLayer, ...]
    before: Packed
    after: Packed

    def to_host(self) -> tuple[dict[str, float], tuple[str, ...]]:
        """Wait for the device.

        Returns:
            Layer -> median over channels of |log(batch / running variance)|. ``eps`` is added to
            both variances; the running one is that before the pass. If a layer ran more than once,
            its batches are averaged. A layer is left out if it did not update its statistics, if
            they are not finite, or if rounding hides the batch. Then the layers whose running
            variance is still mostly the initial one.
        """
        old = self.before.split()
        new = self.after.split()
        first_count = len(self.layers)
        gaps = dict[str, float]()
        initial = list[str]()
        for number, layer in enumerate(self.layers):
            counts = _Counts(int(old[first_count + number]), int(new[first_count + number]))
            before = old[number].cpu().double()
            after = new[number].cpu().double()
            rounding = torch.finfo(old[number].dtype).eps
            gap = _gap(layer, before, after, counts, rounding)
            if gap is not None:
                gaps[layer.name] = gap
            if _is_initial(layer, after, counts):
                initial.append(layer.name)
        return gaps, tuple(initial)


class _Counts(NamedTuple):
    """Numbers of batches that a layer has seen, before and after a pass."""

    before: int
    after: int


def _is_initial(layer: BatchNormLayer, variance: Tensor, counts: _Counts) -> bool:
    """True if a layer's running variance is still mostly the initial one.

    After n batches, (1 - momentum)^n of it is the initial value, 1. Layers count with a momentum of
    at most 2e-4 whose share is at least 0.9 after 50 batches or more. No running variance that
    started at 1 can be below the share; those of a loaded checkpoint are.
    """
    if layer.momentum is None or layer.momentum > _SMALL_MOMENTUM:
        return False
    if counts.after <= counts.before or counts.after < _LEAST_BATCHES:
        return False
    share = (1 - layer.momentum) ** counts.after
    return share >= _INITIAL and bool((variance >= share - _SHARE_ROUNDING).all())


def _gap(
    layer: BatchNormLayer, old: Tensor, new: Tensor, counts: _Counts, rounding: float
) -> float | None:
    """Median of |log(batch / running variance)| over channels; None if it is not known.

    Args:
        layer: The layer.
        old: Its running variance before the pass, f64 [C].
        new: That after it.
        counts: The numbers of batches.
        rounding: Relative rounding error of the running variance.
    """
    if counts.after <= counts.before:
        return None
    if layer.momentum is None:
        kept = counts.before / counts.after
    else:
        kept = (1 - layer.momentum) ** (counts.after - counts.before)
    if not kept < 1:
        return None
    batch = (new - kept * old) / (1 - kept)
    error = 2 * rounding * torch.maximum(old, new) / (1 - kept)
    is_finite = bool(torch.isfinite(batch).all())
    if not is_finite or bool((batch < -error).any()):
        return None  # another rule than BatchNorm's, or the layer has seen a non-finite value
    running = old + layer.eps
    seen = batch.clamp(min=0) + layer.eps
    relative = error / torch.minimum(running, seen)
    if bool(relative.median() > _MOST_ROUNDING):
        return None
    # numpy's logarithm, because MKL's would start a team of OpenMP threads (see session.step).
    logarithms = torch.from_numpy(np.log((seen / running).numpy()))
    return float(logarithms.abs().median())
