"""Whether bfloat16 computes about the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fmapboard.rehearsal.experiment import Answer, Experiment, fault, fine, not_judged
from fmapboard.rehearsal.setup import Setup


@dataclass(frozen=True, slots=True)
class Bfloat16Agrees(Experiment):
    """The same images with and without autocast to bfloat16, in eval mode, layer by layer.

    It costs two passes, and runs only if it is asked for.

    A fault: a layer whose output is not finite in bfloat16, or deviates by more than the bound.

    Attributes:
        tolerance: deviation of a layer's output, as a share of its standard deviation.
    """

    tolerance: float = 0.2
    kind: ClassVar[str] = "bfloat16_agrees"
    question: ClassVar[str] = "Does bfloat16 agree?"
    bound: ClassVar[str] = "each layer within a fifth of its standard deviation"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch = setup.few()
        device = setup.inputs(batch)[0].device.type
        with torch.autocast(device, enabled=False):
            exact = setup.forward(setup.make_copy(), batch, training=False)
        with torch.autocast(device, dtype=torch.bfloat16):
            coarse = setup.forward(setup.make_copy(), batch, training=False)
        largest = 0.0
        for call, other in zip(exact.calls, coarse.calls, strict=False):
            for output, rounded in zip(call.outputs, other.outputs, strict=False):
                if output.shape != rounded.shape or output.numel() < 2:
                    continue
                difference = (output.double() - rounded.double()).square().mean().sqrt()
                share = float(difference / output.double().std().clamp(min=1e-12))
                if not share <= self.tolerance:
                    return fault(
                        f"{call.name or 'the network'} ({call.kind}) is the first that deviates, "
                        f"by {share:.2g} of its standard deviation",
                        figure=share,
                        layer=call.name,
                        advice="Run this layer without autocast",
                    )
                largest = max(largest, share)
        if not exact.calls:
            return not_judged("no layer was called")
        return fine(f"every layer, within {largest:.2g} of its standard deviation", largest)
