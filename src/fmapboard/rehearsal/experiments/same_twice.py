"""Whether a step is the same twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from fmapboard.rehearsal.experiment import Answer, Experiment, fine
from fmapboard.rehearsal.setup import Setup


@dataclass(frozen=True, slots=True)
class SameTwice(Experiment):
    """Two passes in training mode from the same random state.

    It costs two passes. It names the first layer whose output differs, which is no fault: some
    operations of accelerators add in an order that changes.
    """

    kind: ClassVar[str] = "same_twice"
    question: ClassVar[str] = "Is it deterministic?"
    bound: ClassVar[str] = "bitwise the same on a CPU"

    def run(self, setup: Setup) -> Answer:
        """See `Experiment.run`."""
        batch = setup.few(16)
        first = setup.forward(setup.make_copy(), batch)
        second = setup.forward(setup.make_copy(), batch)
        for call, other in zip(first.calls, second.calls, strict=False):
            for output, again in zip(call.outputs, other.outputs, strict=False):
                if output.shape == again.shape and torch.equal(output, again):
                    continue
                both_nan = output.shape == again.shape and torch.equal(
                    output.nan_to_num(), again.nan_to_num()
                )
                if not both_nan:
                    name = call.name or "the network"
                    return fine(f"no: {name} ({call.kind}) is the first to differ", 1.0)
        return fine("two passes from the same seed are bitwise the same", 0.0)
