"""``PendingParameters``: what was read of a model's parameters in a logged step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from fmapboard.capture.update_ratios import PendingUpdates
from fmapboard.measure.norms import NO_NORMS, PendingNorms
from fmapboard.measure.subsample import PendingSample
from fmapboard.records import NONE, Nonfinite, Parameter


@dataclass(frozen=True, slots=True)
class PendingParameters:
    """``records.Parameter`` data still on the device.

    Attributes:
        names: names of the parameters that were read, in the model's order.
        norms: gradient norms.
        samples: histogram samples of weight and gradient, by parameter name.
        nonfinite: counts of non-finite gradient values, by parameter name; already on the host
            (only gradients on the CPU are counted immediately).
        updates: how much the optimizers changed the parameters.
        listed: names of the parameters whose norms are listed; None for all.
    """

    names: tuple[str, ...] = ()
    norms: PendingNorms = NO_NORMS
    samples: Mapping[str, tuple[PendingSample, PendingSample | None]] = field(default_factory=dict)
    nonfinite: Mapping[str, Nonfinite] = field(default_factory=dict)
    updates: tuple[PendingUpdates, ...] = ()
    listed: frozenset[str] | None = None

    def tensors(self) -> Iterator[Tensor]:
        """All tensors held."""
        yield from self.norms.tensors()
        for update in self.updates:
            yield from update.tensors()
        for weight, gradient in self.samples.values():
            yield weight.values
            if gradient is not None:
                yield gradient.values

    def to_host(self) -> tuple[Parameter, ...]:
        """Wait for the device and copy to the host."""
        norms = self.norms.to_host()
        parameters = []
        for name in self.names:
            weight, gradient = self.samples.get(name, (None, None))
            parameters.append(
                Parameter(
                    name,
                    None if weight is None else weight.to_host(),
                    None if gradient is None else gradient.to_host(),
                    norms.get(name),
                    self.nonfinite.get(name, NONE),
                    self.listed is None or name in self.listed,
                )
            )
        return tuple(parameters)


NO_PARAMETERS = PendingParameters()
