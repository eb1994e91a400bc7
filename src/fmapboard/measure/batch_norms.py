"""How far the statistics of a batch are from those that BatchNorm keeps for evaluation.

A BatchNorm layer in train mode stores no statistics of the batch, but mixes the variance into its
running variance. The batch's variance follows from the running variance before and after, so no
feature map is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_MOST_ROUNDING = 0.05
"""A gap is not reported if rounding of the running variance could change it by more than this."""


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

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        for state in (self.before, self.after):
            yield from (state.variances, state.counts)

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
