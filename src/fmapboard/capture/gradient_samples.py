"""Which gradients are not 0: told from a few of their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from fmapboard.capture.isolation import aside

_VALUES = 64
"""At most twice as many values are read of each gradient, spread evenly."""


@dataclass(frozen=True, slots=True)
class GradientSamples:
    """Values of gradients, still on their devices.

    Attributes:
        names: per device and dtype, the names of the parameters.
        counts: how many values there are of each.
        values: the values [n1 + n2 + ...].
    """

    names: tuple[tuple[str, ...], ...] = ()
    counts: tuple[tuple[int, ...], ...] = ()
    values: tuple[Tensor, ...] = ()

    def nonzero(self) -> frozenset[str]:
        """Wait for the device: names of the parameters with a value that is not 0."""
        found = set[str]()
        for names, counts, values in zip(self.names, self.counts, self.values, strict=True):
            parts = values.cpu().split_with_sizes(list(counts))
            found |= {name for name, part in zip(names, parts, strict=True) if part.any()}
        return frozenset(found)


def sample_gradients(gradients: Mapping[str, Tensor]) -> GradientSamples:
    """Read a few values of gradients, in one copy per device and dtype.

    Args:
        gradients: by name of the parameter. Sparse ones are left out.
    """
    groups: defaultdict[tuple[torch.device, torch.dtype], dict[str, Tensor]] = defaultdict(dict)
    with torch.no_grad():
        for name, gradient in gradients.items():
            if gradient.layout == torch.strided and gradient.numel():
                flat = gradient.detach().reshape(-1)
                part = flat[:: max(1, flat.numel() // _VALUES)]
                groups[gradient.device, gradient.dtype][name] = part
    values = []
    for (device, _), own in groups.items():
        with aside(device.type):
            values.append(torch.cat(list(own.values())))
    return GradientSamples(
        tuple(tuple(own) for own in groups.values()),
        tuple(tuple(len(part) for part in own.values()) for own in groups.values()),
        tuple(values),
    )
