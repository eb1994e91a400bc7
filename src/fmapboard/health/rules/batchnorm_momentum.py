"""Running statistics that stay the initial ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from fmapboard.health.evidence import Evidence
from fmapboard.health.finding import Finding, named
from fmapboard.health.rule import Rule


@dataclass(frozen=True, slots=True)
class BatchnormMomentumCheck(Rule):
    """A running variance that is still 90 % or more the initial one after 50 batches or more.

    Why it hurts: in eval mode the network computes something else than in training.

    Silent: for loaded statistics, and for layers in eval mode.

    Example: a momentum of 0.999, meant as in Keras: in torch it is the weight of a new batch.
    """

    kind: ClassVar[str] = "batchnorm_momentum"
    group: ClassVar[str] = "batchnorm_gap"
    cure: ClassVar[str] = "usual_momentum"

    def find(self, evidence: Evidence) -> Iterator[Finding]:
        """See `Rule.find`."""
        newest = evidence.newest
        names = list(newest.initial_norms)
        if not names:
            return
        facts = evidence.record.facts.items()
        since = next(step for step, known in facts if names[0] in known.initial_norms)
        count = len(names) + newest.left_out.get("initial_norms", 0)
        layers = "layer is" if count == 1 else "layers is"
        yield Finding(
            message=f"the running variance of {count} BatchNorm {layers} still 90 % or more the "
            f"initial value of 1 after 50 batches or more, since step {since}: "
            f"{named(names, count)}",
            since_step=since,
            layer=names[0],
            value=count,
            healthy="10 % or less after 50 batches, at the usual momentum of 0.1",
            meaning="The momentum is 0 or far too small (in torch it is the weight of a new batch)",
            advice="Use a momentum of 0.1 or 0.01; call eval() on layers that are to stay",
        )
