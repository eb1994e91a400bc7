"""Histogram samples of weights and gradients; on accelerators, many of them in one copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from fmapboard.measure.subsample import PendingSample, sample, samples
from fmapboard.model.distributed import local

Samples = dict[str, tuple[PendingSample, PendingSample | None]]
"""By parameter name: the samples of the weight and of its gradient, None if it has none."""


def sample_parameters(
    parameters: Mapping[str, Tensor], scale: Tensor | None = None, *, gradients: bool = True
) -> Samples:
    """Sample parameters and their gradients; of sharded ones, this process's shard.

    Call it inside ``isolation.aside``. Parameters that are empty on this process are left out.

    Args:
        parameters: by name, all on one type of device.
        scale: factor by which the gradients are still multiplied (loss scaling); None for 1.
        gradients: also sample the gradients.
    """
    weights, grads = dict[str, Tensor](), dict[str, Tensor]()
    for name, parameter in parameters.items():
        part = local(parameter.detach())
        if not part.numel():
            continue
        weights[name] = part
        if gradients and parameter.grad is not None:
            own = local(parameter.grad.detach())
            grads[name] = own.coalesce().values() if own.is_sparse else own
    if all(weight.is_cpu for weight in weights.values()):
        found = {name: _unscaled(sample(grad), scale) for name, grad in grads.items()}
        return {name: (sample(weight), found.get(name)) for name, weight in weights.items()}
    of_weights, of_grads = _together(list(weights.values()), list(grads.values()), scale)
    by_name = dict(zip(grads, of_grads, strict=True))
    pairs = zip(weights, of_weights, strict=True)
    return {name: (taken, by_name.get(name)) for name, taken in pairs}


def _together(
    weights: list[Tensor], grads: list[Tensor], scale: Tensor | None
) -> tuple[list[PendingSample], list[PendingSample]]:
    """Samples of weights and of gradients; in one copy per dtype unless there is a scale."""
    if scale is not None:
        return samples(weights), samples(grads, scale)
    found = samples([*weights, *grads])
    return found[: len(weights)], found[len(weights) :]


def _unscaled(sampled: PendingSample, scale: Tensor | None) -> PendingSample:
    if scale is None:
        return sampled
    return replace(sampled, values=sampled.values / scale.to(sampled.values.device))
