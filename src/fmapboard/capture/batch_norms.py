"""Copies the running statistics of BatchNorm layers before and after the recorded forward pass."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from fmapboard.capture.isolation import aside
from fmapboard.measure.batch_norms import BatchNormLayer, PendingGaps, RunningState
from fmapboard.model.layers import clean_name


class BatchNormReader:
    """Reads the BatchNorm layers, SyncBatchNorm included, that update their statistics in a pass.

    Args:
        model: the unwrapped model.

    Attributes:
        pending: what was read in the last pass that ended.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._before: list[tuple[dict[str, _BatchNorm], RunningState]] = []
        self.pending: tuple[PendingGaps, ...] = ()

    def discard(self) -> None:
        """Drop what was read."""
        self._before, self.pending = [], ()

    def begins(self) -> None:
        """Called when a forward pass of the model begins; layers in eval mode are left out."""
        self.discard()
        groups: defaultdict[Any, dict[str, _BatchNorm]] = defaultdict(dict)
        states: defaultdict[Any, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for name, module in self._model.named_modules():
            if isinstance(module, _BatchNorm) and module.training:
                kept = _statistics(module)
                if kept is not None:
                    key = kept[0].device, kept[0].dtype, kept[1].device
                    groups[key][clean_name(name) or type(module).__name__] = module
                    states[key].append(kept)
        self._before = [(group, _copied(states[key])) for key, group in groups.items()]

    def ended(self) -> None:
        """Called when that pass has returned."""
        begun, self._before = self._before, []
        self.pending = tuple(_gaps(group, before) for group, before in begun)


def _statistics(module: _BatchNorm) -> tuple[Tensor, Tensor] | None:
    """The running variance and the number of batches; None if the layer does not keep them."""
    variance, count = module.running_var, module.num_batches_tracked
    if not module.track_running_stats or variance is None or count is None or is_lazy(variance):
        return None
    return variance.detach(), count.detach()


def _copied(kept: list[tuple[Tensor, Tensor]]) -> RunningState:
    with aside(kept[0][0].device.type):
        return RunningState(torch.cat([v for v, _ in kept]), torch.stack([n for _, n in kept]))


def _gaps(group: dict[str, _BatchNorm], before: RunningState) -> PendingGaps:
    layers = tuple(BatchNormLayer(n, m.momentum, m.eps) for n, m in group.items())
    channels = tuple(module.num_features for module in group.values())
    kept = [found for module in group.values() if (found := _statistics(module)) is not None]
    return PendingGaps(layers, channels, before, _copied(kept))
